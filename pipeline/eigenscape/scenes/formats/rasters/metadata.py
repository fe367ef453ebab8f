"""Bands by the metadata of a raster: wavelengths, bad bands, names, scale, nodata."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from eigenscape.scenes.formats.bandlists import to_nanometers

_MICROMETERS = "Micrometers"


@dataclass(frozen=True)
class BandMetadata:
    """Metadata of all bands of one raster, one entry per band.

    Attributes
    ----------
    wavelength, fwhm
        In nanometres, NaN where unknown; None where no band has any.
    good
        False where a bad-band list says 0, and for an alpha band.
    names
        Band descriptions, empty strings where there are none.
    scale, offset
        value = stored * scale + offset.
    nodata
        Stored value of missing pixels, or None.
    colors
        What GDAL takes each band for ("red", "gray", "undefined").
    """

    wavelength: tuple[float, ...] | None
    fwhm: tuple[float, ...] | None
    good: tuple[bool, ...]
    names: tuple[str, ...]
    scale: tuple[float, ...]
    offset: tuple[float, ...]
    nodata: tuple[float | None, ...]
    colors: tuple[str, ...] = ()


def read_band_metadata(dataset: Any) -> BandMetadata:
    """Collect the metadata of the bands of an open rasterio dataset.

    Tags of a band win over the lists of the ENVI domain, and these over GDAL's IMAGERY domain,
    which rounds to a nanometre.
    """
    count = dataset.count
    bands = [_normalise(dataset.tags(band)) for band in range(1, count + 1)]
    imagery = [_normalise(dataset.tags(band, ns="IMAGERY")) for band in range(1, count + 1)]
    whole = _normalise(dataset.tags()) | _normalise(dataset.tags(ns="ENVI"))

    unit = next((tags["wavelength_units"] for tags in bands if "wavelength_units" in tags), None)
    unit = unit or whole.get("wavelength_units")
    stored = _per_band(bands, "wavelength") or _listed(whole, "wavelength", count)
    wavelength = to_nanometers(stored, unit) if stored else None
    if wavelength is None and (rounded := _per_band(imagery, "central_wavelength_um")):
        wavelength = to_nanometers(rounded, _MICROMETERS)
    widths = _per_band(bands, "fwhm") or _listed(whole, "fwhm", count)
    fwhm = to_nanometers(widths, unit, like=stored) if widths else None
    if fwhm is None and (rounded := _per_band(imagery, "fwhm_um")):
        fwhm = to_nanometers(rounded, _MICROMETERS)

    flags = _per_band(bands, "bbl") or _listed(whole, "bbl", count) or (1.0,) * count
    colors = tuple(interpretation.name for interpretation in dataset.colorinterp)
    scale, offset = _scales(dataset, whole)
    ignored = _number(whole.get("data_ignore_value"))
    return BandMetadata(
        wavelength=wavelength,
        fwhm=fwhm,
        good=tuple(
            flag != 0 and color != "alpha" for flag, color in zip(flags, colors, strict=True)
        ),
        names=tuple(name or "" for name in dataset.descriptions),
        scale=scale,
        offset=offset,
        nodata=tuple(
            (None if math.isnan(ignored) else ignored) if value is None else float(value)
            for value in dataset.nodatavals
        ),
        colors=colors,
    )


def braced_list(text: str) -> list[str]:
    """Return the items of an ENVI list; empty ones too, as items are known by their place.

    Examples
    --------
    >>> braced_list("{Unclassified, , bare soil,}")
    ['Unclassified', '', 'bare soil']
    """
    items = [item.strip() for item in text.strip().strip("{}").split(",")]
    return items if items[-1] else items[:-1]


def _scales(dataset: Any, whole: Mapping[str, str]) -> tuple[tuple[float, ...], tuple[float, ...]]:
    scale, offset = tuple(map(float, dataset.scales)), tuple(map(float, dataset.offsets))
    factor = _number(whole.get("reflectance_scale_factor"))
    if set(scale) == {1.0} and set(offset) == {0.0} and factor > 0:
        # ENVI stores reflectance times this factor; GDAL keeps it as text only.
        scale = (1.0 / factor,) * len(scale)
    return scale, offset


def _normalise(tags: Mapping[str, str]) -> dict[str, str]:
    return {key.strip().lower().replace(" ", "_"): value for key, value in tags.items()}


def _per_band(tags: Sequence[Mapping[str, str]], key: str) -> tuple[float, ...] | None:
    values = tuple(_number(band.get(key)) for band in tags)
    return None if all(math.isnan(value) for value in values) else values


def _listed(tags: Mapping[str, str], key: str, count: int) -> tuple[float, ...] | None:
    values = tuple(_number(item) for item in braced_list(tags.get(key, "")))
    # A list of another length cannot be matched to the bands.
    return values if len(values) == count else None


def _number(text: str | None) -> float:
    try:
        return float(text) if text is not None else math.nan
    except ValueError:
        return math.nan

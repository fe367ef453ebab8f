"""Bands by the metadata of a raster: wavelengths, bad bands, names, scale, nodata."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from eigenscape.errors import SceneError
from eigenscape.scenes.formats.bandlists import to_nanometers, told_unit
from eigenscape.scenes.formats.named.lists import BandLists
from eigenscape.scenes.formats.rasters.rasterfiles import IDENTITY
from eigenscape.scenes.grids import COLUMN_AXES, ROW_AXES

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
    notes
        Lists that are not used, as they have another length or a unit that is not understood.
    """

    wavelength: tuple[float, ...] | None
    fwhm: tuple[float, ...] | None
    good: tuple[bool, ...]
    names: tuple[str, ...]
    scale: tuple[float, ...]
    offset: tuple[float, ...]
    nodata: tuple[float | None, ...]
    colors: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def of_bands(self, places: Sequence[int]) -> "BandMetadata":
        """Return the metadata of some of the bands, by their places from 0."""
        per_band = {field.name: getattr(self, field.name) for field in fields(self)}
        del per_band["notes"]
        chosen: dict[str, Any] = {
            name: None if values is None else tuple(values[place] for place in places)
            for name, values in per_band.items()
        }
        return replace(self, **chosen)


def read_band_metadata(dataset: Any, lists: BandLists | None = None) -> BandMetadata:
    """Collect the metadata of the bands of an open rasterio dataset.

    Tags of a band win over the lists of the ENVI domain, and these over GDAL's IMAGERY domain,
    which rounds to a nanometre.

    Parameters
    ----------
    dataset
        The raster.
    lists
        Arrays along its bands in a NetCDF or HDF5 file, used where GDAL knows nothing.
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

    if lists is not None:
        wavelength, fwhm = wavelength or lists.wavelength, fwhm or lists.fwhm
    unused = (told_unit(unit),) * (wavelength is None and stored is not None and unit is not None)
    unused = unused or (lists.notes if lists is not None and wavelength is None else ())
    flags = _per_band(bands, "bbl") or _listed(whole, "bbl", count) or (1.0,) * count
    colors = tuple(interpretation.name for interpretation in dataset.colorinterp)
    scale, offset = _scales(dataset, whole)
    ignored = _number(whole.get("data_ignore_value"))
    # Of a number in braces GDAL makes 0.
    own = dataset.driver == "ENVI" and not math.isnan(ignored)
    return BandMetadata(
        wavelength=wavelength,
        fwhm=fwhm,
        good=tuple(
            flag != 0 and listed and color != "alpha"
            for flag, listed, color in zip(
                flags, lists.good if lists else (True,) * count, colors, strict=True
            )
        ),
        names=tuple(name or "" for name in dataset.descriptions),
        scale=scale,
        offset=offset,
        nodata=tuple(
            (None if math.isnan(ignored) else ignored) if value is None or own else float(value)
            for value in dataset.nodatavals
        ),
        colors=colors,
        notes=(
            *unused,
            *(
                f"{key} has {length} entries for {count} bands: ignored"
                for key in ("wavelength", "fwhm", "bbl")
                if (length := len(_entries(whole, key))) not in (0, count)
            ),
        ),
    )


def check_axes(dataset: Any, path: str) -> None:
    """Refuse a NetCDF file whose last two axes are not rows and columns, for which GDAL takes them.

    Raises
    ------
    SceneError
        Rows or columns stand before the last two.
    """
    extra = dataset.tags().get("NETCDF_DIM_EXTRA", "").strip("{}").split(",")
    wrong = [axis for axis in extra if axis.lower() in {*ROW_AXES, *COLUMN_AXES}]
    if dataset.driver == "netCDF" and wrong:
        raise SceneError(
            f"{path}: its axis {wrong[0]} stands before two others. The last two are read as rows and "
            "columns, and those before them as bands. Store it as bands x rows x columns, for example in "
            f'xarray with .transpose("band", "{wrong[0]}", "x") and its own names of bands and columns.'
        )


def note_unplaced(dataset: Any, path: str) -> str | None:
    """Return what a user should know of a raster with a part of a georeference, and no transform."""
    if tuple(dataset.transform)[:6] != IDENTITY:
        return None
    name = Path(path).name
    points = len(dataset.gcps[0])
    ties = f"{points} ground control points (GCPs)" if points else "coefficients (RPCs)"
    if points or dataset.tags(ns="RPC"):
        return (
            f"{name}: is georeferenced by {ties} alone, so the position of its pixels is unknown: "
            "GeoTIFF outputs keep them, and gdalwarp brings these onto a map. For outputs on a map bring "
            "the scene onto one first, with gdalwarp"
        )
    if dataset.crs:
        return f"{name}: has a coordinate system but no transform, so the position of its pixels is unknown"
    return None


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
    values = tuple(_number(item) for item in _entries(tags, key))
    # A list of another length cannot be matched to the bands.
    return values if len(values) == count else None


def _entries(tags: Mapping[str, str], key: str) -> list[str]:
    return braced_list(tags[key]) if tags.get(key, "").strip(" {}") else []


def _number(text: str | None) -> float:
    """Return a number, which a header of ENVI may have in braces; NaN for none."""
    try:
        return float(text.strip("{} ")) if text is not None else math.nan
    except ValueError:
        return math.nan

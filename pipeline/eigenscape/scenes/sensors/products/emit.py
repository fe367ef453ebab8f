"""EMIT L2A surface reflectance and L1B radiance (NetCDF4), in sensor geometry.

Structure: the mission's own writers of the files, ``output_conversion.py`` of emit-sds/emit-sds-l1b,
emit-sds-l2a and emit-sds-masks, ``make_emit_masks.py`` of the latter two, ``daac_converter.py`` of
emit-sds/emit-utils; and nasa/EMIT-Data-Resources, whose ``emit_tools.py`` unpacks the bits, and whose tests
list the mask bands of a file of version 2. They have ``reflectance`` or ``radiance`` (downtrack,
crosstrack, bands); ``sensor_band_parameters/{wavelengths, fwhm, good_wavelengths}``, in early L1B
``radiance_wl`` and ``radiance_fwhm``; ``location/{glt_x, glt_y}`` (ortho_y, ortho_x; counted from 1, 0 for
none); attributes ``geotransform`` (in GDAL's order) and ``spatial_ref`` of the root. The mask file has
``mask`` (downtrack, crosstrack, bands), with the names of its bands in
``sensor_band_parameters/mask_bands``: version 2 is a collection of its own, with bands of a second
detection of clouds (SpecTf). Its ``band_mask`` (downtrack, crosstrack, 36) has a bit for each band, the
first band the highest bit of the first byte, 1 where its value was interpolated as the detector element is
bad or was saturated; until January 2023 these bytes were stored as numbers of 64 bits.
"""

import re
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from eigenscape.errors import SceneError
from eigenscape.job.options import SceneOptions
from eigenscape.scenes.formats.hdf5 import (
    Hdf5Bands,
    Hdf5File,
    attribute,
    dataset,
    has,
    is_hdf5_with,
    listed,
    number,
    numbers,
    texts,
)
from eigenscape.scenes.sensors.contents import Contents, Cube, Flag
from eigenscape.scenes.sensors.packages import open_package
from eigenscape.scenes.sensors.product import Product, in_nanometres
from eigenscape.scenes.types import Geolocation, Grid, LookupArray

_FILL = -9999.0
_MASKS = {
    "clouds": ("cloud", "dilated cloud", "spectf cloud"),
    "cirrus": ("cirrus",),
    "water": ("water",),
    "defective": ("spacecraft",),
}
"""Bands of the mask file that mark, by their names without "flag"."""

_UNNAMED = ("cloud", "cirrus", "water", "spacecraft", "dilated cloud")
"""Its first bands, where the file does not name them."""

_SCENE = re.compile(r"EMIT_L(?:1B_RAD|2A_RFL)_\d+_(.+)")
_PARAMETERS = "sensor_band_parameters"
_WAVELENGTHS = (f"{_PARAMETERS}/wavelengths", f"{_PARAMETERS}/radiance_wl")
_WIDTHS = (f"{_PARAMETERS}/fwhm", f"{_PARAMETERS}/radiance_fwhm")
_PARTS = ("location/glt_x", "location/glt_y")
_QUANTITIES = {"reflectance": "L2A", "radiance": "L1B"}


class Emit(Product):
    """EMIT L2A reflectance: the file, or the folder of the granule; L1B radiance: the file."""

    name: ClassVar[str] = "emit"

    def recognises(self, path: str) -> bool:
        """Return whether a NetCDF file has the groups of EMIT, or a folder such a file."""
        return _find(path) is not None

    def contents(self, path: str, options: SceneOptions) -> Contents:
        """Return what the granule holds; see `Product.contents`."""
        name = _find(path)
        assert name is not None
        file = Hdf5File(name)
        with file.open() as opened:
            quantity = next(name for name in _QUANTITIES if has(opened, name))
            source = Hdf5Bands.of(file, opened, quantity, "rcb")
            centres, widths = _first(opened, _WAVELENGTHS), _first(opened, _WIDTHS)
            assert centres is not None
            wavelength = in_nanometres(listed(opened, centres).tolist())
            fwhm = listed(opened, widths).tolist() if widths else None
            good = (
                listed(opened, f"{_PARAMETERS}/good_wavelengths")
                if has(opened, f"{_PARAMETERS}/good_wavelengths")
                else np.ones(source.count)
            )
            lists = {"wavelengths": wavelength, "fwhm": fwhm, "good_wavelengths": good}
            for what, values in lists.items():
                if values is not None and len(values) != source.count:
                    raise SceneError(
                        f"{name}: {_PARAMETERS}/{what} has {len(values)} numbers for "
                        f"{source.count} bands: the "
                        "file is damaged. Download it again."
                    )
            fill = number(dataset(opened, quantity), "_FillValue", _FILL)
            geolocation = _lookup(name, opened)
        flags, notes = _flags(name, source.size, np.flatnonzero(good != 0))
        bad = tuple(np.flatnonzero(good == 0).tolist())
        height, width = source.size
        return Contents(
            f"EMIT {_QUANTITIES[quantity]} {quantity}",
            Grid(height, width),
            (
                Cube(
                    source, wavelength, fwhm, fill=fill,
                    dropped={"marked by good_wavelengths of the product (water vapour)": bad},
                ),
            ),
            flags,
            geolocation,
            notes=(*notes, "in sensor geometry, with a lookup table (GLT) to its map grid"),
        )  # fmt: skip


def _is_emit(opened: Any) -> bool:
    named = _first(opened, _WAVELENGTHS) is not None and has(opened, *_PARTS)
    return named and any(has(opened, name) for name in _QUANTITIES)


def _first(opened: Any, names: tuple[str, ...]) -> str | None:
    return next((name for name in names if has(opened, name)), None)


def _find(path: str) -> str | None:
    """Return the reflectance file that a path means; None if it is none."""
    package = open_package(path)
    if package is not None:
        found = package.match(r"EMIT_L2A_RFL_.*\.nc") if package.kind == "folder" else []
        return package.address(found[0]) if len(found) == 1 else None
    return path if is_hdf5_with(path, (".nc",), _is_emit) else None


def _lookup(name: str, opened: Any) -> Geolocation:
    shapes = {dataset(opened, f"location/glt_{axis}").shape for axis in "xy"}
    order = numbers(opened, "geotransform")
    if len(shapes) != 1 or any(len(shape) != 2 for shape in shapes) or len(order) != 6:
        raise SceneError(
            f"{name}: location/glt_x and glt_y have the shapes {shapes}, and geotransform "
            f"{len(order)} numbers: the "
            "file is damaged. Download it again."
        )
    c, a, b, f, d, e = order.tolist()
    wkt = attribute(opened, "spatial_ref")
    x, y = (
        LookupArray(name, part, number(dataset(opened, part), "_FillValue", 0.0)) for part in _PARTS
    )
    return Geolocation("glt", x, y, str(wkt) if wkt else None, (a, b, c, d, e, f))


def _mask_file(name: str) -> Path | None:
    """Return the mask file beside a file of the same scene, the latest version of several."""
    here = Path(name)
    scene = _SCENE.fullmatch(here.name)
    if scene is not None:
        # Versions differ: one collection has reflectance of version 1, another masks of version 2.
        wanted = re.compile(rf"EMIT_L2A_MASK_\d+_{re.escape(scene[1])}")
        found = sorted(other for other in here.parent.iterdir() if wanted.fullmatch(other.name))
        return found[-1] if found else None
    mask = here.with_name(here.name.replace("_RFL_", "_MASK_"))
    return mask if mask != here and mask.is_file() else None


def _flags(
    name: str, size: tuple[int, int], kept: NDArray[np.intp]
) -> tuple[tuple[Flag, ...], tuple[str, ...]]:
    """Return the flags of the mask file beside a file, and what to say.

    `kept`: the bands, from 0, that are used.
    """
    mask = _mask_file(name)
    if mask is None:
        return (), ("no clouds are masked: the mask file (EMIT_L2A_MASK_...nc) is not beside it",)
    file = Hdf5File(str(mask))
    with file.open() as opened:
        source = Hdf5Bands.of(file, opened, "mask", "rcb")
        packed = (
            Hdf5Bands.of(file, opened, "band_mask", "rcb") if has(opened, "band_mask") else None
        )
        told = texts(opened, f"{_PARAMETERS}/mask_bands")
    bands = [_plain(one) for one in told] or list(_UNNAMED)
    if source.size != size or source.count < len(bands):
        raise SceneError(
            f"{mask}: its mask has the shape {source.shape}, for {len(bands)} named bands and "
            f"{size[0]} x {size[1]} pixels of the scene. Put the mask file of this granule beside "
            "it, or none."
        )
    flags = []
    for flag, names in _MASKS.items():
        found = tuple(band for band, one in enumerate(bands) if one in names)
        if found:
            which = " or ".join(bands[band] for band in found)
            flags.append(Flag(flag, f"{which} of the mask file", source, found, values=(1,)))
    notes = () if flags else (f"nothing is masked: {mask.name} has other names of its bands",)
    if packed is not None and packed.dtype in ("uint8", "uint64") and packed.size == size:
        flags += _interpolated(packed, kept)
    return tuple(flags), notes


def _plain(name: str) -> str:
    """Return the name of a mask band as in `_MASKS`: "Dilated Cloud Flag", "SpecTf-Cloud Flag"."""
    return name.lower().replace("-", " ").removesuffix("flag").strip()


def _interpolated(packed: Hdf5Bands, kept: NDArray[np.intp]) -> list[Flag]:
    """Return the flag of values that were interpolated, in the bands that are used."""
    bits = np.zeros(packed.count, np.int64)
    inside = kept[kept < 8 * packed.count]
    np.bitwise_or.at(bits, inside // 8, 1 << (7 - inside % 8))
    used = np.flatnonzero(bits)
    if not len(used):
        return []
    told = "band_mask of the mask file, in a band that is used"
    return [
        Flag("interpolated", told, packed, tuple(used.tolist()), bits=tuple(bits[used].tolist()))
    ]

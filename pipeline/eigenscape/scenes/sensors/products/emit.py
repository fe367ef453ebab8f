"""EMIT L2A surface reflectance and L1B radiance (NetCDF4), in sensor geometry.

Structure: EMIT Level 2A data product user guide (JPL D-107864), tables of variables of the reflectance and
the mask file: ``reflectance`` (downtrack, crosstrack, bands), ``sensor_band_parameters/{wavelengths, fwhm,
good_wavelengths}``, ``location/{glt_x, glt_y}`` (ortho_y, ortho_x; counted from 1, 0 for none), attributes
``geotransform`` (in GDAL's order) and ``spatial_ref`` of the root; ``mask`` (downtrack, crosstrack, 8):
cloud, cirrus, water, spacecraft, dilated cloud, aerosol, water vapour, aggregate; ``band_mask`` (downtrack,
crosstrack, 36): a bit for each band, the first band the highest bit of the first byte, 1 where its value was
interpolated as the detector element is bad or was saturated.
"""

from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from eigenscape.errors import SceneError
from eigenscape.job.options import SceneOptions
from eigenscape.scenes.sensors.contents import Contents, Cube, Flag
from eigenscape.scenes.sensors.hdf5 import (
    Hdf5Bands,
    Hdf5File,
    attribute,
    dataset,
    has,
    is_hdf5_with,
    listed,
    number,
    numbers,
)
from eigenscape.scenes.sensors.packages import open_package
from eigenscape.scenes.sensors.product import Product, in_nanometres
from eigenscape.scenes.types import Geolocation, Grid, LookupArray

_FILL = -9999.0
_MASKS = {
    "clouds": ("cloud or dilated cloud of the mask file", (0, 4)),
    "cirrus": ("cirrus of the mask file", (1,)),
    "water": ("water of the mask file", (2,)),
    "defective": ("spacecraft of the mask file", (3,)),
}
_PARTS = ("sensor_band_parameters/wavelengths", "location/glt_x", "location/glt_y")
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
            parameters = "sensor_band_parameters"
            wavelength = in_nanometres(listed(opened, f"{parameters}/wavelengths").tolist())
            fwhm = (
                listed(opened, f"{parameters}/fwhm").tolist()
                if has(opened, f"{parameters}/fwhm")
                else None
            )
            good = (
                listed(opened, f"{parameters}/good_wavelengths")
                if has(opened, f"{parameters}/good_wavelengths")
                else np.ones(source.count)
            )
            lists = {"wavelengths": wavelength, "fwhm": fwhm, "good_wavelengths": good}
            for what, values in lists.items():
                if values is not None and len(values) != source.count:
                    raise SceneError(
                        f"{name}: {parameters}/{what} has {len(values)} numbers for "
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
    return has(opened, *_PARTS) and any(has(opened, name) for name in _QUANTITIES)


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
    x, y = (LookupArray(name, f"location/glt_{axis}", 0.0) for axis in "xy")
    return Geolocation("glt", x, y, str(wkt) if wkt else None, (a, b, c, d, e, f))


def _flags(
    name: str, size: tuple[int, int], kept: NDArray[np.intp]
) -> tuple[tuple[Flag, ...], tuple[str, ...]]:
    """Return the flags of the mask file beside a reflectance file, and what to say.

    `kept`: the bands, from 0, that are used.
    """
    here = Path(name)
    mask = here.with_name(here.name.replace("_RFL_", "_MASK_"))
    if mask == here or not mask.is_file():
        return (), (
            "no clouds are masked: the mask file "
            f"({mask.name if mask != here else 'EMIT_L2A_MASK_...nc'}) is not "
            "beside it",
        )
    file = Hdf5File(str(mask))
    with file.open() as opened:
        source = Hdf5Bands.of(file, opened, "mask", "rcb")
        packed = (
            Hdf5Bands.of(file, opened, "band_mask", "rcb") if has(opened, "band_mask") else None
        )
    if source.size != size or source.count < 5:
        raise SceneError(
            f"{mask}: its mask has the shape {source.shape}, the reflectance {size[0]} x "
            f"{size[1]} pixels. Put the "
            "mask file of this granule beside it, or none."
        )
    flags = [Flag(flag, told, source, bands, values=(1,)) for flag, (told, bands) in _MASKS.items()]
    if packed is not None and packed.dtype == "uint8" and packed.size == size:
        flags += _interpolated(packed, kept)
    return tuple(flags), ()


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

"""PACE OCI L2 (NetCDF4), in sensor geometry: surface or remote-sensing reflectance.

Structure: ``docs/notebooks/release_note_highlights.md`` of nasa/oceandata-notebooks, which prints a file of
SFREFL of version 3.1 and one of AOP of version 3.2: ``geophysical_data/rhos`` or ``Rrs`` (number_of_lines,
pixels_per_line, bands); ``sensor_band_parameters/wavelength_3d``, which is nominal where
``geophysical_data/wavelength`` (from 3.2 on) has the wavelengths of the bands;
``navigation_data/{longitude, latitude}``; ``geophysical_data/l2_flags``, a flag variable of the CF
conventions (``flag_meanings``, ``flag_masks``) with CLDICE; the bits of HILT and NAVFAIL are those of
OBPG's other sensors. The cube is packed, with ``scale_factor``, ``add_offset`` and ``_FillValue`` (a
reader: opengeos/geolibre-hypercoast). The name ``surface_reflectance`` is from memory.
"""

from typing import Any, ClassVar

import numpy as np
from rasterio.crs import CRS

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
)
from eigenscape.scenes.sensors.contents import Contents, Cube, Flag
from eigenscape.scenes.sensors.product import Product, in_nanometres
from eigenscape.scenes.types import Geolocation, Grid, LookupArray

_CUBES = ("rhos", "Rrs", "surface_reflectance")
_WAVELENGTHS = ("geophysical_data/wavelength", "sensor_band_parameters/wavelength_3d")
_MEANINGS = {"clouds": ("CLDICE",), "saturated": ("HILT",), "defective": ("NAVFAIL",)}


class Pace(Product):
    """PACE OCI L2: the .nc file."""

    name: ClassVar[str] = "pace"
    variables: ClassVar[tuple[str, ...]] = _CUBES

    def recognises(self, path: str) -> bool:
        """Return whether a NetCDF file has the groups of OCI L2 and a cube."""
        return is_hdf5_with(path, (".nc",), lambda opened: bool(_cubes(opened)))

    def variable(self, path: str, options: SceneOptions) -> str | None:
        """Return which cube is the scene."""
        with Hdf5File(path).open() as opened:
            return options.variable or _cubes(opened)[0]

    def contents(self, path: str, options: SceneOptions) -> Contents:
        """Return what the file holds; see `Product.contents`."""
        file = Hdf5File(path)
        with file.open() as opened:
            known = _cubes(opened)
            chosen = options.variable or known[0]
            if chosen not in known:
                raise SceneError(
                    f"{path}: has no {chosen} (scene.variable). Its cubes are {', '.join(known)}."
                )
            name = f"geophysical_data/{chosen}"
            source = Hdf5Bands.of(file, opened, name, "rcb")
            wavelength = _wavelength(path, opened, chosen, source.count)
            cells = dataset(opened, name)
            cube = Cube(
                source, wavelength, scale=number(cells, "scale_factor", 1.0),
                offset=number(cells, "add_offset", 0.0), fill=number(cells, "_FillValue", -32767.0),
            )  # fmt: skip
            flags = _flags(file, opened, source.size)
            lookup = _lookup(path, opened, source.size)
        others = [other for other in known if other != chosen]
        notes = (
            [f"the cube {chosen}; for {' or '.join(others)} set scene.variable"] if others else []
        )
        return Contents(
            f"PACE OCI L2 {chosen}", Grid(*source.size), (cube,), flags, lookup,
            notes=(*notes, "in sensor geometry, with longitude and latitude of each pixel (IGM)"),
        )  # fmt: skip


def _cubes(opened: Any) -> list[str]:
    named = any(has(opened, name) for name in _WAVELENGTHS)
    if not named or not has(opened, "navigation_data/longitude", "navigation_data/latitude"):
        return []
    return [name for name in _CUBES if has(opened, f"geophysical_data/{name}")]


def _wavelength(path: str, opened: Any, cube: str, count: int) -> tuple[float, ...]:
    """Return the wavelengths of a cube: the measured ones where the file has them."""
    lists = [listed(opened, name) for name in _WAVELENGTHS if has(opened, name)]
    for values in lists:
        if len(values) == count:
            return in_nanometres(values.tolist())
    raise SceneError(
        f"{path}: {' and '.join(_WAVELENGTHS)} have {' and '.join(str(len(one)) for one in lists)} "
        f"numbers for {count} bands of {cube}."
    )


def _lookup(path: str, opened: Any, size: tuple[int, int]) -> Geolocation:
    arrays = []
    for name in ("navigation_data/longitude", "navigation_data/latitude"):
        found = dataset(opened, name)
        if tuple(found.shape) != size:
            raise SceneError(f"{path}: {name} has the shape {found.shape}, the pixels {size}.")
        arrays.append(LookupArray(path, name, number(found, "_FillValue", -32767.0)))
    return Geolocation("igm", arrays[0], arrays[1], str(CRS.from_epsg(4326).to_wkt()))


def _flags(file: Hdf5File, opened: Any, size: tuple[int, int]) -> tuple[Flag, ...]:
    name = "geophysical_data/l2_flags"
    if not has(opened, name):
        return ()
    source = Hdf5Bands.of(file, opened, name, "rc")
    meanings = str(attribute(dataset(opened, name), "flag_meanings") or "").split()
    masks = (
        numbers(dataset(opened, name), "flag_masks").astype(np.int64).tolist() if meanings else []
    )
    if source.size != size or len(meanings) != len(masks):
        return ()
    # The bit of the sign is stored as a negative number.
    bits = {meaning: mask & 0xFFFFFFFF for meaning, mask in zip(meanings, masks, strict=True)}
    flags = []
    for flag, wanted in _MEANINGS.items():
        mask = sum(bits.get(meaning, 0) for meaning in wanted)
        if mask:
            flags.append(Flag(flag, f"l2_flags {', '.join(wanted)}", source, bits=mask))
    return tuple(flags)

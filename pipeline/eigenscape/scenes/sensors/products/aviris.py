"""AVIRIS-3, AVIRIS-5 and AVIRIS-NG as NetCDF4: orthorectified, or radiance in sensor geometry.

Structure: readers of the files, as neither a file nor its description could be opened: ``spec_io.py`` of
the instruments' laboratory (emit-sds/SpectralUtil), ``io/netcdf.py`` of EnSpec/hytools, and
``readers/aviris.py`` of FujiangJi/hyperproc, which tells of files of AVIRIS-5. They have the group
``reflectance`` with ``reflectance`` (wavelength, northing, easting), ``wavelength`` and ``fwhm``;
``transverse_mercator`` with ``crs_wkt`` or ``spatial_ref`` and ``GeoTransform``; ``easting`` and
``northing``, which opengeos/geolibre-hypercoast takes for pixel centres. L1B has ``radiance/radiance``
(wavelength, lines, samples) and ``geolocation_lookup_table/{sample, line}``, counted from 1, 0 for none and
negative for a neighbour. The ENVI files of AVIRIS, with IGM and GLT, are read by
`eigenscape.scenes.readers.envi`.
"""

from typing import Any, ClassVar

import numpy as np
from rasterio.crs import CRS
from rasterio.errors import CRSError

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
from eigenscape.scenes.sensors.contents import Contents, Cube
from eigenscape.scenes.sensors.product import Product, in_nanometres
from eigenscape.scenes.types import Geolocation, Grid, LookupArray

Transform = tuple[float, float, float, float, float, float]

_QUANTITIES = ("reflectance", "radiance")
_MAPPINGS = ("transverse_mercator", "projection")
_LOOKUP = ("geolocation_lookup_table/sample", "geolocation_lookup_table/line")


class Aviris(Product):
    """AVIRIS NetCDF: the .nc file."""

    name: ClassVar[str] = "aviris"

    def recognises(self, path: str) -> bool:
        """Return whether a NetCDF file has the groups of AVIRIS."""
        return is_hdf5_with(path, (".nc",), lambda opened: _quantity(opened) is not None)

    def contents(self, path: str, options: SceneOptions) -> Contents:
        """Return what the file holds; see `Product.contents`."""
        file = Hdf5File(path)
        with file.open() as opened:
            quantity = _quantity(opened)
            assert quantity is not None
            name = f"{quantity}/{quantity}"
            source = Hdf5Bands.of(file, opened, name, "brc")
            wavelength = in_nanometres(listed(opened, f"{quantity}/wavelength").tolist())
            fwhm = f"{quantity}/fwhm"
            widths = listed(opened, fwhm).tolist() if has(opened, fwhm) else None
            if len(wavelength) != source.count or (
                widths is not None and len(widths) != source.count
            ):
                raise SceneError(
                    f"{path}: {quantity}/wavelength or fwhm has another number than the "
                    f"{source.count} bands: "
                    "the file is damaged. Download it again."
                )
            fill = number(dataset(opened, name), "_FillValue", -9999.0)
            lookup = None
            if _placed(opened, source.size):
                grid = _grid(path, opened, source.size)
            else:
                grid, lookup = Grid(*source.size), _lookup(path, opened)
        cube = Cube(source, wavelength, widths, fill=fill)
        notes = ["no clouds are masked: the product has no layer of them"]
        if lookup is not None:
            notes.append("in sensor geometry, with a lookup table (GLT) to its map grid")
        return Contents(f"AVIRIS {quantity}", grid, (cube,), geolocation=lookup, notes=tuple(notes))


def _quantity(opened: Any) -> str | None:
    for name in _QUANTITIES:
        placed = has(opened, "easting", "northing") or has(opened, *_LOOKUP)
        if placed and has(opened, f"{name}/{name}", f"{name}/wavelength"):
            return name
    return None


def _placed(opened: Any, size: tuple[int, int]) -> bool:
    """Return whether the cube lies on the map grid, and not beside a lookup table to it.

    Coordinates alone do not tell: those of the table have its size.
    """
    if not has(opened, "easting", "northing"):
        return False
    lengths = tuple(dataset(opened, name).size for name in ("northing", "easting"))
    return lengths == size or not has(opened, *_LOOKUP)


def _grid(path: str, opened: Any, size: tuple[int, int]) -> Grid:
    height, width = size
    crs, transform = _mapping(path, opened)
    if transform is not None:
        return Grid(height, width, crs, transform)
    x, y = _steps(path, opened, "easting", width), _steps(path, opened, "northing", height)
    return Grid(height, width, crs, (x[1], 0.0, x[0] - x[1] / 2, 0.0, y[1], y[0] - y[1] / 2))


def _lookup(path: str, opened: Any) -> Geolocation:
    crs, transform = _mapping(path, opened)
    if transform is None:
        raise SceneError(f"{path}: has no GeoTransform of its lookup table. Download it again.")
    shapes = {dataset(opened, name).shape for name in _LOOKUP}
    if len(shapes) != 1 or any(len(shape) != 2 for shape in shapes):
        raise SceneError(f"{path}: its lookup table has the shapes {shapes}. Download it again.")
    fills = [attribute(dataset(opened, name), "_FillValue") for name in _LOOKUP]
    x, y = (
        LookupArray(path, name, 0.0 if fill is None else float(fill))
        for name, fill in zip(_LOOKUP, fills, strict=True)
    )
    return Geolocation("glt", x, y, crs, transform)


def _mapping(path: str, opened: Any) -> tuple[str, Transform | None]:
    """Return coordinate reference system and transform of the map grid, None for one by coordinates."""
    for name in _MAPPINGS:
        if has(opened, name):
            mapping = opened[name]
            wkt = attribute(mapping, "crs_wkt") or attribute(mapping, "spatial_ref")
            break
    else:
        raise SceneError(
            f"{path}: has no grid mapping ({' or '.join(_MAPPINGS)}). Download it again."
        )
    try:
        crs = str(CRS.from_wkt(str(wkt)).to_wkt())
    except CRSError as error:
        raise SceneError(
            f"{path}: its coordinate reference system cannot be read: {error}. Download it again."
        ) from None
    if attribute(mapping, "GeoTransform") is not None:
        order = numbers(mapping, "GeoTransform")
        if len(order) != 6 or not np.isfinite(order).all():
            raise SceneError(f"{path}: GeoTransform is not a list of 6 numbers. Download it again.")
        c, a, b, f, d, e = order.tolist()
        return crs, (a, b, c, d, e, f)
    return crs, None


def _steps(path: str, opened: Any, name: str, count: int) -> tuple[float, float]:
    """Return the first coordinate of pixel centres, and the step between them."""
    values = listed(opened, name)
    step = np.diff(values)
    if (
        len(values) != count
        or count < 2
        or not np.allclose(step, step[0], rtol=1e-3)
        or not step[0]
    ):
        raise SceneError(f"{path}: {name} has no even steps for {count} pixels. Download it again.")
    return float(values[0]), float((values[-1] - values[0]) / (count - 1))

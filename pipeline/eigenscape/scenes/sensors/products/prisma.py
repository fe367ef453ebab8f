"""PRISMA L2D surface reflectance (HDF-EOS5, .he5), as file or zip file.

Structure of L2D: ``HDFEOS/SWATHS/PRS_L2D_HCO/Data Fields/{VNIR_Cube, SWIR_Cube}`` (rows, bands, columns),
numbers from 0 to 65535 between ``L2ScaleVnirMin`` and ``L2ScaleVnirMax`` of the root, 0 in all bands beside
the swath; ``List_Cw_Vnir``, ``List_Fwhm_Vnir`` with 0 for bands without data, and ``List_Cw_Vnir_Flags``;
``VNIR_PIXEL_L2_ERR_MATRIX`` with 1 for an invalid pixel of L1, 2 for a negative value after the atmospheric
correction, 3 for saturation; likewise SWIR. EnMAP-Box takes 4 for saturation, which means nothing else
here, so that both are taken for it.

Source: ASI, PRISMA Products Specification Document (issue 2.3), from memory; names, axes, numbers and
corners compared with the readers of prismaread (IREA-CNR-MI/prismaread), EnMAP-Box (EnMAP-Box/enmap-box),
HyperCoast (opengeos/HyperCoast) and hyperproc (FujiangJi/hyperproc), the values of the ERR matrices with
SNAP's reader (package eu.esa.opt.dataio.prisma). The corners are centres of pixels for prismaread,
EnMAP-Box and hyperproc, corners of pixels for HyperCoast: their distance decides.
"""

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from rasterio.crs import CRS
from rasterio.errors import CRSError

from eigenscape.errors import SceneError
from eigenscape.job.options import SceneOptions
from eigenscape.scenes.formats.hdf5 import Hdf5Bands, Hdf5File, has, is_hdf5_with, number, numbers
from eigenscape.scenes.sensors.contents import Contents, Cube, Flag
from eigenscape.scenes.sensors.packages import open_package
from eigenscape.scenes.sensors.product import Product
from eigenscape.scenes.types import Grid

_FIELDS = "HDFEOS/SWATHS/PRS_L2D_HCO/Data Fields"
_CUBES = (f"{_FIELDS}/VNIR_Cube", f"{_FIELDS}/SWIR_Cube")
_LARGEST = 65535.0
_SATURATED = (3, 4)
_PIXEL = 30.0
"""Metres, where the corners do not tell it."""


class Prisma(Product):
    """PRISMA L2D: the .he5 file, or the zip file that holds it."""

    name: ClassVar[str] = "prisma"

    def recognises(self, path: str) -> bool:
        """Return whether a file has PRISMA's L2D swath, or a zip file one such file."""
        return _find(path) is not None

    def contents(self, path: str, options: SceneOptions) -> Contents:
        """Return what the product holds; see `Product.contents`."""
        file = _find(path)
        assert file is not None
        with file.open() as opened:
            if _level(opened) != "L2D":
                raise SceneError(
                    f"{path}: is PRISMA {_level(opened)}; L2D, reflectance on a map grid, can be read. Order "
                    "that level."
                )
            swir, shortest = _cube(file, opened, "Swir")
            vnir, _ = _cube(file, opened, "Vnir", below=shortest)
            if vnir.source.size != swir.source.size:
                raise SceneError(
                    f"{path}: VNIR_Cube has {vnir.source.size} rows and columns, SWIR_Cube "
                    f"{swir.source.size}. "
                    "Download the product again."
                )
            grid = _grid(path, opened, vnir.source.size)
            flags = _flags(file, opened, (vnir, swir))
        notes = (
            ("compressed within a zip file, which is slow to read: unpack it",)
            if file.member
            else ()
        )
        return Contents("PRISMA L2D reflectance", grid, (vnir, swir), flags, notes=notes, empty=0.0)


def _is_prisma(opened: Any) -> bool:
    return has(opened, "HDFEOS/SWATHS") and bool(_level(opened))


def _find(path: str) -> Hdf5File | None:
    package = open_package(path)
    if package is not None:
        found = package.match(r"PRS_L2D_.*\.he5") if package.kind in ("folder", "zip") else []
        if len(found) != 1:
            return None
        folder = package.kind == "folder"
        return Hdf5File(package.address(found[0])) if folder else Hdf5File(path, found[0])
    known = is_hdf5_with(path, (".he5", ".h5"), _is_prisma)
    return Hdf5File(path) if known else None


def _level(opened: Any) -> str | None:
    """Return the level of a product of PRISMA, None of other files."""
    swaths = [str(name) for name in list(opened["HDFEOS/SWATHS"])[:16]]
    if has(opened, *_CUBES):
        return "L2D"
    return next((name.split("_")[1] for name in swaths if name.startswith("PRS_L")), None)


def _cube(file: Hdf5File, opened: Any, detector: str, below: float = np.inf) -> tuple[Cube, float]:
    """Return a detector's bands in the order of their wavelengths, and the shortest of them."""
    source = Hdf5Bands.of(file, opened, f"{_FIELDS}/{detector.upper()}_Cube", "rbc")
    wavelength = _list(file, opened, f"List_Cw_{detector}", source.count)
    fwhm = _list(file, opened, f"List_Fwhm_{detector}", source.count)
    marked = np.ones(source.count)
    if f"List_Cw_{detector}_Flags" in opened.attrs:
        marked = _list(file, opened, f"List_Cw_{detector}_Flags", source.count)
    absent = (wavelength <= 0) | (marked == 0)
    over = ~absent & (wavelength >= below)
    least, most = (number(opened, f"L2Scale{detector}{end}") for end in ("Min", "Max"))
    known = wavelength[~absent]
    if not len(known):
        raise SceneError(
            f"{file.name}: List_Cw_{detector} has no wavelength: the product is damaged. Download it again."
        )
    cube = Cube(
        source,
        wavelength.tolist(),
        fwhm.tolist(),
        [f"{detector.upper()} {band + 1}" for band in range(source.count)],
        scale=(most - least) / _LARGEST,
        offset=least,
        dropped={
            "without data (wavelength 0 or flag 0 in the product)": tuple(
                np.flatnonzero(absent).tolist()
            ),
            "VNIR bands that overlap with SWIR": tuple(np.flatnonzero(over).tolist()),
        },
        order=tuple(np.argsort(wavelength, kind="stable").tolist()),
    )
    return cube, float(known.min())


def _list(file: Hdf5File, opened: Any, name: str, count: int) -> NDArray[np.float64]:
    found = numbers(opened, name)
    if len(found) != count:
        raise SceneError(
            f"{file.name}: {name} has {len(found)} numbers for {count} bands: the product is damaged. "
            "Download it again."
        )
    return found


def _grid(path: str, opened: Any, size: tuple[int, int]) -> Grid:
    """Return the map grid: whether corners are those of pixels or their centres is told by their distance."""
    height, width = size
    west, north, east, south = (
        number(opened, f"Product_{corner}")
        for corner in (
            "ULcorner_easting",
            "ULcorner_northing",
            "LRcorner_easting",
            "LRcorner_northing",
        )
    )
    code = number(opened, "Epsg_Code")
    try:
        wkt = str(CRS.from_epsg(int(code)).to_wkt())
    except CRSError as error:
        raise SceneError(f"{path}: Epsg_Code is {code:g}, which is not a code ({error}).") from None
    if not (east > west and north > south):
        raise SceneError(
            f"{path}: its corners are x {west:g} to {east:g}, y {north:g} to {south:g}, which "
            "hold no pixels. "
            "Download the product again."
        )
    across, down = (east - west) / width, (north - south) / height
    if width > 1 and height > 1:
        inner = (east - west) / (width - 1), (north - south) / (height - 1)
        if max(abs(side - _PIXEL) for side in inner) < max(
            abs(side - _PIXEL) for side in (across, down)
        ):
            across, down = inner
            west, north = west - across / 2, north + down / 2
    return Grid(height, width, wkt, (across, 0.0, west, 0.0, -down, north))


def _flags(file: Hdf5File, opened: Any, cubes: tuple[Cube, ...]) -> tuple[Flag, ...]:
    flags = []
    for cube, detector in zip(cubes, ("VNIR", "SWIR"), strict=True):
        name = f"{_FIELDS}/{detector}_PIXEL_L2_ERR_MATRIX"
        if not has(opened, name):
            continue
        source = Hdf5Bands.of(file, opened, name, "rbc")
        if source.shape != (cube.source.size[0], cube.source.count, cube.source.size[1]):
            raise SceneError(
                f"{file.name}: {name} has the shape {source.shape}, other than its cube. Download it again."
            )
        out = {band for bands in cube.dropped.values() for band in bands}
        bands = tuple(band for band in range(cube.source.count) if band not in out)
        if bands:
            flags += [
                Flag(
                    "defective",
                    f"ERR matrix of {detector} = 1 in a band",
                    source,
                    bands,
                    values=(1,),
                ),
                Flag(
                    "saturated",
                    f"ERR matrix of {detector} = {' or '.join(map(str, _SATURATED))} in a band",
                    source,
                    bands,
                    values=_SATURATED,
                ),
            ]
    return tuple(flags)

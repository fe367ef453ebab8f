"""NEON AOP surface reflectance, DP1.30006 (flight lines) and DP3.30006 (mosaic tiles), HDF5.

Structure: NEON.DOC.001288, imaging spectrometer reflectance: ``SITE/Reflectance/Reflectance_Data``
(lines, samples, bands) with ``Data_Ignore_Value`` and ``Scale_Factor``; ``SITE/Reflectance/Metadata`` with
``Spectral_Data/{Wavelength, FWHM}``, ``Coordinate_System/{Map_Info, EPSG Code}`` and ``Ancillary_Imagery``;
``Band_Window_n_Nanometers`` of ``Reflectance``. ``Haze_Cloud_Water_Map`` has the classes of ATCOR-4 (user
guide, haze, cloud and water map).

The documents could not be opened. Groups, datasets, their shapes and types, attributes and ``Map_Info``
were compared with what NEON's tutorials print of tiles of DP3.30006.001 and .002
(NEONScience/NEON-Data-Skills) and with the readers EnSpec/hytools, earthlab/neonhs and FujiangJi/hyperproc;
the classes with those of NEON's collection HSI_REFL/002 in the catalogue of Google Earth Engine.
"""

import re
from typing import Any, ClassVar

import numpy as np
from rasterio.crs import CRS
from rasterio.errors import CRSError

from eigenscape.errors import SceneError
from eigenscape.job.options import SceneOptions
from eigenscape.scenes.formats.arrays.arrayfiles import is_zarr
from eigenscape.scenes.formats.hdf5 import (
    Hdf5Bands,
    Hdf5File,
    dataset,
    has,
    is_hdf5_with,
    listed,
    number,
    numbers,
    text,
)
from eigenscape.scenes.formats.xmlfiles import as_number
from eigenscape.scenes.sensors.contents import Contents, Cube, Flag
from eigenscape.scenes.sensors.product import Product, in_nanometres, within
from eigenscape.scenes.types import Grid

_DATA = "Reflectance/Reflectance_Data"
_METADATA = "Reflectance/Metadata"
_CLOUDS = f"{_METADATA}/Ancillary_Imagery/Haze_Cloud_Water_Map"
_VEGETATION = f"{_METADATA}/Ancillary_Imagery/Dark_Dense_Vegetation_Classification"
_PIXELS = 2**20
"""Of a layer, read at a time."""
_MOST_PIXELS = 2**28
"""Of a layer that is compared with another; a flight line has some ten million."""

_CLASSES = {
    "clouds": (15, 16),
    "cirrus": (2, 3, 4, 8, 9, 10, 18, 19),
    "haze": (11, 12, 13, 14),
    # 1 is shadow, 22 that of clouds and buildings; 21, that of the terrain, is no mark of a cloud.
    "cloud-shadows": (1, 22),
    "snow": (7,),
    "water": (17,),
    "saturated": (6,),
}


class Neon(Product):
    """NEON AOP reflectance: the .h5 file."""

    name: ClassVar[str] = "neon"

    def recognises(self, path: str) -> bool:
        """Return whether an HDF5 file has a site with NEON's groups."""
        return not is_zarr(path) and is_hdf5_with(
            path, (".h5", ".hdf5"), lambda opened: _site(opened) is not None
        )

    def contents(self, path: str, options: SceneOptions) -> Contents:
        """Return what the file holds; see `Product.contents`."""
        file = Hdf5File(path)
        with file.open() as opened:
            site = _site(opened)
            assert site is not None
            source = Hdf5Bands.of(file, opened, f"{site}/{_DATA}", "rcb")
            cells = dataset(opened, f"{site}/{_DATA}")
            spectral = f"{site}/{_METADATA}/Spectral_Data"
            wavelength = in_nanometres(listed(opened, f"{spectral}/Wavelength").tolist())
            fwhm = (
                listed(opened, f"{spectral}/FWHM").tolist()
                if has(opened, f"{spectral}/FWHM")
                else None
            )
            for what, values in (("Wavelength", wavelength), ("FWHM", fwhm)):
                if values is not None and len(values) != source.count:
                    raise SceneError(
                        f"{path}: {what} has {len(values)} numbers for {source.count} bands: the file is "
                        "damaged. Download it again."
                    )
            scale = number(cells, "Scale_Factor", 10000.0)
            if scale <= 0:
                raise SceneError(
                    f"{path}: Scale_Factor is {scale:g}; a number above 0 is expected."
                )
            fill = number(cells, "Data_Ignore_Value", -9999.0)
            windows = _windows(opened[f"{site}/Reflectance"])
            grid = _grid(path, opened, site, source.size)
            flags = _flags(file, opened, site, source.size)
            missing = () if flags else (_told_missing(opened, site),)
        return Contents(
            f"NEON AOP reflectance of {site}",
            grid,
            (
                Cube(
                    source, wavelength, fwhm, scale=1.0 / scale, fill=fill,
                    dropped={
                        "within Band_Window_n_Nanometers of the product (water vapour)": within(
                            windows, wavelength
                        )
                    },
                ),
            ),
            flags,
            notes=missing,
        )  # fmt: skip


def _site(opened: Any) -> str | None:
    for site in list(opened)[:16]:
        if has(opened, f"{site}/{_DATA}", f"{site}/{_METADATA}/Spectral_Data/Wavelength"):
            return str(site)
    return None


def _windows(group: Any) -> list[tuple[float, float]]:
    """Return the ranges of wavelength, in nanometres, that the product calls bad."""
    found = []
    for name in sorted(
        name for name in group.attrs if re.fullmatch(r"Band_Window_\d+_Nanometers", name)
    ):
        ends = numbers(group, name)
        if len(ends) == 2 and np.isfinite(ends).all():
            found.append((float(ends.min()), float(ends.max())))
    return found


def _grid(path: str, opened: Any, site: str, size: tuple[int, int]) -> Grid:
    """Return the map grid: Map_Info is that of ENVI, its reference the upper left corner of pixel 1, 1."""
    place = f"{site}/{_METADATA}/Coordinate_System"
    code, map_info = text(opened, f"{place}/EPSG Code"), text(opened, f"{place}/Map_Info")
    parts = [part.strip() for part in map_info.strip("{} ").split(",")]
    values = [as_number(part) for part in parts[1:7]]
    turned = [
        as_number(part.partition("=")[2]) for part in parts if part.lower().startswith("rotation")
    ]
    if len(values) < 6 or not np.isfinite(values).all() or min(values[4:]) <= 0:
        raise SceneError(
            f"{path}: Map_Info is {map_info[:120]!r}, which contains no coordinates. Download the file again."
        )
    if any(turned):
        raise SceneError(
            f"{path}: Map_Info turns the grid by {turned[0]:g} degrees, which no product of NEON does."
        )
    try:
        wkt = str(CRS.from_epsg(int(as_number(code))).to_wkt())
    except (CRSError, ValueError, OverflowError) as error:
        raise SceneError(
            f"{path}: EPSG Code is {code[:40]!r}, which is not a code ({error})."
        ) from None
    column, row, east, north, across, down = values
    return Grid(
        *size,
        wkt,
        (across, 0.0, east - (column - 1) * across, 0.0, -down, north + (row - 1) * down),
    )


def _flags(file: Hdf5File, opened: Any, site: str, size: tuple[int, int]) -> tuple[Flag, ...]:
    name = f"{site}/{_CLOUDS}"
    if not has(opened, name):
        return ()
    axes = "rc" if dataset(opened, name).ndim == 2 else "rcb"
    source = Hdf5Bands.of(file, opened, name, axes)
    if source.size != size or _is_vegetation(opened, site):
        return ()
    return tuple(
        Flag(flag, f"Haze_Cloud_Water_Map = {', '.join(map(str, values))}", source, values=values)
        for flag, values in _CLASSES.items()
    )


def _is_vegetation(opened: Any, site: str) -> bool:
    """Return whether the map of clouds is the classification of vegetation throughout.

    So it is in what NEON's tutorial of DP3.30006.002 prints of a tile of LIRO, where forest would be cirrus.
    """
    if not has(opened, f"{site}/{_VEGETATION}"):
        return False
    clouds, vegetation = (dataset(opened, f"{site}/{name}") for name in (_CLOUDS, _VEGETATION))
    if clouds.ndim != 2 or clouds.shape != vegetation.shape or clouds.size > _MOST_PIXELS:
        return False
    step = max(1, _PIXELS // clouds.shape[1])
    return all(
        np.array_equal(clouds[row : row + step], vegetation[row : row + step])
        for row in range(0, clouds.shape[0], step)
    )


def _told_missing(opened: Any, site: str) -> str:
    if has(opened, f"{site}/{_CLOUDS}"):
        return (
            "no clouds are masked: Haze_Cloud_Water_Map is of another size, or a copy of "
            "Dark_Dense_Vegetation_Classification"
        )
    return "no clouds are masked: there is no Haze_Cloud_Water_Map"

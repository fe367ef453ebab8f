"""ENVI files of airborne sensors: AVIRIS classic, AVIRIS-NG, AVIRIS-3, HyMap, HySpex; by data file or header.

Structure: NV5, ENVI header format ("ENVI Header Files": sensor type, wavelength, wavelength units, fwhm,
bbl, byte order, interleave, reflectance scale factor); JPL, AVIRIS-NG Data Product Distribution Document
(2016): ``*_igm`` has the bands easting, northing and elevation of each pixel, ``*_loc`` longitude, latitude
and elevation, ``*_glt`` sample and line for each cell of the map grid, negative where the nearest pixel
stands in; from 1 (emit-sds/SpectralUtil). A header of AVIRIS classic (emit-sds/emit-sds-l1b-geo) gives its
IGM in longitude and latitude; its radiance is -50 in all bands beside the flight line (FujiangJi/hyperproc,
arthurmensch/modl). A header of a HySpex camera (cbeleites/hyperSpec) names it by an ID. GDAL reads the
image.
"""

import os
import re
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import numpy as np
from rasterio.crs import CRS
from rasterio.windows import Window

from eigenscape.errors import SceneError
from eigenscape.job.options import SceneOptions
from eigenscape.scenes.formats.rasters.raster import RasterScene
from eigenscape.scenes.formats.rasters.rasterfiles import open_raster, read_grid
from eigenscape.scenes.readers.rasters import open_rasters
from eigenscape.scenes.reading import Reader, Resolve
from eigenscape.scenes.sensors.product import told_bands, told_order
from eigenscape.scenes.types import Geolocation, Grid, LookupArray, Scene

_LINES = {
    r"ang\d{8}t\d{6}": "AVIRIS-NG",
    r"AV3\d{8}t\d{6}": "AVIRIS-3",
    r"AV5\d{8}t\d{6}": "AVIRIS-5",
    r"f\d{6}t\d{2}p\d{2}r\d{2}": "AVIRIS classic",
}
"""How the names of flight lines begin."""

_SENSORS = (
    "aviris",
    "hymap",
    "hyspex",
    "casi",
    "sasi",
    "apex",
    "specim",
    "aisa",
    "hyperion",
    "norsk",
)
_HYSPEX = re.compile(r"^\s*ID\s*=\s*(\S+_SN\d+)\s*$", re.MULTILINE)
"""How cameras name themselves in the description: they write no sensor type."""

_CLASSIC_OUTSIDE = -50.0
_DATA = ("", ".img", ".dat", ".bil", ".bip", ".bsq", ".bin", ".raw", ".cub", ".hyspex")
_LOOKUPS = re.compile(r"[_-](glt|igm|loc)(_ort)?(\.(img|dat|bin|bsq|bil|bip))?$", re.IGNORECASE)
_OTHERS = re.compile(r"[_-](glt|igm|loc|obs|unc|h2o|atm|mask|eph|lbl)([_.-]|$)", re.IGNORECASE)
_HEAD = 2**20


class Envi(Reader):
    """ENVI files of airborne sensors: the data file, its header, or a folder of one flight line."""

    name: ClassVar[str] = "envi"
    priority: ClassVar[int] = 45

    def recognises(self, path: str) -> bool:
        """Return whether a path is an ENVI header, or an image of a sensor or with lookups beside it."""
        return _find(path) is not None

    def files(self, path: str) -> tuple[str, ...]:
        """Return image, header and lookups."""
        scene = self.open(path, SceneOptions(path=path), str)
        lookup: Geolocation | None = getattr(scene, "geolocation", None)
        further = (lookup.x.path, _header(lookup.x.path) or lookup.x.path) if lookup else ()
        return tuple(dict.fromkeys((*scene.files, *further)))

    def open(self, path: str, options: SceneOptions, resolve: Resolve) -> Scene:
        """Open the image by its header; see `Reader.open`."""
        image = _find(path)
        assert image is not None
        check_data(path, image)
        scene = open_rasters([image], options)
        lookup = _geolocation(image, scene.grid)
        if _has_outside(image, scene):
            scene = replace(scene, empty=_CLASSIC_OUTSIDE)
        title = _title(image)
        notes = [told_bands(title, image, scene.bands), *told_order(scene.bands), *scene.notes]
        marked = len(scene.bands.good) - scene.bands.count
        if marked and not options.bad_bands:
            notes.append(f"{marked} bands dropped: marked by the bad-band list (bbl) of the header")
        if lookup is not None:
            beside = Path(lookup.x.path).name
            notes.append(f"in sensor geometry, with a lookup ({lookup.kind.upper()}): {beside}")
        return replace(scene, notes=tuple(notes), geolocation=lookup)


def data_file(path: str) -> str | None:
    """Return the data file that an ENVI header is of, there or not; None if a path is no such header."""
    if not (path.lower().endswith(".hdr") and os.path.isfile(path)):
        return None
    if not _head(path).startswith("ENVI"):
        return None
    stem = path[:-4]
    names = (stem + form for end in _DATA for form in (end, end.upper()))
    return next(filter(os.path.isfile, names), stem)


def image_of(path: str) -> str:
    """Return the data file of an ENVI header, any other path as it is.

    Raises
    ------
    SceneError
        The data file of a header is not there.
    """
    if (data := data_file(path)) is None:
        return path
    check_data(path, data)
    return data


def check_data(path: str, data: str) -> None:
    """Refuse a header without its data file.

    Raises
    ------
    SceneError
        The data file is not there.
    """
    if not os.path.isfile(data):
        raise SceneError(
            f"{path}: is a header, and its data file is not beside it ({Path(data).name}). Copy both."
        )


def _find(path: str) -> str | None:
    """Return the image that a path means; None if it is none of these."""
    if os.path.isdir(path):
        return _of_folder(path)
    if not os.path.isfile(path):
        return None
    if path.lower().endswith(".hdr"):
        return data_file(path)
    header = _header(path)
    if header is None:
        return None
    text = _head(header)
    if not text.startswith("ENVI") or "ENVI Classification" in text:
        return None
    known = _line(path) or any(name in _sensor(text).lower() for name in _SENSORS)
    return path if known or _lookups(path) else None


def _of_folder(path: str) -> str | None:
    """Return the one image of a flight line in a folder; None where there is none, or several."""
    with os.scandir(path) as entries:
        names = sorted(entry.name for entry in entries if os.path.isfile(entry.path))
    images = [
        os.path.join(path, name) for name in names
        if _line(name) and not name.lower().endswith(".hdr") and not _OTHERS.search(name)
    ]  # fmt: skip
    images = [image for image in images if _header(image) is not None]
    if len(images) > 1:
        listed = ", ".join(Path(image).name for image in images[:4])
        raise SceneError(
            f"{path}: holds {len(images)} images of flight lines: {listed}. Give one of them."
        )
    return images[0] if images else None


def _header(path: str) -> str | None:
    names = (stem + end for end in (".hdr", ".HDR") for stem in (path, os.path.splitext(path)[0]))
    return next(filter(os.path.isfile, names), None)


def _head(path: str) -> str:
    with open(path, "rb") as stream:
        return stream.read(_HEAD).decode("latin-1")


def _sensor(text: str) -> str:
    match = re.search(r"^\s*sensor type\s*=\s*(.+)$", text, re.IGNORECASE | re.MULTILINE)
    if match:
        return match[1].strip().strip("{}")
    camera = _HYSPEX.search(text)
    return f"HySpex {camera[1]}" if camera else ""


def _line(path: str) -> tuple[str, str] | None:
    """Return the flight line and the sensor of a name of AVIRIS; None of others."""
    for pattern, sensor in _LINES.items():
        if match := re.match(pattern, Path(path).name):
            return match[0], sensor
    return None


def _title(image: str) -> str:
    line = _line(image)
    header = _header(image)
    sensor = _sensor(_head(header)) if header else ""
    return line[1] if line else sensor if sensor and sensor.lower() != "unknown" else "ENVI image"


def _has_outside(image: str, scene: RasterScene) -> bool:
    """Return whether an image is radiance of AVIRIS classic whose header tells of no missing pixels."""
    line, header = _line(image), _header(image)
    if line is None or line[1] != "AVIRIS classic" or header is None:
        return False
    whole = all(np.dtype(part.dtype).kind == "i" for part in scene.parts)
    return whole and "data ignore value" not in _head(header).lower()


def _lookups(image: str) -> dict[str, str]:
    """Return the GLT and the IGM of an image, by kind: of its flight line, or with its name before "_glt"."""
    line = _line(image)
    stem = os.path.splitext(Path(image).name)[0]
    found: dict[str, str] = {}
    with os.scandir(os.path.dirname(image) or ".") as entries:
        names = sorted(entry.name for entry in entries if os.path.isfile(entry.path))
    for name in names:
        match = _LOOKUPS.search(name)
        if match is None or name == Path(image).name:
            continue
        before = name[: match.start()]
        path = os.path.join(os.path.dirname(image), name)
        belongs = name.startswith(line[0]) if line else before in (stem, stem.rpartition("_")[0])
        if belongs and before and _header(path) is not None:
            kind = "glt" if match[1].lower() == "glt" else "igm"
            found.setdefault(kind, path)
    return found


def _geolocation(image: str, grid: Grid) -> Geolocation | None:
    """Return the lookup of an image in sensor geometry; None for one on a map grid, or without a lookup."""
    if grid.transform is not None and grid.crs_wkt is not None:
        return None
    lookups = _lookups(image)
    if "glt" in lookups:
        path = lookups["glt"]
        with open_raster(path) as opened:
            cells = read_grid(opened, path)
            whole = opened.count >= 2
        if whole and cells.transform is not None:
            return Geolocation(
                "glt",
                LookupArray(path, 1, 0.0),
                LookupArray(path, 2, 0.0),
                cells.crs_wkt,
                cells.transform,
            )
    if "igm" in lookups:
        path = lookups["igm"]
        with open_raster(path) as opened:
            if opened.count < 2 or (opened.height, opened.width) != (grid.height, grid.width):
                return None
            sample = opened.read([1, 2], window=Window(0, opened.height // 2, opened.width, 1))
            crs = read_grid(opened, path).crs_wkt
            fill = opened.nodata
        finite = sample[np.isfinite(sample)]
        if crs is None and len(finite) and np.abs(finite).max() <= 360:
            crs = str(CRS.from_epsg(4326).to_wkt())
        x, y = (LookupArray(path, band, fill) for band in (1, 2))
        return Geolocation("igm", x, y, crs)
    return None

"""Landsat Collection 2 Level-2 (surface reflectance), as folder, tar file, zip file or MTL file.

Structure: USGS LSDS-1619, Landsat 8-9 Collection 2 Level 2 Science Product Guide (package; QA_PIXEL and
QA_RADSAT bits), and LSDS-1618 for Landsat 4-7: files ``*_SR_B1.TIF`` ..., ``*_QA_PIXEL.TIF``,
``*_QA_RADSAT.TIF`` and ``*_MTL.txt`` or ``*_MTL.xml`` with ``REFLECTANCE_MULT_BAND_n`` and
``REFLECTANCE_ADD_BAND_n`` of LEVEL2_SURFACE_REFLECTANCE_PARAMETERS (0.0000275 and -0.2); 0 is fill.
Centre wavelengths are the middle of the ranges in which USGS lists the bands of TM, ETM+ and OLI.

The documents could not be opened. Names of files, groups and keys, scale and offset were compared with the
MTL files of real products of Landsat 4, 5, 7, 8 and 9 (stactools-packages/landsat, tests/data-files;
pytroll/satpy, landsat_metadata); fill values and the bits of each instrument with the descriptions in
stactools-packages/landsat, src/stactools/landsat/fragments.
"""

import re
from pathlib import Path, PurePosixPath
from typing import ClassVar

from eigenscape.errors import SceneError
from eigenscape.job.options import SceneOptions
from eigenscape.scenes.formats.xmlfiles import MOST_BYTES, as_number, parse_xml
from eigenscape.scenes.sensors.contents import Contents, Cube, Flag
from eigenscape.scenes.sensors.packages import Package, folder_of, open_package
from eigenscape.scenes.sensors.product import Product
from eigenscape.scenes.sensors.rasterbands import RasterBands
from eigenscape.scenes.types import Grid

_MTL = r"L[COTEM]0[45789]_L(2S[PR]|1..)_.*_MTL\.(txt|xml)"
_SCALE, _OFFSET = 0.0000275, -0.2

_TM = {1: 485.0, 2: 560.0, 3: 660.0, 4: 830.0, 5: 1650.0, 7: 2215.0}
_ETM = {1: 485.0, 2: 560.0, 3: 660.0, 4: 835.0, 5: 1650.0, 7: 2220.0}
_OLI = {1: 443.0, 2: 482.0, 3: 561.5, 4: 654.5, 5: 865.0, 6: 1608.5, 7: 2200.5}
_CENTRES = {"4": _TM, "5": _TM, "7": _ETM, "8": _OLI, "9": _OLI}

_Marks = dict[str, tuple[str, tuple[int, ...], str]]
"""File and bits of each flag, and what they say."""

_OLI_MARKS: _Marks = {
    "clouds": ("QA_PIXEL", (1, 3), "cloud or dilated cloud"),
    "cirrus": ("QA_PIXEL", (2,), "cirrus, high confidence"),
    "cloud-shadows": ("QA_PIXEL", (4,), "cloud shadow, high confidence"),
    "snow": ("QA_PIXEL", (5,), "snow or ice"),
    "water": ("QA_PIXEL", (7,), "water"),
    "saturated": ("QA_RADSAT", (0, 1, 2, 3, 4, 5, 6), "a band is saturated"),
}

# They have no cirrus band. Band 6, of bit 5, is thermal and says nothing of the reflectance.
_TM_MARKS: _Marks = {
    **{name: mark for name, mark in _OLI_MARKS.items() if name != "cirrus"},
    "saturated": ("QA_RADSAT", (0, 1, 2, 3, 4, 6), "a band is saturated"),
    "defective": ("QA_RADSAT", (9,), "dropped pixel"),
}
_MARKS = {"4": _TM_MARKS, "5": _TM_MARKS, "7": _TM_MARKS, "8": _OLI_MARKS, "9": _OLI_MARKS}


class Landsat(Product):
    """Landsat 4 to 9, Collection 2 Level 2: folder, tar or zip file, or the MTL file."""

    name: ClassVar[str] = "landsat"

    def recognises(self, path: str) -> bool:
        """Return whether a folder or archive has an MTL file of Level 2, or a file is one."""
        return _find(path) is not None

    def contents(self, path: str, options: SceneOptions) -> Contents:
        """Return what the product holds; see `Product.contents`."""
        found = _find(path)
        assert found is not None
        package, mtl = found
        stem = PurePosixPath(mtl).name.rpartition("_MTL")[0]
        if "_L1" in stem:
            raise SceneError(
                f"{path}: is Level 1, at the top of the atmosphere. Download Level-2 science "
                "products, or give "
                "the bands as a list or pattern of files."
            )
        values = _read_mtl(package, mtl)
        images = {
            int(match[1]): name
            for name in package.names
            if (
                match := re.fullmatch(
                    re.escape(stem) + r"_SR_B(\d+)\.TIF", PurePosixPath(name).name, re.I
                )
            )
        }
        if not images:
            raise SceneError(
                f"{path}: has no surface reflectance ({stem}_SR_B*.TIF). Download Level-2 science "
                "products with "
                "surface reflectance; unpack all of the archive."
            )
        centres = _CENTRES[stem[3]]
        cubes: list[Cube] = []
        grid = Grid(0, 0)
        for number, name in sorted(images.items()):
            scale, offset = (
                values.get(f"REFLECTANCE_{what}_BAND_{number}", default)
                for what, default in (("MULT", _SCALE), ("ADD", _OFFSET))
            )
            source = RasterBands.of(package.address(name), package.files(name), nodata=0.0)
            grid = grid if cubes else source.grid
            centre = centres.get(number, float("nan"))
            cubes.append(
                Cube(
                    source,
                    (centre,),
                    None,
                    (f"SR_B{number}",),
                    scale=scale,
                    offset=offset,
                    fill=0.0,
                )
            )
        marks = _MARKS[stem[3]]
        flags = tuple(_flags(package, stem, marks))
        lacking = [name for name in marks if name not in {flag.name for flag in flags}]
        notes = [f"not masked, as the layer is not there: {', '.join(lacking)}"] if lacking else []
        others = [
            name for name in package.names if re.search(r"_ST_B\d+\.TIF$", name, re.IGNORECASE)
        ]
        if others:
            notes.append("surface temperature (ST) is not read: it is not a reflectance")
        return Contents(
            f"Landsat {stem[3]} Collection 2 Level 2 surface reflectance",
            grid,
            tuple(cubes),
            flags,
            files=package.files(mtl),
            notes=tuple(notes),
        )


def _find(path: str) -> tuple[Package, str] | None:
    package = open_package(path)
    if package is None:
        if not re.fullmatch(_MTL, Path(path).name, re.IGNORECASE) or not Path(path).is_file():
            return None
        return folder_of(path), Path(path).name
    found = package.match(_MTL)
    scenes = {PurePosixPath(name).name.rpartition("_MTL")[0] for name in found}
    if len(scenes) > 1:
        raise SceneError(
            f"{path}: holds {len(scenes)} products of Landsat ({min(scenes)} ...). Give the MTL file of one."
        )
    # Both forms say the same.
    return (package, max(found)) if found else None


def _read_mtl(package: Package, mtl: str) -> dict[str, float]:
    """Return the numbers of the parameters of surface reflectance; those of Level 1 have the same names.

    Raises
    ------
    SceneError
        The file is damaged.
    """
    content = package.read(mtl, MOST_BYTES)
    group = "LEVEL2_SURFACE_REFLECTANCE_PARAMETERS"
    pairs: list[tuple[str, str]]
    if mtl.lower().endswith(".xml"):
        root = parse_xml(content, mtl)
        pairs = [(one.tag, one.text or "") for part in root.iter(group) for one in part]
    else:
        text = content.decode("utf-8", "replace")
        match = re.search(rf"GROUP = {group}(.*?)END_GROUP = {group}", text, re.DOTALL)
        lines = match[1].splitlines() if match else []
        pairs = [
            (key.strip(), value.strip())
            for key, _, value in (line.partition("=") for line in lines)
        ]
    if not pairs:
        raise SceneError(
            f"{package.path}: {PurePosixPath(mtl).name} has no {group}: it is not a Level 2 product, or "
            "damaged. Download "
            "the product again."
        )
    numbers = {key: as_number(value) for key, value in pairs}
    wrong = [
        key for key, value in numbers.items() if key.startswith("REFLECTANCE_") and value != value
    ]
    if wrong:
        raise SceneError(
            f"{package.path}: {PurePosixPath(mtl).name}: {wrong[0]} is not a number. "
            "Download the product again."
        )
    return numbers


def _flags(package: Package, stem: str, marks: _Marks) -> list[Flag]:
    flags = []
    for name, (layer, bits, told) in marks.items():
        found = package.match(re.escape(stem) + rf"_{layer}\.TIF")
        if len(found) == 1:
            source = RasterBands.of(
                package.address(found[0]), package.files(found[0]), classes=True
            )
            listed = ", ".join(map(str, bits))
            mask = sum(1 << bit for bit in bits)
            flags.append(Flag(name, f"{layer} bit {listed}: {told}", source, bits=mask))
    return flags

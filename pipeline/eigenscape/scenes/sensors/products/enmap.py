"""EnMAP L1B, L1C and L2A (GeoTIFF and METADATA.XML), as folder, zip file, metadata file or spectral image.

Structure: METADATA.XML, ``specific/bandCharacterisation/bandID`` with ``wavelengthCenterOfBand``,
``FWHMOfBand``, ``GainOfBand`` and ``OffsetOfBand``; value = number * gain + offset. L1C and L2A have
``SPECTRAL_IMAGE.TIF``; L1B has one image for each detector, which are not registered onto each other, and
the entries of VNIR come before those of SWIR. L2A holds fill alone in the bands in which the atmosphere
lets no light through, six of 224 in the example of EnMAP-Box; in an L2A product that SNAP's tests sample,
those between 1331 and 1391 nm. ``product/bandStatistics/bandID`` tells of them a ``stdDeviation`` of 0 and
a ``mean`` of -1000000. Quality layers are ``QL_QUALITY_*.TIF``. ``QL_QUALITY_TESTFLAGS.TIF`` (of L1B
``_VNIR``, ``_SWIR``) has in bit 4 whether SWIR is saturated, in bit 5 whether VNIR is. ``QL_PIXELMASK.TIF``
(of L1B likewise) has a band for each of the image, 1 where the detector element is defective, 255 beside
the swath. L1B has rational polynomial coefficients of each band (``product/navigation/RPC``), which are not
used: they say where a pixel is only where its height is known.

Source: HSI Product Specification Level 1/2 of the EnMAP Ground Segment (EN-PCV-ICD-2009), from memory;
names of files, tags, numbers and flags compared with the readers of SNAP (senbox-org/optical-toolbox,
opttbx-enmap-reader, and what its tests expect of an L1B, an L1C and an L2A product), of EnPT (GFZ/enpt), of
hyperproc (FujiangJi/hyperproc) and of EnMAP-Box (EnMAP-Box/enmap-box), which alone of them reads
``bandStatistics``. No METADATA.XML was seen.
"""

import re
from pathlib import Path, PurePosixPath
from typing import ClassVar
from xml.etree.ElementTree import Element

import numpy as np

from eigenscape.errors import SceneError
from eigenscape.job.options import SceneOptions
from eigenscape.scenes.formats.xmlfiles import MOST_BYTES, as_number, children, parse_xml
from eigenscape.scenes.sensors.contents import Contents, Cube, Flag
from eigenscape.scenes.sensors.packages import Package, folder_of, open_package
from eigenscape.scenes.sensors.product import Product
from eigenscape.scenes.sensors.rasterbands import RasterBands
from eigenscape.scenes.types import Grid

_NAME = re.compile(
    r"ENMAP.*?(?P<level>L1B|L1C|L2A).*-(METADATA\.XML|SPECTRAL_IMAGE(_VNIR|_SWIR)?(_COG)?\.TIFF?)",
    re.IGNORECASE,
)
_METADATA = r"ENMAP.*(L1B|L1C|L2A).*-METADATA\.XML"
_FILL = {"L1B": 0.0, "L1C": 0.0, "L2A": -32768.0}
"""Where the image itself does not say it."""

_FLAGS = {
    "clouds": ("QL_QUALITY_CLOUD", None),
    "cirrus": ("QL_QUALITY_CIRRUS", None),
    "haze": ("QL_QUALITY_HAZE", None),
    "cloud-shadows": ("QL_QUALITY_CLOUDSHADOW", None),
    "snow": ("QL_QUALITY_SNOW", None),
    "water": ("QL_QUALITY_CLASSES", (2,)),
}
"""File of each flag, and the values that mark; all but 0 by default."""

_SATURATED = {"": 0b110000, "_VNIR": 0b100000, "_SWIR": 0b010000}
"""Bits of QL_QUALITY_TESTFLAGS, by the part of the product that an image holds."""

_NO_MEAN = -1e6
"""``mean`` of a band without a number, where ``stdDeviation`` is 0."""


class Enmap(Product):
    """EnMAP: folder, zip file, METADATA.XML or SPECTRAL_IMAGE.TIF."""

    name: ClassVar[str] = "enmap"
    variables: ClassVar[tuple[str, ...]] = ("VNIR", "SWIR")

    def recognises(self, path: str) -> bool:
        """Return whether a folder or zip file has EnMAP's metadata, or a file is of such a product."""
        return _find(path) is not None

    def variable(self, path: str, options: SceneOptions) -> str | None:
        """Return which detector of L1B is the scene; None for other levels."""
        found = _find(path)
        assert found is not None
        return _detector(path, options) if _level(found[1]) == "L1B" else None

    def contents(self, path: str, options: SceneOptions) -> Contents:
        """Return what the product holds; see `Product.contents`."""
        found = _find(path)
        assert found is not None
        package, metadata = found
        level = _level(metadata)
        root = parse_xml(package.read(metadata, MOST_BYTES), metadata)
        entries = list(children(root, "bandCharacterisation", "bandID"))
        stem = metadata[: -len("-METADATA.XML")]
        notes: tuple[str, ...] = ()
        part = ""
        if level == "L1B":
            part = f"_{_detector(path, options)}"
            notes = (
                "one detector of L1B, as the two are not registered onto each other: scene.variable = "
                '"VNIR" or "SWIR"; in sensor geometry',
            )
        elif options.variable is not None:
            raise SceneError(
                f"{path}: scene.variable = {options.variable!r}: {level} has one image of both detectors. "
                "Leave the key out."
            )
        source = _raster(package, stem, f"SPECTRAL_IMAGE{part}")
        bands = _of_image(path, entries, source.count, part)
        without = _without_numbers(root, entries)
        empty = tuple(number for number, entry in enumerate(bands) if entry in without)
        columns = {
            tag: [as_number(one.findtext(tag)) for one in bands]
            for tag in ("wavelengthCenterOfBand", "FWHMOfBand", "GainOfBand", "OffsetOfBand")
        }
        for tag in ("GainOfBand", "OffsetOfBand", "wavelengthCenterOfBand"):
            if not np.isfinite(columns[tag]).all():
                raise SceneError(
                    f"{path}: {metadata}: {tag} of a band is missing or no number. Download the "
                    "product again."
                )
        grid = source.grid
        if level == "L1B":
            # Its coordinates are a fit to the corners of the scene, no georeference.
            grid = Grid(grid.height, grid.width)
        flags = tuple(_flags(package, stem, source, part, empty))
        known = {flag.name for flag in flags}
        lacking = ", ".join(name for name in (*_FLAGS, "saturated") if name not in known)
        if lacking:
            notes = (
                *notes,
                f"not masked, as the product has no layer of its size for it: {lacking}",
            )
        fill = _FILL[level] if source.nodata is None else source.nodata
        return Contents(
            f"EnMAP {level} {'reflectance' if level == 'L2A' else 'radiance'}",
            grid,
            (
                Cube(
                    source,
                    columns["wavelengthCenterOfBand"],
                    columns["FWHMOfBand"],
                    scale=columns["GainOfBand"],
                    offset=columns["OffsetOfBand"],
                    fill=fill,
                    dropped={
                        "without a number in the whole scene, by the statistics of the product": empty
                    },
                ),
            ),
            flags,
            files=package.files(metadata),
            notes=notes,
        )


def _find(path: str) -> tuple[Package, str] | None:
    """Return the package and the metadata file that a path means; None if it is none of EnMAP's."""
    package = open_package(path)
    if package is not None:
        metadata = package.metadata(_METADATA, "EnMAP", "METADATA.XML")
        return (package, metadata) if metadata else None
    match = _NAME.fullmatch(Path(path).name)
    if match is None or not Path(path).is_file():
        return None
    here = folder_of(path)
    stem = re.sub(r"-(METADATA\.XML|SPECTRAL_IMAGE.*)$", "", Path(path).name, flags=re.IGNORECASE)
    found = here.match(re.escape(stem) + r"-METADATA\.XML")
    # The image alone has neither wavelengths nor gains: GDAL reads it as any other.
    return (here, found[0]) if found else None


def _level(metadata: str) -> str:
    match = re.search(r"L1B|L1C|L2A", PurePosixPath(metadata).name, re.IGNORECASE)
    assert match is not None
    return match[0].upper()


def _detector(path: str, options: SceneOptions) -> str:
    if options.variable is not None:
        return options.variable
    return "SWIR" if "SPECTRAL_IMAGE_SWIR" in Path(path).name.upper() else "VNIR"


def _raster(package: Package, stem: str, what: str, *, classes: bool = False) -> RasterBands:
    pattern = _pattern(stem, what)
    found = package.match(pattern)
    # The same raster may be there as a cloud-optimised copy.
    name = min(found, key=len) if found else package.one(pattern, f"{what}.TIF")
    return RasterBands.of(package.address(name), package.files(name), classes=classes)


def _pattern(stem: str, what: str) -> str:
    """Return a pattern of the name of a raster: the portals' cloud-optimised copies end in ``_COG.tiff``."""
    return re.escape(PurePosixPath(stem).name) + rf"-{what}(_COG)?\.TIFF?"


def _of_image(path: str, entries: list[Element], count: int, part: str) -> list[Element]:
    """Return the entries of the metadata for the bands of an image: of L1B those of its detector."""
    if part == "_SWIR" and len(entries) > count:
        entries = entries[-count:]
    elif part == "_VNIR":
        entries = entries[:count]
    if len(entries) != count:
        raise SceneError(
            f"{path}: its metadata list {len(entries)} bands, and SPECTRAL_IMAGE{part} has {count}. "
            "Download it again."
        )
    return entries


def _without_numbers(root: Element, entries: list[Element]) -> set[Element]:
    """Return the entries of bands that hold fill alone, which would leave no pixel of the scene."""
    statistics = list(children(root, "bandStatistics", "bandID"))
    if len(statistics) != len(entries):
        return set()
    return {
        entry
        for entry, told in zip(entries, statistics, strict=True)
        if as_number(told.findtext("stdDeviation")) == 0
        and as_number(told.findtext("mean")) == _NO_MEAN
    }


def _flags(
    package: Package, stem: str, image: RasterBands, part: str, empty: tuple[int, ...]
) -> list[Flag]:
    flags = []
    for name, (layer, values) in _FLAGS.items():
        source = _layer(package, stem, layer, image)
        if source is not None:
            told = f"{layer} = {', '.join(map(str, values))}" if values else f"{layer} not 0"
            flags.append(Flag(name, told, source, values=values))
    layer, bits = f"QL_QUALITY_TESTFLAGS{part}", _SATURATED[part]
    source = _layer(package, stem, layer, image)
    if source is not None:
        numbers = ", ".join(str(bit) for bit in range(8) if bits >> bit & 1)
        flags.append(Flag("saturated", f"{layer} bit {numbers}", source, bits=bits))
    layer = f"QL_PIXELMASK{part}"
    source = _layer(package, stem, layer, image)
    if source is not None and source.count == image.count:
        used = tuple(number for number in range(image.count) if number not in empty)
        flags.append(Flag("interpolated", f"{layer} = 1 in a band", source, used, values=(1,)))
    return flags


def _layer(package: Package, stem: str, name: str, image: RasterBands) -> RasterBands | None:
    """Return a quality layer of the size of an image; None where there is none."""
    if not package.match(_pattern(stem, name)):
        return None
    source = _raster(package, stem, name, classes=True)
    return source if source.size == image.size else None

"""DESIS L2A surface reflectance (GeoTIFF and METADATA.xml), as folder, zip file, metadata file or image.

Structure: METADATA.xml, ``specific/bandCharacterisation/band`` with ``wavelengthCenterOfBand``,
``wavelengthWidthOfBand``, ``gainOfBand`` and ``offsetOfBand``; value = number * gain + offset, -32768 where
there is none. ``interiorOrientation`` has elements ``band`` too, of other contents. ``QL_QUALITY-2.tif``
has the bands shadow, land, snow, haze over land, haze over water, cloud over land, cloud over water, water,
aerosol, water vapour.

Source: DESIS Product Specification (DLR, PAV-DLR-ICD-003), from memory; names of files, tags, the scale and
the order of the quality bands compared with the readers of hyperproc (FujiangJi/hyperproc, which took the
order from the descriptions in a file), RemoteSensingToolbox.jl (JoshuaBillson), krttdkit (Mitchell-D),
fluomapper (jlobu/fluomapper-public) and, tags alone, ACOLITE (acolite/acolite). No METADATA.xml was seen.
"""

import re
from pathlib import Path, PurePosixPath
from typing import ClassVar

import numpy as np

from eigenscape.errors import SceneError
from eigenscape.job.options import SceneOptions
from eigenscape.scenes.formats.xmlfiles import MOST_BYTES, as_number, children, parse_xml
from eigenscape.scenes.sensors.contents import Contents, Cube, Flag
from eigenscape.scenes.sensors.packages import Package, folder_of, open_package
from eigenscape.scenes.sensors.product import Product
from eigenscape.scenes.sensors.rasterbands import RasterBands

_METADATA = r"DESIS-HSI-L2A-.*-METADATA\.xml"
_FLAGS = {
    "clouds": (5, 6),
    "haze": (3, 4),
    "cloud-shadows": (0,),
    "snow": (2,),
    "water": (7,),
}
"""Bands of QL_QUALITY-2, from 0."""


class Desis(Product):
    """DESIS L2A: folder, zip file, METADATA.xml or SPECTRAL_IMAGE.tif."""

    name: ClassVar[str] = "desis"

    def recognises(self, path: str) -> bool:
        """Return whether a folder or zip file has the metadata of DESIS, or a file is of such a product."""
        return _find(path) is not None

    def contents(self, path: str, options: SceneOptions) -> Contents:
        """Return what the product holds; see `Product.contents`."""
        found = _find(path)
        assert found is not None
        package, metadata = found
        root = parse_xml(package.read(metadata, MOST_BYTES), metadata)
        bands = list(children(root, "bandCharacterisation", "band"))
        stem = re.escape(PurePosixPath(metadata).name[: -len("-METADATA.xml")])
        image = package.one(rf"{stem}-SPECTRAL_IMAGE\.tif", "SPECTRAL_IMAGE.tif")
        source = RasterBands.of(package.address(image), package.files(image))
        tags = ("wavelengthCenterOfBand", "wavelengthWidthOfBand", "gainOfBand", "offsetOfBand")
        centre, width, gain, offset = (
            [as_number(one.findtext(tag)) for one in bands] for tag in tags
        )
        if len(bands) != source.count or not np.isfinite([centre, gain, offset]).all():
            raise SceneError(
                f"{path}: {PurePosixPath(metadata).name} lists {len(bands)} bands for "
                f"{source.count}, or lacks "
                "numbers of some. Download the product again."
            )
        flags: tuple[Flag, ...] = ()
        notes = ["no clouds are masked: there is no QL_QUALITY-2.tif"]
        quality = package.match(rf"{stem}-QL_QUALITY-2\.tif")
        if len(quality) == 1:
            layers = RasterBands.of(
                package.address(quality[0]), package.files(quality[0]), classes=True
            )
            if layers.size == source.size and layers.count >= 8:
                flags = tuple(
                    Flag(
                        name, f"QL_QUALITY-2 band {', '.join(str(band + 1) for band in places)}",
                        layers, places,
                    )
                    for name, places in _FLAGS.items()
                )  # fmt: skip
                notes = []
        return Contents(
            "DESIS L2A reflectance",
            source.grid,
            (
                Cube(
                    source, centre, width, scale=gain, offset=offset,
                    fill=-32768.0 if source.nodata is None else source.nodata,
                ),
            ),
            flags,
            files=package.files(metadata),
            notes=tuple(notes),
        )  # fmt: skip


def _find(path: str) -> tuple[Package, str] | None:
    package = open_package(path)
    if package is not None:
        metadata = package.metadata(_METADATA, "DESIS", "METADATA.xml")
        return (package, metadata) if metadata else None
    name = Path(path).name
    ends = r"-(METADATA\.xml|SPECTRAL_IMAGE\.(tif|hdr))$"
    if not re.match(r"DESIS-HSI-L2A-", name) or not re.search(ends, name, re.IGNORECASE):
        return None
    if not Path(path).is_file():
        return None
    here = folder_of(path)
    found = here.match(re.escape(re.sub(ends, "", name, flags=re.IGNORECASE)) + r"-METADATA\.xml")
    return (here, found[0]) if found else None

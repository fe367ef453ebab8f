"""Sentinel-2 L2A and L1C (SAFE), as folder, zip file or MTD_MSI*.xml; all bands on one grid.

Structure: ESA, Sentinel-2 Products Specification Document (S2-PDGS-TAS-DI-PSD, issue 14.9), product metadata
``MTD_MSIL2A.xml``: ``IMAGE_FILE`` of the granule, ``BOA_QUANTIFICATION_VALUE``, ``BOA_ADD_OFFSET`` by band_id
(baseline 04.00 and later), of L1C ``QUANTIFICATION_VALUE`` and ``RADIO_ADD_OFFSET``; ``Spectral_Information``
with bandId, physicalBand and Wavelength/CENTRAL. Reflectance = (number + offset) / quantification; 0 is no
data. Scene classification ``*_SCL_20m.jp2``: 1 saturated or defective, 3 cloud shadow, 6 water, 8 and 9
cloud, 10 thin cirrus, 11 snow. Early L2A has ``IMAGE_FILE_2A`` and ``L2A_BOA_QUANTIFICATION_VALUE`` instead.

The document could not be opened. Tags, band ids, special values and names of files were compared with the
metadata of real products: L1C of the baselines 02.09 and 03.01, L2A of 02.12, 04.00 and 05.09
(stactools-packages/sentinel2, tests/data-files), L2A of 05.11 (RAPAKI25/RapakiCode2025); and with those that
GDAL made of real ones for its tests (OSGeo/gdal, autotest/gdrivers/data/sentinel2): L1C of 05.09, L2A of
02.05 and 02.08, which list the classes of the SCL and have no Spectral_Information.
"""

import re
from pathlib import Path, PurePosixPath
from typing import ClassVar
from xml.etree.ElementTree import Element

from eigenscape.errors import SceneError
from eigenscape.job.options import SceneOptions
from eigenscape.scenes.formats.rasters.onegrid import (
    common_grid,
    is_one_grid,
    note_resampled,
)
from eigenscape.scenes.formats.xmlfiles import (
    MOST_BYTES,
    as_number,
    number_of,
    parse_xml,
    text_of,
)
from eigenscape.scenes.grids import cell_size
from eigenscape.scenes.sensors.contents import Contents, Cube, Flag
from eigenscape.scenes.sensors.packages import Package, folder_of, open_package
from eigenscape.scenes.sensors.product import Product
from eigenscape.scenes.sensors.rasterbands import RasterBands
from eigenscape.scenes.types import Grid

_METADATA = r"MTD_MSI(L2A|L1C)\.xml"
_BANDS = ("B01", "B02", "B03", "B04", "B05", "B06", "B07", "B08", "B8A", "B09", "B10", "B11", "B12")
"""In the order of their band_id."""

_FINEST = {
    "B02": 10, "B03": 10, "B04": 10, "B08": 10, "B01": 60, "B09": 60, "B10": 60,
}  # fmt: skip
"""Resolution at which a band was measured; 20 metres all others. L2A has coarser copies of finer bands."""

_CENTRES = {
    "Sentinel-2A": (
        442.7, 492.7, 559.8, 664.6, 704.1, 740.5, 782.8, 832.8, 864.7, 945.1, 1373.5, 1613.7, 2202.4,
    ),
    "Sentinel-2B": (
        442.3, 492.3, 559.0, 665.0, 703.8, 739.1, 779.7, 833.0, 864.0, 943.2, 1376.9, 1610.4, 2185.7,
    ),
}  # fmt: skip
"""Centre wavelengths by band_id, for products that tell none; from L1C of baselines 03.01 and 05.09."""

_FLAGS = {
    "clouds": (8, 9),
    "cirrus": (10,),
    "cloud-shadows": (3,),
    "snow": (11,),
    "water": (6,),
    "saturated": (1,),
}
"""Classes of the scene classification."""


class Sentinel2(Product):
    """Sentinel-2 SAFE: folder, zip file or MTD_MSIL2A.xml."""

    name: ClassVar[str] = "sentinel2"
    grids: ClassVar[bool] = True

    def recognises(self, path: str) -> bool:
        """Return whether a folder or zip file has the metadata of a SAFE, or a file is that."""
        return _find(path) is not None

    def contents(self, path: str, options: SceneOptions) -> Contents:
        """Return what the product holds; see `Product.contents`."""
        found = _find(path)
        assert found is not None
        package, metadata = found
        level = "L2A" if "L2A" in PurePosixPath(metadata).name.upper() else "L1C"
        root = parse_xml(package.read(metadata, MOST_BYTES), metadata)
        quantity, offsets = _scaling(path, root, level)
        centres = _centres(root)
        images = _images(path, package, metadata, root)
        sources = {
            band: RasterBands.of(package.address(name), package.files(name), nodata=0.0)
            for band, name in images.items()
        }
        grids = [source.grid for source in sources.values()]
        onto = common_grid(grids, options.grid, list(images.values()))
        cubes = tuple(
            Cube(
                source.moved(onto, options.nodata),
                (centres.get(band, float("nan")),),
                None,
                (band,),
                scale=1.0 / quantity,
                offset=offsets.get(band, 0.0) / quantity,
                fill=0.0,
                dropped={"cirrus band: no light from the ground": (0,)} if band == "B10" else {},
            )
            for band, source in sources.items()
        )
        notes = []
        if not is_one_grid([*grids, onto]):
            notes.append(note_resampled(sorted({cell_size(grid) for grid in grids}), onto))
        flags = tuple(_flags(package, metadata, onto))
        if not flags:
            notes.append("no clouds are masked: there is no scene classification (SCL)")
        return Contents(
            f"Sentinel-2 {level} reflectance", onto, cubes, flags,
            files=package.files(metadata), notes=tuple(notes),
        )  # fmt: skip


def _find(path: str) -> tuple[Package, str] | None:
    package = open_package(path)
    if package is None:
        if not re.fullmatch(_METADATA, Path(path).name, re.IGNORECASE) or not Path(path).is_file():
            return None
        whole = open_package(str(Path(path).absolute().parent))
        return (whole or folder_of(path)), Path(path).name
    metadata = package.metadata(_METADATA, "Sentinel-2", ".SAFE folder")
    return (package, metadata) if metadata else None


def _scaling(path: str, root: Element, level: str) -> tuple[float, dict[str, float]]:
    """Return the number that is divided by, and what is added before for each band."""
    divisor, added = {"L2A": ("BOA_QUANTIFICATION_VALUE", "BOA_ADD_OFFSET")}.get(
        level, ("QUANTIFICATION_VALUE", "RADIO_ADD_OFFSET")
    )
    quantity = number_of(root, divisor)
    if level == "L2A" and quantity != quantity:
        quantity = number_of(root, f"L2A_{divisor}")
    if not 0 < quantity < 1e9:
        raise SceneError(
            f"{path}: its metadata have no {divisor}, or {quantity:g}: they are damaged. Download it again."
        )
    offsets = {}
    for element in root.iter(added):
        number, value = as_number(element.get("band_id")), as_number(element.text)
        if number not in range(len(_BANDS)) or not abs(value) < 1e6:
            raise SceneError(
                f"{path}: its metadata have {added} = {element.text!r} for the band "
                f"{element.get('band_id')!r}: they are damaged. Download it again."
            )
        offsets[_BANDS[int(number)]] = value
    return quantity, offsets


def _centres(root: Element) -> dict[str, float]:
    """Return the centre wavelengths in nanometres by band."""
    centres = dict(zip(_BANDS, _CENTRES.get(text_of(root, "SPACECRAFT_NAME"), ()), strict=False))
    for element in root.iter("Spectral_Information"):
        number, centre = as_number(element.get("bandId")), number_of(element, "CENTRAL")
        if number in range(len(_BANDS)) and 0 < centre < 1e5:
            centres[_BANDS[int(number)]] = centre
    return centres


def _images(path: str, package: Package, metadata: str, root: Element) -> dict[str, str]:
    """Return the image file of each band at its own resolution, in the order of the bands."""
    above = PurePosixPath(metadata).parent
    listed = {
        PurePosixPath(element.text.strip()).name
        for tag in ("IMAGE_FILE", "IMAGE_FILE_2A")
        for element in root.iter(tag)
        if element.text
    }
    images: dict[str, tuple[int, str]] = {}
    for name in package.names:
        place = PurePosixPath(name)
        match = re.fullmatch(r".*_(B\d\d|B8A)(?:_(\d\d)m)?\.(?:jp2|tif)", place.name, re.IGNORECASE)
        if match is None or "IMG_DATA" not in place.parts or not place.is_relative_to(above):
            continue
        if listed and place.stem not in listed:
            continue
        band = match[1].upper()
        # L1C names say no resolution; of L2A the one at which the band was measured, or the next finer.
        side = int(match[2] or _FINEST.get(band, 20))
        wanted = _FINEST.get(band, 20)
        worse = abs(side - wanted)
        if band in _BANDS and (band not in images or worse < images[band][0]):
            images[band] = (worse, name)
    if not images:
        raise SceneError(
            f"{path}: the images that its metadata name are not there (GRANULE/*/IMG_DATA). Give the .SAFE "
            "folder or the zip file as it was downloaded."
        )
    found = {band: images[band][1] for band in _BANDS if band in images}
    folders = {PurePosixPath(name).parts[: len(above.parts) + 2] for name in found.values()}
    if len(folders) > 1:
        raise SceneError(f"{path}: holds several granules; products of one tile can be read.")
    return found


def _flags(package: Package, metadata: str, onto: Grid) -> list[Flag]:
    found = package.match(r".*_SCL_20m\.(jp2|tif)") or package.match(r".*_SCL_60m\.(jp2|tif)")
    found = [
        name for name in found if PurePosixPath(name).is_relative_to(PurePosixPath(metadata).parent)
    ]
    if len(found) != 1:
        return []
    source = RasterBands.of(
        package.address(found[0]), package.files(found[0]), nodata=0.0, classes=True
    )
    moved = source.moved(onto)
    return [
        Flag(name, f"SCL = {', '.join(map(str, values))}", moved, values=values)
        for name, values in _FLAGS.items()
    ]

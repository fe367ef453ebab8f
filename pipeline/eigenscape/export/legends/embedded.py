"""Class names inside a GeoTIFF, where GDAL looks for them without a sidecar.

GDAL keeps metadata of a TIFF as XML in the tag 42112, GDAL_METADATA ("GDAL Metadata", GeoTIFF driver of
GDAL). From GDAL 3.12 on a raster attribute table is an item of it (pull request 13201 of OSGeo/gdal)::

    <Item name="DEFAULT_RASTER_ATTRIBUTE_TABLE" sample="0" role="rat">
      <GDALRasterAttributeTable tableType="thematic"> ... </GDALRasterAttributeTable>
    </Item>

Earlier versions pass over it. An item that GDAL writes holds text, in which angle brackets are escaped.
So the table is written as text, and made an element afterwards in its place: it becomes shorter, and
blanks fill what is left. No offset in the file changes.
"""

import struct
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO
from xml.etree import ElementTree

from eigenscape.export.sidecar import attribute_table, printable
from eigenscape.scenes.types import Legend

_METADATA = 42112
_ITEM = "DEFAULT_RASTER_ATTRIBUTE_TABLE"


def class_items(legend: Legend) -> dict[str, str]:
    """Return the items that hold a legend as metadata of a band, to be written by GDAL.

    ``class_1`` and so on are names for who looks at the metadata; the table is for `embed_table`.
    """
    names = {f"class_{number}": printable(name) for number, name in sorted(legend.names.items())}
    table = ElementTree.tostring(attribute_table(legend), encoding="unicode")
    return {**names, _ITEM: table}


def embed_table(path: Path, items: Mapping[str, str]) -> None:
    """Make the table in the metadata of a GeoTIFF an element that GDAL reads as attribute table.

    Parameters
    ----------
    path
        A GeoTIFF whose first band has the items of `class_items`.
    items
        These items.

    Raises
    ------
    OSError
        The table is not there as it was written.
    """
    with path.open("r+b") as file:
        place, size = _metadata_range(file)
        file.seek(place)
        text = file.read(size)
        begin = text.find(f'<Item name="{_ITEM}"'.encode())
        end = text.find(b"</Item>", begin)
        opened = text.find(b">", begin)
        if min(begin, end, opened) < 0:
            raise OSError("the names of the classes are not in the file")
        table = items[_ITEM].encode()
        new = b' role="rat">' + table + b"</Item>"
        room = end + len(b"</Item>") - opened
        if len(new) > room:
            raise OSError("the names of the classes do not fit into the file")
        file.seek(place + opened)
        file.write(new + b" " * (room - len(new)))


def _metadata_range(file: BinaryIO) -> tuple[int, int]:
    """Return place and length of the GDAL metadata in a TIFF (TIFF 6.0, section 2; BigTIFF)."""
    file.seek(0)
    head = file.read(16)
    order = {b"II": "<", b"MM": ">"}[head[:2]]
    big = struct.unpack_from(f"{order}H", head, 2)[0] == 43
    # Of the number of entries, and of an entry: tag, type, count, value or its offset.
    count, entry = (f"{order}Q", f"{order}HHQQ") if big else (f"{order}H", f"{order}HHLL")
    file.seek(struct.unpack_from(f"{order}Q" if big else f"{order}L", head, 8 if big else 4)[0])
    entries = struct.unpack(count, file.read(struct.calcsize(count)))[0]
    for tag, _, size, place in struct.iter_unpack(
        entry, file.read(entries * struct.calcsize(entry))
    ):
        if tag == _METADATA:
            return place, size
    raise OSError("the names of the classes are not in the file")

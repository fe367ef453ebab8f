"""The class map as an ENVI classification: a plain file of numbers and a header with the classes.

Keys of the header are those of "ENVI Header Files" (NV5 Geospatial, ENVI documentation). GDAL writes where
the pixels lie (``map info``, ``coordinate system string``).
"""

import math
import re
from collections.abc import Iterable
from pathlib import Path
from typing import ClassVar

import numpy as np
import rasterio
from rasterio.crs import CRS

from eigenscape.base.files.whole import written_whole
from eigenscape.base.footprint import Footprint
from eigenscape.export.format import Amounts, Format, Product
from eigenscape.export.geotiff import place_profile, quiet
from eigenscape.export.sidecar import UNCLASSIFIED, printable
from eigenscape.scenes.types import Grid, Legend

_TYPES = {"uint8": "1", "uint16": "12"}


class Envi(Format):
    """ENVI classification: ``class_map.dat`` and ``class_map.hdr`` with class names and class lookup."""

    name: ClassVar[str] = "envi"

    def write(self, product: Product) -> dict[str, str]:
        """Write the numbers row by row, and the header last."""
        assert product.legend is not None
        data, header = product.path("class_map.dat"), product.path("class_map.hdr")
        with written_whole(data) as temporary, temporary.open("wb") as file:
            for _, strip in product.classes("writing ENVI classification"):
                file.write(strip.astype(product.class_dtype.newbyteorder("<")).tobytes())
        with written_whole(header) as temporary:
            temporary.write_text(_header(product, product.legend), encoding="utf-8")
        return {"class_map_envi": data.name, "class_map_envi_header": header.name}

    def footprint(self, amounts: Amounts) -> Footprint:
        """Count two bytes for each pixel."""
        return Footprint(1, disk=2 * amounts.cells)


def _header(product: Product, legend: Legend) -> str:
    count = max(legend.names, default=0) + 1
    names = [legend.names.get(number, "") for number in range(1, count)]
    colors = [legend.colors.get(number, (0, 0, 0)) for number in range(count)]
    entries = {
        "description": f"{{{_listed(product.context.job.name)}: classes by eigenscape}}",
        "samples": product.grid.width,
        "lines": product.grid.height,
        "bands": 1,
        "header offset": 0,
        "file type": "ENVI Classification",
        "data type": _TYPES[product.class_dtype.name],
        "interleave": "bsq",
        "byte order": 0,
        "data ignore value": 0,
        "classes": count,
        "class lookup": _braced(part for color in colors for part in color),
        "class names": _braced([UNCLASSIFIED, *map(_listed, names)]),
        "band names": "{class}",
        **_place(product),
    }
    return "ENVI\n" + "".join(f"{key} = {value}\n" for key, value in entries.items())


def _place(product: Product) -> dict[str, str]:
    """Return the entries that say where the pixels lie, as GDAL writes them."""
    grid = product.grid
    if grid.transform is None and grid.crs_wkt is None:
        return {}
    # One pixel has the same: its corner is that of the map.
    sample = product.context.workspace.folder("envi") / "place.dat"
    place = place_profile(grid)
    profile = {"height": 1, "width": 1, "count": 1, "dtype": "uint8", **place}
    with quiet():
        with rasterio.open(sample, "w", driver="ENVI", **profile):
            pass
        with rasterio.open(sample) as written:
            kept, crs = np.array(written.transform[:6]), written.crs
    if grid.transform is not None:
        away = np.abs(kept - grid.transform) * np.array([grid.width, grid.height, 1] * 2)
        if away.max() > np.hypot(grid.transform[0], grid.transform[3]) / 100:
            product.context.reporter.note(
                f"envi: {_oddity(grid)}, which GDAL cannot write into a header of ENVI: class_map.hdr has no "
                "georeference. The GeoTIFF has it."
            )
            return {}
    text = Path(sample.with_suffix(".hdr")).read_text(encoding="utf-8")
    found = re.findall(
        r"^(map info|coordinate system string) = (\{.*?\})$", text, re.DOTALL | re.MULTILINE
    )
    entries = {key: " ".join(value.split()) for key, value in found}
    if not math.isclose(_metres(crs), _metres(place.get("crs"))):
        # GDAL reads all feet as international ones. Where no unit is given, it takes that of the system.
        return {key: value.replace(", units=Feet", "") for key, value in entries.items()}
    return entries


def _oddity(grid: Grid) -> str:
    """Return why GDAL does not keep the transform of a grid."""
    assert grid.transform is not None
    a, b, _, d, e, _ = grid.transform
    cosine = (a * b + d * e) / (np.hypot(a, d) * np.hypot(b, e))
    # A hundredth of a pixel, as above.
    if abs(cosine) * max(grid.width, grid.height) > 0.01:
        return "the axes of the grid are not at a right angle"
    # Rows that run down turn right from columns: the determinant is negative.
    if a * e - b * d > 0:
        return "the grid is mirrored"
    return "the grid is turned by half a turn, or its pixels are not square and it is turned"


def _metres(crs: CRS | None) -> float:
    """Return the metres of a unit of a projected system, 1 of any other."""
    if crs is None or not crs.is_projected:
        return 1.0
    return float(crs.linear_units_factor[1])


def _braced(items: Iterable[object]) -> str:
    """Return a list of ENVI, on lines that are not too long to read."""
    lines, line = [], ""
    for item in items:
        if len(line) > 80:
            lines.append(line)
            line = ""
        line += f" {item},"
    lines.append(line)
    return "{\n" + "\n".join(lines).rstrip(",") + "}"


def _listed(name: str) -> str:
    """Return a name without the signs that end an item or a list."""
    return " ".join(re.sub(r"[{},=;\s]+", " ", printable(name)).split())

"""Polygons of the classes as a GeoPackage, and a table of their areas."""

import itertools
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from eigenscape.base.files.cells import csv_rows, to_cell
from eigenscape.base.files.whole import written_whole
from eigenscape.base.footprint import Footprint
from eigenscape.export.format import Amounts, Format, Product
from eigenscape.export.legends.qgis import polygon_style
from eigenscape.export.strips import cut_blocks
from eigenscape.scenes.types import Grid

if TYPE_CHECKING:
    from eigenscape.export.vectors.polygons import Area
    from eigenscape.export.vectors.sizes import Sizes

_LAYER = "classes"
_DATE = "2000-01-01"
_STRIP_PIXELS = 2**20
_BATCH = 20_000
"""Polygons that are written at once."""

_VERSION = "1.2"
"""Of GeoPackage: what GDAL before 3.7, as in QGIS 3.22 to 3.28, reads without a warning."""

_STRIP_BYTES = 120
"""Of a pixel of a strip: components, labels, sums; polygons of a map without any order."""


class GeoPackage(Format):
    """Polygons of the classes with area and mean confidence, and the area of each class as CSV."""

    name: ClassVar[str] = "gpkg"
    extra: ClassVar[tuple[str, str, str] | None] = ("geopandas", "geopandas", "vectors")

    def write(self, product: Product) -> dict[str, str]:
        """Write polygons as they are found; the areas of the classes are summed on the way."""
        from eigenscape.export.vectors.sizes import pixel_sizes

        path, table = product.path("class_polygons.gpkg"), product.path("class_areas.csv")
        sizes = pixel_sizes(product.grid)
        sums: dict[int, _Sums] = {}
        with written_whole(path) as temporary, _dated():
            for batch in _batches(product, sizes, sums):
                _append(temporary, batch)
            _append_style(temporary, product)
        _write_table(table, product, sums, metres=sizes is not None)
        return {"class_polygons": path.name, "class_areas": table.name}

    def footprint(self, amounts: Amounts) -> Footprint:
        """Count a strip, and polygons that are not done."""
        from eigenscape.export.vectors.polygons import MOST_CORNERS

        strip = min(_STRIP_PIXELS, amounts.cells)
        corners = min(MOST_CORNERS, 4 * amounts.cells)
        return Footprint(1, shared=_STRIP_BYTES * strip + 200 * corners, disk=20 * amounts.cells)


@contextmanager
def _dated() -> Iterator[None]:
    """Have GDAL write one date for all: the same map is the same file, and the run knows when it was made."""
    import pyogrio

    pyogrio.set_gdal_config_options({"OGR_CURRENT_DATE": f"{_DATE}T00:00:00.000Z"})
    try:
        yield
    finally:
        pyogrio.set_gdal_config_options({"OGR_CURRENT_DATE": None})


@dataclass
class _Sums:
    """Of a class."""

    pixels: int = 0
    share: float = 0.0
    size: float = 0.0
    polygons: int = 0


def _strips(product: Product) -> Iterator[tuple[int, NDArray[Any], NDArray[np.floating]]]:
    """Yield class numbers and confidence of the same rows; confidence is 0 where there is none."""
    grid, step = product.grid, max(1, _STRIP_PIXELS // product.grid.width)
    shape = (1, grid.height, grid.width)
    classes = cut_blocks(product.classes("tracing polygons"), shape, product.class_dtype, step)
    if not product.has("labels/confidence"):
        for start, numbers in classes:
            yield start, numbers[0], np.zeros(numbers[0].shape, np.float32)
        return
    kind = np.dtype(np.float32)
    shares = cut_blocks(product.shares("confidence", None), shape, kind, step)
    for (start, numbers), (_, share) in zip(classes, shares, strict=True):
        yield start, numbers[0], share[0]


def _batches(product: Product, sizes: "Sizes | None", sums: dict[int, _Sums]) -> Iterator[Any]:
    """Yield polygons with their attributes, and sum them."""
    import geopandas

    from eigenscape.export.vectors.polygons import trace_areas

    grid, legend = product.grid, product.legend
    assert legend is not None
    areas = trace_areas(_strips(product), sizes or (lambda start, stop: np.ones((stop - start, 1))))
    sure = product.has("labels/confidence")
    empty = True
    while (batch := list(itertools.islice(areas, _BATCH))) or empty:
        empty = False
        for area in batch:
            _add(sums.setdefault(area.number, _Sums()), area)
        table: dict[str, Any] = {
            "class": np.array([area.number for area in batch], np.int32),
            "name": [legend.names[area.number] for area in batch],
            "pixels": np.array([area.pixels for area in batch], np.int64),
        }
        if sizes is not None:
            table["area_m2"] = np.array([area.size for area in batch], np.float64)
        if sure:
            means = [area.share / area.pixels for area in batch]
            table["confidence"] = np.array(means, np.float64)
        outlines = np.array([area.polygon for area in batch], object)
        yield geopandas.GeoDataFrame(table, geometry=_placed(outlines, grid), crs=grid.crs_wkt)


def _add(total: _Sums, area: "Area") -> None:
    total.pixels += area.pixels
    total.share += area.share
    total.size += area.size
    total.polygons += 1


def _placed(outlines: NDArray[Any], grid: Grid) -> NDArray[Any]:
    """Return polygons in the coordinates of the map; rows count downwards where it has none."""
    import shapely

    a, b, c, d, e, f = grid.transform or (1, 0, 0, 0, -1, 0)
    turn, corner = np.array([[a, d], [b, e]], np.float64), np.array([c, f], np.float64)
    placed: NDArray[Any] = shapely.transform(outlines, lambda xy: xy @ turn + corner)
    return placed


def _append(path: Path, table: Any) -> None:
    import pyogrio

    begun = path.exists()
    with warnings.catch_warnings():
        # A map without a place has polygons without one.
        warnings.filterwarnings("ignore", message="'crs' was not provided")
        pyogrio.write_dataframe(
            table, path, layer=_LAYER, driver="GPKG", append=begun, geometry_type="Polygon",
            dataset_options=None if begun else {"VERSION": _VERSION},
        )  # fmt: skip


def _append_style(path: Path, product: Product) -> None:
    """Write the table in which QGIS looks for the style of a layer of a GeoPackage."""
    import pyogrio

    assert product.legend is not None
    style = {
        "f_table_catalog": "", "f_table_schema": "", "f_table_name": _LAYER,
        "f_geometry_column": "geom", "styleName": "classes",
        "styleQML": polygon_style(product.legend, "class"), "styleSLD": "", "useAsDefault": True,
        "description": "names and colours of the classes", "owner": "", "ui": "",
        "update_time": pd.Timestamp(_DATE),  # QGIS takes the latest of several
    }  # fmt: skip
    table = pd.DataFrame([style])
    pyogrio.write_dataframe(table, path, layer="layer_styles", driver="GPKG", append=True)


def _write_table(path: Path, product: Product, sums: Mapping[int, _Sums], *, metres: bool) -> None:
    assert product.legend is not None
    sure = product.has("labels/confidence")
    total = sum(each.pixels for each in sums.values())
    with csv_rows(path) as table:
        table.writerow(
            ["value", "name", "pixels", "share", "area_m2", "area_ha", "polygons", "confidence"]
        )
        for number, name in product.legend.names.items():
            each = sums.get(number, _Sums())
            area = (f"{each.size:.1f}", f"{each.size / 1e4:.4f}") if metres else ("", "")
            share = f"{each.pixels / total:.6f}" if total else ""
            mean = f"{each.share / each.pixels:.4f}" if sure and each.pixels else ""
            table.writerow([number, to_cell(name), each.pixels, share, *area, each.polygons, mean])

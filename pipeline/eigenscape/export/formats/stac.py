"""A STAC item of the files of a run, for catalogues.

STAC 1.1.0 with the extensions projection 2.0.0, classification 2.0.0 and processing 1.1.0. Hrefs are relative
to the item. A scene does not say when it was taken in a way that all sources share: ``datetime`` is when the
map was made.
"""

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from rasterio.crs import CRS

from eigenscape.base.files.whole import written_whole
from eigenscape.export.format import Format, Product
from eigenscape.export.scenenames import file_name
from eigenscape.learn.method import Classifier
from eigenscape.scenes.types import Grid, Legend

_SCHEMAS = "https://stac-extensions.github.io/{}/schema.json"
_EXTENSIONS = ("projection/v2.0.0", "classification/v2.0.0", "processing/v1.1.0")
_EDGE_POINTS = 16
"""Points on an edge of the scene: straight in its system, it is a curve in longitude and latitude."""

_DIGITS = 7
"""Digits of degrees: a centimetre."""

_COG = "image/tiff; application=geotiff; profile=cloud-optimized"
_TYPES = {
    ".tif": (_COG, "data"),
    ".png": ("image/png", "overview"),
    ".csv": ("text/csv", "metadata"),
    ".html": ("text/html", "metadata"),
    ".qml": ("application/xml", "metadata"),
    ".gpkg": ("application/geopackage+sqlite3", "data"),
    ".zarr": ("application/vnd+zarr; version=2", "data"),
    ".dat": ("application/octet-stream", "data"),
    ".hdr": ("text/plain", "metadata"),
}
_CLASSIFIED = ("class_map", "class_map_zarr", "class_map_envi")


class Stac(Format):
    """A STAC item (``stac_item.json``) with the files of the run as assets."""

    name: ClassVar[str] = "stac"
    arrays: ClassVar[tuple[str, ...]] = ("labels/class", "spectrum/vector")
    last: ClassVar[bool] = True
    extra: ClassVar[tuple[str, str, str] | None] = ("shapely", "shapely", "vectors")

    def write(self, product: Product) -> dict[str, str]:
        """Write the item."""
        name = "stac_item.json"
        with written_whole(product.path(name)) as path:
            path.write_text(
                json.dumps(_item(product), indent=1, ensure_ascii=False), encoding="utf-8"
            )
        return {"stac_item": name}


def _item(product: Product) -> dict[str, Any]:
    import shapely

    made = _made(product)
    outline = _outline(product.grid)
    if outline is None and product.grid.crs_wkt is not None and product.grid.transform is not None:
        product.context.reporter.note("stac: the outline has no place in longitude and latitude")
    classes = [] if product.legend is None else _classes(product.legend, _count_pixels(product))
    item: dict[str, Any] = {
        "type": "Feature",
        "stac_version": "1.1.0",
        "stac_extensions": [_SCHEMAS.format(each) for each in _EXTENSIONS],
        "id": product.tags["EIGENSCAPE_RUN"],
        "geometry": outline and shapely.geometry.mapping(outline),
        "properties": {
            "title": product.context.job.name,
            "description": f"{_description(product)} {_sentence(product.subtitle)}".rstrip(),
            "datetime": made,
            "created": made,
            "processing:software": {"eigenscape": product.tags["TIFFTAG_SOFTWARE"].split()[-1]},
            "processing:lineage": _lineage(product),
            **_projection(product.grid),
        },
        "links": [],
        "assets": {
            key: _asset(product, key, file, classes) for key, file in product.outputs.items()
        },
    }
    if outline is not None:
        item["bbox"] = _box(outline)
    return item


def _made(product: Product) -> str:
    """Return when the classes, or the eigenvectors, were made: the same time whenever it is written."""
    records = (product.context.run.record(stage) for stage in ("learn", "extend", "spectrum"))
    finished = next(record.finished for record in records if record is not None)
    made = datetime.strptime(finished, "%Y-%m-%dT%H:%M:%S%z").astimezone(UTC)
    return made.strftime("%Y-%m-%dT%H:%M:%SZ")


def _lineage(product: Product) -> str:
    job = product.context.job
    given = job.scene.path
    # The item is published: it tells neither directories nor keys in addresses.
    names = ", ".join(map(file_name, (given,) if isinstance(given, str) else given))
    parts = [] if product.legend is None else [f"method {job.learn.method}"]
    if product.legend is None or _of_eigenvectors(product):
        parts.append(f"{job.spectrum.dimension} eigenvectors")
    return f"{names} ({', '.join(parts)})"


def _description(product: Product) -> str:
    if product.legend is None:
        return "Eigenvectors of a scene."
    what = "Clusters" if "clusters" in product.scores else "Classes"
    by = " by eigenmaps" if _of_eigenvectors(product) else ""
    return f"{what} of a scene{by} (method {product.context.job.learn.method})."


def _sentence(words: str) -> str:
    return f"{words[:1].upper()}{words[1:]}." if words else ""


def _of_eigenvectors(product: Product) -> bool:
    """Return whether the classes or clusters follow from eigenvectors."""
    extend = product.context.run.record("extend")
    if extend is not None:
        return bool(extend.summary["how"] == "eigenvectors")
    method = product.context.job.learn
    return not isinstance(method, Classifier) or method.reads == "eigenvectors"


def _outline(grid: Grid) -> Any:
    """Return the outline of a grid in longitude and latitude; None where nobody knows."""
    import shapely
    from pyproj import Transformer
    from pyproj.exceptions import ProjError

    if grid.crs_wkt is None or grid.transform is None:
        return None
    try:
        degrees = Transformer.from_crs(grid.crs_wkt, "OGC:CRS84", always_xy=True)
    except ProjError:  # another body than the Earth, or a system that is tied to none
        return None
    found = _edge(grid.transform, (grid.width, grid.height), degrees.transform)
    if found is None:
        return None
    middle, ring = found
    rings = [ring[:-1]]
    if abs(ring[-1, 0] - ring[0, 0]) > 180:
        # Around a pole it does not come back to where it began.
        ends = ring[[-1, 0], 0]
        rings = [np.vstack([ring, np.stack([ends, [pole] * 2], axis=1)]) for pole in (90, -90)]
    for each in map(shapely.Polygon, rings):
        if each.is_valid:
            outline = _cut(each)
            # That of the other pole has the scene outside, and so may one of a grid beyond its projection.
            if outline.distance(shapely.Point(middle)) < 10.0**-_DIGITS:
                # Exterior rings run counterclockwise (RFC 7946, section 3.1.6).
                return shapely.orient_polygons(outline)
    return None


def _edge(
    transform: tuple[float, ...], size: tuple[int, int], to_degrees: Callable[..., Any]
) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
    """Return longitude and latitude of the middle of a grid (width, height) and of its edge.

    Where the edge lies off the Earth, as around a full disc, it is replaced by the farthest point towards it
    that lies on the Earth. Longitudes of the edge go on beyond 180 degrees. None if the middle lies off the
    Earth.
    """
    a, b, c, d, e, f = transform
    width, height = size
    along = np.linspace(-0.5, 0.5, _EDGE_POINTS, endpoint=False)
    low, high = np.full_like(along, -0.5), np.full_like(along, 0.5)
    across = width * np.concatenate([low, along, high, -along, low[:1]])
    down = height * np.concatenate([along, high, -along, low, along[:1]])

    def place(share: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return what lies at a share of the way from the middle to the edge; not finite off the Earth."""
        column, row = width / 2 + share * across, height / 2 + share * down
        x, y = a * column + b * row + c, d * column + e * row + f
        return np.stack(to_degrees(x, y), axis=1)

    middle = place(np.zeros_like(across))[0]
    if not np.isfinite(middle).all():
        return None
    share = np.ones_like(across)
    if not np.isfinite(place(share)).all():
        share = np.zeros_like(across)
        for step in 0.5 ** np.arange(1, 24):
            further = share + step
            share = np.where(np.isfinite(place(further)).all(axis=1), further, share)
    edge = place(share)
    middle[0] = (middle[0] + 180) % 360 - 180
    edge[:, 0] = np.unwrap(edge[:, 0], period=360)
    return middle, edge


def _cut(outline: Any) -> Any:
    """Return an outline, whose longitudes go on beyond 180 degrees, cut at the antimeridian."""
    import shapely

    parts = []
    for turn in (-360, 0, 360):
        part = outline.intersection(shapely.box(turn - 180, -90, turn + 180, 90))
        back = [turn, 0]
        part = shapely.transform(part, lambda at, by=back: np.round(at - by, _DIGITS))
        if part.area:
            parts.append(part)
    return shapely.union_all(parts)


def _box(outline: Any) -> list[float]:
    """Return west, south, east, north; west is greater than east across the antimeridian (RFC 7946, 5.2)."""
    import shapely

    west, south, east, north = outline.bounds
    starts, _, ends, _ = shapely.bounds(shapely.get_parts(outline)).T
    behind = starts == -180
    if east == 180 and behind.any() and not behind.all():
        first, last = starts[~behind].min(), ends[behind].max()
        # Else the parts meet again at the other side: they go around the Earth.
        if last < first:
            west, east = first, last
    return [float(west), south, float(east), north]


def _projection(grid: Grid) -> dict[str, Any]:
    found: dict[str, Any] = {"proj:code": None, "proj:shape": [grid.height, grid.width]}
    if grid.crs_wkt is not None:
        system = CRS.from_wkt(grid.crs_wkt)
        authority = system.to_authority(confidence_threshold=100)
        if authority is not None:
            found["proj:code"] = ":".join(authority)
        else:
            found["proj:wkt2"] = system.to_wkt(version="WKT2_2019")
    if grid.transform is not None:
        a, b, c, d, e, f = grid.transform
        found["proj:transform"] = list(grid.transform)
        x = [c + a * i + b * j for i in (0, grid.width) for j in (0, grid.height)]
        y = [f + d * i + e * j for i in (0, grid.width) for j in (0, grid.height)]
        found["proj:bbox"] = [min(x), min(y), max(x), max(y)]
    return found


def _asset(product: Product, key: str, file: str, classes: list[dict[str, Any]]) -> dict[str, Any]:
    ending = "." + file.rpartition(".")[2]
    kind, role = _TYPES.get(ending, ("application/octet-stream", "data"))
    asset: dict[str, Any] = {
        "href": f"./{file}", "type": kind, "title": key.replace("_", " "), "roles": [role],
    }  # fmt: skip
    if key in _CLASSIFIED:
        asset["classification:classes"] = classes
    if ending == ".tif":
        asset["bands"] = _bands(product, key)
    return asset


def _bands(product: Product, key: str) -> list[dict[str, Any]]:
    if key == "class_map":
        return [{"name": "class", "data_type": product.class_dtype.name, "nodata": 0}]
    names = [key]
    if key == "eigenvectors":
        names = [f"eig_{number:03d}" for number in range(1, product.eigenvectors + 1)]
    return [{"name": name, "data_type": "float32", "nodata": "nan"} for name in names]


def _count_pixels(product: Product) -> NDArray[np.int64]:
    """Return the pixels of each class number on the map, which may show a sample often or not at all."""
    counts = np.zeros(2**16, np.int64)
    for _, strip in product.classes("counting pixels"):
        counts += np.bincount(strip.ravel(), minlength=2**16)
    return counts


def _classes(legend: Legend, counts: NDArray[np.int64]) -> list[dict[str, Any]]:
    """Return the classes as class objects: names are words there, titles for people."""
    pixels = counts[1:].sum()
    found = [{"value": 0, "name": "unclassified", "nodata": True}]
    taken = {"unclassified"}
    for number, title in sorted(legend.names.items()):
        name = re.sub(r"[^0-9A-Za-z_-]+", "_", title).strip("_") or f"class_{number}"
        name = name if name not in taken else f"{name}_{number}"
        taken.add(name)
        entry: dict[str, Any] = {
            "value": number, "name": name, "title": title,
            "color_hint": "{:02X}{:02X}{:02X}".format(*legend.colors[number]),
            "count": int(counts[number]),
        }  # fmt: skip
        if pixels:
            entry["percentage"] = round(100 * float(counts[number] / pixels), 4)
        found.append(entry)
    return found

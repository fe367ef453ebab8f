"""Labels in vector files: points label the pixel around them, polygons the centres within."""

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenscape.errors import MissingExtraError, SceneError
from eigenscape.scenes.files.outside import VECTOR_DRIVERS, VECTOR_SETTINGS, check_vectors
from eigenscape.scenes.formats.arrays.arrayfiles import local_path
from eigenscape.scenes.formats.tables.tabularfiles import is_geoparquet
from eigenscape.scenes.geometry.polygons import transformed
from eigenscape.scenes.grids import check_overlap, extent, turns_onto
from eigenscape.scenes.labels.classnumbers import is_zero, told_zero_of
from eigenscape.scenes.labels.vectorclasses import (
    choose_attribute,
    choose_mark,
    classify,
    find_partner,
)
from eigenscape.scenes.labels.vectorlayers import attributes, choose_layer
from eigenscape.scenes.types import Grid, Legend

_SHAPEFILE_PARTS = (".dbf", ".shx", ".prj", ".cpg")
_STRIP_PIXELS = 2**20
_FEW_CENTRES = 16
"""Of a larger box around a polygon one is nearly always within."""


@dataclass(frozen=True, eq=False)
class VectorLabels:
    """Labels in points and polygons; fulfils the `Labels` protocol.

    Everything is held in pixel coordinates (column, row) of the scene, in which a window is a
    shift: rotated and south-up grids are no special case.

    Attributes
    ----------
    legend
        Names of the classes.
    files
        The file and its parts.
    notes
        What a user should know.
    width
        Columns of the scene.
    polygons : tuple of bytes
        Well-known binary, in the order of the file: where they overlap, the later wins.
    polygon_rows : array, shape (polygons, 2)
        First and last row each reaches.
    polygon_classes : array of uint16, shape (polygons,)
        Class numbers.
    point_pixels : array, shape (points, 2)
        Row and column of every point, sorted by row; points win over polygons.
    point_classes : array of uint16, shape (points,)
        Class numbers.
    """

    legend: Legend
    files: tuple[str, ...]
    notes: tuple[str, ...]
    width: int
    polygons: tuple[bytes, ...]
    polygon_rows: NDArray[np.float64]
    polygon_classes: NDArray[np.uint16]
    point_pixels: NDArray[np.int64]
    point_classes: NDArray[np.uint16]

    def read(self, start: int, stop: int) -> NDArray[np.uint16]:
        """Read the labels of rows start ... stop-1; see `Labels.read`."""
        labels = self.drawn(start, stop, np.arange(len(self.polygons)))
        first, last = np.searchsorted(self.point_pixels[:, 0], (start, stop))
        rows, columns = self.point_pixels[first:last].T
        labels[rows - start, columns] = self.point_classes[first:last]
        return labels

    def drawn(self, start: int, stop: int, order: NDArray[np.intp]) -> NDArray[np.uint16]:
        """Return the classes of rows start ... stop-1 in polygons alone.

        Parameters
        ----------
        start, stop
            The rows.
        order : array of int
            Indices of polygons; the last one that covers a pixel gives its class.
        """
        labels = np.zeros((stop - start, self.width), np.uint16)
        rows = self.polygon_rows[order]
        chosen = order[(rows[:, 0] <= stop) & (rows[:, 1] >= start)]
        if chosen.size:
            import rasterio
            import shapely
            from rasterio.features import rasterize
            from rasterio.transform import Affine

            shapes = [
                (shapely.from_wkb(self.polygons[index]), int(self.polygon_classes[index]))
                for index in chosen
            ]
            with rasterio.Env():
                rasterize(shapes, out=labels, transform=Affine.translation(0, start))
        return labels


def open_vector_labels(
    path: str, layer: str | None, field: str | None, scene: Grid, *, marks: bool = False
) -> VectorLabels:
    """Read the features of a layer and bring them onto a scene's grid.

    Parameters
    ----------
    path
        A file that GDAL opens as vectors, or GeoParquet.
    layer
        Its layer; see `choose_layer`.
    field
        Attribute that holds the class; see `classify`.
    scene
        Grid to label. Vectors without a CRS are taken to be in that of the scene.
    marks
        Whether the features only mark pixels: without an attribute of the class each has class 1.

    Raises
    ------
    SceneError
        The file or the attribute cannot be used, or nothing overlaps the scene.
    MissingExtraError
        The packages that read vectors are not installed.
    """
    if scene.transform is None:
        raise SceneError(
            f"{path}: the labels are vectors, but the scene has no georeference, so their "
            "position on it is unknown. Give the scene one, or labels as a raster or array of its size."
        )
    for package in ("geopandas", "pyogrio"):
        if find_spec(package) is None:
            raise MissingExtraError(package, "vectors", f"A vector file of labels ({path})")
    with _reading(path):
        frame, notes = _read(path, layer, field, marks=marks)
        _check_crs(frame.crs, scene, path)
        geometry = frame.geometry
        drawn = _has_place(geometry)
        if not drawn.any():
            raise SceneError(f"{path}: has no feature with a geometry. Give points or polygons.")
        parts = geometry[drawn].explode(index_parts=False)
        # Parts of a collection may be empty.
        parts = parts[_has_place(parts)]
        _check_kinds(set(parts.geom_type), path)
        if geometry.crs is not None:
            _check_degrees(geometry, path)
        parts = _on_map(parts, scene)
    columns = attributes(frame.drop(columns=frame.geometry.name))
    if marks and choose_mark(columns, field, path) is None:
        columns, field = {"mark": np.ones(len(frame))}, None
        notes = (*notes, "every feature marks pixels: no attribute holds the class")
    name = choose_attribute(columns, field, path)
    numbers, legend = classify(columns, name, path)
    partner = find_partner(columns, name)
    if field is None and (others := [other for other in columns if other not in (name, partner)]):
        notes = (
            *notes,
            f"the class is read from the attribute {name} (not {', '.join(others)})",
        )
    if partner is not None:
        both = f"{name} and {partner}"
        notes = (*notes, f"numbers and names of the classes are read from the attributes {both}")
    # A polygon without a place has no pixel of the scene, and lies outside of it.
    lost = np.asarray(parts.geom_type == "Point") & ~_has_place(parts)
    placed = drawn.copy()
    placed[parts.index[lost]] = False
    parts = parts[placed[parts.index]]
    if not placed.any():
        raise SceneError(
            f"{path}: no feature can be brought into the coordinate system of the scene "
            f"({_told_reach(frame.geometry)}). Check the coordinates and their system ({frame.crs.name})."
        )
    unlabelled = placed & (numbers == 0)
    zero = unlabelled & np.array([is_zero(value) for value in columns[name].tolist()])
    left_out = (
        (~drawn, "have no geometry"),
        (drawn & ~placed, "cannot be brought into the coordinate system of the scene"),
        (unlabelled & ~zero, "have no class"),
        (zero, "have the class 0"),
    )
    if zero.any():
        notes = (*notes, told_zero_of(f"the attribute {name!r}"))
    notes = (
        *notes,
        *(
            f"{wrong.sum():,} of {len(frame):,} features of the labels {why} and are left out"
            for wrong, why in left_out
            if wrong.any()
        ),
    )
    numbers = numbers[np.asarray(parts.index)]
    parts = _at_its_longitudes(parts, scene)
    if parts.is_empty.all():
        raise SceneError(
            f"{path}: the labels do not overlap the scene: {_told_reach(frame.geometry)}, in "
            f"{frame.crs.name}. Give labels of this place, or correct their coordinate system."
        )
    check_overlap(path, tuple(parts.total_bounds), extent(scene))
    return _to_pixels(parts, numbers, legend, _parts_of(path), notes, scene)


def _read(
    path: str, layer: str | None, field: str | None, *, marks: bool
) -> tuple[Any, tuple[str, ...]]:
    """Return the features of the layer of the labels, and what a user should know of the choice."""
    if is_geoparquet(path):
        import geopandas

        # It has one layer, and GDAL seldom the driver.
        frame = geopandas.read_parquet(local_path(path)).reset_index(drop=True)
        others = frame.columns[frame.dtypes == "geometry"].drop(frame.geometry.name)
        return frame.drop(columns=others), ()
    from pyogrio import read_dataframe

    check_vectors(path)
    with _restricted(path):
        layer, notes = choose_layer(path, layer, field, marks=marks)
        return read_dataframe(path, layer=layer), notes


def _has_place(geometry: Any) -> NDArray[np.bool_]:
    """Return which geometries are not empty or missing, and have finite coordinates."""
    placed: NDArray[np.bool_] = np.isfinite(geometry.bounds.to_numpy()).all(axis=1)
    return placed


def _check_degrees(geometry: Any, path: str) -> None:
    """Refuse metres in a file that says degrees, such as GeoJSON without a coordinate system."""
    least_x, least_y, most_x, most_y = geometry.total_bounds
    if geometry.crs.is_geographic and (max(-least_x, most_x) > 360 or max(-least_y, most_y) > 90):
        raise SceneError(
            f"{path}: {_told_reach(geometry)}, which are not degrees of {geometry.crs.to_string()}. Give "
            "the file its coordinate system, for example: ogr2ogr -a_srs EPSG:32633 OUT.gpkg IN"
        )


def _told_reach(geometry: Any) -> str:
    least_x, least_y, most_x, most_y = geometry.total_bounds
    return f"coordinates reach from {least_x:.9g} to {most_x:.9g} and from {least_y:.9g} to {most_y:.9g}"


def _on_map(parts: Any, scene: Grid) -> Any:
    """Return points and polygons in the coordinate system of a scene, without heights."""
    if parts.crs is None:
        return parts.force_2d()
    if parts.crs.is_geocentric:
        return parts.to_crs(scene.crs_wkt).force_2d()
    # First, as a point whose height is NaN would have no place on the map.
    return transformed(parts.force_2d(), scene)


def _at_its_longitudes(parts: Any, scene: Grid) -> Any:
    """Return points and polygons moved by the whole turns of longitude with which they meet a scene.

    A polygon that meets it with several is drawn with each: one of the whole world does, if the scene lies
    across the date line.
    """
    import geopandas
    import shapely

    bounds = parts.bounds
    first, last, turn = turns_onto(scene, bounds["minx"], bounds["maxx"])
    shapes = np.array(parts.geometry.array)
    several = np.flatnonzero((last > first) & (parts.geom_type != "Point")).tolist()
    for index in several:
        copies = [
            _moved(shapes[index], turns * turn)
            for turns in np.arange(first[index], last[index] + 1)
        ]
        shapes[index] = shapely.multipolygons(shapely.get_parts(copies))
    first[several] = 0
    for turns in np.unique(first[first != 0]):
        shapes[first == turns] = _moved(shapes[first == turns], turns * turn)
    return geopandas.GeoSeries(shapes, index=parts.index, crs=parts.crs)


def _moved(shapes: Any, east: float) -> Any:
    import shapely

    return shapely.transform(shapes, lambda places: np.add(places, (east, 0)))


def _to_pixels(
    parts: Any,
    numbers: NDArray[np.uint16],
    legend: Legend,
    files: tuple[str, ...],
    notes: tuple[str, ...],
    scene: Grid,
) -> VectorLabels:
    from rasterio.transform import Affine

    assert scene.transform is not None
    inverse = ~Affine(*scene.transform)
    parts = parts.affine_transform(
        [inverse.a, inverse.b, inverse.d, inverse.e, inverse.c, inverse.f]
    )
    is_point = np.asarray(parts.geom_type == "Point")
    used = numbers > 0
    polygons = parts[~is_point & used]
    points = parts[is_point & used]
    pixels = np.floor(np.column_stack([points.y, points.x]))
    inside = (
        (pixels >= 0).all(axis=1) & (pixels[:, 0] < scene.height) & (pixels[:, 1] < scene.width)
    )
    bounds = polygons.bounds.to_numpy()
    meets = (bounds[:, :2] < (scene.width, scene.height)).all(axis=1) & (bounds[:, 2:] > 0).all(1)
    outside = [
        f"{wrong.sum():,} of {len(wrong):,} {what} lie outside of the scene and are left out"
        for what, wrong in (("points", ~inside), ("polygons", ~meets))
        if wrong.any()
    ]
    polygons, polygon_classes = polygons[meets], numbers[~is_point & used][meets]
    point_classes = numbers[is_point & used][inside]
    order = np.argsort(pixels[inside, 0], kind="stable")
    labels = VectorLabels(
        legend=legend,
        files=files,
        notes=(*notes, *outside),
        width=scene.width,
        polygons=tuple(polygons.to_wkb()),
        polygon_rows=polygons.bounds[["miny", "maxy"]].to_numpy(),
        polygon_classes=polygon_classes,
        point_pixels=pixels[inside][order].astype(np.int64),
        point_classes=point_classes[order],
    )
    missed = _told_missed(_between_centres(polygons, scene), labels)
    conflicts = _told_conflicts(labels, polygons, scene.height)
    return replace(labels, notes=(*labels.notes, *missed, *conflicts))


def _between_centres(polygons: Any, scene: Grid) -> NDArray[np.bool_]:
    """Return which polygons, in pixel coordinates, cover no pixel's centre; large ones are taken to."""
    import shapely

    least, most = np.split(polygons.bounds.to_numpy() - 0.5, 2, axis=1)
    low = np.maximum(np.ceil(least), 0).astype(np.int64)
    high = np.minimum(np.floor(most), (scene.width - 1, scene.height - 1)).astype(np.int64)
    size = np.maximum(high - low + 1, 0)
    count = size.prod(axis=1)
    missed: NDArray[np.bool_] = count == 0
    small = np.flatnonzero((count > 0) & (count <= _FEW_CENTRES))
    # Every centre in the box around each of them.
    owner = np.repeat(small, count[small])
    place = np.arange(len(owner)) - np.repeat(np.cumsum(count[small]) - count[small], count[small])
    row, column = np.divmod(place, size[owner, 0])
    shapes = np.asarray(polygons.geometry.array)[owner]
    met = shapely.contains_xy(shapes, low[owner, 0] + column + 0.5, low[owner, 1] + row + 0.5)
    missed[small] = np.bincount(owner[met], minlength=len(count))[small] == 0
    return missed


def _told_missed(missed: NDArray[np.bool_], labels: VectorLabels) -> Iterator[str]:
    """Yield how many polygons label no pixel, and which classes have no others."""
    count, classes = int(missed.sum()), labels.polygon_classes
    if not count:
        return
    one = count == 1
    text = (
        f"{count:,} polygon{'' if one else 's'} cover{'s' * one} no pixel centre and label nothing"
    )
    lost = {*classes[missed].tolist()} - {
        *classes[~missed].tolist(),
        *labels.point_classes.tolist(),
    }
    names = [labels.legend.names.get(number, str(number)) for number in sorted(lost)]
    yield f"{text}; no other has the class {', '.join(names)}" if names else text


def _told_conflicts(labels: VectorLabels, polygons: Any, height: int) -> Iterator[str]:
    """Yield how many pixels lie in polygons, or hold points, of different classes."""
    if shared := _overlapped(labels, polygons, height):
        yield (
            f"polygons of different classes overlap on {shared:,} pixel{'s' * (shared != 1)}: the last "
            "polygon in the file gives the class"
        )
    flat = labels.point_pixels @ (labels.width, 1)
    pairs = np.unique(np.column_stack([flat, labels.point_classes.astype(np.int64)]), axis=0)
    if shared := int((np.unique(pairs[:, 0], return_counts=True)[1] > 1).sum()):
        yield (
            f"points of different classes lie in {shared:,} pixel{'s' * (shared != 1)}: the last point in "
            "the file gives the class"
        )


def _overlapped(labels: VectorLabels, polygons: Any, height: int) -> int:
    """Return the number of pixels in polygons of different classes."""
    classes = labels.polygon_classes
    one, other = polygons.sindex.query(polygons.geometry, predicate="intersects")
    different = classes[one] != classes[other]
    meeting = np.unique(one[different])
    if not len(meeting):
        return 0
    # The last polygon gives the class: in the order of the classes the largest, in reverse the least.
    order = meeting[np.argsort(classes[meeting], kind="stable")]
    # Elsewhere nothing is drawn, and a scene may have many more rows.
    rows = labels.polygon_rows[meeting]
    first, last = max(0, int(rows.min())), min(height, int(rows.max()) + 1)
    step, total = max(1, _STRIP_PIXELS // labels.width), 0
    for start in range(first, last, step):
        stop = min(last, start + step)
        most, least = (labels.drawn(start, stop, chosen) for chosen in (order, order[::-1]))
        total += int(np.count_nonzero(most != least))
    return total


@contextmanager
def _reading(path: str) -> Iterator[None]:
    """Turn whatever GDAL and PROJ raise inside the context into a `SceneError`."""
    from shapely.errors import GEOSException

    try:
        # Labels are opened once and by the main thread, so the filter meets no other thread.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except (RuntimeError, ValueError, OSError, GEOSException) as error:
        raise SceneError(
            f"{path}: cannot be read as vectors: the file is truncated or damaged, or of an "
            f"unsupported format ({error}). ogrinfo FILE tells whether GDAL can."
        ) from error


@contextmanager
def _restricted(path: str) -> Iterator[None]:
    """Let pyogrio read files of the known formats, and nothing that they refer to."""
    import pyogrio

    before = {name: pyogrio.get_gdal_config_option(name) for name in VECTOR_SETTINGS}
    pyogrio.set_gdal_config_options(VECTOR_SETTINGS)
    try:
        driver = pyogrio.read_info(path, layer=0)["driver"]
        if driver not in VECTOR_DRIVERS:
            raise SceneError(
                f"{path}: labels of the format {driver} are not read. Convert them: ogr2ogr OUT.gpkg IN"
            )
        yield
    finally:
        pyogrio.set_gdal_config_options(before)


def _check_crs(crs: Any, scene: Grid, path: str) -> None:
    if crs is not None and scene.crs_wkt is None:
        raise SceneError(
            f"{path}: the labels have a coordinate reference system ({crs.name}), the scene has "
            "none. Give the scene its own, for example: gdal_edit.py -a_srs EPSG:32633 FILE"
        )


def _check_kinds(kinds: set[str], path: str) -> None:
    if wrong := kinds - {"Point", "Polygon"}:
        raise SceneError(
            f"{path}: holds geometries of type {', '.join(sorted(wrong))}. Labels are points or "
            "polygons; turn lines into polygons first (a buffer)."
        )


def _parts_of(path: str) -> tuple[str, ...]:
    if Path(path).suffix.lower() != ".shp":
        return (path,)
    stem = os.path.splitext(path)[0]
    names = [stem + part for suffix in _SHAPEFILE_PARTS for part in (suffix, suffix.upper())]
    return (path, *(name for name in names if os.path.exists(name)))

"""Features of vector files, as GDAL and geopandas read them, in the coordinate system of a scene."""

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenscape.errors import SceneError
from eigenscape.scenes.files.outside import VECTOR_DRIVERS, VECTOR_SETTINGS, check_vectors
from eigenscape.scenes.formats.arrays.arrayfiles import local_path
from eigenscape.scenes.formats.tables.tabularfiles import is_geoparquet
from eigenscape.scenes.geometry.polygons import transformed
from eigenscape.scenes.grids import turns_onto
from eigenscape.scenes.labels.vectors.layers import attributes, choose_layer
from eigenscape.scenes.types import Grid

_SHAPEFILE_PARTS = (".dbf", ".shx", ".prj", ".cpg")


@dataclass(frozen=True, eq=False)
class Features:
    """Features of a layer.

    Attributes
    ----------
    columns : dict of arrays, shape (features,)
        Their attributes.
    geometry : geopandas.GeoSeries, shape (features,)
        Their geometries in the coordinate system of the file.
    drawn : array of bool, shape (features,)
        Which have a geometry.
    placed : array of bool, shape (features,)
        Which of these have a place in the coordinate system of the scene.
    parts : geopandas.GeoSeries
        Points and polygons of the placed ones in the coordinate system of the scene; the index is the number
        of the feature.
    notes
        What a user should know of the choice of the layer.
    """

    columns: dict[str, NDArray[Any]]
    geometry: Any
    drawn: NDArray[np.bool_]
    placed: NDArray[np.bool_]
    parts: Any
    notes: tuple[str, ...]


def read_features(
    path: str, layer: str | None, field: str | None, scene: Grid, *, marks: bool
) -> Features:
    """Read the features of the layer of the labels; see `open_vector_labels`.

    Raises
    ------
    SceneError
        The file cannot be read, or holds no points and polygons with coordinates for the scene.
    """
    with _reading(path):
        frame, notes = _read(path, layer, field, marks=marks)
        geometry = frame.geometry
        _check_crs(geometry.crs, scene, path)
        drawn = _has_place(geometry)
        parts = _on_map(_points_and_polygons(geometry, drawn, path), scene)
    # A polygon without a place has no pixel of the scene, and lies outside of it.
    lost = np.asarray(parts.geom_type == "Point") & ~_has_place(parts)
    placed = drawn.copy()
    placed[parts.index[lost]] = False
    columns = attributes(frame.drop(columns=geometry.name))
    return Features(columns, geometry, drawn, placed, parts[placed[parts.index]], notes)


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


def _points_and_polygons(geometry: Any, drawn: NDArray[np.bool_], path: str) -> Any:
    """Return the single points and polygons of the drawn geometries."""
    if not drawn.any():
        raise SceneError(f"{path}: has no feature with a geometry. Give points or polygons.")
    parts = geometry[drawn].explode(index_parts=False)
    # Parts of a collection may be empty.
    parts = parts[_has_place(parts)]
    _check_kinds(set(parts.geom_type), path)
    if geometry.crs is not None:
        _check_degrees(geometry, path)
    return parts


def _has_place(geometry: Any) -> NDArray[np.bool_]:
    """Return which geometries are not empty or missing, and have finite coordinates."""
    placed: NDArray[np.bool_] = np.isfinite(geometry.bounds.to_numpy()).all(axis=1)
    return placed


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


def _check_degrees(geometry: Any, path: str) -> None:
    """Refuse metres in a file that says degrees, such as GeoJSON without a coordinate system."""
    least_x, least_y, most_x, most_y = geometry.total_bounds
    if geometry.crs.is_geographic and (max(-least_x, most_x) > 360 or max(-least_y, most_y) > 90):
        raise SceneError(
            f"{path}: {told_reach(geometry)}, which are not degrees of {geometry.crs.to_string()}. Give "
            "the file its coordinate system, for example: ogr2ogr -a_srs EPSG:32633 OUT.gpkg IN"
        )


def told_reach(geometry: Any) -> str:
    """Return how far the coordinates of geometries reach, for a message."""
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


def at_its_longitudes(parts: Any, scene: Grid) -> Any:
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


def parts_of(path: str) -> tuple[str, ...]:
    """Return a vector file and, of a Shapefile, the files beside it that hold the rest of it."""
    if Path(path).suffix.lower() != ".shp":
        return (path,)
    stem = os.path.splitext(path)[0]
    names = [stem + part for suffix in _SHAPEFILE_PARTS for part in (suffix, suffix.upper())]
    return (path, *(name for name in names if os.path.exists(name)))

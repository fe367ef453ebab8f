"""Points and polygons of another coordinate system on a scene: edges stay what they are in their own."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenscape.base.blocks import blocks
from eigenscape.scenes.geometry.arrays import F8
from eigenscape.scenes.geometry.parts import to_pixels
from eigenscape.scenes.grids import full_turn
from eigenscape.scenes.types import Grid

_FARTHEST = 0.01
"""Pixels by which the chord of a part of an edge may be apart from it."""

_SPLIT = 0.4
"""Where edges are split: in the middle a curve that is the same from both ends may cross its chord."""

_MOST_SPLITS = 40
"""An edge that is torn apart, as at a date line, is bent however often it is split."""

_MOST_ADDED = 2**14
"""Vertices for one polygon."""

_BATCH = 2**16
"""Vertices that are worked on at a time."""

_STRIP_PIXELS = 2**20
_LATTICE = 33


def transformed(parts: Any, scene: Grid) -> Any:
    """Return points and polygons in the coordinate system of a scene.

    A straight edge of a polygon is a curve in another system. It gets as many vertices as it needs where the
    scene is. Around a pole, across a date line or where the projection ends, vertices do not say what is
    within: such a polygon becomes the outline of the pixels whose centres lie in it in its own system.

    Parameters
    ----------
    parts : geopandas.GeoSeries
        Points and polygons without heights, with a coordinate system.
    scene
        A grid with a transform and a coordinate system.

    Returns
    -------
    geopandas.GeoSeries
        Points without a place there have infinite coordinates, and polygons of the latter kind that cover no
        centre of a pixel are empty.
    """
    if parts.crs.is_exact_same(scene.crs_wkt):
        return parts
    import geopandas
    import shapely

    own = np.asarray(parts.geometry.array)
    polygon = np.asarray(parts.geom_type == "Polygon")
    shapes = own.copy()
    shapes[~polygon] = np.asarray(parts[~polygon].to_crs(scene.crs_wkt).geometry.array)
    batch = np.cumsum(np.where(polygon, shapely.get_num_coordinates(own), 0)) // _BATCH
    torn = np.zeros(len(own), np.bool_)
    for number in np.unique(batch[polygon]).tolist():
        chosen = np.flatnonzero(polygon & (batch == number))
        shapes[chosen], torn[chosen] = _bent(own[chosen], parts.crs, scene)
    if torn.any():
        shapes[torn] = _outlined(own[torn], parts.crs, scene)
    return geopandas.GeoSeries(shapes, index=parts.index, crs=scene.crs_wkt)


def _bent(shapes: Any, crs: Any, scene: Grid) -> tuple[Any, NDArray[np.bool_]]:
    """Return polygons in the system of a scene, with more vertices, and which of them are torn apart."""
    import shapely

    kind, coordinates, (rings, polygons) = shapely.to_ragged_array(shapes)
    ring = np.repeat(np.arange(len(rings) - 1), np.diff(rings))
    owner = np.repeat(np.arange(len(shapes)), np.diff(polygons))[ring]
    project = _projection(crs, scene.crs_wkt)
    places = project(coordinates)
    torn = np.zeros(len(shapes), np.bool_)
    torn[owner[~np.isfinite(places).all(axis=1)]] = True
    start = np.flatnonzero(ring[1:] == ring[:-1])
    ends = np.column_stack([start, start + 1])
    # From the same end in both polygons that share an edge: no gap is between them.
    one, other = coordinates[start], coordinates[start + 1]
    turned = (one[:, 0] > other[:, 0]) | ((one[:, 0] == other[:, 0]) & (one[:, 1] > other[:, 1]))
    ends[turned] = ends[turned, ::-1]
    share = (ends - start[:, None]).astype(float)
    # Source, place on the scene in pixels; both for the two ends.
    source, pixels = coordinates[ends], _pixels(places, scene)[ends]
    added_at, added_share, added = [np.arange(len(places))], [np.zeros(len(places))], [places]
    counted = np.zeros(len(shapes), np.int64)
    for _ in range(_MOST_SPLITS):
        middle = _between(source)
        place = project(middle)
        pixel = _pixels(place, scene)
        apart = np.hypot(*(pixel - _between(pixels)).T)
        torn[owner[start[~np.isfinite(apart)]]] = True
        bent = (apart > _FARTHEST) & ~torn[owner[start]]
        bent[bent] = _is_near(pixels[bent], pixel[bent], apart[bent], scene)
        if not bent.any():
            break
        start, at = start[bent], _between(share[bent])
        added_at.append(start)
        added_share.append(at)
        added.append(place[bent])
        counted += np.bincount(owner[start], minlength=len(shapes))
        torn |= counted > _MOST_ADDED
        start = np.tile(start, 2)
        share = _halves(share[bent], at)
        source, pixels = _halves(source[bent], middle[bent]), _halves(pixels[bent], pixel[bent])
    else:
        torn[owner[start]] = True
    at = np.concatenate(added_at)
    order = np.lexsort((np.concatenate(added_share), at))
    places = np.concatenate(added)[order]
    places[torn[owner[at[order]]]] = 0
    offsets = np.concatenate([[0], np.cumsum(np.bincount(ring[at], minlength=len(rings) - 1))])
    return shapely.from_ragged_array(kind, places, (offsets, polygons)), torn


def _projection(one: Any, other: Any) -> Callable[[F8], F8]:
    """Return a function of places (n, 2) in one system that gives those in another; infinite without any."""
    from pyproj import Transformer

    transformer = Transformer.from_crs(one, other, always_xy=True)
    return lambda places: np.column_stack(transformer.transform(*places.T))


def _pixels(places: F8, scene: Grid) -> F8:
    with np.errstate(invalid="ignore"):
        return np.column_stack(to_pixels(scene, *places.T))


def _between(ends: F8) -> F8:
    """Return what is between both ends (edges, 2, ...), where an edge is split."""
    with np.errstate(invalid="ignore"):
        between: F8 = ends[:, 0] + _SPLIT * (ends[:, 1] - ends[:, 0])
    return between


def _halves(ends: F8, middle: F8) -> F8:
    """Return both ends of the parts of edges that are split."""
    return np.concatenate(
        [np.stack([ends[:, 0], middle], axis=1), np.stack([middle, ends[:, 1]], axis=1)]
    )


def _is_near(ends: F8, middle: F8, apart: F8, scene: Grid) -> NDArray[np.bool_]:
    """Return which edges may meet a scene: elsewhere they may stay as straight as they are."""
    if full_turn(scene.crs_wkt) is not None:
        # A whole turn away they would meet it.
        return np.ones(len(ends), np.bool_)
    reach = np.hypot(*(ends[:, 1] - ends[:, 0]).T) + 2 * apart
    low = np.minimum(ends.min(axis=1), middle) - reach[:, None]
    high = np.maximum(ends.max(axis=1), middle) + reach[:, None]
    near: NDArray[np.bool_] = (low < (scene.width, scene.height)).all(axis=1) & (high > 0).all(1)
    return near


def _outlined(shapes: Any, crs: Any, scene: Grid) -> Any:
    """Return the outlines of the pixels whose centres lie in polygons of a system; empty without any."""
    import shapely
    from rasterio.features import shapes as outlines
    from rasterio.transform import Affine

    project = _projection(scene.crs_wkt, crs)
    turn = full_turn(crs.to_wkt())
    turns = (0.0,) if turn is None else (-turn, 0.0, turn)
    bounds = shapely.bounds(shapes)
    near = np.flatnonzero(_may_meet(bounds, turns, scene, project)).tolist()
    shapely.prepare(shapes[near])
    found: list[list[Any]] = [[] for _ in shapes]
    assert scene.transform is not None
    a, b, c, d, e, f = scene.transform
    for top, bottom in blocks(scene.height, max(1, _STRIP_PIXELS // scene.width)) if near else ():
        x, y = project(_centres(scene, np.arange(top, bottom), np.arange(scene.width))).T
        for index in near:
            within = np.zeros(len(x), np.uint8)
            west, south, east, north = bounds[index]
            for by in turns:
                box = (x + by >= west) & (x + by <= east) & (y >= south) & (y <= north)
                within[box] |= shapely.contains_xy(shapes[index], x[box] + by, y[box])
            if within.any():
                mask = within.reshape(bottom - top, scene.width)
                place = Affine(a, b, b * top + c, d, e, e * top + f)
                found[index] += [
                    shapely.geometry.shape(outline)
                    for outline, _ in outlines(mask, mask=mask != 0, transform=place)
                ]
    return np.array([shapely.MultiPolygon(parts) for parts in found])


def _centres(scene: Grid, rows: NDArray[Any], columns: NDArray[Any]) -> F8:
    """Return the places (n, 2) of the centres of pixels, row by row."""
    assert scene.transform is not None
    a, b, c, d, e, f = scene.transform
    column, row = (part.ravel() + 0.5 for part in np.meshgrid(columns, rows))
    return np.column_stack([a * column + b * row + c, d * column + e * row + f])


def _may_meet(
    bounds: F8, turns: tuple[float, ...], scene: Grid, project: Callable[[F8], F8]
) -> NDArray[np.bool_]:
    """Return which boxes in another system may hold pixels of a scene, by some of its pixels."""
    rows = np.unique(np.linspace(0, scene.height - 1, _LATTICE).astype(int))
    columns = np.unique(np.linspace(0, scene.width - 1, _LATTICE).astype(int))
    places = project(_centres(scene, rows, columns)).reshape(len(rows), len(columns), 2)
    if not np.isfinite(places).all():
        return np.ones(len(bounds), np.bool_)
    # Between two of them, and around a pole, lies no pixel farther off than they are from one another.
    steps = [np.abs(np.diff(places, axis=axis)).max(axis=(0, 1), initial=0) for axis in (0, 1)]
    low = places.min(axis=(0, 1)) - np.maximum(*steps)
    high = places.max(axis=(0, 1)) + np.maximum(*steps)
    meets = np.zeros(len(bounds), np.bool_)
    for by in turns:
        least, most = bounds[:, :2] - (by, 0), bounds[:, 2:] - (by, 0)
        meets |= (least <= high).all(axis=1) & (most >= low).all(axis=1)
    return meets

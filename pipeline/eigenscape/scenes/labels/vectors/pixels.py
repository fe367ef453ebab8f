"""Pixels of a scene that points and polygons label."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenscape.base.shares import counted
from eigenscape.scenes.types import Grid, Legend

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


def to_pixels(
    parts: Any,
    numbers: NDArray[np.uint16],
    legend: Legend,
    files: tuple[str, ...],
    notes: tuple[str, ...],
    scene: Grid,
) -> VectorLabels:
    """Return the labels that points and polygons give the pixels of a scene.

    Parameters
    ----------
    parts : geopandas.GeoSeries
        Points and polygons in the coordinate system of the scene.
    numbers : array of uint16, shape (parts,)
        Class of each; those of class 0 are left out.
    legend, files, notes
        See `VectorLabels`; the notes of the result also tell of overlaps and of what labels nothing.
    scene
        Grid to label.
    """
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
    text = f"no pixel centre lies within {counted(count, 'polygon')}: nothing is labelled there"
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
            f"polygons of different classes overlap on {counted(shared, 'pixel')}: the "
            "last polygon in the file gives the class"
        )
    flat = labels.point_pixels @ (labels.width, 1)
    pairs = np.unique(np.column_stack([flat, labels.point_classes.astype(np.int64)]), axis=0)
    if shared := int((np.unique(pairs[:, 0], return_counts=True)[1] > 1).sum()):
        yield (
            f"points of different classes lie in {counted(shared, 'pixel')}: the last point in "
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

"""Labels in a table of points: coordinates and a class in each row of a CSV or Parquet file."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eigenscape.base.shares import counted
from eigenscape.errors import SceneError
from eigenscape.scenes.formats.tables.tabularfiles import TabularFile, open_tabular
from eigenscape.scenes.grids import turns_onto
from eigenscape.scenes.labels.tables import label_column
from eigenscape.scenes.labels.vectorclasses import LIKELY
from eigenscape.scenes.types import Grid, Legend

_PIXELS = (("row", "column"), ("row", "col"), ("line", "sample"))
_GEOGRAPHIC = (("lon", "lat"), ("long", "lat"), ("longitude", "latitude"))
_PLANE = (
    ("x", "y"), ("easting", "northing"), ("e", "n"), ("point_x", "point_y"), ("xcoord", "ycoord"),
)  # fmt: skip
_WGS84 = "EPSG:4326"


@dataclass(frozen=True, eq=False)
class PointLabels:
    """Pixels that points of a table label; fulfils the `Labels` protocol.

    Attributes
    ----------
    legend
        Names of the classes, if they are named.
    files
        The file.
    notes
        What a user should know.
    width
        Columns of the scene.
    pixels : array of int, shape (points,)
        row * width + column of each labelled pixel, ascending.
    classes : array of uint16, shape (points,)
        Class numbers.
    """

    legend: Legend
    files: tuple[str, ...]
    notes: tuple[str, ...]
    width: int
    pixels: NDArray[np.int64]
    classes: NDArray[np.uint16]

    def read(self, start: int, stop: int) -> NDArray[np.uint16]:
        """Read the labels of rows start ... stop-1; see `Labels.read`."""
        labels = np.zeros((stop - start) * self.width, np.uint16)
        first, last = np.searchsorted(self.pixels, (start * self.width, stop * self.width))
        labels[self.pixels[first:last] - start * self.width] = self.classes[first:last]
        return labels.reshape(stop - start, self.width)


def open_point_labels(
    path: str, field: str | None, crs: str | None, scene: Grid, *, marks: bool = False
) -> PointLabels:
    """Open the points of a table and bring them onto a scene's grid.

    Columns ``row`` and ``column`` count pixels from 0; else ``x`` and ``y``, ``easting`` and
    ``northing`` are in the scene's coordinate system, and ``lon`` and ``lat`` in EPSG:4326.

    Parameters
    ----------
    path
        A CSV or Parquet file.
    field
        Column of the class; by default the only other one, or one with a telling name.
    crs
        Coordinate system of the coordinates, if it is another one (``scene.labels_crs``).
    scene
        Grid to label, of an image.
    marks
        Whether the points only mark pixels: without a column of the class each has class 1.

    Raises
    ------
    SceneError
        Columns are missing, no point lies on the scene, or points of two classes share a pixel.
    """
    file = open_tabular(path)
    kind, places = _coordinates(file, scene)
    coordinates = _numbers(file, places)
    legend, classes, notes = _classes(file, field, places, marks=marks)
    known = np.isfinite(coordinates).all(axis=1)
    used = known & (classes > 0)
    if not used.any():
        raise SceneError(f"{path}: no row has both coordinates and a class. Give points with both.")
    if (missing := int((~known).sum())) > 0:
        notes.append(f"{missing} of {file.rows} points have no coordinates and are left out")
    rows = np.flatnonzero(used)
    pixels = _to_pixels(coordinates[rows], kind, crs, scene, path)
    inside = (pixels >= 0).all(axis=1) & (pixels < (scene.height, scene.width)).all(axis=1)
    if not inside.any():
        least, most = coordinates[rows].min(axis=0), coordinates[rows].max(axis=0)
        names = [file.columns[place].name for place in places]
        spans = " and ".join(
            f"{name} from {low:.9g} to {high:.9g}"
            for name, low, high in zip(names, least, most, strict=True)
        )
        raise SceneError(
            f"{path}: none of its {len(rows)} points lies on the scene ({spans}; the scene has "
            f"{scene.height} rows and {scene.width} columns). Check the coordinates, and name their "
            "system in scene.labels_crs."
        )
    if (outside := len(rows) - int(inside.sum())) > 0:
        notes.append(f"{outside} of {len(rows)} points lie outside of the scene and are left out")
    flat = pixels[inside] @ (scene.width, 1)
    found, numbers = _one_class_each(flat, classes[rows[inside]], rows[inside], scene.width, path)
    if len(found) < len(flat):
        notes.append(f"{len(flat)} points label {len(found)} pixels: several lie in the same one")
    return PointLabels(legend, (path,), tuple(notes), scene.width, found, numbers)


def counts_pixels(path: str) -> bool:
    """Whether the points of a table are given by row and column."""
    names = {column.name.lower() for column in open_tabular(path).columns}
    return any(names.issuperset(pair) for pair in _PIXELS)


def coordinate_columns(columns: Sequence[str]) -> tuple[str, list[int]] | None:
    """Return the kind of the coordinates in columns of these names, and the places of both; None without.

    The kinds are "pixels", "geographic" and "plane".
    """
    names = [column.lower() for column in columns]
    for kind, pairs in (("pixels", _PIXELS), ("geographic", _GEOGRAPHIC), ("plane", _PLANE)):
        for pair in pairs:
            if all(name in names for name in pair):
                return kind, [names.index(name) for name in pair]
    return None


def _coordinates(file: TabularFile, scene: Grid) -> tuple[str, list[int]]:
    """Return the kind of the coordinates, and the columns of the first and second one."""
    if found := coordinate_columns([column.name for column in file.columns]):
        return found
    shown = ", ".join(column.name or "(no name)" for column in file.columns[:20])
    raise SceneError(
        f"{file.path}: the scene is an image of {scene.height} x {scene.width} pixels, so labels in a "
        "table are points on it, and the file has no columns x and y, easting and northing, lon and "
        f"lat, or row and column. Name two of its columns like that, or give a raster or a vector file. "
        f"Columns: {shown}."
    )


def _classes(
    file: TabularFile, field: str | None, places: Sequence[int], *, marks: bool
) -> tuple[Legend, NDArray[np.uint16], list[str]]:
    """Return the names of the classes, the class of each point, and what a user should know of them."""
    possible = _possible_classes(file, places)
    if marks and not (possible if field is None else any(c.name == field for c in file.columns)):
        told = "every point marks its pixel: no column holds the class"
        return Legend(), np.ones(file.rows, np.uint16), [told]
    column = label_column(file, field or _class_column(file, possible))
    notes = list(column.notes)
    named = [place for place, one in enumerate(file.columns) if one.name]
    others = [file.columns[n].name for n in named if n not in (*places, column.column)]
    if field is None and others:
        name = file.columns[column.column].name
        notes.append(f"the class is read from the column {name} (not {', '.join(others)})")
    return column.legend, column.read(0, file.rows).ravel(), notes


def _possible_classes(file: TabularFile, coordinates: Sequence[int]) -> list[str]:
    """Return the names of the columns besides those of coordinates."""
    every = {name for pairs in (_PIXELS, _GEOGRAPHIC, _PLANE) for pair in pairs for name in pair}
    return [
        column.name
        for place, column in enumerate(file.columns)
        # pandas writes the numbers of its rows in a column without a name.
        if place not in coordinates and column.name and column.name.lower() not in every
    ]


def _class_column(file: TabularFile, others: Sequence[str]) -> str:
    """Return which of some columns is that of the class, where the job does not say it."""
    likely = [name for name in others if name.lower() in LIKELY]
    if likely or len(others) == 1:
        return likely[0] if likely else others[0]
    raise SceneError(
        f"{file.path}: {'several columns could hold' if others else 'no column holds'} the class. "
        f"Name it in scene.labels_field. Columns: {', '.join(c.name for c in file.columns[:20])}."
    )


def _numbers(file: TabularFile, places: list[int]) -> NDArray[np.float64]:
    """Return the coordinates of all points, shape (points, 2), NaN where one is missing."""
    for place in places:
        column = file.columns[place]
        unread = any(words in column.fault for words in ("not a number", "decimals need"))
        if not column.numbers or unread:
            raise SceneError(
                f"{file.path}: the column {column.name!r} {column.fault or 'holds no numbers'}. "
                "Coordinates are plain numbers such as 500012.5; degrees must be decimal."
            )
    return np.concatenate(list(file.numbers(places, 0, file.rows)))


def _to_pixels(
    coordinates: NDArray[np.float64], kind: str, crs: str | None, scene: Grid, path: str
) -> NDArray[np.int64]:
    """Return row and column of every point; those outside of the scene are negative or too large."""
    if kind == "pixels":
        if crs is not None:
            raise SceneError(
                f"{path}: scene.labels_crs = {crs!r}: the points are given by row and column, which "
                "have no coordinate system. Leave the key out."
            )
        return _whole(coordinates)
    if scene.transform is None:
        raise SceneError(
            f"{path}: the labels are points with coordinates, and the scene has no georeference, so "
            "their position on it is unknown. Give columns row and column, counted from 0."
        )
    from rasterio.transform import Affine

    x, y = coordinates.T
    source = crs or (_WGS84 if kind == "geographic" else None)
    if source is not None:
        x, y = _reprojected(x, y, source, scene, path)
    turns, _, turn = turns_onto(scene, x, x)
    x = x + turns * turn
    inverse = ~Affine(*scene.transform)
    rows = inverse.d * x + inverse.e * y + inverse.f
    columns = inverse.a * x + inverse.b * y + inverse.c
    return _whole(np.column_stack([rows, columns]))


def _whole(places: NDArray[np.float64]) -> NDArray[np.int64]:
    # What lies far outside, or nowhere, fits no whole number.
    return np.floor(np.nan_to_num(np.clip(places, -1, 2**40), nan=-1)).astype(np.int64)


def _reprojected(
    x: NDArray[np.float64], y: NDArray[np.float64], source: str, scene: Grid, path: str
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    from rasterio.crs import CRS
    from rasterio.errors import CRSError
    from rasterio.warp import transform

    if scene.crs_wkt is None:
        raise SceneError(
            f"{path}: the points are in {source}, and the scene has no coordinate system. Give the "
            "scene its own, for example: gdal_edit.py -a_srs EPSG:32633 FILE"
        )
    try:
        given = CRS.from_user_input(source)
    except CRSError as error:
        raise SceneError(
            f"scene.labels_crs = {source!r}: is not a coordinate system ({error}). Give for example "
            '"EPSG:32633".'
        ) from error
    if given.is_geographic and ((np.abs(y) > 90) | (np.abs(x) > 360)).any():
        raise SceneError(
            f"{path}: longitudes reach {np.abs(x).max():.9g} and latitudes {np.abs(y).max():.9g}, "
            f"which are not degrees of {source}. Name the coordinates' system in scene.labels_crs."
        )
    found = transform(given, CRS.from_wkt(scene.crs_wkt), x.tolist(), y.tolist())
    return np.asarray(found[0]), np.asarray(found[1])


def _one_class_each(
    flat: NDArray[np.int64],
    classes: NDArray[np.uint16],
    rows: NDArray[np.intp],
    width: int,
    path: str,
) -> tuple[NDArray[np.int64], NDArray[np.uint16]]:
    """Return the labelled pixels, ascending, and the class of each."""
    order = np.argsort(flat, kind="stable")
    flat, classes, rows = flat[order], classes[order], rows[order]
    same = np.flatnonzero((flat[1:] == flat[:-1]) & (classes[1:] != classes[:-1]))
    if len(same):
        first = same[0]
        row, column = divmod(int(flat[first]), width)
        count = len(np.unique(flat[same]))
        raise SceneError(
            f"{path}: points of different classes lie in {counted(count, 'pixel')}, first in row "
            f"{row}, column {column}: class {classes[first]} by point {rows[first] + 1} and class "
            f"{classes[first + 1]} by point {rows[first + 1] + 1}. Leave one of them out: a pixel has "
            "one class."
        )
    kept = np.r_[True, flat[1:] != flat[:-1]]
    return flat[kept], classes[kept]

"""Labels in vector files: points label the pixel around them, polygons the centres within."""

from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenscape.errors import MissingExtraError, SceneError
from eigenscape.scenes.grids import check_overlap, extent
from eigenscape.scenes.labels.classnumbers import (
    is_zero,
    told_merged,
    told_unnamed,
    told_zero_of,
)
from eigenscape.scenes.labels.vectorclasses import (
    choose_attribute,
    choose_mark,
    classify,
    find_partner,
    without_texts_of_none,
)
from eigenscape.scenes.labels.vectors.features import (
    Features,
    at_its_longitudes,
    parts_of,
    read_features,
    told_reach,
)
from eigenscape.scenes.labels.vectors.pixels import VectorLabels, to_pixels
from eigenscape.scenes.types import Grid, Legend


@dataclass(frozen=True, eq=False)
class _Classes:
    """Classes of features.

    Attributes
    ----------
    numbers : array of uint16, shape (features,)
        Class numbers, 0 without a class.
    zero : array of bool, shape (features,)
        Which have the class 0 in the file.
    legend
        Names of the classes.
    notes
        What a user should know of the attribute.
    """

    numbers: NDArray[np.uint16]
    zero: NDArray[np.bool_]
    legend: Legend
    notes: tuple[str, ...]


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
    _check_possible(path, scene)
    features = read_features(path, layer, field, scene, marks=marks)
    classes = _read_classes(features, field, path, marks=marks)
    _check_placed(features, path)
    parts = at_its_longitudes(features.parts, scene)
    _check_overlap(parts, features, scene, path)
    numbers = classes.numbers[np.asarray(parts.index)]
    notes = (*features.notes, *classes.notes, *_told_left_out(features, classes))
    return to_pixels(parts, numbers, classes.legend, parts_of(path), notes, scene)


def _check_possible(path: str, scene: Grid) -> None:
    """Refuse vectors for a scene without a place, or without the packages that read them."""
    if scene.transform is None:
        raise SceneError(
            f"{path}: the labels are vectors, but the scene has no georeference, so their "
            "position on it is unknown. Give the scene one, or labels as a raster or array of its size."
        )
    for package in ("geopandas", "pyogrio"):
        if find_spec(package) is None:
            raise MissingExtraError(package, "vectors", f"A vector file of labels ({path})")


def _read_classes(features: Features, field: str | None, path: str, *, marks: bool) -> _Classes:
    """Read the classes from the attribute that holds them."""
    columns, notes = features.columns, []
    if marks and choose_mark(columns, field, path) is None:
        columns, field = {"mark": np.ones(len(features.drawn))}, None
        notes.append("every feature marks pixels: no attribute holds the class")
    name = choose_attribute(columns, field, path)
    named, none = without_texts_of_none(columns[name])
    columns = {**columns, name: named}
    if none:
        told = f"{len(none):,} of {len(features.drawn):,} features"
        notes.append(told_unnamed({*none}, f"the attribute {name!r}", told))
    numbers, legend = classify(columns, name, path)
    partner = find_partner(columns, name)
    if not legend.names:
        # Names that differ by blanks alone are the same.
        written = dict(zip(named.tolist(), numbers.tolist(), strict=True))
        notes += told_merged(dict(sorted(written.items(), key=str)), f"the attribute {name!r}")
    if field is None and (others := [other for other in columns if other not in (name, partner)]):
        notes.append(f"the class is read from the attribute {name} (not {', '.join(others)})")
    if partner is not None:
        both = f"{name} and {partner}"
        notes.append(f"numbers and names of the classes are read from the attributes {both}")
    zero = (numbers == 0) & np.array([is_zero(value) for value in columns[name].tolist()])
    if (zero & features.placed).any():
        notes.append(told_zero_of(f"the attribute {name!r}"))
    return _Classes(numbers, zero, legend, tuple(notes))


def _check_placed(features: Features, path: str) -> None:
    if not features.placed.any():
        raise SceneError(
            f"{path}: no feature can be brought into the coordinate system of the scene "
            f"({told_reach(features.geometry)}). Check the coordinates and their system "
            f"({features.geometry.crs.name})."
        )


def _check_overlap(parts: Any, features: Features, scene: Grid, path: str) -> None:
    if parts.is_empty.all():
        raise SceneError(
            f"{path}: the labels do not overlap the scene: {told_reach(features.geometry)}, in "
            f"{features.geometry.crs.name}. Give labels of this place, or correct their coordinate system."
        )
    check_overlap(path, tuple(parts.total_bounds), extent(scene))


def _told_left_out(features: Features, classes: _Classes) -> Iterator[str]:
    """Yield how many features label nothing, and why."""
    drawn, placed = features.drawn, features.placed
    unlabelled = placed & (classes.numbers == 0)
    left_out = (
        (~drawn, "have no geometry"),
        (drawn & ~placed, "cannot be brought into the coordinate system of the scene"),
        (unlabelled & ~classes.zero, "have no class"),
        (unlabelled & classes.zero, "have the class 0"),
    )
    for wrong, why in left_out:
        if wrong.any():
            yield f"{wrong.sum():,} of {len(wrong):,} features of the labels {why} and are left out"

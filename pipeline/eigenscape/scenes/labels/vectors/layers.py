"""The layer of a vector file that holds the labels."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenscape.errors import SceneError, did_you_mean
from eigenscape.scenes.labels.vectorclasses import classify

_USABLE = ("Point", "Polygon", "Unknown", "GeometryCollection")


def choose_layer(
    path: str, layer: str | None, field: str | None, *, marks: bool = False
) -> tuple[str, tuple[str, ...]]:
    """Return the layer of the labels, and what a user should know of the choice.

    Parameters
    ----------
    path
        A file that pyogrio opens.
    layer
        Its name (``scene.labels_layer``); by default the only one with points or polygons and an attribute
        that can hold the class.
    field
        Attribute that holds the class (``scene.labels_field``), None if it is not given.
    marks
        Whether the features only mark pixels: they need no class, and may lie in a layer of another name.

    Raises
    ------
    SceneError
        There is no such layer, or several could hold the labels.
    """
    import pyogrio

    kinds = {str(name): str(kind) for name, kind in pyogrio.list_layers(path) if kind is not None}
    names = list(kinds)
    if not names:
        raise SceneError(
            f"{path}: none of its layers has geometries. Give a file of points or polygons."
        )
    if layer in kinds:
        return layer, ()
    if layer is not None and not marks:
        raise SceneError(
            f"{path}: has no layer {layer!r} (scene.labels_layer).{did_you_mean(layer, names)} "
            f"Layers: {', '.join(names)}."
        )
    if len(names) == 1:
        return names[0], ()
    usable = [
        name
        for name, kind in kinds.items()
        if any(word in kind for word in _USABLE) and (marks or _has_class(path, name, field))
    ]
    if len(usable) == 1:
        others = ", ".join(name for name in names if name not in usable)
        return usable[0], (
            f"labels are read from layer {usable[0]} of {len(names)} (not {others})",
        )
    found = f"{', '.join(usable)} can hold classes" if usable else "none of them can hold classes"
    raise SceneError(
        f"{path}: has {len(names)} layers ({', '.join(names)}), and {found}. Name one in "
        "scene.labels_layer, and its attribute in scene.labels_field (--labels-layer and --labels-field of "
        "`eigenscape init`)."
    )


def attributes(frame: Any) -> dict[str, NDArray[Any]]:
    """Return the columns of a pandas frame: arrays of numbers, or of objects with None where empty."""
    return {str(name): _plain(frame[name]) for name in frame.columns}


def _has_class(path: str, layer: str, field: str | None) -> bool:
    from pyogrio import read_dataframe

    try:
        classify(attributes(read_dataframe(path, layer=layer, read_geometry=False)), field, path)
    except SceneError:
        return False
    return True


def _plain(column: Any) -> NDArray[Any]:
    if column.dtype.kind in "uif" and isinstance(column.dtype, np.dtype):
        return np.asarray(column)
    return np.asarray(column.astype(object).where(column.notna(), None), dtype=object)

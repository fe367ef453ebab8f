"""Scenes whose bands lie far from 0, compared with their spread: read less their origin."""

from dataclasses import replace
from typing import Any

import numpy as np

from eigenscape.scenes.formats.rasters.pixels import Calibration
from eigenscape.scenes.types import Scene
from eigenscape.scenes.views.centring import F8, is_rounded
from eigenscape.scenes.views.wrapped import innermost


def stored_type(scene: Scene) -> np.dtype[Any]:
    """Return the type of a scene's values before they go to single precision.

    Of a sparse table, whose zeros are to stay what they are, it is single precision itself.
    """
    inner = innermost(scene)
    parts = getattr(inner, "parts", (inner,))
    return np.result_type(*map(_type_of, parts))


def _type_of(part: Any) -> np.dtype[Any]:
    if not hasattr(part, "calibration"):
        return np.dtype(np.float32)
    # A reader that does not say reads numbers that are written out.
    dtype = np.dtype(getattr(part, "dtype", np.float64))
    moved = any(part.calibration.offset or ())
    scaled = part.calibration.scale is not None and is_rounded(dtype)
    return np.dtype(np.float64) if moved or scaled else dtype


def centred(scene: Any, origin: F8) -> Any:
    """Return a scene that reads values less their origin, shape (bands.count,)."""
    if hasattr(scene, "less"):
        return scene.less(origin)
    if hasattr(scene, "scene"):
        return replace(scene, scene=centred(scene.scene, origin))
    if not hasattr(scene, "parts"):
        return replace(scene, calibration=_less(scene.calibration, origin))
    parts, first = [], 0
    for part in scene.parts:
        last = first + len(part.bands)
        parts.append(replace(part, calibration=_less(part.calibration, origin[first:last])))
        first = last
    return replace(scene, parts=tuple(parts))


def _less(calibration: Calibration, origin: F8) -> Calibration:
    count = len(origin)
    scale = calibration.scale or (1.0,) * count
    offset = np.asarray(calibration.offset or (0.0,) * count) - origin
    return replace(calibration, scale=scale, offset=tuple(offset.tolist()))

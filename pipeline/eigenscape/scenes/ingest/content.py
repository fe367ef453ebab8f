"""Checks of the strips of a scene: that values vary, and that labels lie on them."""

import json
from collections.abc import Callable, Collection, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenscape.base.blocks import blocks
from eigenscape.base.shares import counted
from eigenscape.errors import InputError, SceneError
from eigenscape.job.jobfile import Job
from eigenscape.job.options import SceneOptions
from eigenscape.scenes.formats.tables.sparse import SparseScene
from eigenscape.scenes.labels.classnumbers import MOST_CLASSES
from eigenscape.scenes.labels.sources import unlabelled
from eigenscape.scenes.open import open_scene
from eigenscape.scenes.types import Labels, Scene
from eigenscape.scenes.views.centred import stored_type
from eigenscape.scenes.views.centring import describe_lost, describe_steps
from eigenscape.scenes.views.masks import told_shares

_MANY_ZEROS = 0.05
"""Share of the valid pixels up to which pixels may be 0 in all bands without a warning."""
_FILLS = (255, MOST_CLASSES)
"""Largest values of the types in which labels are stored, which often mark pixels without label."""

LARGEST, SMALLEST = 1e18, 1e-25
"""Values beyond the one, and spreads below the other, have no squared distances in single precision."""


def value_range(found: list[dict[str, Any]]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the least and the largest value of each band, in single precision, of all strips."""
    low = np.min([part["low"] for part in found if part["low"] is not None], axis=0)
    high = np.max([part["high"] for part in found if part["high"] is not None], axis=0)
    return low, high


def check_values(
    scene: Scene,
    found: list[dict[str, Any]],
    origin: NDArray[np.float64] | None,
    note: Callable[[str], None],
    *,
    applied: bool = False,
) -> None:
    """Refuse identical pixels; say which bands have lost their spread.

    Parameters
    ----------
    scene, found
        The scene and what its strips hold.
    origin : array, shape (bands,), optional
        What was subtracted from the values.
    note
        Called with what a user should know.
    applied
        Whether a run is applied to the scene: its pixels have neighbours in the run, not among themselves.

    Raises
    ------
    SceneError
        All pixels are identical, or their values are too large or too close.
    """
    low, high = value_range(found)
    _check_extremes(scene, low, high)
    varied = applied or bool((low < high).any())
    if origin is not None:
        low, high = low + origin, high + origin
    dtype = stored_type(scene)
    if not varied:
        raise all_identical(scene, low)
    if lost := describe_lost(low, high, dtype, what="band"):
        note(f"{scene.files[0]}: {lost}")


def all_identical(scene: Scene, values: NDArray[np.floating]) -> SceneError:
    """Return the error for a scene whose valid pixels all have the same values, one for each band."""
    return SceneError(
        f"{scene.files[0]}: all valid pixels are identical (every band is constant), so no pixel "
        "is nearer to another than to the rest. Check scene.path, scene.variable, scene.mask and "
        f"scene.bad_bands.{describe_steps(values.astype(np.float64), stored_type(scene))}"
    )


def _check_extremes(scene: Scene, low: NDArray[np.float64], high: NDArray[np.float64]) -> None:
    """Refuse values whose squared distances are infinite or 0 in single precision."""
    largest = np.maximum(np.abs(low), np.abs(high))
    number = int(largest.argmax())
    band = int(scene.bands.good_index[number]) + 1
    value = float(low[number] if -low[number] >= high[number] else high[number])
    if largest[number] > LARGEST:
        raise SceneError(
            f"{scene.files[0]}: band {band} holds {value:.10g}; values from {-LARGEST:g} to {LARGEST:g} "
            "can be used, since distances are squared. If it marks missing pixels, set scene.nodata = "
            f"{value!r} (the number as it is stored); if it is measured, set scene.scale."
        )
    spread = float((high - low).max())
    if 0 < spread < SMALLEST:
        raise SceneError(
            f"{scene.files[0]}: no band varies by more than {spread:.3g} (the largest value, of band "
            f"{band}, is {value:.10g}); squares of differences below {SMALLEST:g} vanish. Set "
            f"scene.scale, such as scene.scale = {10.0 ** -round(np.log10(spread)):g}; values that mark "
            "missing pixels are named in scene.nodata."
        )


def check_labelled(
    found: list[dict[str, Any]], labels: Labels | None, labelled: dict[int, int]
) -> None:
    """Refuse labels that lie on no valid pixel."""
    if labels is not None and not labelled:
        lost = sum(part["labels_on_invalid"] for part in found)
        why = (
            f"all {lost} labelled pixels lie where the scene is nodata, masked or not finite"
            if lost
            else "no pixel of the scene has a label"
        )
        raise SceneError(
            f"{labels.files[0]}: {why}. Check that scene.labels covers the scene, and the nodata "
            "value and mask of the scene."
        )


def told_zeros(scene: Scene, zeros: int, samples: int) -> str:
    """Return a warning about pixels that are 0 in all bands, an empty text where they are few."""
    if scene.grid.is_table or zeros <= _MANY_ZEROS * samples:
        return ""
    return (
        f"{zeros:,} of {samples:,} valid pixels ({zeros / samples:.1%}) are 0 in all bands. If nothing was "
        "measured there, leave them out: scene.nodata = 0, or a scene.mask"
    )


def told_fill(labels: Labels, labelled: Mapping[int, int]) -> str:
    """Return a warning about a class that seems to mark pixels without label, an empty text if none does."""
    total, largest = sum(labelled.values()), max(labelled, default=0)
    # Class numbers without a gap, as of 300 classes, are no fill value.
    fill = largest in _FILLS and largest not in labels.legend.names and largest - 1 not in labelled
    if not fill or labelled[largest] <= total / 2:
        return ""
    return (
        f"class {largest} has {labelled[largest]:,} of {total:,} labelled pixels "
        f"({labelled[largest] / total:.1%}). If it marks pixels without label, {unlabelled(labels, largest)}"
    )


def nothing_valid(scene: Scene, options: SceneOptions, resolve: Callable[[str], str]) -> SceneError:
    """Return the error for a scene without a valid pixel; see `open_scene` for the parameters."""
    empty = _empty_bands(scene, options, resolve)
    name = scene.files[0]
    if 0 < len(empty) < scene.bands.count:
        listed = ", ".join(map(str, empty[:12])) + (" ..." if len(empty) > 12 else "")
        toml = ", ".join(json.dumps(band) for band in (*options.bad_bands, *empty))
        return SceneError(
            f"{name}: no pixel is valid, because band {listed} is NaN, infinite or nodata everywhere "
            f"({len(empty)} of {scene.bands.count} bands). Leave them out: scene.bad_bands = [{toml}]."
        )
    shares = told_shares(scene)
    return SceneError(
        f"{name}: no pixel is valid: every one is nodata, NaN, infinite or masked in at least one of "
        f"the {scene.bands.count} bands{shares and f' ({shares})'}. Check scene.mask, scene.nodata and "
        "the file's nodata value, and list bands without data in scene.bad_bands."
    )


def _empty_bands(scene: Scene, options: SceneOptions, resolve: Callable[[str], str]) -> list[int]:
    """Return the numbers (from 1) of good bands that have no valid pixel at all."""
    good = scene.bands.good_index
    if len(good) > 500 or isinstance(scene, SparseScene):
        return []
    empty = []
    for band in good:
        others = tuple(int(other) + 1 for other in range(len(scene.bands.good)) if other != band)
        alone = open_scene(options.model_copy(update={"bad_bands": others}), resolve)
        step = max(1, 2**22 // scene.grid.width)
        if not any(alone.read(*rows)[1].any() for rows in blocks(scene.grid.height, step)):
            empty.append(int(band) + 1)
    return empty


def check_counts(job: Job, samples: int, what: str) -> None:
    """Refuse fewer than two samples, and a job that needs more than there are for k or the eigenvectors.

    Parameters
    ----------
    job
        The job.
    samples, what
        Their number, at most, and what the error calls them.

    Raises
    ------
    InputError
        There are fewer than two, or k or the dimension is too large.
    """
    if samples < 2:
        raise InputError(
            f"the scene has {counted(samples, 'valid sample')}: a graph needs two or more. Check scene.path, "
            "scene.mask and scene.nodata."
        )
    if (k := job.neighbors.least_neighbors) >= samples:
        raise InputError(
            f"neighbors.k = {k}: the scene has {what}, so a sample has at most "
            f"{samples - 1} neighbours. Set neighbors.k to {samples - 1} or less."
        )
    if job.spectrum.dimension > samples - 1:
        raise InputError(
            f"spectrum.dimension = {job.spectrum.dimension}: the scene has {what}, so there are at "
            f"most {samples - 1} eigenvectors beside the constant one. Set spectrum.dimension to "
            f"{samples - 1} or less."
        )


def check_two_classes(labelled: Mapping[int, int], names: Mapping[int, str]) -> None:
    """Refuse labels of a single class, where a classifier is to learn from them.

    Parameters
    ----------
    labelled
        Labelled pixels of each class, by its number.
    names
        Names of the classes, by their numbers.

    Raises
    ------
    SceneError
        With the class, the number of its labels, and what can be done.
    """
    if len(labelled) == 1:
        ((number, count),) = labelled.items()
        zero = "" if names else "0 means no label: if it is a class, number the classes from 1. "
        raise SceneError(
            f"the labels hold one class only: {names.get(number, f'number {number}')} ({count} labelled). "
            f"A classifier needs two or more. {zero}Check scene.labels, scene.labels_variable and "
            "scene.labels_field. A tile of one class: `eigenscape apply RUN --scene TILE` takes the classes "
            'of another run, and learn.method = "spectral-clustering" needs no labels.'
        )


def check_train(train: Any, labelled: Mapping[Any, int], *, balanced: bool = False) -> None:
    """Refuse a number of training pixels that the labels cannot give.

    Parameters
    ----------
    train
        ``learn.train``.
    labelled
        Labelled pixels of each class.
    balanced
        Whether as many are drawn of each class.

    Raises
    ------
    InputError
        With the numbers that they can.
    """
    if labelled and isinstance(train, int):
        least, total = len(labelled), sum(labelled.values())
        if not least <= train < total:
            # With one label of each class no number leaves any to test on.
            numbers = f"a number from {least} (one for each class) to {total - 1}, or "
            raise InputError(
                f"learn.train = {train}: the scene has {total} labels of {least} classes. "
                f'Give {numbers if least < total else ""}"all".'
            )
        if balanced:
            check_balanced(train, labelled.values())


def check_balanced(train: int, sizes: Collection[int]) -> None:
    """Refuse a number of training pixels of which each class cannot have as many.

    Parameters
    ----------
    train
        ``learn.train``.
    sizes
        Labelled pixels of each class.

    Raises
    ------
    InputError
        With the number that they can.
    """
    count, smallest = len(sizes), min(sizes)
    asked = f'learn.train = {train} with learn.split = "balanced"'
    if train % count:
        following = (train // count + 1) * count
        raise InputError(
            f"{asked}: the {count} classes cannot have as many pixels each. Set learn.train to "
            f"{following}, the next multiple of {count}."
        )
    # One of each class stays to be tested.
    if train // count > (limit := max(1, smallest - 1)):
        raise InputError(
            f"{asked}: {train // count} pixels of each class; the smallest class has "
            f"{smallest}. Set learn.train to {limit * count} or less."
        )

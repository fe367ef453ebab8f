"""Confidence intervals of the scores, and areas with standard errors."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenscape.base.blocks import blocks
from eigenscape.labels.splits import square_of
from eigenscape.labels.training import Labelled
from eigenscape.learn.decide.fitscores import FitScores
from eigenscape.learn.decide.kernels.areas import estimate_areas
from eigenscape.learn.decide.kernels.intervals import LEVEL, bootstrap
from eigenscape.learn.decide.kernels.scores import MEANS, confusion_matrix
from eigenscape.scenes.pixelareas import plane_area
from eigenscape.scenes.types import Grid
from eigenscape.store.arrays import open_array

_MOST_GROUPS = 500
"""Groups of samples of a table: drawing them instead of samples leaves intervals as they are."""

_SQUARE_KILOMETRE = 1e6


def find_intervals(
    source: FitScores,
    labelled: Labelled,
    place: NDArray[np.int64],
    grid: Grid,
    fits: list[int],
    *,
    test: bool,
    seed: int,
) -> dict[str, Any]:
    """Return confidence intervals of the scores.

    Parameters
    ----------
    source
        Calls of every fit at the labelled samples.
    labelled
        They, and what each fit learned from.
    place : array, shape (labelled,)
        Where they lie.
    grid
        In which they lie.
    fits
        Those that are scored.
    test
        Whether on the samples of a test file, or on those that were held out.
    seed
        Of the draws.

    Returns
    -------
    dict
        What `bootstrap` says; ``skipped``, why the overall accuracy has no interval, or ``no_means``, why
        the means over the classes have none.
    """
    rng = np.random.default_rng([seed, 5])
    if grid.is_table:
        groups = rng.permutation(len(place)) % _MOST_GROUPS
        units = (
            "groups of samples drawn at random: a table has no squares, and where samples are alike the "
            "intervals are too narrow"
        )
    else:
        groups = square_of(place // grid.width, place % grid.width, grid)
        units = "squares of the scene"
    report: dict[str, Any] = {"level": LEVEL, "resampled": units}

    def tested(number: int) -> NDArray[np.bool_]:
        return labelled.tested if test else labelled.held(number)

    if not any(tested(number).any() for number in fits):
        return {**report, "skipped": f"no {grid.things[:-1]} is held out"}

    def trials() -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]]]:
        for number in fits:
            here, called = tested(number), source.called(number)
            yield groups[here], labelled.classes[here], called[here]

    report |= bootstrap(trials(), int(groups.max()) + 1, labelled.count, rng)
    if report["overall_accuracy"] is None:
        count, what = report["groups"], units.split(":")[0]
        report["skipped"] = (
            f"all {count} {what} score alike, so the spread of others is not known"
            if count > 1
            else f"it takes two or more {what} with held-out {grid.things}"
        )
    elif all(report[name] is None for name in MEANS):
        held, number = min(
            (held, number)
            for held, number in zip(report["class_groups"], labelled.numbers.tolist(), strict=True)
            if held
        )
        report["no_means"] = (
            f"the held-out {grid.things} of class {number} lie in {held} of {report['groups']} "
            f"{units.split(':')[0]}"
        )
    return report


def find_areas(
    source: FitScores, labelled: Labelled, classes: str, grid: Grid, *, test: bool
) -> dict[str, Any]:
    """Return the areas of the classes, estimated from what the map was not made of.

    Parameters
    ----------
    source, labelled, test
        See `find_intervals`.
    grid
        Of the scene.
    classes
        Path of ``labels/class``, the map.

    Returns
    -------
    dict
        What `eigenscape.learn.decide.kernels.areas.estimate_areas` says; ``area`` and ``area_se`` of
        each class in ``unit``, with ``mapped``, what is counted on the map; the confusion of the map
        as ``sample``. Last in ``mapped`` and ``sample`` is what the map leaves without a class.
    """
    here = np.flatnonzero(labelled.tested if test else labelled.held(0))
    called = source.called(0)[here]
    # Strata are what the map says: rows, where confusion matrices have the reference.
    sample = confusion_matrix(labelled.classes[here], called, labelled.count).T
    mapped = _count_mapped(classes, labelled.numbers)
    disjoint = labelled.disjoint
    unknown = sum(disjoint.unknown.values()) if test and disjoint is not None else 0
    if unknown:
        # Without them what is left is no sample of the scene: the areas of all other classes were too large.
        sample = np.zeros_like(sample)
    found = estimate_areas(sample, mapped)
    size, unit = pixel_area(grid)
    report = {
        **found,
        "estimator": "stratified by the classes of the map (Olofsson and others 2014)",
        "sample": sample.tolist(),
        "unit": unit,
        "mapped": (mapped * size).tolist(),
        "area": [None if value is None else value * size for value in found["pixels"]],
        "area_se": [None if value is None else value * size for value in found["pixels_se"]],
    }
    if unknown:
        report["skipped"] = (
            f"{unknown:,} of the test pixels are of classes that the map does not have, so no area is "
            "estimated: give labels of these classes to learn from"
        )
        return report
    for key, what in (
        ("without_sample", "no label lies there, so no area is estimated: label some of it"),
        ("one_unit", "one label lies there, so areas have no standard errors: label more of it"),
    ):
        if found[key]:
            strata = [str(number) for number in labelled.numbers] + [
                f"0 ({grid.things} without a class)"
            ]
            numbers = ", ".join(strata[place] for place in found[key])
            report["skipped"] = f"the map has the class {numbers}, and {what}"
            break
    return report


def _count_mapped(classes: str, numbers: NDArray[np.uint16]) -> NDArray[np.int64]:
    array = open_array(classes)
    counts = np.zeros(2**16, np.int64)
    for start, stop in blocks(array.shape[0], array.chunks[0]):
        counts += np.bincount(array[start:stop], minlength=2**16)
    return counts[[*numbers, 0]]


def pixel_area(grid: Grid) -> tuple[float, str]:
    """Return the area of a pixel and its unit: square kilometres, or a pixel where these are not known."""
    if grid.is_table:
        return 1.0, "samples"
    # Where the map does not keep areas, those of its pixels differ from row to row.
    area = plane_area(grid)
    return (1.0, "pixels") if area is None else (area / _SQUARE_KILOMETRE, "km2")

"""Labels in a plan: opened by their headers, and counted where that takes no time."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from eigenscape.base.blocks import blocks
from eigenscape.base.shares import counted, listed
from eigenscape.errors import SceneError
from eigenscape.job.jobfile import Job
from eigenscape.scenes.describe import notes_of
from eigenscape.scenes.formats.rasters.planes import ArrayPlane, RasterPlane
from eigenscape.scenes.geometry.companions import locate
from eigenscape.scenes.ingest.content import check_labelled, told_fill
from eigenscape.scenes.labels.carried import CarriedLabels
from eigenscape.scenes.labels.sources import (
    PlaneLabels,
    numbered_like,
    numbers_taken,
    open_labels,
    open_marks,
    open_test_labels,
)
from eigenscape.scenes.types import Labels, Scene
from eigenscape.scenes.views.subset import SubsetLabels, subset_of

MOST_COUNTED = 2**20
"""Pixels of a scene whose labels are read for a plan."""

_LISTED = 12
_STRIP_PIXELS = 2**18


def preview_labels(
    job: Job, scene: Scene
) -> tuple[list[str], dict[int, int] | None, Mapping[int, str]]:
    """Open the labels of a job and the file of its training pixels, and count small ones.

    Parameters
    ----------
    job
        Its ``[scene]``, ``learn.train`` and ``learn.test`` name them.
    scene
        The scene, as `open_scene` returned it.

    Returns
    -------
    notes
        Where the labels are, and of which classes.
    counts
        Labelled pixels of each class, valid or not; None without labels, and of large scenes.
    names
        Names of the classes, by their numbers.

    Raises
    ------
    SceneError
        They cannot be read, are not of the scene's size, or label nothing.
    """
    train, subset = job.learn.train_file, subset_of(scene)
    marking: list[str] = []
    if train is not None:
        located = locate(scene, job.scene)
        marks = open_marks(job.resolve(train), job.scene, scene.grid, subset, located)
        marking = [f"training pixels: {_place(marks)}", *notes_of(marks)]
    labels = open_labels(job.scene, scene, job.resolve)
    if labels is None:
        if job.learn.test is not None:
            raise SceneError(
                f"learn.test = {job.learn.test!r}: the scene has no labels to learn from. Give them in "
                "scene.labels."
            )
        return [], None, {}
    notes, counts = _describe("labels", labels, scene)
    names = labels.legend.names
    if counts is not None:
        check_labelled([], labels, counts)
        if fill := told_fill(labels, counts):
            notes.append(fill)
    notes += marking
    if job.learn.test is not None:
        located = locate(scene, job.scene)
        path = job.resolve(job.learn.test)
        tested = open_test_labels(path, job.scene, scene.grid, subset, located)
        notes += _describe("test labels", numbered_like(tested, names), scene)[0]
        notes += numbers_taken(tested, names)
    return notes, counts, names


def _describe(what: str, labels: Labels, scene: Scene) -> tuple[list[str], dict[int, int] | None]:
    """Return where labels are and of which classes, and their pixels of each if these are counted."""
    text = f"{what}: {_place(labels)}"
    if scene.grid.size > MOST_COUNTED:
        named = ", ".join(list(labels.legend.names.values())[:_LISTED])
        text += f"; classes {named}" if named else ""
        return [f"{text}; counted when the scene is read", *notes_of(labels)], None
    counts = count_labels(labels, scene)
    total, names = sum(counts.values()), labels.legend.names
    classes = listed(
        (
            f"{' '.join(filter(None, (str(number), names.get(number))))} ({count:,})"
            for number, count in counts.items()
        ),
        _LISTED,
    )
    unit = "sample" if scene.grid.is_table else "pixel"
    text += f"; {counted(total, unit)} of {counted(len(counts), 'class')}"
    return [f"{text}, valid or not: {classes}", *notes_of(labels)], counts


def _place(labels: Labels) -> str:
    """Return where labels are, in words."""
    if isinstance(labels, SubsetLabels | CarriedLabels):
        return _place(labels.labels)
    name = Path(labels.files[0]).name
    plane = labels.plane if isinstance(labels, PlaneLabels) else None
    if isinstance(plane, ArrayPlane):
        source = plane.source
        shape = " x ".join(f"{size:,}" for size in source.shape)
        return f"{f'array {source.variable} of ' if source.variable else ''}{name}, {shape} {source.dtype}"
    if isinstance(plane, RasterPlane) and plane.warp_to:
        return f"{name}, brought onto the scene's grid by nearest neighbour"
    return name


def count_labels(labels: Labels, scene: Scene) -> dict[int, int]:
    """Return the labelled pixels of each class, valid or not, by class number."""
    total = np.zeros(2**16, np.int64)
    for start, stop in blocks(scene.grid.height, max(1, _STRIP_PIXELS // scene.grid.width)):
        total += np.bincount(labels.read(start, stop).ravel(), minlength=len(total))
    return {int(number): int(total[number]) for number in np.flatnonzero(total) if number}

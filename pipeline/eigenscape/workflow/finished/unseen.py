"""The error of a finished run on samples of its table that it never saw."""

from pathlib import Path
from typing import Any

import numpy as np

from eigenscape.base.blocks import blocks
from eigenscape.base.vectors import join
from eigenscape.errors import JobError
from eigenscape.job.jobfile import Job
from eigenscape.learn.classify.nearestneighbors import classify_new
from eigenscape.scenes.labels.sources import open_labels
from eigenscape.scenes.open import open_scene
from eigenscape.scenes.views.centred import centred
from eigenscape.scenes.views.subset import subset_of
from eigenscape.store.run import Run

_READ_ROWS = 4096
_HELD_OUT_STREAM = 1
"""Beside `scene.seed`, so that this draw is not that of the subset."""


def held_out_error(job: Job, run: Path, count: int) -> float:
    """Return the error of 3 nearest neighbours on the labels that a run produced (Belkin 2003, 3.8.4).

    Parameters
    ----------
    job
        The run's; its ``scene.samples`` left some of a table out.
    run
        Its directory.
    count
        How many of those to classify, drawn with ``scene.seed``.

    Returns
    -------
    float
        Percent of them whose class is not their label.

    Raises
    ------
    JobError
        Not so many were left out, or they have no labels.
    """
    drawn = subset_of(open_scene(job.scene, job.resolve))
    whole = job.scene.model_copy(update={"samples": None, "seed": None})
    scene = open_scene(whole, job.resolve)
    source = open_labels(whole, scene, job.resolve)
    left = drawn.total - drawn.count if drawn is not None else 0
    if drawn is None or source is None or left < count:
        raise JobError(
            f"{job.name}: study.held_out = {count}: scene.samples = {job.scene.samples} leaves "
            f"{left} labelled samples out. Lower one of the two, and take a table with labels."
        )
    origin = Run(run, create=False).read("samples/origin")
    if origin is not None:
        scene = centred(scene, origin)
    rest = np.setdiff1d(np.arange(drawn.total), drawn.rows)
    rng = np.random.default_rng([drawn.seed, _HELD_OUT_STREAM])
    chosen = np.sort(rng.choice(rest, count, replace=False))
    values, labels = [], []
    for start, stop in blocks(drawn.total, _READ_ROWS):
        here = chosen[slice(*np.searchsorted(chosen, (start, stop)))] - start
        if len(here):
            window, _ = scene.read(start, stop)
            values.append(window.reshape(stop - start, -1)[here])
            labels.append(source.read(start, stop).ravel()[here])
    samples: Any = join(values)
    # Whole in double: what single precision holds of them is their distance from the origin.
    found, _ = classify_new(run, samples if origin is None else samples + origin)
    truth = np.concatenate(labels)
    return 100 * float((found != truth)[truth > 0].mean())

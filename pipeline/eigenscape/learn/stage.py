"""The learn stage: class means, the class of every sample, and scores on several training sets.

::

    means      sample blocks   sums of the labelled coordinates, for all fits at once
    classify   sample blocks   class and confidence of every sample; confusion of every fit
"""

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenscape.arrays import chunk_rows, open_array
from eigenscape.errors import SceneError
from eigenscape.learn.centroid import class_sums, nearest_class, smallest_angle, unit_means
from eigenscape.learn.scores import accuracy, confusion_matrix, summarize
from eigenscape.learn.splits import BLOCKS_ACROSS, blocked_split, random_split
from eigenscape.options import LearnOptions, SceneOptions
from eigenscape.scenes.labels import open_labels
from eigenscape.scenes.open import open_scene
from eigenscape.scenes.types import Grid
from eigenscape.stage import Block, Context, blocks, sample_blocks

HELD_OUT_SHARE = 0.1
"""Share of the labels that the trials learn from when the map learns from all of them."""


@dataclass(frozen=True)
class _Labelled:
    """The labelled samples.

    Attributes
    ----------
    sample : array, shape (labelled,)
        Their numbers, ascending.
    classes : array, shape (labelled,)
        Class of each, 0 ... C-1.
    numbers : array, shape (C,)
        Class numbers of the source.
    train : array of bool, shape (fits, labelled)
        Training set of each fit; the first one makes the map.
    """

    sample: NDArray[np.int64]
    classes: NDArray[np.intp]
    numbers: NDArray[np.uint16]
    train: NDArray[np.bool_]

    def within(self, block: Block) -> slice:
        first, last = np.searchsorted(self.sample, block)
        return slice(int(first), int(last))


def learn_stage(context: Context) -> dict[str, Any]:
    """Write ``labels/class`` and ``labels/confidence``; return the scores."""
    ingest, spectrum = context.run.record("ingest"), context.run.record("spectrum")
    assert ingest is not None, "learn follows ingest"
    assert spectrum is not None, "learn follows the spectrum"
    if not ingest.summary["labelled"]:
        return {"skipped": "the scene has no labels"}
    labelled, fits = _plan_fits(context, Grid.from_json(ingest.summary["grid"]))
    vectors = context.open("spectrum/vector")
    samples, modes = vectors.shape
    # The constant vector tells nothing apart; of a graph in several pieces the null vectors do.
    null = spectrum.summary["null_vectors"]
    skip = null if null == 1 else 0
    target = context.workspace.create_array("labels/class", (samples,), np.uint16, dims=("sample",))
    confidence = context.workspace.create_array(
        "labels/confidence", (samples,), np.float32, dims=("sample",)
    )
    path = context.path("spectrum/vector")
    step = chunk_rows(samples, 4 * modes)
    sums = context.map(
        "means", partial(_sums, path, skip, labelled), blocks(samples, step),
        label="class means", keep=False,
    )  # fmt: skip
    means = unit_means(np.sum(sums, axis=0))
    per_row = 12 * modes
    ranges = sample_blocks(samples, chunk_rows(samples, 4), context.task_bytes, per_row)
    work = partial(_classify, path, skip, labelled, means, target, confidence)
    confusions = np.sum(
        context.map("classify", work, ranges, label="classifying", keep=False), axis=0
    )
    return {
        "classes": [int(number) for number in labelled.numbers],
        "labelled": len(labelled.sample),
        "scores": _score(context.job.learn, confusions, fits, labelled),
    }


def _plan_fits(context: Context, grid: Grid) -> tuple[_Labelled, dict[str, list[int]]]:
    """Return the labelled samples with all training sets, and which fits each protocol owns."""
    options = context.job.learn
    given = context.open("labels/given")[...]
    sample = np.flatnonzero(given)
    numbers, classes = np.unique(given[sample], return_inverse=True)
    pixel = context.open("samples/pixel")[...][sample]
    row, column = pixel // grid.width, pixel % grid.width
    if isinstance(options.train, str) and options.train != "all":
        train = _train_from_file(context, grid, row, column)
        return _Labelled(sample, classes, numbers, train[None]), {"file": [0]}
    if options.train == "all":
        share = HELD_OUT_SHARE
    elif isinstance(options.train, int):
        share = options.train / len(sample)
    else:
        share = float(options.train)
    side = max(1, -(-max(grid.height, grid.width) // BLOCKS_ACROSS))
    sets: list[NDArray[np.bool_]] = []
    fits: dict[str, list[int]] = {}
    if options.train == "all":
        fits["all"] = [0]
        sets.append(np.ones(len(sample), np.bool_))
    order = ("random", "blocked") if options.split == "random" else ("blocked", "random")
    for split in order:
        fits[split] = list(range(len(sets), len(sets) + options.trials))
        for trial in range(options.trials):
            rng = np.random.default_rng([options.seed, trial, split == "blocked"])
            if split == "random":
                sets.append(random_split(classes, share, rng))
            else:
                sets.append(blocked_split(classes, row, column, side, share, rng))
    return _Labelled(sample, classes, numbers, np.array(sets)), fits


def _train_from_file(
    context: Context, grid: Grid, row: NDArray[np.int64], column: NDArray[np.int64]
) -> NDArray[np.bool_]:
    job = context.job
    scene = open_scene(job.scene, job.resolve)
    options = SceneOptions(path=job.scene.path, labels=str(job.learn.train))
    chosen = open_labels(options, scene, job.resolve)
    assert chosen is not None, "the options name labels"
    train = np.zeros(len(row), np.bool_)
    step = max(1, 2**22 // grid.width)
    for start, stop in blocks(grid.height, step):
        here = (row >= start) & (row < stop)
        train[here] = chosen.read(start, stop)[row[here] - start, column[here]] > 0
    if not train.any():
        raise SceneError(
            f"learn.train = {job.learn.train!r}: none of the {len(row)} labelled pixels is marked "
            "in this file. Mark training pixels with any number above 0."
        )
    return train


def _sums(path: str, skip: int, labelled: _Labelled, block: Block) -> NDArray[np.float64]:
    here = labelled.within(block)
    count = len(labelled.numbers)
    stored = open_array(path)
    if here.start == here.stop:
        return np.zeros((len(labelled.train), count, stored.shape[1] - skip))
    vectors = stored[slice(*block)][labelled.sample[here] - block[0], skip:]
    known = np.isfinite(vectors).all(axis=1)
    return class_sums(
        vectors[known], labelled.classes[here][known], labelled.train[:, here][:, known], count
    )


def _classify(
    path: str,
    skip: int,
    labelled: _Labelled,
    means: NDArray[np.float32],
    target: str,
    confidence: str,
    block: Block,
) -> NDArray[np.int64]:
    vectors = open_array(path)[slice(*block)][:, skip:]
    best, clear = smallest_angle(vectors, means[0])
    count = len(labelled.numbers)
    open_array(target)[slice(*block)] = np.where(best < 0, 0, labelled.numbers[best])
    open_array(confidence)[slice(*block)] = clear
    # One matrix for the training and one for the other samples of every fit.
    confusions = np.zeros((len(means), 2, count, count + 1), np.int64)
    here = labelled.within(block)
    coordinates = vectors[labelled.sample[here] - block[0]]
    truth = labelled.classes[here]
    called = nearest_class(coordinates, means)
    for fit, (train, predicted) in enumerate(zip(labelled.train[:, here], called, strict=True)):
        for which, chosen in enumerate((train, ~train)):
            confusions[fit, which] = confusion_matrix(truth[chosen], predicted[chosen], count)
    return confusions


def _score(
    options: LearnOptions,
    confusions: NDArray[np.int64],
    fits: dict[str, list[int]],
    labelled: _Labelled,
) -> dict[str, Any]:
    """Return the scores of the map's own protocol, and beside them those of the others."""
    itself = {
        **accuracy(confusions[0, 0]),
        "confusion": confusions[0, 0].tolist(),
    }
    held_out = {
        split: summarize(list(confusions[numbers, 1]))
        for split, numbers in fits.items()
        if split != "all"
    }
    for split, numbers in fits.items():
        if split != "all":
            held_out[split]["training_pixels"] = int(labelled.train[numbers].sum(axis=1).mean())
    if options.train == "all":
        main, protocol = itself, "the labelled pixels themselves, all of them learned from"
    else:
        split = next(iter(held_out))
        main, protocol = held_out[split], f"pixels held out ({split})"
    keys = ("overall_accuracy", "average_accuracy", "kappa", "per_class", "confusion")
    return {
        "protocol": protocol,
        **{key: main[key] for key in keys},
        "training_pixels": itself,
        "held_out": held_out,
    }

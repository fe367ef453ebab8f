"""The labelled samples, and the training sets that classifiers are fitted to."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eigenscape.errors import SceneError
from eigenscape.learn.splits import BLOCKS_ACROSS, blocked_split, random_split
from eigenscape.options import SceneOptions
from eigenscape.scenes.labels import open_labels
from eigenscape.scenes.open import open_scene
from eigenscape.scenes.types import Grid
from eigenscape.stage import Block, Context, blocks

HELD_OUT_SHARE = 0.1
"""Share of the labels that the trials learn from when the map learns from all of them."""


@dataclass(frozen=True)
class Labelled:
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

    @property
    def count(self) -> int:
        """Number of classes."""
        return len(self.numbers)

    def within(self, block: Block) -> slice:
        """Return which of them lie in a block of samples."""
        first, last = np.searchsorted(self.sample, block)
        return slice(int(first), int(last))


def plan_fits(context: Context, grid: Grid) -> tuple[Labelled, dict[str, list[int]]]:
    """Return the labelled samples with all training sets, and which fits each protocol owns.

    The sets depend on ``learn.seed``, the labels and the split alone: every method draws the same.

    Raises
    ------
    SceneError
        ``learn.train`` names a file that marks no labelled pixel.
    """
    options = context.job.learn
    given = context.open("labels/given")[...]
    sample = np.flatnonzero(given)
    numbers, classes = np.unique(given[sample], return_inverse=True)
    pixel = context.open("samples/pixel")[...][sample]
    row, column = pixel // grid.width, pixel % grid.width
    if isinstance(options.train, str) and options.train != "all":
        train = _train_from_file(context, grid, row, column)
        return Labelled(sample, classes, numbers, train[None]), {"file": [0]}
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
    return Labelled(sample, classes, numbers, np.array(sets)), fits


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

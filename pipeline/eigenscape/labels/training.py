"""The labelled samples, and the training sets that classifiers are fitted to."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eigenscape.base.blocks import Block, blocks
from eigenscape.errors import InputError, SceneError
from eigenscape.job.options import LearnOptions
from eigenscape.labels.splits import (
    BLOCKS_ACROSS,
    MOST_DRAWS,
    balanced_split,
    blocked_split,
    random_split,
    uniform_split,
)
from eigenscape.scenes.ingested import IngestedScene
from eigenscape.scenes.types import Grid

HELD_OUT_SHARE = 0.1
"""Share of the labels that the trials learn from when the map learns from all of them."""

_STREAMS = ("random", "blocked", "uniform", "balanced")
"""Number of the random stream of each split: the place decides, so names go to the end."""


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
        Training set of each fit.
    mapped
        Whether the first fit makes a map; else the scores of the labelled samples are all that is asked
        for, and need not be as exact.
    """

    sample: NDArray[np.int64]
    classes: NDArray[np.intp]
    numbers: NDArray[np.uint16]
    train: NDArray[np.bool_]
    mapped: bool = True

    @property
    def count(self) -> int:
        """Number of classes."""
        return len(self.numbers)

    def within(self, block: Block) -> slice:
        """Return which of them lie in a block of samples."""
        first, last = np.searchsorted(self.sample, block)
        return slice(int(first), int(last))


@dataclass(frozen=True)
class Draws:
    """Draws training sets from the labelled samples of a scene.

    Attributes
    ----------
    options
        Split, share or number, seed.
    classes, row, column : array, shape (labelled,)
        Class and position of each.
    grid
        Of the scene.
    square
        Pixels along a square of the blocked split; a twelfth of the scene's longer side by default.
    """

    options: LearnOptions
    classes: NDArray[np.intp]
    row: NDArray[np.int64]
    column: NDArray[np.int64]
    grid: Grid
    square: int | None = None

    @property
    def side(self) -> int:
        """Pixels along a square of the blocked split."""
        longer = max(self.grid.height, self.grid.width)
        return self.square or max(1, -(-longer // BLOCKS_ACROSS))

    @property
    def share(self) -> float:
        """Share of the labels to learn from."""
        if isinstance(self.options.train, int):
            return self.options.train / len(self.classes)
        return HELD_OUT_SHARE if isinstance(self.options.train, str) else self.options.train

    @property
    def protocols(self) -> tuple[str, ...]:
        """The split asked for, and where there are squares the one that it is compared with."""
        split = self.options.split
        if not self.grid.is_table:
            return (split, "random" if split == "blocked" else "blocked")
        if split == "blocked":
            raise InputError(
                f'learn.split = "blocked": this is a table of {self.grid.height} samples, which has '
                'no squares. Set learn.split to "random", "uniform" or "balanced".'
            )
        return (split,)

    def draw(self, split: str, trial: int) -> NDArray[np.bool_]:
        """Return one training set, shape (labelled,)."""
        train, labelled = self.options.train, len(self.classes)
        if split in ("random", "blocked") and isinstance(train, int) and train >= labelled:
            raise InputError(
                f"learn.train = {train}: there are {labelled} labelled pixels. Set learn.train to less, "
                'or to "all".'
            )
        rng = np.random.default_rng([self.options.seed, trial, _STREAMS.index(split)])
        if split == "random":
            return random_split(self.classes, self.share, rng)
        if split == "uniform":
            return self._draw_uniform(rng)
        if split == "balanced":
            return balanced_split(self.classes, self._each(), rng)
        return blocked_split(self.classes, self.row, self.column, self.side, self.share, rng)

    def _draw_uniform(self, rng: np.random.Generator) -> NDArray[np.bool_]:
        labelled, count = len(self.classes), self._count
        size = max(count, round(self.share * labelled))
        asked = f'learn.train = {self.options.train} with learn.split = "uniform"'
        if isinstance(self.options.train, int) and not count <= self.options.train < labelled:
            raise InputError(
                f"{asked}: there are {labelled} labelled pixels of {count} classes. Set learn.train "
                f"to a number from {count} to {labelled - 1}."
            )
        train = uniform_split(self.classes, size, rng)
        if train is None:
            rare = int(np.bincount(self.classes).min())
            raise InputError(
                f"{asked}: of {MOST_DRAWS} draws none had a pixel of every class; the rarest has "
                f'{rare} of {labelled}. Raise learn.train, or set learn.split to "random" or '
                '"balanced".'
            )
        return train

    def _each(self) -> int:
        """Return how many pixels of each class a balanced draw has."""
        train, count = self.options.train, self._count
        smallest = int(np.bincount(self.classes).min())
        limit = max(1, smallest - 1)
        if not isinstance(train, int):
            return min(limit, max(1, round(self.share * len(self.classes) / count)))
        asked = f'learn.train = {train} with learn.split = "balanced"'
        if train % count:
            following = (train // count + 1) * count
            raise InputError(
                f"{asked}: the {count} classes cannot have as many pixels each. Set learn.train to "
                f"{following}, the next multiple of {count}."
            )
        if train // count > limit:
            raise InputError(
                f"{asked}: {train // count} pixels of each class; the smallest class has "
                f"{smallest}. Set learn.train to {limit * count} or less."
            )
        return train // count

    @property
    def _count(self) -> int:
        return int(self.classes.max()) + 1


def plan_fits(
    options: LearnOptions,
    given: NDArray[np.uint16],
    pixel: NDArray[np.int64],
    scene: IngestedScene,
    *,
    first_only: bool,
) -> tuple[Labelled, dict[str, list[int]]]:
    """Return the labelled samples with all training sets, and which fits each protocol owns.

    The sets depend on ``learn.seed``, the labels and the split alone: every method draws the same.
    The protocol of ``learn.split`` comes first. Of a scene the blocked one is there too, or the random
    one beside it; a table has no squares to draw.

    Parameters
    ----------
    options
        ``[learn]`` of the job.
    given, pixel : array, shape (samples,)
        Label of each sample, 0 for none, and its pixel.
    scene
        Their scene.
    first_only
        Whether the labels of the first set shape the eigenvectors: no other may be tested on them.

    Raises
    ------
    SceneError
        ``learn.train`` names a file that marks no labelled pixel.
    InputError
        The draw that ``learn.split`` asks for cannot be made from these labels.
    """
    sample, classes, numbers, row, column = labelled_samples(given, pixel, scene.grid.width)
    train = training_from_file(options.train, scene, row, column)
    if train is not None:
        return Labelled(sample, classes, numbers, train[None]), {"file": [0]}
    draws = Draws(options, classes, row, column, scene.grid)
    sets: list[NDArray[np.bool_]] = []
    fits: dict[str, list[int]] = {}
    if options.train == "all":
        fits["all"] = [0]
        sets.append(np.ones(len(sample), np.bool_))
    for split in draws.protocols:
        fits[split] = list(range(len(sets), len(sets) + options.trials))
        sets.extend(draws.draw(split, trial) for trial in range(options.trials))
    if first_only:
        return Labelled(sample, classes, numbers, np.array(sets[:1])), {draws.protocols[0]: [0]}
    return Labelled(sample, classes, numbers, np.array(sets)), fits


def labelled_samples(
    given: NDArray[np.uint16], pixel: NDArray[np.int64], width: int
) -> tuple[
    NDArray[np.int64], NDArray[np.intp], NDArray[np.uint16], NDArray[np.int64], NDArray[np.int64]
]:
    """Return number and class of the labelled samples, the numbers of the classes, rows and columns.

    Parameters
    ----------
    given, pixel : array, shape (samples,)
        Label of each sample, 0 for none, and its pixel.
    width
        Columns of the scene.
    """
    sample = np.flatnonzero(given)
    numbers, classes = np.unique(given[sample], return_inverse=True)
    row, column = np.divmod(pixel[sample], width)
    return sample, classes, numbers, row, column


def training_from_file(
    train: int | float | str,
    scene: IngestedScene,
    row: NDArray[np.int64],
    column: NDArray[np.int64],
) -> NDArray[np.bool_] | None:
    """Return the mask of the labelled samples that the file of ``learn.train`` marks.

    The file is read by strips of the scene.

    Parameters
    ----------
    train
        ``learn.train``.
    scene
        The scene of the samples.
    row, column : array of int, shape (labelled,)
        Positions of the labelled samples.

    Returns
    -------
    array of bool, shape (labelled,), or None
        None where ``learn.train`` is no file.

    Raises
    ------
    SceneError
        The file marks none of them.
    """
    if not isinstance(train, str) or train == "all":
        return None
    marks = scene.open_marks(train)
    marked = np.zeros(len(row), np.bool_)
    step = max(1, 2**22 // scene.grid.width)
    for start, stop in blocks(scene.grid.height, step):
        inside = (row >= start) & (row < stop)
        marked[inside] = marks.read(start, stop)[row[inside] - start, column[inside]] > 0
    if not marked.any():
        raise SceneError(
            f"learn.train = {train!r}: none of the {len(row)} labelled pixels is marked "
            "in this file. Mark training pixels with any number above 0."
        )
    return marked

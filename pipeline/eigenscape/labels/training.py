"""The labelled samples, and the training sets that classifiers are fitted to."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenscape.base.blocks import Block
from eigenscape.base.files.mapped import save_array
from eigenscape.errors import InputError, SceneError
from eigenscape.job.options import LearnOptions
from eigenscape.labels.splits import (
    MOST_DRAWS,
    Squares,
    Strata,
    balanced_split,
    blocked_split,
    random_split,
    side_of,
    uniform_split,
)
from eigenscape.labels.testing import Disjoint, read_at, read_disjoint
from eigenscape.scenes.ingest.content import check_balanced
from eigenscape.scenes.ingest.ingested import IngestedScene
from eigenscape.scenes.types import Grid

HELD_OUT_SHARE, MOST_HELD_OUT_SHARE = 0.1, 0.5
"""Share of the labels that the trials learn from when the map learns from all of them; the largest one."""

LEAST_TRAINED = 5
"""Training pixels of a class in a trial, on average, below which the share is larger."""

CALIBRATING_SHARE, CALIBRATING_TRIALS = 0.5, 2
"""Share of the labels, and draws, by which confidence is calibrated where the map learns from all of them and
the trials from less: a map that learned from ten times as many is more often right."""

TEST = "test"
"""Protocol of the fits that make the map, or would as well, on the labels of a test file."""

_STREAMS = ("random", "blocked", "uniform", "balanced")
"""Number of the random stream of each split: the place decides, so names go to the end."""

_ARRAYS = ("sample", "classes", "train")
_DISJOINT_ARRAYS = ("given", "tested")


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
    disjoint
        Labels of a test file, and what is left to learn from; None without one.
    mapped
        Whether the first fit makes a map; else the scores of the labelled samples are all that is asked
        for, and need not be as exact.
    folder
        Where its arrays lie, if they do: see `stored`.
    """

    sample: NDArray[np.int64]
    classes: NDArray[np.intp]
    numbers: NDArray[np.uint16]
    train: NDArray[np.bool_]
    disjoint: Disjoint | None = None
    mapped: bool = True
    folder: Path | None = None

    @property
    def untaught(self) -> dict[int, int]:
        """Samples of each class that the first fit learns nothing of."""
        count = np.bincount(self.classes)
        learned = np.bincount(self.classes[self.train[0]], minlength=len(count))
        left = np.flatnonzero((learned == 0) & (count > 0))
        return dict(zip(self.numbers[left].tolist(), count[left].tolist(), strict=True))

    def stored(self, folder: Path) -> "Labelled":
        """Return the same with its arrays in files of a folder, which are mapped.

        A task that holds it takes the path along and not the arrays, which may be those of millions
        of samples, times the fits.
        """
        for name in _ARRAYS:
            save_array(folder / f"labelled-{name}.npy", getattr(self, name))
        disjoint = self.disjoint
        if disjoint is not None:
            for name in _DISJOINT_ARRAYS:
                save_array(folder / f"labelled-{name}.npy", getattr(disjoint, name))
        state = replace(self, folder=folder).__getstate__()
        stored = object.__new__(Labelled)
        stored.__setstate__(state)
        return stored

    def __getstate__(self) -> dict[str, Any]:
        state = dict(vars(self))
        if self.folder is not None:
            disjoint = self.disjoint
            state.update(dict.fromkeys(_ARRAYS))
            if disjoint is not None:
                nothing = np.zeros(0, np.uint16)
                state["disjoint"] = replace(disjoint, given=nothing, tested=nothing)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        folder = state["folder"]
        if folder is not None:

            def mapped(names: Sequence[str]) -> dict[str, Any]:
                return {
                    name: np.load(folder / f"labelled-{name}.npy", mmap_mode="r") for name in names
                }

            disjoint = state["disjoint"]
            if disjoint is not None:
                disjoint = replace(disjoint, **mapped(_DISJOINT_ARRAYS))
            state = {**state, **mapped(_ARRAYS), "disjoint": disjoint}
        vars(self).update(state)

    @property
    def tested(self) -> NDArray[np.bool_]:
        """Which are those of a test file, shape (labelled,)."""
        if self.disjoint is None:
            return np.zeros(len(self.sample), np.bool_)
        found: NDArray[np.bool_] = self.disjoint.tested[self.sample] > 0
        return found

    def held(self, number: int) -> NDArray[np.bool_]:
        """Return which a fit did not learn from, those of a test file left out, shape (labelled,)."""
        found: NDArray[np.bool_] = ~self.train[number] & ~self.tested
        return found

    @property
    def count(self) -> int:
        """Number of classes."""
        return len(self.numbers)

    def within(self, block: Block) -> slice:
        """Return which of them lie in a block of samples."""
        first, last = np.searchsorted(self.sample, block)
        return slice(int(first), int(last))


@dataclass(frozen=True)
class Planned:
    """The fits of a job.

    Attributes
    ----------
    labelled
        The labelled samples with the training set of each fit.
    protocols
        Fits that each protocol owns, by its name: that of ``learn.split`` comes first.
    calibrating
        Fits by which confidence is calibrated, by protocol.
    """

    labelled: Labelled
    protocols: dict[str, list[int]]
    calibrating: dict[str, list[int]]


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
        In which they lie: the scene's, or the map of several lines.
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
        return self.square or side_of(self.grid)

    @property
    def share(self) -> float:
        """Share of the labels to learn from."""
        if isinstance(self.options.train, int):
            return self.options.train / len(self.classes)
        if isinstance(self.options.train, str):
            return held_out_share(len(self.classes), self._count)
        return self.options.train

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
            return random_split(self._strata, self.share, rng)
        if split == "uniform":
            return self._draw_uniform(rng)
        if split == "balanced":
            return balanced_split(self._strata, self._each(), rng)
        return blocked_split(self._squares, self.share, rng)

    def _draw_uniform(self, rng: np.random.Generator) -> NDArray[np.bool_]:
        labelled, count = len(self.classes), self._count
        size = max(count, round(self.share * labelled))
        asked = f'learn.train = {self.options.train} with learn.split = "uniform"'
        if isinstance(self.options.train, int) and not count <= self.options.train < labelled:
            raise InputError(
                f"{asked}: there are {labelled} labelled pixels of {count} classes. Set learn.train "
                f"to a number from {count} to {labelled - 1}."
            )
        train = uniform_split(self._strata, size, rng)
        if train is None:
            rare = int(np.bincount(self.classes).min())
            raised = "Set" if self.options.train == "all" else "Raise learn.train, or set"
            raise InputError(
                f"{asked}: of {MOST_DRAWS} draws none had a pixel of every class; the rarest has "
                f'{rare} of {labelled}. {raised} learn.split to "random" or "balanced".'
            )
        return train

    def _each(self) -> int:
        """Return how many pixels of each class a balanced draw has."""
        train, count = self.options.train, self._count
        sizes: list[int] = np.bincount(self.classes).tolist()
        if not isinstance(train, int):
            wanted = round(self.share * len(self.classes) / count)
            return max(1, min(min(sizes) - 1, wanted))
        check_balanced(train, sizes)
        return train // count

    @cached_property
    def _strata(self) -> Strata:
        return Strata.of(self.classes)

    @cached_property
    def _squares(self) -> Squares:
        return Squares.of(self._strata, self.row, self.column, self.side)

    @property
    def _count(self) -> int:
        return int(self.classes.max()) + 1


def held_out_share(labelled: int, classes: int) -> float:
    """Return the share of the labels that a trial learns from when the map learns from all of them.

    A tenth; more where a class would have fewer than five training pixels on average, as a map of one or two
    pixels of each class says little about the map that learns from ten times as many.

    Examples
    --------
    >>> held_out_share(10_249, 16), round(held_out_share(57, 5), 2), held_out_share(20, 5)
    (0.1, 0.44, 0.5)
    """
    enough = LEAST_TRAINED * classes / max(1, labelled)
    return min(MOST_HELD_OUT_SHARE, max(HELD_OUT_SHARE, enough))


def plan_fits(
    options: LearnOptions,
    given: NDArray[np.uint16],
    pixel: NDArray[np.int64],
    place: NDArray[np.int64],
    scene: IngestedScene,
    *,
    first_only: bool,
) -> Planned:
    """Return the labelled samples with all training sets, and which fits each protocol owns.

    The sets depend on ``learn.seed``, the labels and the split alone: every method draws the same.
    The protocol of ``learn.split`` comes first. Of a scene the blocked one is there too, or the random
    one beside it; a table has no squares to draw. With ``learn.test`` they draw from the labels that are
    left to learn from, and ``"test"`` owns the fits of the map: that of all of them, or its draws.

    Parameters
    ----------
    options
        ``[learn]`` of the job.
    given, pixel, place : array, shape (samples,)
        Label of each sample, 0 for none, its pixel, and where it lies (`IngestedScene.places`).
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
    taught = marked_labels(options, given, pixel, scene)
    disjoint = (
        None if options.test is None else read_disjoint(options.test, given, pixel, scene, taught)
    )
    given, marked = (given, given) if disjoint is None else (disjoint.given, disjoint.marked)
    sample, row, column = labelled_samples(marked, place, scene.extent.width)
    learnable = given[sample] > 0
    numbers = np.unique(given[given > 0])
    classes = np.searchsorted(numbers, marked[sample])

    def labelled(sets: list[NDArray[np.bool_]]) -> Labelled:
        return Labelled(sample, classes, numbers, np.array(sets), disjoint)

    if taught is not None:
        fits = {"file": [0]}
        train = (taught[sample] > 0) & learnable
        tested = {} if disjoint is None else {TEST: [0]}
        return Planned(labelled([train]), {**fits, **tested}, fits)
    draws = Draws(options, classes[learnable], row[learnable], column[learnable], scene.extent)
    of_map = [learnable] if options.train == "all" else []
    drawn, calibrating = _draw_sets(draws, options.trials, learnable, first=len(of_map))
    sets = [*of_map, *drawn]
    fits = {**({"all": [0]} if of_map else {}), **calibrating}
    if first_only:
        fits = calibrating = {draws.protocols[0]: [0]}
        sets = sets[:1]
    elif options.train == "all" and draws.share < CALIBRATING_SHARE:
        half = options.model_copy(update={"train": CALIBRATING_SHARE})
        halves = replace(draws, options=half)
        drawn, calibrating = _draw_sets(halves, CALIBRATING_TRIALS, learnable, first=len(sets))
        sets += drawn
    if disjoint is not None:
        fits = {**fits, TEST: next(iter(fits.values()))}
    return Planned(labelled(sets), fits, calibrating)


def _draw_sets(
    draws: Draws, trials: int, learnable: NDArray[np.bool_], *, first: int
) -> tuple[list[NDArray[np.bool_]], dict[str, list[int]]]:
    """Draw training sets for each protocol.

    Parameters
    ----------
    draws
        Draws from the samples that are `learnable`.
    trials
        Sets of each protocol.
    learnable : array, shape (labelled,)
        Which labelled samples may be learned from.
    first
        Number of the first fit.

    Returns
    -------
    sets
        The training sets, each of shape (labelled,).
    fits
        Numbers of the fits of each protocol.
    """
    sets: list[NDArray[np.bool_]] = []
    fits: dict[str, list[int]] = {}
    for split in draws.protocols:
        start = first + len(sets)
        fits[split] = list(range(start, start + trials))
        for trial in range(trials):
            train = np.zeros(len(learnable), np.bool_)
            train[learnable] = draws.draw(split, trial)
            sets.append(train)
    return sets, fits


def labelled_samples(
    given: NDArray[np.uint16], place: NDArray[np.int64], width: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return the numbers of the labelled samples, and their rows and columns.

    Parameters
    ----------
    given, place : array, shape (samples,)
        Label of each sample, 0 for none, and where it lies.
    width
        Columns of the grid that places count.
    """
    sample = np.flatnonzero(given)
    row, column = np.divmod(place[sample], width)
    return sample, row, column


def marked_labels(
    options: LearnOptions,
    given: NDArray[np.uint16],
    pixel: NDArray[np.int64],
    scene: IngestedScene,
) -> NDArray[np.uint16] | None:
    """Return the labels of the samples that the file of ``learn.train`` marks.

    The file is read by strips of the scene.

    Parameters
    ----------
    options
        ``[learn]`` of the job.
    given, pixel : array, shape (samples,)
        Label of each sample, 0 for none, and its pixel.
    scene
        Their scene.

    Returns
    -------
    array of uint16, shape (samples,), or None
        0 for samples that are not marked. None if ``learn.train`` names no file.

    Raises
    ------
    SceneError
        The file marks no labelled sample.
    """
    train = options.train_file
    if train is None:
        return None
    sample, row, column = labelled_samples(given, pixel, scene.grid.width)
    marked = sample[read_at(scene.open_marks(train), scene.grid, row, column) > 0]
    if not len(marked):
        raise SceneError(
            f"learn.train = {train!r}: none of the {len(sample)} labelled pixels is marked "
            "in this file. Mark training pixels with any number above 0."
        )
    labels = np.zeros_like(given)
    labels[marked] = given[marked]
    return labels

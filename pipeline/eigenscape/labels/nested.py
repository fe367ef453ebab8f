"""Draws for a choice and draws for the verdict on it: squares of the scene that the choice never saw.

::

    labelled squares     . . . . . . . . . . . .
    choosing             t t - - - - -               t learned from, - tested on: drawn anew each time
    judging              t t           + + + + +     + tested on: in no draw of the choice

A choice among many jobs overestimates accuracy on the squares by which it was made. So some squares are
held out of it altogether, and are all that the chosen job is judged by. Of a table, and where a job
draws its training pixels otherwise, the same is done with pixels instead of squares.

Where the map learns from all labels, the draws learn from half of those that they may see: a choice by a
tenth of them prefers methods that suit few labels. Measured on files to learn from and to test on
(jobs/BASELINES.md): up to 5.6 points more on the test file, and in none of twelve cases less.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from eigenscape.job.jobfile import Job
from eigenscape.job.options import LearnOptions
from eigenscape.labels.splits import Strata, random_split
from eigenscape.labels.testing import read_disjoint, read_learnable
from eigenscape.labels.training import Draws, labelled_samples, marked_labels
from eigenscape.scenes.ingest.ingested import IngestedScene
from eigenscape.scenes.types import Grid
from eigenscape.store.run import Run

Part = Literal["choosing", "judging", "all"]

BESIDE = "beside"
"""Split of random draws among the samples that the blocked one sees: jobs that are level by squares are
compared by them."""

SHARE = 0.5
"""Share of the labels by which jobs are chosen; the others judge the chosen one."""

_LEAST_JUDGING = 0.25
_MOST_TRAINING = 0.5
"""Share of the labels that the choice may see from which its draws learn at most."""

_MOST_TRAINED = 0.75
"""The same where half is asked for: whole squares, one of each class, are more than that."""

_STREAM = 100
"""Number of the random stream that holds squares out: far from those of the draws."""


def halves_of_squares(
    classes: NDArray[np.intp], square: NDArray[np.intp], rng: np.random.Generator
) -> NDArray[np.bool_]:
    """Return the squares of one half of the labels, in which half of each class is, as far as squares go.

    Squares are dealt out one by one, the largest parts of a class first, each to the half that the classes
    in it lack more. A class in a single square is in this half.

    Parameters
    ----------
    classes, square : array of int, shape (labelled,)
        Class, 0 ... C-1, and number of the square, 0 ... S-1, of each labelled sample.
    rng
        Decides between squares that are alike.

    Returns
    -------
    array of bool, shape (S,)

    Examples
    --------
    >>> classes, square = np.array([0, 0, 0, 1, 1, 1, 1]), np.array([0, 0, 1, 2, 2, 3, 3])
    >>> halves = halves_of_squares(classes, square, np.random.default_rng(0))
    >>> int(halves[:2].sum()), int(halves[2:].sum())
    (1, 1)
    """
    counts: NDArray[np.float64] = np.zeros(
        (int(square.max(initial=0)) + 1, int(classes.max(initial=0)) + 1)
    )
    np.add.at(counts, (square, classes), 1)
    shares = counts / np.maximum(counts.sum(axis=0), 1)
    alone = ((counts > 0).sum(axis=0) == 1) & (counts.sum(axis=0) > 0)
    chosen: NDArray[np.bool_] = np.asarray((counts[:, alone] > 0).any(axis=1))
    # What this half has of each class beyond the other half.
    lead = shares[chosen].sum(axis=0)
    order = rng.permutation(len(counts))
    for number in order[np.argsort(-shares[order].max(axis=1), kind="stable")]:
        if not chosen[number]:
            own = shares[number]
            # The first square of a class is learned from.
            chosen[number] = ((lead + own) ** 2).sum() <= ((lead - own) ** 2).sum()
            lead += own if chosen[number] else -own
    for one in np.flatnonzero((counts.sum(axis=0) > 0) & ~(counts[chosen] > 0).any(axis=0)):
        members = np.flatnonzero(counts[:, one])
        chosen[members[counts[members, one].argmin()]] = True
    return chosen


@dataclass(frozen=True)
class Nested:
    """Training and test sets within the labels that a choice may see, and beyond them.

    Attributes
    ----------
    options
        ``[learn]`` of the job: share or number to learn from, seed.
    split
        How the sets are drawn: "blocked", one of the other splits, or `BESIDE`.
    classes, row, column : array, shape (labelled,)
        Class, 0 ... C-1, and position of each labelled sample.
    grid
        In which they lie: the scene's, or the map of several lines.
    given : array of bool, shape (labelled,), optional
        What the choice may see, where files say it: the samples that ``learn.train`` marks, or those that
        ``learn.test`` does not have.
    tested : array of bool, shape (labelled,), optional
        What it is judged by then: the samples of ``learn.test``; by default all that are not given.
    """

    options: LearnOptions
    split: str
    classes: NDArray[np.intp]
    row: NDArray[np.int64]
    column: NDArray[np.int64]
    grid: Grid
    given: NDArray[np.bool_] | None = None
    tested: NDArray[np.bool_] | None = None

    def draw(self, part: Part, trial: int) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Return the training set of a draw and the samples to test on, both of shape (labelled,).

        The same draw trains on the same samples in both parts, but where the map's own fit is judged. In
        the part "all" nothing is held out for a verdict.
        """
        if part == "judging" and self._judges_map:
            return self.seen, self._judged
        seen = self.seen if part != "all" or self.given is not None else np.ones_like(self.seen)
        train = self._train(seen, self.side, trial)
        return train, self._judged if part == "judging" else seen & ~train

    def trials(self, part: Part, wanted: int) -> int:
        """Return how many of so many draws differ."""
        return 1 if part == "judging" and self._judges_map else wanted

    @property
    def seen(self) -> NDArray[np.bool_]:
        """Which samples the choice may see, shape (labelled,)."""
        return self._held[0]

    @property
    def side(self) -> int:
        """Pixels along a square; of use for the blocked split alone."""
        return self._held[1]

    @property
    def _judges_map(self) -> bool:
        """Whether the verdict is on one fit, to all that the map learns from."""
        return self.given is not None and self._learns_half

    @property
    def _judged(self) -> NDArray[np.bool_]:
        return ~self.seen if self.tested is None else self.tested

    @property
    def _learns_half(self) -> bool:
        """Whether a draw learns from half of what the choice may see, as the map learns from all of it."""
        return isinstance(self.options.train, str)  # "all", or a file

    @cached_property
    def _held(self) -> tuple[NDArray[np.bool_], int]:
        if self.split == BESIDE:
            return replace(self, split="blocked")._held
        draws = self._draws(np.ones(len(self.classes), np.bool_), None)
        side = draws.side
        while True:
            seen = self._seen(side)
            if self.split != "blocked" or side == 1:
                return seen, side
            # Few squares, or classes that all need one: the squares have to be smaller.
            most = _MOST_TRAINED if self._learns_half else _MOST_TRAINING
            judges = self.given is not None or (~seen).mean() >= _LEAST_JUDGING
            if judges and self._train(seen, side, 0).sum() <= most * seen.sum():
                return seen, side
            side = side // 2

    def _seen(self, side: int) -> NDArray[np.bool_]:
        if self.given is not None:
            return self.given
        rng = np.random.default_rng([self.options.seed, 0, _STREAM])
        if self.split == "blocked":
            across = int(self.column.max(initial=0)) // side + 1
            _, square = np.unique(
                (self.row // side) * across + self.column // side, return_inverse=True
            )
            return halves_of_squares(self.classes, square, rng)[square]
        return random_split(Strata.of(self.classes), SHARE, rng)

    def _train(self, seen: NDArray[np.bool_], side: int, trial: int) -> NDArray[np.bool_]:
        train = np.zeros(len(self.classes), np.bool_)
        split = "random" if self.split == BESIDE else self.split
        train[seen] = self._draws(seen, side).draw(split, trial)
        return train

    def _draws(self, seen: NDArray[np.bool_], side: int | None) -> Draws:
        """Return draws among some samples, of as many as the job's own draws have among all."""
        whole = Draws(self.options, self.classes, self.row, self.column, self.grid)
        options = self.options
        if self._learns_half:
            options = options.model_copy(update={"train": _MOST_TRAINING})
        elif isinstance(options.train, float):
            total = len(seen) if self.given is None else int(self.given.sum())
            share = min(_MOST_TRAINING, options.train * total / max(1, int(seen.sum())))
            options = options.model_copy(update={"train": share})
        classes = self.classes[seen]
        return replace(
            whole, options=options, classes=classes, row=self.row[seen], column=self.column[seen],
            square=side,
        )  # fmt: skip


def nested_labels(
    run: Run, job: Job, part: Part, split: str
) -> tuple[Nested, NDArray[np.int64], NDArray[np.uint16]]:
    """Return the training and test sets of a scene that was read.

    Parameters
    ----------
    run
        Whose stage ingest is finished.
    job
        Its job.
    part
        What the labels are for.
    split
        See `Nested`.

    Returns
    -------
    nested
        The sets.
    sample : array, shape (labelled,)
        Numbers of the labelled samples, ascending.
    numbers : array, shape (C,)
        Class numbers of the source.

    Raises
    ------
    InputError
        Fewer than two classes are left to learn from, or nothing to test on.
    """
    ingest = run.record("ingest")
    assert ingest is not None, "scoring follows ingest"
    scene = IngestedScene.from_summary(ingest.summary, job.scene, job.resolve)
    options = job.learn
    given, pixel = run.open("labels/given")[...], run.open("samples/pixel")[...]
    marked = marked_labels(options, given, pixel, scene)
    given, tested = _labels(options, part, given, marked, pixel, scene)
    place = run.open(scene.places)[...]
    sample, row, column = labelled_samples(given, place, scene.extent.width)
    numbers, classes = np.unique(given[sample], return_inverse=True)
    seen = None if marked is None else marked[sample] > 0
    if tested is not None:
        tested = tested[sample]
        seen = ~tested if seen is None else seen & ~tested
    nested = Nested(options, split, classes, row, column, scene.extent, seen, tested)
    return nested, sample, numbers


def _labels(
    options: LearnOptions,
    part: Part,
    given: NDArray[np.uint16],
    marked: NDArray[np.uint16] | None,
    pixel: NDArray[np.int64],
    scene: IngestedScene,
) -> tuple[NDArray[np.uint16], NDArray[np.bool_] | None]:
    """Return the labels that a part needs, and which are those of a test file: None without one."""
    if options.test is None:
        return given, None
    if part == "judging":
        disjoint = read_disjoint(options.test, given, pixel, scene, marked)
        return disjoint.marked, disjoint.tested > 0
    # What the job is tested on has no part in the choice.
    return read_learnable(options.test, given, pixel, scene), np.zeros(len(given), np.bool_)


def judging_pixels(run: Run, job: Job, split: str) -> NDArray[np.int64]:
    """Return the pixels whose labels no draw of the part "choosing" holds, where no file says which.

    See `nested_labels` for the parameters.
    """
    nested, sample, _ = nested_labels(run, job, "choosing", split)
    pixels: NDArray[np.int64] = run.open("samples/pixel")[...][sample[~nested.seen]]
    return pixels

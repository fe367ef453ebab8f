"""The row layout: the tasks of a filter that work on one part of the rows (`halos.py`).

Entries keep their order, so that every sum meets the same numbers one after the other as in the column
layout: the results are the same to the bit.

::

    sums       part, group    null^T X by tiles
    steps      step, part, groups
                              halo <- mail of the others; a step; mail to the others
    finish     part, group    minus its share of the null vectors, into the file of the group

Between the steps of a filter the two vectors of a part stay in the process that has taken the last of
them (`_states`); what it writes is the mail, every step, and the vectors themselves, every
few steps (`Steps.every`). A process that has them not, because it came late, or another one was lost, takes
them from there and repeats the steps since, for which the mail is still there.
"""

import json
import threading
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from eigenscape.base.blocks import blocks
from eigenscape.base.files.mapped import (
    attach_memmap,
    read_scratch,
    save_scratch,
    whole_pages,
    write_range,
)
from eigenscape.base.memory import CHUNK_ROWS
from eigenscape.spectrum.iteration.halos import Cut, Sender
from eigenscape.spectrum.iteration.kernels.filter import FilterPlan, recurrence
from eigenscape.spectrum.iteration.tasks import Problem, usable
from eigenscape.spectrum.iteration.vectors import Vectors
from eigenscape.spectrum.kernels import products as kernels
from eigenscape.spectrum.kernels import tiles
from eigenscape.spectrum.kernels.gather import WIDTH
from eigenscape.spectrum.kernels.operator import Array, read_only
from eigenscape.spectrum.stored import open_stored

MOST_COMPONENTS = 256
"""Components up to which the sums of all tiles are gathered: a graph of more keeps to the column layout."""

PartItem = tuple[int, int]
"""Part and group."""

StepItem = tuple[int, int, int, int]
"""Step, part, and first and last group: several where one takes too little time for a task."""


@dataclass(frozen=True)
class Part:
    """The operator on the rows of a part; see `eigenscape.spectrum.kernels.operator.Operator`.

    Attributes
    ----------
    own, halo
        Number of own rows, and the foreign ones.
    diagonal : array, shape (own,)
    outbox : array of int
        Places of the rows that go out.
    senders
        Where the halo comes from.
    """

    own: int
    halo: NDArray[np.int64]
    diagonal: Array
    outbox: NDArray[np.int64]
    senders: tuple[Sender, ...]
    _segments: tuple[tuple[int, Array, Array, Array], ...] = field(repr=False)

    @classmethod
    def open(cls, problem: "Stored", cut: Cut, part: int) -> "Part":
        """Map what the preparing tasks have written."""
        rows = cut.rows(part)
        own = rows.stop - rows.start
        noted = json.loads(cut.file("part.json", part).read_text())
        places = attach_memmap(cut.file("columns", part), (noted["entries"],), np.int32)
        count = own + len(noted["segments"])
        starts = attach_memmap(cut.file("starts", part), (count,), np.int64)
        segments, first, at = [], 0, 0
        for piece in noted["segments"]:
            begin, end = piece["start"], piece["start"] + piece["entries"]
            data = attach_memmap(piece["data"], (piece["block_entries"],), problem.dtype)
            segments.append((
                first, starts[at : at + piece["rows"] + 1],
                places[piece["at"] : piece["at"] + piece["entries"]], data[begin:end],
            ))  # fmt: skip
            first, at = first + piece["rows"], at + piece["rows"] + 1
        halo = np.load(cut.file("halo.npy", part), mmap_mode="r")
        ends = np.searchsorted(halo, cut.bounds)
        senders = []
        for other in np.flatnonzero(np.diff(ends)).tolist():
            mail = np.load(cut.file("mail.npy", other))
            halos = slice(int(ends[other]), int(ends[other + 1]))
            senders.append(Sender(other, int(mail[part]), halos))
        diagonal = attach_memmap(problem.diagonal, (problem.rows,), problem.dtype)
        outbox = np.load(cut.file("outbox.npy", part), mmap_mode="r")
        return cls(own, halo, diagonal[rows], outbox, tuple(senders), tuple(segments))

    @property
    def places(self) -> int:
        """Own rows and halo."""
        return self.own + len(self.halo)

    def step(self, X: Array, Z: Array, a: float, b: float, c: float) -> None:
        """Z <- a A X + b X - c Z in the own rows, in place; X and Z have shape (places, WIDTH)."""
        kind, X = X.dtype.type, read_only(X)
        for first, indptr, indices, data in self._segments:
            kernels.filter_step(
                indptr, indices, data, self.diagonal, first, X, Z, kind(a), kind(b), kind(c)
            )


@dataclass(frozen=True)
class Stored:
    """The part of a problem that the tasks need; small, since it is sent with every task.

    Attributes
    ----------
    rows, dtype
        Of the operator.
    diagonal, null, component
        Paths; no component for a connected graph, and no null for an operator without null vectors.
    """

    rows: int
    dtype: str
    diagonal: str
    null: str | None
    component: str | None

    @classmethod
    def of(cls, problem: Problem) -> "Stored":
        """Return the paths of a problem."""
        operator = problem.operator
        null = operator.null if operator.singular else None
        return cls(operator.rows, operator.dtype, operator.diagonal, null, problem.component)

    def zeros(self, rows: int) -> Array:
        """Return zeros for some rows of a group."""
        return whole_pages((rows, WIDTH), self.dtype)

    def nulls(self, rows: slice) -> tuple[Array, Array | None]:
        """Map null vector and component of some rows."""
        assert self.null is not None, "asked for where there are null vectors"
        component = None
        if self.component is not None:
            component = np.asarray(open_stored(self.component)[rows])
        return attach_memmap(self.null, (self.rows,), np.float64)[rows], component

    def null_sums(self, rows: slice, X: Array) -> list[tiles.NullSum]:
        """Return what some rows add to X^T null, by tiles; X has these rows alone."""
        null, component = self.nulls(rows)
        return tiles.null_sums(null, component, X, tiles.tile_rows(self.rows))

    def remove_nulls(self, rows: slice, X: Array, shares: str) -> None:
        """Take the null vectors out of some rows, in place; X has these rows alone."""
        null, component = self.nulls(rows)
        if component is None:
            component = np.zeros(len(null), np.int32)
        component = read_only(component)
        kernels.subtract_null(null, component, np.fromfile(shares).reshape(-1, WIDTH), X)


@dataclass(frozen=True)
class Sums:
    """null^T X by tiles, of one part of one group."""

    problem: Stored
    cut: Cut
    vectors: Vectors

    def __call__(self, item: PartItem) -> list[tiles.NullSum]:
        """Return the sums of one task."""
        part, group = item
        rows = self.cut.rows(part)
        return self.problem.null_sums(rows, self.vectors.attach(group)[rows])


def null_squares(problem: Problem, _: str) -> list[float] | None:
    """Return the squared length of the null vector on every component, none where there is none.

    None where there are more than `MOST_COMPONENTS`.
    """
    null = problem.null_space()
    if null.count > MOST_COMPONENTS:
        return None
    return [float(square) for square in null.squares] if null.count else []


@dataclass
class _State:
    """The last two vectors of a part, of one group, after step `at`; -1 while they are not whole."""

    part: Part
    X: Array
    Z: Array
    at: int = -1


_lock = threading.Lock()
_states: dict[tuple[str, int, int], _State] = {}
"""By the filter, part and group: of one filter at a time."""


def forget(stem: str | None = None) -> None:
    """Give up the vectors that this process holds: of all filters, or of one."""
    with _lock:
        for key in [key for key in _states if stem in (None, key[0])]:
            del _states[key]


@dataclass(frozen=True)
class Steps:
    """One step of p(A) X for the rows of one part of some groups.

    Step 0 takes X as it is, without the null vectors; the last one leaves the result in a file.

    Attributes
    ----------
    problem, cut, vectors, plan
        A, the parts, X and p.
    stem
        How the names of this filter's files begin.
    shares
        Stem of what X holds of the null vectors, group by group; None where there are none.
    every
        Steps after which the vectors themselves are written. With 1 they stay in no process.
    """

    problem: Stored
    cut: Cut
    vectors: Vectors
    plan: FilterPlan
    stem: str
    shares: str | None
    every: int

    def __call__(self, item: StepItem) -> list[list[tiles.NullSum]] | None:
        """Take one step; after the last one return what the result of each group adds to null^T X."""
        step, part, first, last = item
        sums = [self._take(step, part, group) for group in range(first, last)]
        return [each for each in sums if each is not None] or None

    def _take(self, step: int, part: int, group: int) -> list[tiles.NullSum] | None:
        key = (self.stem, part, group)
        with _lock:
            for other in [other for other in _states if other[0] != self.stem]:
                del _states[other]
            state = _states.get(key)
        if step == 0:
            state = self._begin(part, group)
        else:
            if state is None or state.at != step - 1:
                state = self._restore(step - 1, part, group)
            self._step(state, step, group)
        self._send(state, step, part, group)
        self._tidy(step, part, group)
        with _lock:
            if step < self.plan.degree and self.every > 1:
                _states[key] = state
            else:
                _states.pop(key, None)
        if step < self.plan.degree or self.problem.null is None:
            return None
        return self.problem.null_sums(self.cut.rows(part), state.X[: state.part.own])

    def _begin(self, part: int, group: int) -> _State:
        opened = Part.open(self.problem, self.cut, part)
        X, Z = (self.problem.zeros(opened.places) for _ in range(2))
        own, rows = X[: opened.own], self.cut.rows(part)
        own[:] = self.vectors.attach(group)[rows]
        if self.shares is not None:
            self.problem.remove_nulls(rows, own, f"{self.shares}-{group}")
        return _State(opened, X, Z, 0)

    def _restore(self, step: int, part: int, group: int) -> _State:
        """Return the vectors after a step: those that were written last, and the steps since."""
        last = step // self.every * self.every
        if last == 0:
            state = self._begin(part, group)
        else:
            opened = Part.open(self.problem, self.cut, part)
            X, Z = (self.problem.zeros(opened.places) for _ in range(2))
            kept = self._file("kept", last, part, group)
            read_scratch(kept, 0, X[: opened.own], Z[: opened.own])
            state = _State(opened, X, Z, last)
        for following in range(last + 1, step + 1):
            self._step(state, following, group)
        return state

    def _step(self, state: _State, step: int, group: int) -> None:
        part, X = state.part, state.X
        tail, size = X[part.own :], X.strides[0]
        for sender in part.senders:
            mail = self._file("mail", step - 1, sender.part, group)
            read_scratch(mail, sender.first * size, tail[sender.halo])
        state.at = -1
        part.step(X, state.Z, *[*recurrence(self.plan)][step - 1])
        state.X, state.Z, state.at = state.Z, X, step

    def _send(self, state: _State, step: int, part: int, group: int) -> None:
        own = state.X[: state.part.own]
        if step == self.plan.degree:
            save_scratch(self._file("last", step, part, group), own)
            return
        save_scratch(self._file("mail", step, part, group), own[state.part.outbox])
        if step and step % self.every == 0:
            kept = self._file("kept", step, part, group)
            save_scratch(kept, own, state.Z[: state.part.own])

    def _tidy(self, step: int, part: int, group: int) -> None:
        """Delete what no process can need any more: all that others may go on from was written since."""
        last = step - 1
        if last % self.every or not last:
            return
        for old in range(last - self.every, last):
            self._file("mail", old, part, group).unlink(missing_ok=True)
        self._file("kept", last - self.every, part, group).unlink(missing_ok=True)

    def _file(self, name: str, step: int, part: int, group: int) -> Path:
        return Path(f"{self.stem}-{name}-{step}-{part}-{group}")

    def result(self, part: int, group: int) -> Path:
        """Return the file of the last step."""
        return self._file("last", self.plan.degree, part, group)


@dataclass(frozen=True)
class Finish:
    """The result of a filter into the file of its group, without the null vectors.

    Attributes
    ----------
    steps
        The filter.
    filtered
        Where the result goes.
    shares
        Stem of what it holds of the null vectors, group by group; None where there are none.
    """

    steps: Steps
    filtered: Vectors
    shares: str | None

    def __call__(self, item: PartItem) -> bool:
        """Write the rows of one part of one group; return whether they are `usable`."""
        part, group = item
        problem, rows = self.steps.problem, self.steps.cut.rows(part)
        size, good = WIDTH * np.dtype(problem.dtype).itemsize, True
        for begin, end in tiles.tiles(problem.rows, rows.start, rows.stop):
            X = np.empty((end - begin, WIDTH), problem.dtype)
            read_scratch(self.steps.result(part, group), (begin - rows.start) * size, X)
            if self.shares is not None:
                problem.remove_nulls(slice(begin, end), X, f"{self.shares}-{group}")
            write_range(self.filtered.files[group], begin, X)
            good = good and usable(X)
        return good


def _gather(
    problem: Stored, cut: Cut, vectors: Vectors, item: PartItem
) -> tuple[Part, Array, Array]:
    """Return a part, own rows and halo of a group from its file, and zeros to put A X in."""
    number, group = item
    part = Part.open(problem, cut, number)
    X, image = (problem.zeros(rows) for rows in (part.places, part.own))
    source = vectors.attach(group)
    X[: part.own] = source[cut.rows(number)]
    for begin, end in blocks(len(part.halo), CHUNK_ROWS // 4):
        X[part.own + begin : part.own + end] = source[part.halo[begin:end]]
    part.step(X, image, 1.0, 0.0, 0.0)
    return part, X, image


@dataclass(frozen=True)
class Image:
    """A X for one part of one group."""

    problem: Stored
    cut: Cut
    vectors: Vectors
    image: Vectors

    def __call__(self, item: PartItem) -> None:
        """Multiply the rows of one part."""
        part, group = item
        image = _gather(self.problem, self.cut, self.vectors, item)[2]
        write_range(self.image.files[group], self.cut.bounds[part], image)


@dataclass(frozen=True)
class Residuals:
    """|A x - theta x|^2 of every column of a group, for the tiles of one part."""

    problem: Stored
    cut: Cut
    vectors: Vectors
    values: NDArray[np.float64]

    def __call__(self, item: PartItem) -> NDArray[np.float64]:
        """Return the squares, shape (tiles, WIDTH)."""
        group = item[1]
        part, X, image = _gather(self.problem, self.cut, self.vectors, item)
        values = self.values[group * WIDTH : (group + 1) * WIDTH]
        theta = np.where(np.isfinite(values), values, 0)
        return tiles.residual_tiles(X[: part.own], image, theta, tiles.tile_rows(self.problem.rows))

"""The tasks of the iteration: each opens its input by path and leaves files."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from eigenscape.base.blocks import blocks
from eigenscape.base.files.mapped import attach_memmap, note_rows, save_array, scratch_arrays
from eigenscape.base.memory import CHUNK_ROWS
from eigenscape.spectrum.iteration import coarse
from eigenscape.spectrum.iteration.kernels import density
from eigenscape.spectrum.iteration.kernels.columns import PROBES
from eigenscape.spectrum.iteration.kernels.corrections import filter_corrections
from eigenscape.spectrum.iteration.kernels.filter import (
    FilterPlan,
    NullSpace,
    Steps,
    chebyshev_filter,
)
from eigenscape.spectrum.iteration.vectors import Vectors
from eigenscape.spectrum.kernels import oracles, tiles
from eigenscape.spectrum.kernels.balance import Balanced, stiff_rows, tie_sweeps
from eigenscape.spectrum.kernels.gather import WIDTH
from eigenscape.spectrum.kernels.operator import Array, Operator, upper_bound
from eigenscape.spectrum.stored import StoredOperator, open_stored, store_rounded

_STIFF = "stiff.npy"
_RESOLVED = 0.05
_ROW_BYTES = 32
_COPY_ROWS = CHUNK_ROWS // 2
_LEAST_SHRINK = 0.9
_MOST_ENTRY, _MOST_SUM = 1e120, 1e8


@dataclass(frozen=True)
class Problem:
    """The problem that the tasks of one solve share.

    Attributes
    ----------
    operator
        The Laplacian on disk.
    component
        Path of the component of each row, None for a connected graph.
    directory
        Where the vectors lie.
    level
        0 for the problem itself, 1 for the first coarse one.
    held
        Groups that a task may hold in memory, 0 to 2; further ones are mapped from files.
    prefix
        Sets the names of its steps apart from those of a problem of the same level.
    """

    operator: StoredOperator
    component: str | None
    directory: Path
    level: int = 0
    held: int = 2
    prefix: str = ""

    @property
    def name(self) -> str:
        """Name for the steps of this problem."""
        return f"{self.prefix}{self.level}"

    def null_space(self) -> NullSpace:
        """Return the null vectors."""
        operator = self.operator
        component = None
        if self.component is not None:
            component = np.asarray(open_stored(self.component))
        null = attach_memmap(operator.null, (operator.rows,), np.float64)
        return NullSpace(null, component, singular=operator.singular)

    def vectors(self, files: tuple[str, ...]) -> Vectors:
        """Return the vectors in some files."""
        return Vectors(tuple(files), self.operator.rows, self.operator.dtype)

    def named(self, name: str, groups: Iterable[int]) -> Vectors:
        """Return groups of vectors under one name, their space reserved."""
        return self.unmade(name, groups).create()

    def unmade(self, name: str, groups: Iterable[int]) -> Vectors:
        """Return groups of vectors under one name, which tasks are to make."""
        return self.vectors(tuple(str(self.directory / f"{name}-{group}") for group in groups))

    def balanced(self, operator: Operator, values: NDArray[np.float64]) -> Balanced:
        """Return the operator whose stiff part follows the rest, for columns of given values."""
        # The first entry is the number of sweeps: see `measure`.
        sweeps, *rows = np.split(np.load(self.directory / _STIFF), [1])
        shift = np.where(np.isfinite(values), values, 0)
        # Early Ritz values of the last columns can lie among the stiff rows' diagonal, where these
        # rows would follow from a division by next to nothing.
        shift = np.minimum(shift, 0.5 * operator.diagonal[rows[0]].min(initial=np.inf))
        return Balanced(operator, rows[0], shift.astype(operator.diagonal.dtype), int(sweeps[0]))

    @contextmanager
    def bench(self, dtype: DTypeLike | None = None) -> Iterator[Callable[[], Array]]:
        """Yield a function that allocates groups of zeros, until the block ends: see `held`."""
        kind = dtype or self.operator.dtype
        with scratch_arrays(self.directory if self.held == 0 else None) as zeros:
            yield partial(zeros, (self.operator.rows, WIDTH), kind)


def groups_held(rows: int, dtype: str, budget: int) -> int:
    """Return how many groups of vectors fit into a budget, with a filter's arrays beside them: at most 2."""
    room = budget - _ROW_BYTES * rows
    return min(2, max(0, room // (rows * WIDTH * np.dtype(dtype).itemsize)))


def coarsen(problem: Problem, columns: int, _: str) -> dict[str, Any] | None:
    """Write the coarse problem; None when nearly every row is an aggregate, or too few are left."""
    operator = problem.operator.open()
    label = coarse.aggregate_rows(operator)
    count = int(label.max()) + 1
    if count > _LEAST_SHRINK * operator.rows or count < 2 * columns:
        return None
    component = None if problem.component is None else problem.null_space().component
    stored = coarse.store_coarse(operator, label, component, problem.directory / "coarse")
    return asdict(stored)


def round_operator(problem: Problem, directory: Path, _: str) -> dict[str, Any]:
    """Write the operator in single precision beside the structure that it shares."""
    return asdict(store_rounded(problem.operator, directory))


def widen(rough: Vectors, vectors: Vectors, group: int) -> None:
    """Write one group of vectors in the precision of others."""
    source, target = rough.attach(group), vectors.attach(group, "r+")
    for rows in (slice(*block) for block in blocks(len(target), _COPY_ROWS)):
        target[rows] = source[rows]
    note_rows(target)


def start(problem: Problem, vectors: Vectors, rough: Vectors | None, group: int) -> None:
    """Write one group of the vectors to start from: random, or carried back from a coarse level."""
    target = vectors.attach(group, "r+")
    coarser = None if rough is None else rough.attach(group)
    probing = problem.level == 0 and group == vectors.groups - 1
    rng = np.random.default_rng([5, problem.level, group])
    if coarser is None:
        _randomize(target, rng)
        note_rows(target)
        return
    for rows in (slice(*block) for block in blocks(len(target), _COPY_ROWS)):
        target[rows] = coarse.prolong(coarser, problem.directory / "coarse", rows)
        if probing:
            # About as long as the others: a coarse vector has length 1.
            probes = rng.standard_normal((len(target[rows]), PROBES))
            target[rows, -PROBES:] = probes / np.sqrt(len(target))
    note_rows(target)


def _randomize(target: Array, rng: np.random.Generator) -> None:
    for rows in (slice(*block) for block in blocks(len(target), _COPY_ROWS)):
        target[rows] = rng.standard_normal(target[rows].shape)


def grow(vectors: Vectors, first: int, group: int) -> None:
    """Write one group of random columns: number `first` + `group` of all."""
    target = vectors.attach(group, "r+")
    _randomize(target, np.random.default_rng([7, first + group]))
    note_rows(target)


def measure(problem: Problem, _: str) -> tuple[float, float | None]:
    """Return the upper bound of the spectrum, and that without its stiff part if there is one."""
    operator = problem.operator.open()
    bound, rows, sweeps = upper_bound(operator), stiff_rows(operator), 0
    untied = replace(operator, ties=None)
    if operator.ties is not None:
        sweeps = tie_sweeps(operator.ties, upper_bound(untied), operator.rows)
    if not len(rows) and not sweeps:
        return bound, None
    save_array(problem.directory / _STIFF, np.concatenate([[sweeps], rows]))
    free = np.ones(operator.rows, bool)
    free[rows] = False
    return bound, upper_bound(untied if sweeps else operator, free)


def find_cut(problem: Problem, bound: float, columns: int) -> tuple[float, float]:
    """Return a guess below which about `columns` eigenvalues lie, and an upper limit of a cut."""
    operator = problem.operator.open()
    cut = density.quantile(operator, columns / operator.rows, bound)
    # Where the eigenvalues crowd at the low end the density does not resolve them: any guess then.
    return (cut, cut) if cut > _RESOLVED * bound else (0.25 * bound, bound)


def solve_densely(problem: Problem, vectors: Vectors, _: str) -> list[float]:
    """Write the lowest eigenvectors by LAPACK; return their eigenvalues."""
    pairs = oracles.dense_pairs(problem.operator.open(), problem.null_space(), vectors.columns)
    vectors.write(slice(None), pairs[1])
    return [float(value) for value in pairs[0]]


@dataclass(frozen=True)
class Filter:
    """p(A) X for one group.

    Attributes
    ----------
    problem, vectors, filtered, plan
        A, X, where the result goes, and p.
    values, residuals
        Ritz values of all columns of X, and their residuals.
    balanced
        Whether stiff rows follow the others.
    """

    problem: Problem
    vectors: Vectors
    filtered: Vectors
    plan: FilterPlan
    values: NDArray[np.float64]
    residuals: NDArray[np.float64]
    balanced: bool = False

    def __call__(self, group: int) -> bool:
        """Filter one group; return whether the result is `usable`."""
        problem = self.problem
        operator, null = problem.operator.open(), problem.null_space()
        here = slice(group * WIDTH, (group + 1) * WIDTH)
        values, residuals = self.values[here], self.residuals[here]
        if self.plan.halves:
            with self.filtered.made(group) as filtered, problem.bench(np.uint16) as halves:
                X = self.vectors.attach(group)
                filter_corrections(operator, X, values, residuals, self.plan, halves, filtered)
                null.remove_from(filtered)
                return usable(filtered)
        with self.filtered.made(group) as filtered, problem.bench() as zeros:
            # What is left in the second array is the result after an odd number of steps.
            first = zeros()
            second = filtered if problem.held < 2 else zeros()
            if second is filtered and self.plan.degree % 2 == 0:
                first, second = second, first
            first[:] = self.vectors.attach(group)
            null.remove_from(first)
            steps: Steps = operator
            if self.balanced:
                steps = problem.balanced(operator, values)
                steps.balance(first)
            Y = chebyshev_filter(steps, first, second, self.plan)
            null.remove_from(Y)
            if Y is not filtered:
                filtered[:] = Y
            return usable(filtered)


def usable(X: Array) -> bool:
    """Return whether entries are numbers, and so small that no sum of products with them overflows.

    Products of two of them are added in double, those with locked vectors in the type of the entries.
    """
    limit = min(_MOST_ENTRY, float(np.finfo(X.dtype).max) / _MOST_SUM)
    for rows in (slice(*block) for block in blocks(len(X), _COPY_ROWS)):
        least, most = float(X[rows].min()), float(X[rows].max())
        # Neither holds if an entry is no number.
        if not (least > -limit and most < limit):
            return False
    return True


def _apply(operator: Operator, X: Array, image: Array) -> None:
    """Image <- A X for one group."""
    image[:] = 0
    operator.step(X, image, 1.0, 0.0, 0.0)


@dataclass(frozen=True)
class Image:
    """A X for one group."""

    problem: Problem
    vectors: Vectors
    image: Vectors

    def __call__(self, group: int) -> None:
        """Multiply one group."""
        X, image = self.vectors.attach(group), self.image.attach(group, "r+")
        _apply(self.problem.operator.open(), X, image)
        note_rows(image)


@dataclass(frozen=True)
class Residuals:
    """|A x - theta x| of every column of a group; infinite where theta is.

    Attributes
    ----------
    problem, vectors, values
        A, x and theta.
    balanced
        Where the vectors go once their stiff part follows the rest; None to leave them as they are.
        Not where they were: what a killed task had set is not what it would set again.
    """

    problem: Problem
    vectors: Vectors
    values: NDArray[np.float64]
    balanced: Vectors | None = None

    def __call__(self, group: int) -> list[float]:
        """Return the norms of one group."""
        operator, X = self.problem.operator.open(), self.vectors.attach(group)
        values = self.values[group * WIDTH : (group + 1) * WIDTH]
        if self.balanced is not None:
            source, X = X, self.balanced.attach(group, "r+")
            X[:] = source
            # Exact for a Ritz vector, where the filtered columns were mixtures.
            self.problem.balanced(operator, values).balance(X)
            note_rows(X)
        # Not where the filter left its image: a killed pass needs that once more.
        with self.problem.bench() as zeros:
            image = zeros()
            _apply(operator, X, image)
            known = np.isfinite(values)
            step = tiles.tile_rows(operator.rows)
            sums = tiles.residual_tiles(X, image, np.where(known, values, 0), step)
            squares = tiles.add_tiles(sums)
        return [float(norm) for norm in np.where(known, np.sqrt(squares), np.inf)]

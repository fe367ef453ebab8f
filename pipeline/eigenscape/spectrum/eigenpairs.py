"""Eigenpairs of a graph in memory, without a run: the same solver on a sparse matrix."""

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike, NDArray
from scipy.sparse.csgraph import connected_components, reverse_cuthill_mckee

from eigenscape.base.blocks import task_bytes
from eigenscape.base.files.mapped import save_array
from eigenscape.base.files.temporary import temporary_place
from eigenscape.base.memory import bound_heaps, parse_bytes
from eigenscape.base.shares import counted
from eigenscape.clusters import Threads
from eigenscape.context import Loop
from eigenscape.errors import InputError, did_you_mean
from eigenscape.job.options import Laplacian, Solver
from eigenscape.spectrum.iteration.solvers import choose, find_pairs
from eigenscape.spectrum.iteration.tasks import Problem, groups_held
from eigenscape.spectrum.kernels.forms import FORMS
from eigenscape.spectrum.kernels.laplacian import is_singular, laplacian
from eigenscape.spectrum.kernels.operator import RowBlock
from eigenscape.spectrum.kernels.thin import Profile, profile
from eigenscape.spectrum.stored import store_operator
from eigenscape.spectrum.weights import check_weights

_TOLERANCES = (1e-12, 1e-2)


@dataclass(frozen=True)
class Eigenpairs:
    """The lowest eigenpairs of a graph.

    Attributes
    ----------
    values : array, shape (modes,)
        Ascending; the null vectors, one for each connected component, come first.
    vectors : array, shape (n, modes)
        Orthonormal columns; for the random-walk Laplacian, orthonormal with the degrees as weights.
    residuals : array, shape (modes,)
        |A v - lambda v| for |v| = 1, of the symmetric form where the Laplacian is the random walk's.
    converged
        Whether all residuals are within the tolerance (for D - W, the tolerance times the median degree).
    solver
        Name of the solver, and why it was chosen.

    Examples
    --------
    >>> import numpy as np
    >>> from eigenscape import eigenpairs
    >>> step = np.roll(np.eye(6), 1, axis=1)
    >>> eigenpairs(step + step.T, 2, kind="unnormalized").values.round(6)
    array([0., 1., 1.])
    """

    values: NDArray[np.float64]
    vectors: NDArray[np.float64]
    residuals: NDArray[np.float64]
    converged: bool
    solver: str


def eigenpairs(
    weights: Any,
    dimension: int,
    *,
    kind: Laplacian = "normalized",
    potential: ArrayLike | None = None,
    edges: Any = None,
    solver: Solver = "auto",
    tolerance: float = 1e-5,
    memory: str = "2GiB",
    threads: int | None = None,
    directory: str | Path | None = None,
    note: Callable[[str], None] | None = None,
) -> Eigenpairs:
    """Return the smallest eigenpairs of the Laplacian of a graph, or of L + V + L_E.

    Parameters
    ----------
    weights
        Symmetric weights, not negative, as a sparse or dense matrix of shape (n, n), whose diagonal
        does not count; a networkx graph; a fitted estimator (`LaplacianEigenmaps` or one of
        scikit-learn that has an affinity matrix or nearest neighbours); or the directory or the
        result of a run.
    dimension
        Number of eigenvectors, not counting the null vectors.
    kind
        "normalized", D^-1/2 (D - W) D^-1/2; "random-walk", D^-1 (D - W); or "unnormalized", D - W, for
        which each sample without edges adds a null vector.
    potential : array, shape (n,), optional
        V >= 0, alpha included (Halevy 2011, chapter 3). With it there are no null vectors.
    edges : optional
        Further symmetric weights, in the forms of `weights` and including alpha, whose Laplacian L_E is
        added.
    solver
        As in a job: "auto" takes shift-invert for graphs as thin as a curve, the Chebyshev filter for
        others, and LAPACK where samples are few (as "chebyshev" does).
    tolerance
        Largest residual norm, 1e-12 to 1e-2, of D - W in units of the median degree, so that c W has c
        times the eigenvalues of W; below 1e-6 the iteration works in double.
    memory
        Limit of the anonymous memory of the iteration, such as "2GiB"; the vectors are in files.
    threads
        Number of threads; all cores by default.
    directory
        Directory for the files of the vectors; the system's temporary directory by default.
    note
        Called with the residual after each pass.

    Returns
    -------
    Eigenpairs

    Raises
    ------
    InputError
        The weights are not a valid graph, `dimension` exceeds the number of eigenvectors, or an option has an
        invalid value.

    Examples
    --------
    >>> import scipy.sparse
    >>> from eigenscape import eigenpairs
    >>> ring = scipy.sparse.diags_array([1.0, 1.0, 1.0, 1.0], offsets=[-1, 1, -5, 5], shape=(6, 6))
    >>> eigenpairs(ring, 2).values.round(6) + 0.0
    array([0. , 0.5, 0.5])
    """
    limit = _check_options(dimension, kind, solver, tolerance, memory, threads)
    W = check_weights("weights", weights)
    n = W.shape[0]
    extra = None if edges is None else check_weights("edges", edges, n)
    V = None if potential is None else _check_potential(potential, n)
    count, component = connected_components(W if extra is None else W + extra)
    nulls = count if is_singular(kind, V, extra) else 0
    if not 1 <= dimension <= n - nulls:
        raise InputError(
            f"dimension = {dimension}: a graph of {n} samples with {counted(nulls, 'null vector')} has at "
            f"most {n - nulls} others. "
            + (f"Give a number from 1 to {n - nulls}." if n > nulls else "Give a graph with edges.")
        )
    degree = np.asarray(W.sum(axis=1), np.float64)
    if FORMS[kind].normalized and not degree.all():
        raise InputError(
            f"weights: sample {int(np.argmin(degree))} has no edge, so its degree is 0 and the "
            f"{kind} Laplacian is not defined there. Leave such samples out, connect them, or take "
            'kind = "unnormalized".'
        )
    # Neighbours close in memory: the products are twice as fast and more.
    order = reverse_cuthill_mckee(scipy.sparse.csr_matrix(W), symmetric_mode=True)
    W, degree, component = W[order][:, order].tocsr(), degree[order], component[order]
    executor = Threads(threads)
    bound_heaps(limit, executor.tasks_per_process)

    def measure() -> Profile:
        return profile(W if extra is None else (W + extra[order][:, order]).tocsr())

    choice = choose(
        solver, dimension, tolerance, kind, degree, edges=_most_added(kind, degree, extra, order),
        measure=measure, budget=max(0, limit),
    )  # fmt: skip
    place = temporary_place() if directory is None else directory
    with tempfile.TemporaryDirectory(dir=place, prefix="eigenpairs-") as scratch:
        block = RowBlock(0, W.indptr.astype(np.int64), W.indices.astype(np.int32), W.data)
        operator = laplacian(
            [block], degree, kind, choice.dtype, unit=choice.unit,
            potential=None if V is None else V[order],
            edges=None if extra is None else scipy.sparse.csr_array(extra[order][:, order]),
        )  # fmt: skip
        stored = store_operator(operator, Path(scratch))
        pieces = None
        if count > 1:
            pieces = str(Path(scratch) / "component.npy")
            save_array(pieces, component.astype(np.int32))
        budget = task_bytes(limit, executor.tasks_per_process)
        problem = Problem(stored, pieces, Path(scratch), held=groups_held(n, stored.dtype, budget))
        solution = find_pairs(
            problem, choice.solver, dimension, tolerance, Loop(executor), note or (lambda _: None)
        )
        null = problem.null_space()
        vectors = np.zeros((n, null.count + dimension))
        if null.count:
            vectors[order, component] = null.entries
        vectors[order, null.count :] = solution.vectors.read(slice(None))[:, :dimension]
    if FORMS[kind].turned:
        vectors[order] /= np.sqrt(degree)[:, None]
    return Eigenpairs(
        np.concatenate([np.zeros(null.count), solution.values[:dimension]]),
        vectors,
        np.concatenate([np.zeros(null.count), solution.residuals[:dimension]]),
        solution.converged,
        f"{choice.solver}: {choice.reason}",
    )


def _most_added(
    kind: str,
    degree: NDArray[np.float64],
    extra: scipy.sparse.csr_array | None,
    order: NDArray[Any],
) -> float:
    """Return an upper bound of the eigenvalues that further edges add: Gershgorin's of their Laplacian."""
    if extra is None or not extra.nnz:
        return 0.0
    sums = np.asarray(extra.sum(axis=1), np.float64)[order]
    return float(
        2 * (sums / degree if FORMS[kind].constant and FORMS[kind].normalized else sums).max()
    )


def _check_options(
    dimension: Any, kind: Any, solver: Any, tolerance: Any, memory: Any, threads: Any
) -> int:
    """Refuse options that have no such value; return the memory in bytes."""
    for name, value, choices in (
        ("kind", kind, get_args(Laplacian)),
        ("solver", solver, get_args(Solver)),
    ):
        if value not in choices:
            raise InputError(
                f"{name} = {value!r}: no such {name}.{did_you_mean(str(value), choices)} "
                f"Give one of {', '.join(map(repr, choices))}."
            )
    if isinstance(dimension, bool) or not isinstance(dimension, (int, np.integer)):
        raise InputError(f"dimension = {dimension!r}: give a whole number of eigenvectors.")
    if threads is not None and (
        isinstance(threads, bool) or not isinstance(threads, (int, np.integer)) or threads < 1
    ):
        raise InputError(
            f"threads = {threads!r}: give a whole number from 1 on, or None for all cores."
        )
    least, most = _TOLERANCES
    if not (isinstance(tolerance, (int, float, np.number)) and least <= tolerance <= most):
        raise InputError(f"tolerance = {tolerance!r}: give a number from {least:g} to {most:g}.")
    try:
        return parse_bytes(memory)
    except (TypeError, ValueError):
        raise InputError(
            f"memory = {memory!r}: give a size with its unit as text, such as '2GiB'."
        ) from None


def _check_potential(potential: ArrayLike, rows: int) -> NDArray[np.float64]:
    V = np.asarray(potential, np.float64)
    if V.shape != (rows,):
        raise InputError(
            f"potential: its shape is {V.shape}; ({rows},), one number per sample, is needed."
        )
    if not np.isfinite(V).all() or (V < 0).any():
        bad = V[~(np.isfinite(V) & (V >= 0))][0]
        raise InputError(f"potential: holds {bad}; a potential is finite and not negative.")
    return V

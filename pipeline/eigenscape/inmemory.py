"""Eigenpairs of a graph in memory, without a run: the same solver on a sparse matrix."""

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike, NDArray
from scipy.sparse.csgraph import connected_components, reverse_cuthill_mckee

from eigenscape.arrays import save_array
from eigenscape.cluster import Threads
from eigenscape.errors import InputError
from eigenscape.memory import parse_bytes
from eigenscape.spectrum.laplacian import is_singular, laplacian
from eigenscape.spectrum.operator import RowBlock, store_operator
from eigenscape.spectrum.solvers import choose_solver, find_pairs, precision
from eigenscape.spectrum.tasks import Problem, fits
from eigenscape.stage import task_bytes
from eigenscape.temporary import temporary_place

Kind = Literal["normalized", "random-walk", "unnormalized"]
Solver = Literal["chebyshev", "lanczos", "lobpcg", "dense"]

_ASYMMETRY = 1e-6


@dataclass(frozen=True)
class Eigenpairs:
    """The lowest eigenpairs of a graph.

    Attributes
    ----------
    values : array, shape (modes,)
        Ascending; the null vectors, one for each connected component, come first.
    vectors : array, shape (n, modes)
        Orthonormal, except those of the random-walk Laplacian, which are so under the degrees.
    residuals : array, shape (modes,)
        |A v - lambda v| for |v| = 1, of the symmetric form where the Laplacian is the random walk's.
    converged
        Whether all residuals are within the tolerance.
    solver
        What solved it, and why.
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
    kind: Kind = "normalized",
    potential: ArrayLike | None = None,
    edges: Any = None,
    solver: Solver = "chebyshev",
    tolerance: float = 1e-5,
    memory: str = "2GiB",
    threads: int | None = None,
    directory: str | Path | None = None,
    note: Callable[[str], None] | None = None,
) -> Eigenpairs:
    """Return the smallest eigenpairs of the Laplacian of a graph, or of L + V + L_E.

    Parameters
    ----------
    weights : sparse array, shape (n, n)
        Symmetric, not negative; its diagonal does not count.
    dimension
        Eigenvectors beside the null vectors.
    kind
        D^-1/2 (D - W) D^-1/2, D^-1 (D - W), or D - W.
    potential : array, shape (n,), optional
        V >= 0, alpha included (Halevy 2011, chapter 3). With it there are no null vectors.
    edges : sparse array, shape (n, n), optional
        Further symmetric weights, alpha included, whose Laplacian L_E is added.
    solver
        As in a job; graphs of few samples are solved by LAPACK all the same.
    tolerance
        Largest residual norm; below 1e-6 the iteration works in double.
    memory
        Anonymous memory that the iteration may take; its vectors lie on disk.
    threads
        Threads to work on, every core by default.
    directory
        Where the vectors lie meanwhile; the system's place for temporary files by default.
    note
        Hears the residual after each pass.

    Returns
    -------
    Eigenpairs

    Raises
    ------
    InputError
        The matrix is no graph, or `dimension` is more than it has eigenvectors.

    Examples
    --------
    >>> import scipy.sparse
    >>> ring = scipy.sparse.diags_array([1.0, 1.0, 1.0, 1.0], offsets=[-1, 1, -5, 5], shape=(6, 6))
    >>> eigenpairs(ring, 2).values.round(6) + 0.0
    array([0. , 0.5, 0.5])
    """
    W = _check_weights("weights", weights, None)
    n = W.shape[0]
    extra = None if edges is None else _check_weights("edges", edges, n)
    V = None if potential is None else _check_potential(potential, n)
    count, component = connected_components(W if extra is None else W + extra)
    nulls = count if is_singular(kind, V, extra) else 0
    if not 1 <= dimension <= n - nulls:
        raise InputError(
            f"dimension = {dimension}: a graph of {n} samples with {nulls} null vector(s) has at most "
            f"{n - nulls} others. Give a number from 1 to {n - nulls}."
        )
    degree = np.asarray(W.sum(axis=1), np.float64)
    if not degree.all():
        raise InputError(
            f"weights: sample {int(np.argmin(degree))} has no edge, so its degree is 0 and the "
            "Laplacian is not defined there. Leave such samples out or connect them."
        )
    # Neighbours close in memory: the products are twice as fast and more.
    order = reverse_cuthill_mckee(scipy.sparse.csr_matrix(W), symmetric_mode=True)
    W, degree, component = W[order][:, order].tocsr(), degree[order], component[order]
    chosen, reason = choose_solver(solver, dimension, n)
    executor = Threads(threads)
    place = temporary_place() if directory is None else directory
    with tempfile.TemporaryDirectory(dir=place, prefix="eigenpairs-") as scratch:
        block = RowBlock(0, W.indptr.astype(np.int64), W.indices.astype(np.int32), W.data)
        operator = laplacian(
            [block], degree, kind, precision(chosen, tolerance),
            potential=None if V is None else V[order],
            edges=None if extra is None else scipy.sparse.csr_array(extra[order][:, order]),
        )  # fmt: skip
        stored = store_operator(operator, Path(scratch))
        pieces = None
        if count > 1:
            pieces = str(Path(scratch) / "component.npy")
            save_array(pieces, component.astype(np.int32))
        budget = task_bytes(parse_bytes(memory), executor.tasks_per_process)
        in_memory = fits(n, stored.dtype, budget)
        problem = Problem(stored, pieces, Path(scratch), in_memory=in_memory)
        run = _Loop(executor)
        solution = find_pairs(problem, chosen, dimension, tolerance, run, note or (lambda _: None))
        null = problem.null_space()
        vectors = np.zeros((n, null.count + dimension))
        if null.count:
            vectors[order, component] = null.entries
        vectors[order, null.count :] = solution.vectors.read(slice(None))[:, :dimension]
    if kind == "random-walk":
        vectors[order] /= np.sqrt(degree)[:, None]
    return Eigenpairs(
        np.concatenate([np.zeros(null.count), solution.values[:dimension]]),
        vectors,
        np.concatenate([np.zeros(null.count), solution.residuals[:dimension]]),
        solution.converged,
        f"{chosen}: {reason}",
    )


@dataclass(frozen=True)
class _Loop:
    """`eigenscape.spectrum.state.Map` on threads, with nothing noted."""

    executor: Threads

    def __call__(
        self,
        step: str,
        function: Callable[[Any], Any],
        items: Sequence[Any],
        *,
        label: str | None = None,
        keep: bool = True,
    ) -> list[Any]:
        results: list[Any] = [None] * len(items)

        def done(position: int, result: Any, peak: int) -> None:
            results[position] = result

        self.executor.run(function, items, done)
        return results


def _check_weights(name: str, matrix: Any, rows: int | None) -> scipy.sparse.csr_array:
    """Return a weight matrix in double, without its diagonal."""
    if not scipy.sparse.issparse(matrix):
        raise InputError(
            f"{name}: a {type(matrix).__name__} is no sparse array. Give a symmetric SciPy sparse "
            "array, such as scipy.sparse.csr_array(matrix)."
        )
    W = scipy.sparse.csr_array(matrix, dtype=np.float64)
    if W.shape[0] != W.shape[1] or (rows is not None and W.shape[0] != rows):
        wanted = f"({rows}, {rows})" if rows is not None else "as many columns as rows"
        raise InputError(f"{name}: its shape is {W.shape}; {wanted} is needed.")
    W.sum_duplicates()
    if not np.isfinite(W.data).all() or (W.data < 0).any():
        bad = W.data[~(np.isfinite(W.data) & (W.data >= 0))][0]
        raise InputError(f"{name}: holds {bad}; weights are finite and not negative.")
    difference = abs(W - W.T)
    if difference.nnz and difference.max() > _ASYMMETRY * W.max():
        raise InputError(
            f"{name}: not symmetric, entries differ from their mirror images by up to "
            f"{difference.max():.3g}. Symmetrise it, for instance by (W + W.T) / 2."
        )
    W = scipy.sparse.csr_array(W - scipy.sparse.diags_array(W.diagonal()))
    W.eliminate_zeros()
    W.sort_indices()
    return W


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

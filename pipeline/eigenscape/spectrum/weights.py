"""A graph as users have it: a matrix, a networkx graph, an estimator or a run -> symmetric weights."""

import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from eigenscape.errors import InputError
from eigenscape.spectrum.scaled import read_weights
from eigenscape.store.manifest import is_run
from eigenscape.store.run import Run

_ASYMMETRY = 1e-6
_ROUNDING = 1e-12
_TAKEN = (
    "a symmetric SciPy sparse array or NumPy array of order n, a networkx graph, a fitted estimator, or "
    "the directory or the result of a run"
)


def check_weights(name: str, given: Any, rows: int | None = None) -> scipy.sparse.csr_array:
    """Return a weight matrix in double, without its diagonal, its columns ascending in each row.

    Parameters
    ----------
    name
        Of the parameter, for messages.
    given
        A sparse or dense matrix of order n; a networkx graph, whose edge attribute ``weight`` counts if
        there is one; a fitted estimator of this package, or of scikit-learn with an affinity matrix or
        lists of nearest neighbours (an edge of weight 1 where one sample is on the list of the other);
        or the path of a run directory or the result of a run, whose samples are numbered as in its arrays.
    rows
        Order that it must have.

    Raises
    ------
    InputError
        It is no graph, or its weights are complex, negative, not finite or not symmetric.
    """
    matrix = _as_matrix(name, given)
    if not (scipy.sparse.issparse(matrix) or isinstance(matrix, np.ndarray)) or matrix.ndim != 2:
        raise InputError(f"{name}: a {type(given).__name__} is not a graph. Give {_TAKEN}.")
    if matrix.shape[0] != matrix.shape[1] or (rows is not None and matrix.shape[0] != rows):
        wanted = f"({rows}, {rows})" if rows is not None else "as many columns as rows"
        raise InputError(f"{name}: its shape is {matrix.shape}; {wanted} is needed.")
    kind = np.dtype(matrix.dtype).kind
    if kind not in "uifb":
        reason = "complex numbers" if kind == "c" else f"the type {matrix.dtype}"
        raise InputError(
            f"{name}: holds {reason}; weights are real. Give their absolute values, or the real part."
        )
    W = scipy.sparse.csr_array(matrix, dtype=np.float64)
    if not W.has_canonical_format:
        # Until here the indices, and of doubles the data too, may be those of the caller.
        W = W.copy()
        W.sum_duplicates()
    if not np.isfinite(W.data).all() or (W.data < 0).any():
        bad = W.data[~(np.isfinite(W.data) & (W.data >= 0))][0]
        raise InputError(f"{name}: holds {bad}; weights are finite and not negative.")
    difference = abs(W - W.T)
    # Each pair by itself: beside a few heavy edges all others are small.
    allowed = _ASYMMETRY * W.maximum(W.T) + _ROUNDING * W.max() * (difference != 0)
    if difference.nnz and (difference - allowed).max() > 0:
        raise InputError(
            f"{name}: not symmetric, entries differ from their mirror images by up to "
            f"{difference.max():.3g}. Symmetrise it, for instance by (W + W.T) / 2."
        )
    if difference.nnz:
        W = (W + W.T) / 2
    W = scipy.sparse.csr_array(W - scipy.sparse.diags_array(W.diagonal()))
    W.eliminate_zeros()
    W.sort_indices()
    return W


def _as_matrix(name: str, given: Any) -> Any:
    if isinstance(given, str | os.PathLike):
        return _weights_of_run(name, Path(given))
    networkx = sys.modules.get("networkx")
    if networkx is not None and isinstance(given, networkx.Graph):
        if given.is_directed():
            raise InputError(
                f"{name}: a directed graph. Give an undirected one, such as graph.to_undirected()."
            )
        return networkx.to_scipy_sparse_array(given, dtype=np.float64)
    if hasattr(given, "run_"):
        return _weights_of_run(name, Path(given.run_))
    if hasattr(given, "affinity_matrix_"):
        return given.affinity_matrix_
    if hasattr(given, "kneighbors_graph"):
        near = scipy.sparse.csr_array(given.kneighbors_graph(mode="connectivity"))
        return near.maximum(near.T)
    if isinstance(given, (list, tuple)):
        raise InputError(f"{name}: a {type(given).__name__} is not a graph. Give {_TAKEN}.")
    return given


def _weights_of_run(name: str, path: Path) -> scipy.sparse.csr_array:
    """Return the weights of a run in the order of its samples."""
    if not is_run(path):
        raise InputError(f"{name} = {str(path)!r}: no run directory (it has no manifest.json).")
    run = Run(path, create=False)
    record = run.record("graph")
    if record is None:
        raise InputError(f"{name} = {str(path)!r}: the run has no graph yet. Finish it first.")
    samples: NDArray[np.int64] = np.asarray(run.open("graph/sample")[...])
    if len(samples) < run.open("samples/pixel").shape[0]:
        raise InputError(
            f"{name} = {str(path)!r}: its graph has {len(samples)} of "
            f"{run.open('samples/pixel').shape[0]} samples, those of the largest component. Run the "
            'job with graph.components = "connect" or "each".'
        )
    place = np.empty(len(samples), np.int64)
    place[samples] = np.arange(len(samples))
    W = read_weights(run)
    return scipy.sparse.csr_array(W[place][:, place])

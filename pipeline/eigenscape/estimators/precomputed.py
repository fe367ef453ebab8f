"""Graphs that are given in place of samples: weights, or distances to nearest neighbours."""

from functools import partial
from typing import Any, Literal, TypeAlias

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from eigenscape.base.blocks import blocks
from eigenscape.base.memory import ROW_TILE
from eigenscape.context import Context
from eigenscape.errors import EstimatorError
from eigenscape.graph.blocks import write_whole
from eigenscape.graph.kernels.weights import row_sums
from eigenscape.graph.stage import MOST_COMPONENTS, block_rows
from eigenscape.spectrum.weights import check_weights
from eigenscape.workflow.runner import Work

Affinity: TypeAlias = Literal["nearest_neighbors", "precomputed", "precomputed_nearest_neighbors"]

AFFINITIES = ("nearest_neighbors", "precomputed", "precomputed_nearest_neighbors")


def check_graph(X: Any, affinity: Affinity) -> scipy.sparse.csr_array:
    """Return a graph that is given as samples: each row and column stands for one.

    Parameters
    ----------
    X
        For "precomputed" what `eigenscape.eigenpairs` takes as weights; for
        "precomputed_nearest_neighbors" a sparse matrix of distances, as
        `sklearn.neighbors.KNeighborsTransformer` makes it, or an object with ``kneighbors_graph``.
    affinity
        Which of both.

    Returns
    -------
    csr_array, shape (n, n)
        Without a diagonal. Weights in single precision, symmetric to the last bit; or distances.

    Raises
    ------
    ValueError
        It is no such graph, or a sample has no edge.
    """
    if affinity == "precomputed":
        W = check_weights("X", X)
        _check_range(W)
        graph = scipy.sparse.csr_array(W, dtype=np.float32)
        graph = scipy.sparse.csr_array(graph.maximum(graph.T))
        graph.eliminate_zeros()
    else:
        graph = _distances(X)
    graph.sort_indices()
    if graph.shape[0] < 2:
        raise EstimatorError(f"X: a graph of n_samples = {graph.shape[0]}; give at least 2.")
    alone = np.flatnonzero(np.diff(graph.indptr) == 0)
    if len(alone):
        raise EstimatorError(
            f"X: {len(alone)} of {graph.shape[0]} samples have no edge, the first is {alone[0]}. Leave "
            "them out, or make a graph of more neighbours."
        )
    return graph


def _check_range(W: scipy.sparse.csr_array) -> None:
    """Refuse weights that overflow in single precision, or all of which vanish in it."""
    single, largest = np.finfo(np.float32), W.max() if W.nnz else 1.0
    if not single.tiny <= largest <= single.max:
        raise EstimatorError(
            f"X: the largest weight is {largest:.3g}; single precision holds {single.tiny:.3g} to "
            f"{single.max:.3g}. Divide the weights by the largest one."
        )


def _distances(X: Any) -> scipy.sparse.csr_array:
    """Return distances without the diagonal; 0 between different samples stays an edge."""
    if hasattr(X, "kneighbors_graph"):
        X = X.kneighbors_graph(mode="distance")
    if not scipy.sparse.issparse(X) or X.ndim != 2 or X.shape[0] != X.shape[1]:
        raise EstimatorError(
            f"X: a {type(X).__name__} of shape {getattr(X, 'shape', ())}; affinity = "
            "'precomputed_nearest_neighbors' takes a sparse matrix of distances from each sample to its "
            "nearest ones, as many columns as rows."
        )
    given = scipy.sparse.coo_array(X)
    if not np.isfinite(given.data).all() or (given.data < 0).any():
        raise EstimatorError("X: distances are finite and not negative, and some of these are not.")
    rows, columns = given.coords
    others = rows != columns
    entries = given.data[others].astype(np.float32), (rows[others], columns[others])
    return scipy.sparse.csr_array(entries, shape=given.shape)


def longest_list(graph: scipy.sparse.csr_array) -> int:
    """Return how many neighbours a sample has at most."""
    return int(np.diff(graph.indptr).max())


def writers(graph: scipy.sparse.csr_array, affinity: Affinity) -> dict[str, Work]:
    """Return the stage that a given graph takes the place of, by its name."""
    if affinity == "precomputed":
        return {"graph": partial(_write_weights, graph)}
    return {"neighbors": partial(_write_lists, graph)}


def _write_lists(graph: scipy.sparse.csr_array, context: Context) -> dict[str, Any]:
    """Write ``neighbors/index``, ``neighbors/distance`` (sample, k), ``neighbors/order``."""
    samples, k = graph.shape[0], context.job.neighbors.k
    kind = np.int32 if samples < 2**31 else np.int64
    index = np.full((samples, k), -1, kind)
    distance = np.full((samples, k), np.inf, np.float32)
    for start, stop in blocks(samples, ROW_TILE):
        starts = graph.indptr[start : stop + 1].astype(np.int64)
        piece = slice(int(starts[0]), int(starts[-1]))
        owner = np.repeat(np.arange(stop - start), np.diff(starts))
        near = np.lexsort((graph.indices[piece], graph.data[piece], owner))
        place = np.arange(len(owner)) - (starts - starts[0])[owner]
        kept = place < k
        at = owner[kept] + start, place[kept]
        index[at] = graph.indices[piece][near][kept]
        distance[at] = graph.data[piece][near][kept]
    for name, values in (("index", index), ("distance", distance)):
        write_whole(context.workspace, f"neighbors/{name}", values, "sample", "neighbor")
    write_whole(context.workspace, "neighbors/order", np.arange(samples), "rank")
    return {"method": "precomputed", "copies": 0}


def _write_weights(graph: scipy.sparse.csr_array, context: Context) -> dict[str, Any]:
    """Write ``graph/<block>/{indptr,indices,data}``, ``graph/{sample,degree,component}``."""
    samples, space = graph.shape[0], context.workspace
    count, found = connected_components(graph, directed=False)
    if count > MOST_COMPONENTS:
        raise EstimatorError(
            f"X: the graph has {count:,} connected components, the limit is {MOST_COMPONENTS:,}. Give "
            "one with more edges, or a component at a time."
        )
    sizes: NDArray[np.int64] = np.bincount(found)
    # The largest first, as the graph stage numbers them.
    rank = np.empty(count, np.int32)
    rank[np.argsort(-sizes, kind="stable")] = np.arange(count, dtype=np.int32)
    step = block_rows(max(1, -(-graph.nnz // samples)))
    for number, (start, stop) in enumerate(blocks(samples, step)):
        starts = graph.indptr[start : stop + 1].astype(np.int64)
        piece = slice(int(starts[0]), int(starts[-1]))
        kind = np.int32 if samples < 2**31 else np.int64
        write_whole(space, f"graph/{number}/indptr", starts - starts[0])
        write_whole(space, f"graph/{number}/indices", graph.indices[piece].astype(kind))
        write_whole(space, f"graph/{number}/data", graph.data[piece])
    # SciPy adds rows in the precision of the entries; D - W has a null vector only with exact degrees.
    degree = row_sums(graph.indptr, graph.data)
    write_whole(space, "graph/degree", degree, "row")
    write_whole(space, "graph/sample", np.arange(samples), "row")
    write_whole(space, "graph/component", rank[found], "sample")
    return {
        "rows": samples,
        "block_rows": step,
        "entries": int(graph.nnz),
        "components": int(count),
        "largest_component": int(sizes.max()),
        "bridges": 0,
        "connected": count == 1,
    }

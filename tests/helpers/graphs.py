"""Graphs of the graph stage from given neighbour lists, and the obvious ways to both."""

from pathlib import Path
from typing import Any, NamedTuple

import networkx as nx
import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from eigenscape.scenes.types import Grid
from eigenscape.spectrum.eigenpairs import eigenpairs
from eigenscape.spectrum.kernels.operator import RowBlock
from harness import Harness


def as_block(graph: scipy.sparse.csr_array) -> RowBlock:
    """Return a matrix as one block of all its rows."""
    return RowBlock(0, graph.indptr, graph.indices, graph.data)


def planted(rng, sizes, within=0.5, between=0.02):
    """Return a graph of communities and the community of each row, in random order."""
    truth = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    chance = np.where(truth[:, None] == truth, within, between)
    edges = np.triu(rng.random(chance.shape) < chance, 1)
    return scipy.sparse.csr_array((edges | edges.T).astype(float)), truth


def random_graph(rng, rows, share=0.3):
    """Return a connected graph as a matrix."""
    weights = np.triu(np.where(rng.random((rows, rows)) < share, rng.random((rows, rows)), 0), 1)
    weights[np.arange(rows - 1), np.arange(1, rows)] = rng.uniform(0.1, 1, rows - 1)
    return scipy.sparse.csr_array(weights + weights.T)


def adjacency(graph):
    """Return a graph of networkx as a matrix of doubles."""
    return scipy.sparse.csr_array(nx.adjacency_matrix(graph).astype(np.float64))


def lists_of_rows(index, distance, indptr=None):
    """Return neighbours and distances of each sample; with `indptr`, of lists of any length."""
    if indptr is None:
        return list(zip(index, distance, strict=True))
    ends = indptr[1:-1]
    return list(zip(np.split(index, ends), np.split(distance, ends), strict=True))


class Lists(NamedTuple):
    """Neighbour lists: of shape (samples, k), or, with `indptr`, of any length."""

    index: np.ndarray
    distance: np.ndarray
    indptr: np.ndarray | None = None

    def rows(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return neighbours and distances of each sample."""
        return lists_of_rows(self.index, self.distance, self.indptr)


def squared_lengths(features: np.ndarray) -> np.ndarray:
    features = features.astype(np.float32).astype(np.float64)
    squared = ((features[:, None] - features[None]) ** 2).sum(axis=2)
    np.fill_diagonal(squared, np.inf)
    return squared


def brute_lists(features: np.ndarray, k: int) -> Lists:
    squared = squared_lengths(features)
    index = np.argsort(squared, axis=1, kind="stable")[:, :k]
    distance = np.sqrt(np.take_along_axis(squared, index, 1))
    return Lists(index.astype(np.int32), distance.astype(np.float32))


def radius_lists(features: np.ndarray, radius: float) -> Lists:
    distance = np.sqrt(squared_lengths(features))
    return join_lists(
        [
            (near[np.argsort(row[near], kind="stable")], np.sort(row[near]))
            for row in distance
            for near in [np.flatnonzero(row <= radius)]
        ]
    )


def join_lists(rows: list[tuple[Any, Any]]) -> Lists:
    """Return lists of any length from the neighbours and distances of each sample."""
    indptr = np.concatenate([[0], np.cumsum([len(near) for near, _ in rows])])
    index, distance = (np.concatenate(part) for part in zip(*rows, strict=True))
    return Lists(index.astype(np.int32), distance.astype(np.float32), indptr.astype(np.int64))


def expected_weights(lists: Lists, weigh: Any) -> np.ndarray:
    """The obvious construction: networkx, one edge for every name on either list."""
    graph = nx.Graph()
    rows = lists.rows()
    graph.add_nodes_from(range(len(rows)))
    scale = np.array([distance.max(initial=0) for _, distance in rows], np.float64)
    scale = np.maximum(scale, 0.1 * np.median(scale[scale > 0]))
    for row, (near, lengths) in enumerate(rows):
        for other, length in zip(near.tolist(), lengths.astype(np.float64), strict=True):
            graph.add_edge(row, other, weight=weigh(length, scale[row], scale[other]))
    return nx.to_numpy_array(graph)


def clumps(rng: np.random.Generator, sizes: list[int], spread: float = 0.3) -> np.ndarray:
    """Clouds of samples far from each other."""
    centres = 20 * rng.standard_normal((len(sizes), 3))
    return np.concatenate(
        [
            centre + spread * rng.standard_normal((size, 3))
            for centre, size in zip(centres, sizes, strict=True)
        ]
    )


class Graph:
    """A graph as the stage wrote it, in row order."""

    def __init__(self, harness: Harness, summary: dict[str, Any]) -> None:
        self.summary = summary
        self.sample, self.degree = harness["graph/sample"], harness["graph/degree"]
        self.component = harness["graph/component"]
        self.blocks: list[RowBlock] = []
        first = 0
        while first < summary["rows"]:
            parts = [
                harness[f"graph/{len(self.blocks)}/{name}"]
                for name in ("indptr", "indices", "data")
            ]
            self.blocks.append(RowBlock(first, *parts))
            first += len(parts[0]) - 1
        indptr = [np.zeros(1, np.int64)]
        for block in self.blocks:
            indptr.append(block.indptr[1:] + indptr[-1][-1])
        columns = np.concatenate([block.indices for block in self.blocks])
        data = np.concatenate([block.data for block in self.blocks])
        n = summary["rows"]
        self.W = scipy.sparse.csr_array((data, columns, np.concatenate(indptr)), shape=(n, n))

    def by_sample(self, n: int) -> scipy.sparse.csr_array:
        """W with the numbers of samples for rows and columns."""
        place = scipy.sparse.csr_array(
            (np.ones(len(self.sample)), (self.sample, np.arange(len(self.sample)))),
            shape=(n, len(self.sample)),
        )
        return (place @ self.W @ place.T).tocsr()

    def check(self) -> None:
        """W is symmetric to the last bit, positive, without loops; degrees are its row sums."""
        W = self.W
        W.check_format()
        assert W.has_canonical_format
        assert (W != W.T).nnz == 0
        assert W.data.dtype == np.float32
        assert (W.data > 0).all()
        assert not W.diagonal().any()
        np.testing.assert_allclose(self.degree, W.astype(np.float64).sum(axis=1), rtol=1e-14)
        assert self.degree.min() > 0
        assert self.summary["entries"] == W.nnz


def build_graph(
    path: Path,
    features: Any,
    lists: Lists,
    *,
    order: np.ndarray | None = None,
    neighbors: dict[str, Any] | None = None,
    executor: Any = None,
    pixels: np.ndarray | None = None,
    grid: Grid | None = None,
    **options: Any,
) -> Graph:
    """Run the graph stage on given lists.

    Parameters
    ----------
    path
        Of the run directory; a stage that was killed in it goes on.
    features : array or csr_array, shape (samples, columns)
    lists
        What the neighbors stage would have written.
    order
        Sample of each rank; a random one by default.
    pixels, grid
        Where the samples lie in a scene.
    neighbors, options
        Tables of the job.
    """
    harness = Harness(path, neighbors=neighbors or {}, graph=options)
    if harness.run_directory.record("features") is None:
        _put_features(harness, features)
        if grid is not None and pixels is not None:
            harness.put("ingest", {"samples/pixel": pixels}, grid=grid.to_json())
        if order is None:
            order = np.random.default_rng(8).permutation(features.shape[0])
        arrays = {"neighbors/index": lists.index, "neighbors/distance": lists.distance}
        whole = ["neighbors/order"]
        if lists.indptr is not None:
            arrays["neighbors/indptr"] = lists.indptr
            whole += list(arrays)
        harness.put("neighbors", {**arrays, "neighbors/order": order}, whole=whole)
    graph = Graph(harness, harness.run("graph", executor))
    graph.check()
    return graph


def _put_features(harness: Harness, features: Any) -> None:
    if not scipy.sparse.issparse(features):
        harness.put("features", {"features/values": np.asarray(features, np.float32)})
        return
    arrays = {
        "features/values/data": features.data.astype(np.float32),
        "features/values/indices": features.indices.astype(np.int32),
        "features/values/indptr": features.indptr.astype(np.int64),
    }
    harness.put("features", arrays, whole=list(arrays))
    stored = harness.run_directory.open("features/values/indptr")
    stored.attrs["columns"] = features.shape[1]


def fiedler_vector(graph: scipy.sparse.csr_array, least: int = 1) -> NDArray[np.float64]:
    """Return the first eigenvector of D^-1 (D - W) that is not constant, of a graph in memory.

    Of a graph that is not connected, the numbers of its pieces, which are eigenvectors for 0: cuts
    between them cost nothing. Where there are fewer than `least` rows beside the largest piece, its
    own eigenvector, and 0 for those.

    Parameters
    ----------
    graph : csr_array, shape (m, m)
        Symmetric weights; two rows or more.
    least
        Rows that are worth a split.
    """
    _, component = connected_components(graph, directed=False)
    sizes = np.bincount(component)
    rank = np.argsort(np.argsort(-sizes, kind="stable"))[component]
    inside = np.flatnonzero(rank == 0)
    if len(rank) - len(inside) >= least:
        return np.asarray(rank, np.float64)
    vector = np.zeros(len(rank))
    main = graph[inside][:, inside]
    vector[inside] = eigenpairs(main, 1, kind="random-walk").vectors[:, 1]
    return vector

"""The graph of a run on disk, and its Laplacian: the weights scaled, block by block."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from eigenscape.base.blocks import Block
from eigenscape.base.files.mapped import attach_memmap, create_memmap
from eigenscape.spectrum.kernels.laplacian import laplacian
from eigenscape.spectrum.kernels.operator import RowBlock
from eigenscape.spectrum.kernels.ties import Ties
from eigenscape.spectrum.stored import StoredOperator, store_operator
from eigenscape.store.arrays import open_array, open_memmap
from eigenscape.store.run import Run


@dataclass(frozen=True)
class StoredGraph:
    """Where the weights of the graph stage lie: small, so that every task opens them for itself.

    Attributes
    ----------
    paths
        Of indptr, indices and data of each block.
    starts
        First row of each block, and the number of rows.
    degree_path
        Of the row sums.
    """

    paths: tuple[tuple[str, str, str], ...]
    starts: tuple[int, ...]
    degree_path: str

    @property
    def rows(self) -> int:
        """Number of rows."""
        return self.starts[-1]

    def rows_of(self, number: int) -> Block:
        """Return the range of rows of a block."""
        return self.starts[number], self.starts[number + 1]

    def block(self, number: int) -> RowBlock:
        """Map a block."""
        indptr, indices, data = (open_memmap(path) for path in self.paths[number])
        return RowBlock(self.starts[number], indptr, indices, data)

    def open(self) -> list[RowBlock]:
        """Map all blocks."""
        return [self.block(number) for number in range(len(self.paths))]

    def degree(self) -> NDArray[np.float64]:
        """Map the row sums."""
        return open_memmap(self.degree_path)


def stored_graph(run: Run) -> StoredGraph:
    """Return where the weights lie that the graph stage wrote."""
    record = run.record("graph")
    assert record is not None, "the graph is there"
    paths: list[tuple[str, str, str]] = []
    starts = [0]
    while starts[-1] < record.summary["rows"]:
        folder = f"graph/{len(paths)}"
        indptr, indices, data = (
            str(run.array_path(f"{folder}/{name}")) for name in ("indptr", "indices", "data")
        )
        paths.append((indptr, indices, data))
        starts.append(starts[-1] + open_array(indptr).shape[0] - 1)
    return StoredGraph(tuple(paths), tuple(starts), str(run.array_path("graph/degree")))


def read_weights(run: Run) -> scipy.sparse.csr_array:
    """Return the weights of a finished graph stage in memory, rows and columns in its own order."""
    record = run.record("graph")
    assert record is not None, "the graph is there"
    parts: list[scipy.sparse.csr_array] = []
    rows = record.summary["rows"]
    while sum(part.shape[0] for part in parts) < rows:
        indptr, indices, data = (
            np.asarray(run.open(f"graph/{len(parts)}/{name}")[...])
            for name in ("indptr", "indices", "data")
        )
        parts.append(scipy.sparse.csr_array((data, indices, indptr), (len(indptr) - 1, rows)))
    return scipy.sparse.csr_array(scipy.sparse.vstack(parts))


def sample_rows(order: NDArray[np.int64], samples: int) -> NDArray[np.int64]:
    """Return the row of every sample in the graph stage's matrix, -1 for those that it leaves out.

    Parameters
    ----------
    order : array, shape (rows,)
        ``graph/sample``: the sample of each row.
    samples
        Number of samples.
    """
    row = np.full(samples, -1, np.int64)
    row[order] = np.arange(len(order))
    return row


def store_laplacian(
    graph: StoredGraph,
    directory: Path,
    kind: str,
    dtype: str,
    *,
    potential: NDArray[np.float64] | None = None,
    ties: Ties | None = None,
    unit: float = 1.0,
) -> StoredOperator:
    """Write the Laplacian of the graph stage's weights; their structure is shared with it.

    Parameters
    ----------
    graph
        The weights.
    directory
        Where the scaled weights go.
    kind, dtype, potential, ties, unit
        See `eigenscape.spectrum.kernels.laplacian.laplacian`.
    """
    paths: list[str] = []

    def allocate(number: int, size: int) -> NDArray[Any]:
        path = directory / f"data-{number}"
        paths.append(str(path))
        create_memmap(path, (size,), dtype)
        return attach_memmap(path, (size,), dtype, "r+")

    degree = np.array(graph.degree())
    operator = laplacian(
        graph.open(), degree, kind, dtype, allocate, potential=potential, ties=ties, unit=unit
    )
    structure = [(indptr, indices) for indptr, indices, _ in graph.paths]
    return store_operator(operator, directory, structure, paths)

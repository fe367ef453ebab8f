"""The Laplacian of a run on disk: its weights scaled, block by block."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenscape.arrays import attach_memmap, create_memmap, open_memmap
from eigenscape.spectrum.laplacian import laplacian
from eigenscape.spectrum.operator import RowBlock, StoredOperator, store_operator
from eigenscape.spectrum.ties import Ties
from eigenscape.stage import Context


def sample_rows(context: Context) -> NDArray[np.int64]:
    """Return the row of every sample in the graph stage's matrix, -1 for those it leaves out."""
    order = context.memmap("graph/sample")
    row = np.full(context.open("samples/pixel").shape[0], -1, np.int64)
    row[order] = np.arange(len(order))
    return row


def row_components(context: Context) -> NDArray[np.int32]:
    """Return the connected component of every row, where the graph's are those of samples."""
    return np.asarray(context.memmap("graph/component")[context.memmap("graph/sample")])


def store_laplacian(
    context: Context,
    directory: Path,
    kind: str,
    dtype: str,
    *,
    potential: NDArray[np.float64] | None = None,
    ties: Ties | None = None,
) -> StoredOperator:
    """Write the Laplacian of the graph stage's weights; their structure is shared with it.

    Parameters
    ----------
    context
        Of a stage that follows the graph.
    directory
        Where the scaled weights go.
    kind, dtype, potential, ties
        See `eigenscape.spectrum.laplacian.laplacian`.
    """
    record = context.run.record("graph")
    assert record is not None, "the graph is there"
    graph: list[tuple[str, str]] = []
    blocks = []
    first = 0
    while first < record.summary["rows"]:
        number = len(graph)
        indptr, indices, data = (
            context.path(f"graph/{number}/{name}") for name in ("indptr", "indices", "data")
        )
        graph.append((indptr, indices))
        blocks.append(RowBlock(first, open_memmap(indptr), open_memmap(indices), open_memmap(data)))
        first += len(blocks[-1].indptr) - 1
    paths: list[str] = []

    def allocate(number: int, size: int) -> NDArray[Any]:
        path = directory / f"data-{number}"
        paths.append(str(path))
        create_memmap(path, (size,), dtype)
        return attach_memmap(path, (size,), dtype, "r+")

    degree = np.array(context.memmap("graph/degree"))
    operator = laplacian(blocks, degree, kind, dtype, allocate, potential=potential, ties=ties)
    return store_operator(operator, directory, graph, paths)

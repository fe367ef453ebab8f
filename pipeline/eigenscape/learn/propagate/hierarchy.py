"""The smaller graphs of multigrid cycles, written once and mapped by every task."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eigenscape.base.files.mapped import save_array, scratch_arrays
from eigenscape.learn.propagate.kernels.multigrid import CoarseGraph, coarse_graphs
from eigenscape.spectrum.kernels.operator import Array
from eigenscape.spectrum.stored import StoredOperator, open_stored

_PARTS = ("label", "indptr", "indices", "data", "diagonal")


@dataclass(frozen=True)
class StoredGraphs:
    """Where the smaller graphs of an operator lie.

    Attributes
    ----------
    operator
        The Laplacian.
    folder
        Directory of the files.
    in_memory
        Whether the task that makes them may hold their entries in memory.
    count
        Number of graphs, once they are made.
    """

    operator: StoredOperator
    folder: Path
    in_memory: bool
    count: int = 0

    def make(self, _: int) -> int:
        """Write the graphs, values in the type of the operator; return their number."""
        count = 0
        with scratch_arrays(None if self.in_memory else self.folder) as zeros:

            def empty(size: int, dtype: Any) -> Array:
                return zeros((int(size),), dtype)

            for graph in coarse_graphs(self.operator.open(), empty):
                for part in _PARTS:
                    values = getattr(graph, part)
                    if part in ("data", "diagonal"):
                        values = values.astype(self.operator.dtype)
                    save_array(self._file(count, part), values)
                count += 1
        return count

    def open(self) -> list[CoarseGraph]:
        """Map the graphs."""
        return [
            CoarseGraph(*(open_stored(str(self._file(number, part))) for part in _PARTS))
            for number in range(self.count)
        ]

    def _file(self, number: int, part: str) -> Path:
        return self.folder / f"coarse-{number}-{part}.npy"

"""Operators in files: row blocks that tasks map by their path."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from eigenscape.base.files.mapped import attach_memmap, save_array, save_raw
from eigenscape.spectrum.kernels.operator import Array, Operator, RowBlock
from eigenscape.spectrum.kernels.ties import Ties
from eigenscape.store.arrays import open_memmap


@dataclass(frozen=True)
class StoredOperator:
    """Where an operator lies on disk: small, so that every task opens it for itself.

    Attributes
    ----------
    graph
        Paths of indptr and indices of each block.
    data
        Paths of the values of each block, raw.
    starts
        First row of each block.
    rows, entries, dtype, singular, bound, unit
        Of the operator.
    diagonal, null
        Paths, raw.
    ties
        Stem of the paths of V, None for 0.
    """

    graph: tuple[tuple[str, str], ...]
    data: tuple[str, ...]
    starts: tuple[int, ...]
    rows: int
    entries: int
    dtype: str
    diagonal: str
    null: str
    singular: bool
    bound: float
    ties: str | None = None
    unit: float = 1.0

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> "StoredOperator":
        """Return what `dataclasses.asdict` and JSON made of one."""
        graph = tuple((indptr, indices) for indptr, indices in values["graph"])
        lists = {name: tuple(values[name]) for name in ("data", "starts")}
        return cls(**{**values, "graph": graph, **lists})

    def open(self) -> Operator:
        """Map the operator; its pages are shared by all threads and processes."""
        blocks = []
        for (indptr, indices), data, first in zip(self.graph, self.data, self.starts, strict=True):
            columns = open_stored(indices)
            values = attach_memmap(data, columns.shape, self.dtype)
            blocks.append(RowBlock(first, open_stored(indptr), columns, values))
        return Operator(
            blocks,
            attach_memmap(self.diagonal, (self.rows,), self.dtype),
            attach_memmap(self.null, (self.rows,), np.float64),
            self.singular,
            self.bound,
            None if self.ties is None else Ties.load(self.ties),
            self.unit,
        )


def open_stored(path: str) -> Array:
    """Map an array of a stage, or one that was written beside an operator."""
    return np.load(path, mmap_mode="r") if path.endswith(".npy") else open_memmap(path)


def store_operator(
    operator: Operator,
    directory: Path,
    graph: Sequence[tuple[str, str]] | None = None,
    data: Sequence[str] | None = None,
) -> StoredOperator:
    """Write an operator, or the parts of it that are not stored yet.

    Parameters
    ----------
    operator
        In memory.
    directory
        Where the files go.
    graph, data
        Paths of the parts that are stored already: structure and values of the blocks.
    """
    for name, values in (("diagonal", operator.diagonal), ("null", operator.null)):
        save_raw(directory / name, values)
    ties = None
    if operator.ties is not None:
        ties = str(directory / "ties")
        operator.ties.save(ties)
    if graph is None or data is None:
        graph, data = [], []
        for number, block in enumerate(operator.blocks):
            paths = [str(directory / f"{name}-{number}.npy") for name in ("indptr", "indices")]
            for path, values in zip(paths, (block.indptr, block.indices), strict=True):
                save_array(path, values)
            graph.append((paths[0], paths[1]))
            data.append(str(directory / f"data-{number}"))
            save_raw(data[-1], block.data)
    return StoredOperator(
        graph=tuple(graph),
        data=tuple(data),
        starts=tuple(block.first for block in operator.blocks),
        rows=operator.rows,
        entries=sum(len(block.data) for block in operator.blocks),
        dtype=operator.diagonal.dtype.name,
        diagonal=str(directory / "diagonal"),
        null=str(directory / "null"),
        singular=operator.singular,
        bound=operator.bound,
        ties=ties,
        unit=operator.unit,
    )


def store_rounded(stored: StoredOperator, directory: Path) -> StoredOperator:
    """Write an operator without ties in single precision; it shares its structure and null vectors.

    Parameters
    ----------
    stored
        The operator.
    directory
        Where the rounded values go.
    """
    directory.mkdir(exist_ok=True)
    operator, data = stored.open(), []
    for number, block in enumerate(operator.blocks):
        data.append(str(directory / f"data-{number}"))
        save_raw(data[-1], block.data.astype(np.float32))
    diagonal = str(directory / "diagonal")
    save_raw(diagonal, operator.diagonal.astype(np.float32))
    return replace(stored, data=tuple(data), diagonal=diagonal, dtype="float32")

"""Arrays of samples of scenes in sensor geometry, and of several lines, as strips of a map.

Each cell of the map shows the sample that ``map/sample/LINE`` names: values are taken, never mixed. Where
lines overlap, the cell shows the line whose sample has the highest confidence, in all maps alike; without
classes the first line that has one.
"""

import re
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenscape.base.blocks import blocks
from eigenscape.base.files.mapped import attach_memmap, create_memmap, write_range
from eigenscape.export.arrays import Arrays
from eigenscape.scenes.geometry.writing import sample_array
from eigenscape.scenes.types import Grid
from eigenscape.store.arrays import open_memmap

_SEARCHED_BYTES = 2**25
"""Of cells that are searched for samples at a time."""

CELL_BYTES = 24
"""Of a cell of a strip: the samples of two lines, and of the one that is shown."""

_CONFIDENCE = "labels/confidence"

Columns = slice | list[int] | None
"""Which columns of an array are meant, None for all of one that has no columns."""


@dataclass
class Map:
    """The map of a run whose scene is in sensor geometry, or is several lines.

    Attributes
    ----------
    context
        The run.
    grid
        The map.
    lines
        How many lines there are.
    """

    context: Arrays
    grid: Grid
    lines: int
    _taken: dict[str, NDArray[Any]] = field(default_factory=dict)

    def samples(self, start: int, stop: int, step: int = 1) -> NDArray[np.int64]:
        """Return the sample that each cell of rows start ... stop-1 shows, -1 for none.

        Parameters
        ----------
        start, stop
            First row of the map and the one after the last.
        step
            Of the rows, counted from row 0, and of the columns.
        """
        rows = slice(start + -start % step, stop, step)
        found: NDArray[np.int64] | None = None
        best: NDArray[np.float32] | None = None
        for line in range(self.lines):
            layer = open_memmap(self.context.run.array_path(sample_array(line)))
            own = layer[rows, ::step].astype(np.int64)
            if found is None:
                found = own
                continue
            if best is None:
                best = self._confidence(found)
            sure = self._confidence(own)
            wins = sure > best
            found[wins], best[wins] = own[wins], sure[wins]
        assert found is not None, "there is a line"
        return found

    def cells_of(self, samples: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the first cell (row * width + column) that shows each of a few samples, -1 for none."""
        found = np.full(len(samples), -1, np.int64)
        order = np.argsort(samples, kind="stable")
        for line in range(self.lines):
            layer = open_memmap(self.context.run.array_path(sample_array(line))).ravel()
            for start, stop in blocks(len(layer), _SEARCHED_BYTES // CELL_BYTES):
                part = layer[start:stop]
                there = np.flatnonzero(np.isin(part, samples))
                place = order[np.searchsorted(samples[order], part[there])]
                # Written from the last to the first: the first stays.
                new = found[place] < 0
                found[place[new][::-1]] = (there[new] + start)[::-1]
        return found

    def take(
        self, name: str, samples: NDArray[np.int64], fill: float, columns: Columns = None
    ) -> NDArray[Any]:
        """Return the values of an array at samples, `fill` where there is none.

        Parameters
        ----------
        name
            Array of samples.
        samples : array of int
            Of any shape.
        fill
            Value where the number is negative.
        columns
            Which columns of a two-dimensional array, which become the last axis.
        """
        source = self._source(name, columns)
        found = np.full((*samples.shape, *source.shape[1:]), fill, source.dtype)
        there = samples >= 0
        found[there] = source[samples[there]]
        return found

    def _confidence(self, samples: NDArray[np.int64]) -> NDArray[np.float32]:
        if not self.context.run.has(_CONFIDENCE):
            return np.where(samples >= 0, 0, -1).astype(np.float32)
        return np.asarray(self.take(_CONFIDENCE, samples, -1), np.float32)

    def _source(self, name: str, columns: Columns) -> NDArray[Any]:
        """Return an array of which any row can be taken: a mapped copy, as chunks are read whole."""
        key = name if columns is None else f"{name}-{columns}"
        if key in self._taken:
            return self._taken[key]
        array = self.context.open(name)
        shape = array.shape
        if columns is not None:
            shape = (shape[0], len(np.arange(shape[1])[columns]))
        path = self.context.workspace.folder("map") / re.sub(r"\W+", "-", key)
        create_memmap(path, shape, array.dtype)
        for start, stop in blocks(array.shape[0], array.chunks[0]):
            part = array[start:stop]
            write_range(path, start, part if columns is None else part[:, columns])
        self._taken[key] = attach_memmap(path, shape, array.dtype)
        return self._taken[key]


def open_map(context: Arrays) -> Map | None:
    """Return the map of a run, None where its scene lies on a grid of its own."""
    ingest = context.run.record("ingest")
    about = None if ingest is None else ingest.summary.get("map")
    return None if about is None else Map(context, Grid.from_json(about["grid"]), about["lines"])

"""Several scenes of the same bands as one, one below the other: flightlines, which share a graph."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenscape.base.shares import counted
from eigenscape.base.vectors import Vectors
from eigenscape.errors import SceneError
from eigenscape.scenes.describe import notes_of
from eigenscape.scenes.types import Bands, Grid, Scene
from eigenscape.scenes.views.resampled import OF_LINES, lacking, to_bands, told_wavelengths
from eigenscape.scenes.views.wrapped import innermost

GAP = 128
"""Rows without a pixel between lines: a filter in space reaches no farther, so that lines do not mix."""


@dataclass(frozen=True)
class StackedScene:
    """Scenes one below the other; fulfils the `Scene` protocol.

    Attributes
    ----------
    lines
        The scenes, of one list of good bands.
    told
        Notes on how they were brought to it.
    """

    lines: tuple[Scene, ...]
    told: tuple[str, ...] = ()

    @property
    def firsts(self) -> tuple[int, ...]:
        """First row of each line."""
        found, row = [], 0
        for line in self.lines:
            found.append(row)
            row += line.grid.height + GAP
        return tuple(found)

    @property
    def grid(self) -> Grid:
        """As high as all lines with gaps between, as wide as the widest."""
        height = self.firsts[-1] + self.lines[-1].grid.height
        return Grid(height, max(line.grid.width for line in self.lines))

    @property
    def bands(self) -> Bands:
        """Bands of all lines."""
        return self.lines[0].bands

    @property
    def files(self) -> tuple[str, ...]:
        """Files of all lines."""
        return tuple(dict.fromkeys(name for line in self.lines for name in line.files))

    @property
    def row_step(self) -> int:
        """Rows per storage block, of the line that has the highest."""
        return max(line.row_step for line in self.lines)

    @property
    def notes(self) -> tuple[str, ...]:
        """What a user should know of each line."""
        sizes = ", ".join(f"{line.grid.height} x {line.grid.width}" for line in self.lines)
        notes = [f"{len(self.lines)} lines as one scene: {sizes} pixels", *self.told]
        return tuple(
            dict.fromkeys((*notes, *(note for line in self.lines for note in notes_of(line))))
        )

    @property
    def parts(self) -> tuple[Any, ...]:
        """What the lines read their numbers by."""
        found: list[Any] = []
        for line in self.lines:
            inner = innermost(line)
            found += getattr(inner, "parts", (inner,))
        return tuple(found)

    def less(self, origin: NDArray[np.float64]) -> "StackedScene":
        """Return the scene less an origin, shape (bands,)."""
        from eigenscape.scenes.views.centred import centred

        return replace(self, lines=tuple(centred(line, origin) for line in self.lines))

    def read(self, start: int, stop: int) -> tuple[Vectors, NDArray[np.bool_]]:
        """Read rows start ... stop-1; see `Scene.read`.

        Raises
        ------
        SceneError
            A file is truncated, damaged or gone.
        """
        width = self.grid.width
        values = np.zeros((stop - start, width, self.bands.count), np.float32)
        valid = np.zeros((stop - start, width), np.bool_)
        for line, first in zip(self.lines, self.firsts, strict=True):
            low, high = max(start, first), min(stop, first + line.grid.height)
            if low < high:
                found, there = line.read(low - first, high - first)
                place = slice(low - start, high - start), slice(0, line.grid.width)
                values[place], valid[place] = found, there
        return values, valid


def stack(lines: list[Scene]) -> StackedScene:
    """Return several scenes as one, of the bands that the first has and none of the same sensor lacks.

    Scenes of another sensor are resampled to these bands.

    Raises
    ------
    SceneError
        One has other bands, and nothing says at what wavelengths, or the lines have no band in common.
    """
    for line in lines:
        if line.grid.is_table:
            raise SceneError(
                f"{line.files[0]}: is a table, and a list in scene.path is of rasters. Give one table."
            )
    bands, told = _common_bands(lines)
    return StackedScene(tuple(to_bands(line, bands, OF_LINES) for line in lines), told)


def _common_bands(lines: list[Scene]) -> tuple[Bands, tuple[str, ...]]:
    """Return the bands of the first line less those that another lacks, and a note for each such line."""
    first = lines[0]
    bands, told = first.bands, []
    good = np.array(bands.good)
    for line in lines[1:]:
        lost = bands.good_index[lacking(line.bands, bands)]
        if not len(lost):
            continue
        assert bands.wavelength is not None, "bands are missed by their wavelengths"
        good[lost] = False
        at = told_wavelengths(np.array(bands.wavelength)[lost])
        told.append(
            f"{counted(len(lost), 'band')} of {first.files[0]}, at {at}, left out of "
            f"all lines: {line.files[0]} has no good band there"
        )
    if told and not good.any():
        raise SceneError(
            f"scene.path: each of the {bands.count} good bands of {first.files[0]} is missing from another "
            f"line ({'; '.join(told)}). Give lines that have some bands in common."
        )
    return replace(bands, good=tuple(good.tolist())), tuple(told)

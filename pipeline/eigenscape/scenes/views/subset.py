"""A random subset of a table's samples: `scene.samples` of them, drawn with `scene.seed`."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from eigenscape.base.vectors import Vectors
from eigenscape.errors import SceneError
from eigenscape.scenes.formats.tables.sparse import SparseScene
from eigenscape.scenes.labels.wrapped import WrappedLabels
from eigenscape.scenes.types import Grid, Scene
from eigenscape.scenes.views.draws import Subset
from eigenscape.scenes.views.wrapped import WrappedScene


@dataclass(frozen=True)
class SubsetScene(WrappedScene):
    """The drawn rows of a dense table, as a table."""

    subset: Subset

    @property
    def grid(self) -> Grid:
        """As many rows as are drawn, one column."""
        return Grid(height=self.subset.count, width=1)

    @property
    def row_step(self) -> int:
        """Drawn rows lie anywhere: no window of them is cheaper than another."""
        return 1

    def read(self, start: int, stop: int) -> tuple[Vectors, NDArray[np.bool_]]:
        """Read drawn rows start ... stop-1; see `Scene.read`.

        Raises
        ------
        SceneError
            A file is truncated, damaged or gone.
        """
        drawn = self.subset.rows[start:stop]
        # Windows no longer than what is asked for, since whoever asks has room for that many rows;
        # or what the file is read by anyway.
        step, end = max(len(drawn), self.scene.row_step), int(drawn[-1]) + 1
        values, valid = [], []
        for first in range(int(drawn[0]), end, step):
            low, high = np.searchsorted(drawn, (first, first + step))
            if low < high:
                window = self.scene.read(first, min(first + step, end))
                inside = drawn[low:high] - first
                values.append(window[0][inside])
                valid.append(window[1][inside])
        return np.concatenate(values), np.concatenate(valid)


@dataclass(frozen=True)
class SubsetLabels(WrappedLabels):
    """The labels of the drawn rows; fulfils the `Labels` protocol."""

    subset: Subset

    def read(self, start: int, stop: int) -> NDArray[np.uint16]:
        """Read the labels of drawn rows start ... stop-1; see `Labels.read`.

        Raises
        ------
        SceneError
            A file is damaged, or a value is no class number.
        """
        drawn = self.subset.rows[start:stop]
        window = self.labels.read(int(drawn[0]), int(drawn[-1]) + 1)
        taken: NDArray[np.uint16] = window[drawn - drawn[0]]
        return taken


def draw_samples(scene: Scene, count: int, seed: int) -> Scene:
    """Return `count` random samples of a table, in the table's order.

    Raises
    ------
    SceneError
        The scene is an image, or has fewer samples.
    """
    height, width = scene.grid.height, scene.grid.width
    name = scene.files[0]
    if width != 1:
        raise SceneError(
            f"scene.samples = {count}: draws rows of a table, and {name} is an image of {height} x "
            f"{width} pixels. Mark the pixels to keep in scene.mask."
        )
    if count > height:
        raise SceneError(
            f"scene.samples = {count}: {name} has {height} samples. Give a number up to {height}, or "
            "leave the key out for all of them."
        )
    subset = Subset(height, count, seed)
    if isinstance(scene, SparseScene):
        return replace(scene, grid=Grid(height=count, width=1), subset=subset)
    return SubsetScene(scene, subset)


def subset_of(scene: Scene) -> Subset | None:
    """Return the subset that a scene is of a table; None if it is all of it."""
    found: Subset | None = getattr(scene, "subset", None)
    return found

"""A scene around another one, of which it changes some of what is read."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenscape.base.vectors import Vectors
from eigenscape.scenes.types import Bands, Grid, Scene


def innermost(scene: Any) -> Any:
    """Return the scene that is read from files, within all that are around it."""
    while hasattr(scene, "scene"):
        scene = scene.scene
    return scene


@dataclass(frozen=True)
class WrappedScene:
    """Another scene as it is; fulfils the `Scene` protocol. Classes that derive from it change a part.

    Attributes
    ----------
    scene
        The other one.
    """

    scene: Scene

    @property
    def grid(self) -> Grid:
        """Grid of the scene."""
        return self.scene.grid

    @property
    def bands(self) -> Bands:
        """Bands of the scene."""
        return self.scene.bands

    @property
    def files(self) -> tuple[str, ...]:
        """Files of the scene."""
        return self.scene.files

    @property
    def row_step(self) -> int:
        """Rows per storage block of the scene."""
        return self.scene.row_step

    def read(self, start: int, stop: int) -> tuple[Vectors, NDArray[np.bool_]]:
        """Read rows start ... stop-1; see `Scene.read`.

        Raises
        ------
        SceneError
            A file is truncated, damaged or gone.
        """
        return self.scene.read(start, stop)

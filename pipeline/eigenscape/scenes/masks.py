"""A scene less the pixels that ``scene.mask`` leaves out."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eigenscape.base.vectors import Vectors
from eigenscape.errors import SceneError
from eigenscape.scenes.formats.arrays import array_format
from eigenscape.scenes.formats.planes import Plane, find_plane, open_plane
from eigenscape.scenes.formats.tabularfiles import is_tabular
from eigenscape.scenes.places import check_exists
from eigenscape.scenes.types import Bands, Grid, Scene


@dataclass(frozen=True)
class MaskedScene:
    """A scene and its mask; fulfils the `Scene` protocol."""

    scene: Scene
    mask: Plane

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
        """Files of the scene and of the mask."""
        return tuple(dict.fromkeys((*self.scene.files, *self.mask.files)))

    @property
    def row_step(self) -> int:
        """Rows per storage block of the scene, the larger part of the reading."""
        return self.scene.row_step

    def read(self, start: int, stop: int) -> tuple[Vectors, NDArray[np.bool_]]:
        """Read rows start ... stop-1; see `Scene.read`.

        Raises
        ------
        SceneError
            A file is truncated, damaged or gone.
        """
        values, valid = self.scene.read(start, stop)
        stored, given = self.mask.rows(start, stop)
        valid &= given & (stored != 0)
        values[~valid] = 0
        return values, valid


def mask_scene(scene: Scene, path: str) -> MaskedScene:
    """Leave out the pixels of a scene where a mask is 0, NaN or nodata.

    Raises
    ------
    SceneError
        The mask cannot be read or is not on the scene's grid.
    """
    check_exists(path)
    if is_tabular(path):
        raise SceneError(
            f"{path}: scene.mask is an array or a raster on the scene's grid, and this is a table. "
            "Give one number for each sample as an array (.npy), 0 to leave it out."
        )
    if array_format(path) is not None:
        return MaskedScene(scene, find_plane(path, None, scene.grid, key="mask"))
    return MaskedScene(scene, open_plane(path, scene.grid, key="mask"))

"""Scenes in array files: rows x columns x bands, without georeference."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenscape.errors import SceneError
from eigenscape.scenes.arrays import ArraySource, Variable
from eigenscape.scenes.bandlists import parse_bad_bands
from eigenscape.scenes.pixels import Calibration, calibrate, check_some_band, fill_samples
from eigenscape.scenes.types import Bands, Grid
from eigenscape.scenes.variables import find_array


@dataclass(frozen=True)
class ArrayScene:
    """A scene in a three-dimensional array (or a single band in a two-dimensional one)."""

    grid: Grid
    bands: Bands
    source: ArraySource
    calibration: Calibration

    @property
    def files(self) -> tuple[str, ...]:
        """The file, or the directory of a zarr store."""
        return self.source.files

    @property
    def row_step(self) -> int:
        """Rows per storage block."""
        return self.source.row_step

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the stored numbers."""
        return self.source.dtype

    def read(self, start: int, stop: int) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
        """Read rows start ... stop-1 of the good bands; see `Scene.read`.

        Raises
        ------
        SceneError
            The file is truncated, damaged or gone.
        """
        assert 0 <= start < stop <= self.grid.height
        stored = self.source.rows(start, stop)
        if stored.ndim == 2:
            stored = stored[..., np.newaxis]
        if not all(self.bands.good):
            stored = stored[..., self.bands.good_index]
        values = np.empty(stored.shape, np.float32)
        valid = np.ones(stored.shape[:2], np.bool_)
        fill_samples(stored, self.calibration, values, valid)
        values[~valid] = 0
        return values, valid


def open_array_scene(
    path: str,
    variable: str | None = None,
    *,
    bad_bands: Sequence[int | str] = (),
    scale: float | str = "auto",
    nodata: float | None = None,
) -> ArrayScene:
    """Open a cube in an array file from its header alone.

    Parameters
    ----------
    path
        A .mat, .npy, .npz file or a zarr store.
    variable
        Name of the cube; by default the only three-dimensional array.
    bad_bands
        Numbers of the bands to leave out; see `parse_bad_bands`.
    scale
        Factor from stored to physical values; "auto" leaves them as they are.
    nodata
        Stored value that marks missing pixels.

    Raises
    ------
    SceneError
        The file is damaged, there is no such variable, or several could be meant.
    """
    source = find_array(path, variable, _pick_cube, key="scene.variable", wanted="a cube")
    if len(source.shape) not in (2, 3) or 0 in source.shape:
        raise SceneError(
            f"{path}: the array{source.label} has the shape {source.shape}; a scene is "
            "rows x columns x bands (or rows x columns for one band), none of them 0. "
            "Choose another scene.variable or reshape it."
        )
    count = source.shape[2] if len(source.shape) == 3 else 1
    bad = parse_bad_bands(bad_bands, count)
    good = tuple(index not in bad for index in range(count))
    check_some_band(good, path)
    kept = sum(good)
    factor = 1.0 if isinstance(scale, str) else float(scale)
    return ArrayScene(
        grid=Grid(height=source.shape[0], width=source.shape[1]),
        bands=Bands(good),
        source=source,
        calibration=calibrate([factor] * kept, [0.0] * kept, [(nodata,)] * kept),
    )


def _pick_cube(known: Mapping[str, Variable]) -> list[str]:
    cubes = [name for name, item in known.items() if len(item.shape) == 3]
    planes = [name for name, item in known.items() if len(item.shape) == 2]
    return cubes or planes

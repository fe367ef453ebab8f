"""Scenes in array files: rows x columns x bands, or tables of samples, without georeference."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenscape.errors import SceneError
from eigenscape.options import SceneOptions
from eigenscape.scenes.arrays import ArraySource, Variable
from eigenscape.scenes.bandlists import parse_bad_bands
from eigenscape.scenes.pixels import Calibration, calibrate, check_some_band, fill_samples
from eigenscape.scenes.types import Bands, Grid, Scene
from eigenscape.scenes.variables import find_array


@dataclass(frozen=True)
class ArrayScene:
    """A scene in an array: rows x columns x bands, or a table of samples x features, one pixel wide."""

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

    @property
    def held_bytes(self) -> int:
        """Bytes of the file's array if any part of it costs the whole: see `ArraySource.rows`."""
        copies = {"npz": 1, "mat": 2}.get(self.source.format, 0)
        return copies * math.prod(self.source.shape) * self.source.dtype.itemsize

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
            # One band of an image, or all columns of a table.
            stored = stored.reshape(len(stored), self.grid.width, -1)
        if not all(self.bands.good):
            stored = stored[..., self.bands.good_index]
        values = np.empty(stored.shape, np.float32)
        valid = np.ones(stored.shape[:2], np.bool_)
        fill_samples(stored, self.calibration, values, valid)
        values[~valid] = 0
        return values, valid


def held_bytes(scene: Scene) -> int:
    """Return the bytes that reading any part of a scene holds, beside those of the part."""
    inner: Any = scene
    while hasattr(inner, "scene"):
        inner = inner.scene
    return inner.held_bytes if isinstance(inner, ArrayScene) else 0


def open_array_scene(path: str, options: SceneOptions) -> ArrayScene:
    """Open a cube or a table in an array file from its header alone.

    Parameters
    ----------
    path
        A .mat, .npy, .npz file or a zarr store.
    options
        ``[scene]`` of the job. By default ``variable`` is the only array of three axes; where there
        is none, the only one of two.

    Raises
    ------
    SceneError
        The file is damaged, there is no such variable, or several could be meant; or the layout is
        not one that the array can have.
    """
    wanted = "a table" if options.layout == "table" else "a cube or a table"
    pick = partial(_pick, options.layout, options.labels_variable)
    source = find_array(path, options.variable, pick, key="scene.variable", wanted=wanted)
    if len(source.shape) not in (2, 3) or 0 in source.shape:
        raise SceneError(
            f"{path}: the array{source.label} has the shape {source.shape}; a scene is rows x columns "
            'x bands, a table samples x features (or, with scene.layout = "image", rows x columns of '
            "one band), none of them 0. Choose another scene.variable or reshape it."
        )
    height, width, count = _lay_out(source, options.layout)
    bad = parse_bad_bands(options.bad_bands, count)
    good = tuple(index not in bad for index in range(count))
    check_some_band(good, path)
    kept = sum(good)
    factor = 1.0 if isinstance(options.scale, str) else float(options.scale)
    return ArrayScene(
        grid=Grid(height=height, width=width),
        bands=Bands(good),
        source=source,
        calibration=calibrate([factor] * kept, [0.0] * kept, [(options.nodata,)] * kept),
    )


def _lay_out(source: ArraySource, layout: str) -> tuple[int, int, int]:
    """Return rows, columns and bands of the scene in an array; a table is one column wide."""
    shape = source.shape
    name = f"{source.path}: the array{source.label} has the shape {shape}"
    if layout == "image" and shape[1] == 1:
        raise SceneError(
            f'{name}, and scene.layout = "image". What is one pixel wide is a table of {shape[0]} '
            "samples: leave the key out."
        )
    if len(shape) == 3:
        if layout == "table" and shape[1] != 1:
            raise SceneError(
                f'{name}, and scene.layout = "table". A table has two axes, samples x features: '
                "reshape(-1, bands) it, or leave the key out for an image."
            )
        return shape[0], shape[1], shape[2]
    return (shape[0], shape[1], 1) if layout == "image" else (shape[0], 1, shape[1])


def _pick(layout: str, labels: str | None, known: Mapping[str, Variable]) -> list[str]:
    """Return the names of the arrays that may be the scene."""
    others = {name: item.shape for name, item in known.items() if name != labels}
    cubes = [name for name, shape in others.items() if len(shape) == 3]
    planes = [name for name, shape in others.items() if len(shape) == 2]
    # MATLAB files keep numbers and lists as matrices of one row or column.
    wide = [name for name in planes if min(others[name]) > 1]
    tables = wide or planes
    return (tables or cubes) if layout == "table" else (cubes or tables)

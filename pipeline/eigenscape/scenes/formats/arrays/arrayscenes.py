"""Scenes in array files: rows x columns x bands, or tables of samples; in zarr stores with georeference."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenscape.errors import SceneError
from eigenscape.job.options import SceneOptions
from eigenscape.scenes.formats.arrays.arrayfiles import ArraySource, local_path, reading
from eigenscape.scenes.formats.arrays.cubes import UnfoldedSource, find_cube
from eigenscape.scenes.formats.bandlists import parse_bad_bands
from eigenscape.scenes.formats.rasters.pixels import (
    Calibration,
    calibrate,
    check_some_band,
    fill_samples,
)
from eigenscape.scenes.types import Bands, Grid

MOST_BANDS = 2**20
"""The manifest of a run says of every band whether it is used."""


@dataclass(frozen=True)
class ArrayScene:
    """A scene in an array: rows x columns x bands, or a table of samples x features, one pixel wide."""

    grid: Grid
    bands: Bands
    source: ArraySource | UnfoldedSource
    calibration: Calibration
    notes: tuple[str, ...] = ()

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
            # One band of an image, or all columns of a table.
            stored = stored.reshape(len(stored), self.grid.width, -1)
        if not all(self.bands.good):
            stored = stored[..., self.bands.good_index]
        values = np.empty(stored.shape, np.float32)
        valid = np.ones(stored.shape[:2], np.bool_)
        given = self.source.given(start, stop)
        if given is not None:
            # Of a table these are features, all of which a sample needs.
            valid &= given if self.grid.width > 1 else given.all(axis=1, keepdims=True)
        fill_samples(stored, self.calibration, values, valid)
        values[~valid] = 0
        return values, valid


def open_array_scene(path: str, options: SceneOptions) -> ArrayScene:
    """Open a cube or a table in an array file from its header alone.

    Parameters
    ----------
    path
        A .mat, .npy, .npz file or a zarr store.
    options
        ``[scene]`` of the job; see `find_cube`.

    Raises
    ------
    SceneError
        The file is damaged, there is no such variable, or several could be meant; or the layout is
        not one that the array can have.
    """
    source, notes = find_cube(path, options)
    if len(source.shape) not in (2, 3) or 0 in source.shape:
        raise SceneError(
            f"{path}: the array{source.label} has the shape {source.shape}; a scene is rows x columns "
            'x bands, a table samples x features (or, with scene.layout = "image", rows x columns of '
            "one band), none of them 0. Choose another scene.variable or reshape it."
        )
    height, width, count = _lay_out(source, options.layout)
    if count > MOST_BANDS:
        raise SceneError(
            f"{path}: the array{source.label} has the shape {source.shape}, which is {count:,} bands; "
            f"{MOST_BANDS:,} can be used. Check the file, or store it rows x columns x bands."
        )
    grid, placed, lists = Grid(height=height, width=width), tuple[str, ...](), None
    factor, shift, marks, limits = 1.0, 0.0, tuple[float, ...](), None
    if width > 1 and isinstance(source, ArraySource) and source.format == "zarr":
        from eigenscape.scenes.formats.arrays.zarrstores import named_arrays
        from eigenscape.scenes.formats.named.arrays import packing_of
        from eigenscape.scenes.formats.named.lists import band_lists
        from eigenscape.scenes.formats.named.places import place_image

        with reading(path):
            known = named_arrays(local_path(path))
            array = known[source.variable or ""]
            grid, placed = place_image(path, array, known, grid)
            packing = packing_of(path, array)
            lists = band_lists(array, known)
        factor, shift, marks, limits = (
            packing.scale, packing.offset, packing.nodata, packing.limits
        )  # fmt: skip
        placed = (*placed, *packing.told(), *(lists.notes if lists else ()))
    wavelength = lists.wavelength if lists else None
    bad = parse_bad_bands(options.bad_bands, count, wavelength)
    marked = lists.good if lists else (True,) * count
    good = tuple(flag and index not in bad for index, flag in enumerate(marked))
    check_some_band(good, path)
    if not isinstance(options.scale, str):
        factor, shift = float(options.scale), 0.0
    kept = sum(good)
    return ArrayScene(
        grid=grid,
        bands=Bands(good, wavelength, lists.fwhm if lists else None),
        source=source,
        calibration=calibrate(
            [factor] * kept, [shift] * kept, [(*marks, options.nodata)] * kept, limits
        ),
        notes=(*notes, *placed, *_note_missing(source)),
    )


def _note_missing(source: ArraySource | UnfoldedSource) -> tuple[str, ...]:
    """Say that a zarr store lacks chunks of the scene."""
    if isinstance(source, UnfoldedSource) or source.format != "zarr":
        return ()
    from eigenscape.scenes.formats.arrays.zarrstores import count_missing

    with reading(source.path):
        missing, total = count_missing(local_path(source.path), source.variable)
    if not missing:
        return ()
    return (
        f"{missing} of {total} chunks are not in the store: their pixels are left out as missing",
    )


def _lay_out(source: ArraySource | UnfoldedSource, layout: str) -> tuple[int, int, int]:
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

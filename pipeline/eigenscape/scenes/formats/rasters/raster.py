"""Scenes in rasters that GDAL opens: one file of many bands, or one file per band."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rasterio.enums import ColorInterp, MaskFlags
from rasterio.windows import Window

from eigenscape.errors import SceneError
from eigenscape.scenes.files.outside import source_file
from eigenscape.scenes.files.places import check_exists
from eigenscape.scenes.formats.bandlists import parse_bad_bands
from eigenscape.scenes.formats.named.arrays import Packing, packing_of, rows_rise
from eigenscape.scenes.formats.named.lists import BandLists
from eigenscape.scenes.formats.rasters.containers import named_array
from eigenscape.scenes.formats.rasters.metadata import (
    BandMetadata,
    check_axes,
    note_unplaced,
    read_band_metadata,
)
from eigenscape.scenes.formats.rasters.onegrid import (
    common_grid,
    is_one_grid,
    note_resampled,
    onto_grid,
    resampled_type,
)
from eigenscape.scenes.formats.rasters.pixels import (
    Calibration,
    calibrate,
    check_some_band,
    join_parts,
    marks_of,
    sensible_row_step,
)
from eigenscape.scenes.formats.rasters.rasterfiles import (
    block_sizes,
    dataset_files,
    open_raster,
    read_grid,
)
from eigenscape.scenes.grids import (
    cell_size,
    same_crs,
    same_size,
    same_transform,
)
from eigenscape.scenes.types import Bands, Geolocation, Grid

_TOLD = 3
"""Notes about lists of metadata at most: a scene may be hundreds of files."""


@dataclass(frozen=True)
class RasterPart:
    """The good bands that one file contributes.

    Attributes
    ----------
    path
        The file.
    bands
        Numbers of its good bands, from 1.
    calibration
        What their stored numbers mean.
    mask_bands
        Numbers of the bands whose GDAL mask must be read: an alpha band or a mask of the file.
        Nodata is not among them, `calibration` has it.
    alpha_bands
        Numbers of the alpha bands that must be read themselves: GDAL makes a mask of one only in files of
        two or four bands, and none where there is a nodata value.
    dtype
        Type that holds the numbers of all its bands as they are read.
    grid, onto
        Its grid and the one onto which it is brought; None where it lies on that of the scene.
    nodata
        Stored values of missing pixels, which resampling leaves out.
    chunk_bytes, row_bytes
        Bytes of a block, and of all blocks of all bands in as many rows.
    """

    path: str
    bands: tuple[int, ...]
    calibration: Calibration
    mask_bands: tuple[int, ...]
    dtype: str
    grid: Grid | None = None
    onto: Grid | None = None
    nodata: tuple[float, ...] = ()
    chunk_bytes: int = 0
    row_bytes: int = 0
    alpha_bands: tuple[int, ...] = ()

    def read(self, window: Window) -> tuple[NDArray[Any], NDArray[np.bool_] | None]:
        """Read a window of the scene: its bands, and where they are given, None for everywhere.

        Returns
        -------
        stored : array, shape (rows, columns, bands)
        given : array of bool, shape (rows, columns), or None
        """
        with open_raster(self.path) as dataset:
            if self.grid is None or self.onto is None:
                stored, given = _read_window(dataset, self.bands, self.mask_bands, window)
                for band in self.alpha_bands:
                    opaque = dataset.read(band, window=window) != 0
                    given = opaque if given is None else given & opaque
                return stored, given
            with onto_grid(dataset, self.grid, self.onto, nodata=self.nodata) as moved:
                stored, given = _read_window(moved, self.bands, self.mask_bands, window)
                if not self.nodata:
                    alpha = moved.colorinterp.index(ColorInterp.alpha) + 1
                    reached = moved.read(alpha, window=window) != 0
                    given = reached if given is None else given & reached
                return stored, given


@dataclass(frozen=True)
class RasterScene:
    """A scene in one raster or in several of one grid; fulfils the `Scene` protocol.

    Attributes
    ----------
    empty
        Stored value that *all* bands of a missing pixel have; None where there is none.
    alpha
        Numbers of its alpha bands, from 1.
    """

    grid: Grid
    bands: Bands
    files: tuple[str, ...]
    row_step: int
    parts: tuple[RasterPart, ...]
    notes: tuple[str, ...] = ()
    geolocation: Geolocation | None = None
    empty: float | None = None
    alpha: tuple[int, ...] = ()

    def read(self, start: int, stop: int) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
        """Read rows start ... stop-1 of the good bands; see `Scene.read`.

        Raises
        ------
        SceneError
            A file is truncated, damaged or gone.
        """
        assert 0 <= start < stop <= self.grid.height
        window = Window(0, start, self.grid.width, stop - start)
        parts = ((*part.read(window), part.calibration) for part in self.parts)
        return join_parts(parts, (stop - start, self.grid.width, self.bands.count), self.empty)


def _read_window(
    dataset: Any, bands: Sequence[int], mask_bands: Sequence[int], window: Window
) -> tuple[NDArray[Any], NDArray[np.bool_] | None]:
    stored = dataset.read(list(bands), window=window).transpose(1, 2, 0)
    masks = [dataset.read_masks(band, window=window) != 0 for band in mask_bands]
    return stored, np.logical_and.reduce(masks) if masks else None


@dataclass(frozen=True)
class _Opened:
    """Everything about one file that its scene needs."""

    path: str
    grid: Grid
    files: tuple[str, ...]
    blocks: tuple[int, int, int]
    """Rows of a block, bytes of it, bytes of all in as many rows."""
    metadata: BandMetadata
    dtype: str
    masked: tuple[tuple[bool, bool], ...]
    """Per band: has a mask shared by all bands, has one of its own."""
    numbers: tuple[int, ...]
    """Of the bands that `metadata` describes, from 1."""
    alpha: tuple[int, ...]
    """Numbers of the alpha bands."""
    alpha_masks: bool
    """Whether GDAL makes the mask of all bands of an alpha band."""
    unplaced: str | None
    """What a user should know of a georeference that is not used."""
    packing: Packing
    """What a NetCDF file says of missing values, of which GDAL knows one."""
    told: tuple[str, ...]
    """What a user should know of it, and of rows that are not read in the order of the file."""


def open_raster_scene(
    paths: Sequence[str],
    *,
    bad_bands: Sequence[int | str] = (),
    scale: float | str = "auto",
    nodata: float | None = None,
    grid: str | float = "finest",
    lists: BandLists | None = None,
) -> RasterScene:
    """Open a scene from its metadata alone.

    Parameters
    ----------
    paths
        One raster of any number of bands, or several of one band (and an alpha band, which masks it); of
        several grids they are brought onto one.
    bad_bands
        Bands to leave out besides those that the metadata marks; see `parse_bad_bands`.
    scale
        Factor from stored to physical values, or "auto" for scale and offset of the metadata.
    nodata
        Stored value that marks missing pixels besides that of the metadata.
    grid
        The grid of several bands: "finest" or "coarsest" of theirs, or the side of a pixel in metres.
    lists
        What arrays along the bands of the one raster say of them.

    Raises
    ------
    SceneError
        A file cannot be used, the files do not lie in one place, or no band is left.
    """
    opened = [_inspect(path, lists) for path in paths]
    if len(opened) > 1:
        opened = [_of_one_band(item) for item in opened]
        onto = _choose_grid(opened, grid)
    else:
        onto = opened[0].grid
    count = sum(len(item.metadata.good) for item in opened)
    wavelength = _joined(opened, "wavelength")
    bad = parse_bad_bands(bad_bands, count, wavelength)
    marked = [flag for item in opened for flag in item.metadata.good]
    good = tuple(flag and index not in bad for index, flag in enumerate(marked))
    check_some_band(good, ", ".join(paths[:2]))
    first, parts = 0, []
    for item in opened:
        last = first + len(item.metadata.good)
        if any(good[first:last]):
            parts.append(_make_part(item, good[first:last], scale, nodata, onto))
        first = last
    names = tuple(name for item in opened for name in item.metadata.names)
    unplaced = [item.unplaced for item in opened if item.unplaced is not None]
    told = list(dict.fromkeys(text for item in opened for text in item.told))
    ignored = [f"{Path(item.path).name}: {note}" for item in opened for note in item.metadata.notes]
    return RasterScene(
        grid=onto,
        bands=Bands(
            good,
            wavelength,
            _joined(opened, "fwhm"),
            names if any(names) else None,
            _colors(opened),
        ),
        files=tuple(dict.fromkeys(name for item in opened for name in item.files)),
        row_step=max(sensible_row_step(item.blocks[0], item.grid.height) for item in opened),
        parts=tuple(parts),
        notes=(
            *_note_grid(opened, onto),
            *_note_alpha(opened),
            *unplaced[:1],
            *told[:_TOLD],
            *ignored[:_TOLD],
        ),
        alpha=opened[0].alpha if len(opened) == 1 else (),
    )


def _inspect(path: str, lists: BandLists | None) -> _Opened:
    check_exists(path)
    with open_raster(path) as dataset:
        if not dataset.count:
            raise SceneError(
                f"{path}: has no bands of its own, only subdatasets or nothing. "
                "Export the wanted one first: gdal_translate SUBDATASET OUT.tif"
            )
        for dtype in dataset.dtypes:
            if np.dtype(dtype).kind not in "uif":
                raise SceneError(
                    f"{path}: its numbers are of type {dtype}; whole and real numbers can be used. "
                    "Convert it, for example: gdal_translate -ot Float32 IN OUT"
                )
        check_axes(dataset, path)
        flags = [set(band) for band in dataset.mask_flag_enums]
        metadata = read_band_metadata(dataset, lists)
        is_netcdf = dataset.driver == "netCDF"
        packing, told = _told_by_names(path) if is_netcdf else (Packing(), ())
        if packing.limits and None in metadata.nodata and all(map(math.isfinite, packing.limits)):
            raise SceneError(
                f"{path}: has a valid range, {packing.limits[0]:g} to {packing.limits[1]:g}, and no "
                "_FillValue: GDAL reads values beyond the range as 0. Give it a _FillValue, or remove "
                "valid_range."
            )
        return _Opened(
            path=path,
            grid=read_grid(dataset, path),
            files=dataset_files(dataset, path),
            blocks=block_sizes(dataset),
            metadata=metadata,
            dtype=np.result_type(*dataset.dtypes).name,
            masked=tuple(
                (
                    MaskFlags.per_dataset in band,
                    not band & {MaskFlags.per_dataset, MaskFlags.nodata, MaskFlags.all_valid},
                )
                for band in flags
            ),
            numbers=tuple(range(1, dataset.count + 1)),
            alpha=tuple(n for n, color in enumerate(metadata.colors, 1) if color == "alpha"),
            alpha_masks=any(MaskFlags.alpha in band for band in flags),
            unplaced=note_unplaced(dataset, path),
            packing=packing,
            told=told,
        )


def _told_by_names(path: str) -> tuple[Packing, tuple[str, ...]]:
    """Return what the numbers of a NetCDF file stand for, and say if GDAL begins with its last row."""
    array, known = named_array(path)
    if array is None:
        return Packing(), ()
    packing = packing_of(path, array)
    told = (
        f"{Path(source_file(path)).name}: its first row lies in the south, and is read last: arrays of "
        "labels or of a mask count rows from the north"
    )
    return packing, ((told,) * rows_rise(array, known)) + packing.told()


def _of_one_band(item: _Opened) -> _Opened:
    """Return one file of a list: its only band, which an alpha band masks.

    Raises
    ------
    SceneError
        It has several.
    """
    places = [number - 1 for number in item.numbers if number not in item.alpha]
    if len(places) != 1:
        raise SceneError(
            f"{item.path}: has {len(places)} bands; in a list each file has one. "
            "Give a file of many bands alone, or split it with gdal_translate -b."
        )
    return replace(
        item,
        metadata=item.metadata.of_bands(places),
        masked=tuple(item.masked[place] for place in places),
        numbers=tuple(item.numbers[place] for place in places),
    )


def _make_part(
    item: _Opened, good: Sequence[bool], scale: float | str, nodata: float | None, onto: Grid
) -> RasterPart:
    chosen = [index for index, flag in enumerate(good) if flag]
    metadata = item.metadata
    moved = not is_one_grid([item.grid, onto])
    automatic = isinstance(scale, str)
    shared = [item.numbers[index] for index in chosen if item.masked[index][0]]
    own = [item.numbers[index] for index in chosen if item.masked[index][1]]
    return RasterPart(
        path=item.path,
        bands=tuple(item.numbers[index] for index in chosen),
        calibration=calibrate(
            [metadata.scale[index] if automatic else float(scale) for index in chosen],
            [metadata.offset[index] if automatic else 0.0 for index in chosen],
            [(metadata.nodata[index], nodata, *item.packing.nodata) for index in chosen],
            item.packing.limits,
        ),
        mask_bands=(*shared[:1], *own),
        dtype=resampled_type(item.grid, onto, item.dtype) if moved else item.dtype,
        grid=item.grid if moved else None,
        onto=onto if moved else None,
        nodata=marks_of((nodata, metadata.nodata[chosen[0]]), item.dtype) if moved else (),
        chunk_bytes=item.blocks[1],
        row_bytes=0 if moved else item.blocks[2],
        alpha_bands=() if item.alpha_masks else item.alpha,
    )


def _colors(opened: Sequence[_Opened]) -> tuple[int, int, int] | None:
    """Return the indices of the first red, green and blue band; None where there are not all three."""
    named = [color for item in opened for color in item.metadata.colors]
    if not {"red", "green", "blue"} <= {*named}:
        return None
    return named.index("red"), named.index("green"), named.index("blue")


def _joined(opened: Sequence[_Opened], name: str) -> tuple[float, ...] | None:
    """One attribute of the bands of all files: NaN where a file says nothing, None where all do."""
    values: list[float] = []
    for item in opened:
        known: tuple[float, ...] | None = getattr(item.metadata, name)
        values += known or (math.nan,) * len(item.metadata.good)
    return tuple(values) if any(math.isfinite(value) for value in values) else None


def _choose_grid(opened: Sequence[_Opened], wanted: str | float) -> Grid:
    """Return the grid of bands in files of their own."""
    grids = [item.grid for item in opened]
    if isinstance(wanted, str):
        if is_one_grid(grids):
            return grids[0]
        _check_alike(opened)
    return common_grid(grids, wanted, [item.path for item in opened])


def _check_alike(opened: Sequence[_Opened]) -> None:
    """Refuse bands of one resolution on several grids: a shift is a mistake more often than meant."""
    for place, item in enumerate(opened):
        for reference in opened[:place]:
            if not _same_pixels(reference.grid, item.grid):
                continue
            for what, one, other, same in (
                ("CRS", reference.grid.crs_wkt, item.grid.crs_wkt, same_crs),
                ("size (rows, columns)", _size(reference), _size(item), same_size),
                ("transform", reference.grid.transform, item.grid.transform, same_transform),
            ):
                if not same(reference.grid, item.grid):
                    raise SceneError(
                        f"{reference.path} and {item.path} do not share a grid: {what} is {one} against "
                        f"{other}. Bring them onto one grid first, for example with gdalwarp; bands of "
                        "several resolutions may stay as they are."
                    )


def _same_pixels(one: Grid, other: Grid) -> bool:
    """Return whether pixels have one size, or are not known to have several."""
    if one.transform is None or other.transform is None or not same_crs(one, other):
        return True
    return math.isclose(cell_size(one), cell_size(other), rel_tol=1e-6)


def _size(item: _Opened) -> tuple[int, int]:
    return item.grid.height, item.grid.width


def _note_grid(opened: Sequence[_Opened], onto: Grid) -> tuple[str, ...]:
    """Say onto which grid bands of several were brought."""
    if is_one_grid([*(item.grid for item in opened), onto]):
        return ()
    sides = sorted({round(cell_size(item.grid), 6) for item in opened})
    return (note_resampled(sides, onto),)


def _note_alpha(opened: Sequence[_Opened]) -> tuple[str, ...]:
    """Say how many files of a list have an alpha band."""
    count = sum(bool(item.alpha) for item in opened)
    if len(opened) == 1 or not count:
        return ()
    return (f"{count} of {len(opened)} files have an alpha band: it marks missing pixels",)

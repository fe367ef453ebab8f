"""Single-band sources on the scene's grid: what masks and labels are read from."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from rasterio.crs import CRS
from rasterio.enums import Resampling
from rasterio.transform import Affine
from rasterio.vrt import WarpedVRT
from rasterio.windows import Window

from eigenscape.errors import SceneError
from eigenscape.scenes.files.places import check_exists
from eigenscape.scenes.formats.arrays.arrayfiles import ArraySource
from eigenscape.scenes.formats.arrays.arraylists import Variable
from eigenscape.scenes.formats.arrays.variables import find_array
from eigenscape.scenes.formats.named.arrays import rows_rise
from eigenscape.scenes.formats.rasters.containers import check_upright, named_array
from eigenscape.scenes.formats.rasters.rasterfiles import dataset_files, open_raster, read_grid
from eigenscape.scenes.grids import (
    extent,
    same_crs,
    same_extent,
    same_size,
    same_transform,
    turned,
)
from eigenscape.scenes.types import Grid

_EXACT = 1e-6
"""Error in pixels of the coordinates that GDAL interpolates between transformed ones.

Its default, 1/8, moves labels across edges, and differently for every window. It refuses 0."""


class Plane(Protocol):
    """Numbers on the grid of a scene; small, and pickles."""

    @property
    def files(self) -> tuple[str, ...]:
        """Every file it is read from."""
        ...

    def rows(self, start: int, stop: int) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        """Read rows start ... stop-1 as stored, and where they are given (not nodata, not NaN)."""
        ...


@dataclass(frozen=True)
class ArrayPlane:
    """A two-dimensional array, an image of one band, or one list of numbers for a scene one pixel wide.

    Attributes
    ----------
    source
        The array.
    lying
        Whether it is the list as one row, as MATLAB files keep lists, not as one column.
    """

    source: ArraySource
    lying: bool = False

    @property
    def files(self) -> tuple[str, ...]:
        """The file, or the directory of a zarr store."""
        return self.source.files

    def rows(self, start: int, stop: int) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        """Read rows start ... stop-1 and where they are not NaN, nor missing in the store."""
        if self.lying:
            stored = self.source.rows(0, 1)[0, start:stop, np.newaxis]
            there = self.source.given(0, 1)
            there = None if there is None else there[:, start:stop].T
        else:
            stored = self.source.rows(start, stop).reshape(stop - start, -1)
            there = self.source.given(start, stop)
        given = ~np.isnan(stored)
        return stored, given if there is None else given & there


@dataclass(frozen=True)
class RasterPlane:
    """The one band of a raster.

    Attributes
    ----------
    path
        The raster.
    files
        It and its side-cars.
    warp_to
        Grids to bring it onto by nearest neighbour, window by window; none if it lies there. Several are the
        same one at longitudes a whole turn apart: each pixel takes what any of them has, but for 0.
    reverse
        Whether GDAL reads its rows in reverse of the file, and the scene, which lies nowhere, has the order
        of the file.
    """

    path: str
    files: tuple[str, ...]
    warp_to: tuple[Grid, ...] = ()
    reverse: bool = False

    def rows(self, start: int, stop: int) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        """Read rows start ... stop-1 and where they are neither nodata nor NaN."""
        with open_raster(self.path) as dataset:
            if self.reverse:
                first = dataset.height - stop
                stored, given = _read(dataset, Window(0, first, dataset.width, stop - start))
                return stored[::-1], given[::-1]
            if not self.warp_to:
                return _read(dataset, Window(0, start, dataset.width, stop - start))
            stored, given = _read_on(dataset, self.warp_to[0], start, stop)
            for grid in self.warp_to[1:]:
                values, there = _read_on(dataset, grid, start, stop)
                # Beyond a raster without nodata GDAL reads 0 as given.
                there &= values != 0
                stored[there] = values[there]
                given |= there
            return stored, given


def open_plane(path: str, scene: Grid, *, key: str) -> RasterPlane:
    """Open the one band of a raster that lies on the scene's own grid.

    Raises
    ------
    SceneError
        It cannot be read, has several bands or another size, or lies elsewhere.
    """
    grid, files = inspect_plane(path, key=key)
    if not same_size(grid, scene):
        if grid.transform is not None and scene.transform is not None:
            raise SceneError(
                f"{path}: {key} has the size {grid.height} x {grid.width}, the scene {scene.height} x "
                f"{scene.width} (rows x columns): it lies on another grid. Bring it onto the scene's grid, "
                "for example with gdalwarp."
            )
        raise wrong_size(path, (grid.height, grid.width), scene, key=key)
    if lies_on(grid, scene):
        return RasterPlane(path, files, reverse=is_reversed(path, grid, scene))
    if crs_agree(grid, scene):
        for near in turned(scene, extent(grid)):
            if same_extent(grid, near):
                # The rows of one run north, those of the other south.
                return RasterPlane(path, files, warp_to=(replace(near, crs_wkt=grid.crs_wkt),))
    raise lies_elsewhere(path, grid, scene, key=key)


def lies_on(grid: Grid, scene: Grid) -> bool:
    """Return whether pixels lie on as many of a scene, or one of the two lies nowhere."""
    if grid.transform is None or scene.transform is None:
        # Nothing but the size can be compared.
        return True
    return crs_agree(grid, scene) and any(
        same_transform(grid, near) for near in turned(scene, extent(grid))
    )


def is_reversed(path: str, grid: Grid, scene: Grid) -> bool:
    """Return whether GDAL reads the rows of a NetCDF file in reverse, and the scene has no place.

    Without coordinates GDAL reads them as they are stored.
    """
    if grid.transform is None or scene.transform is not None:
        return False
    array, known = named_array(path)
    return array is not None and rows_rise(array, known)


def inspect_plane(path: str, *, key: str) -> tuple[Grid, tuple[str, ...]]:
    """Return the grid and the files of a raster of one band of real numbers.

    Raises
    ------
    SceneError
        It cannot be read, has several bands or complex numbers, or is columns x rows.
    """
    check_exists(path)
    with open_raster(path) as dataset:
        if dataset.count != 1:
            raise SceneError(
                f"{path}: {key} has {dataset.count} bands; one is wanted. "
                "Take it out first: gdal_translate -b 1 IN OUT"
            )
        if np.dtype(dataset.dtypes[0]).kind not in "uif":
            raise SceneError(f"{path}: {key} holds numbers of type {dataset.dtypes[0]}, not whole.")
        found = read_grid(dataset, path), dataset_files(dataset, path)
    array, known = named_array(path)
    if array is not None:
        check_upright(path, array, known, key=key)
    return found


def find_plane(path: str, variable: str | None, scene: Grid, *, key: str) -> ArrayPlane:
    """Find the two-dimensional array of the scene's size in an array file.

    A third axis of length 1 is left out. For a scene of n rows and one column, a list of n numbers will do.

    Raises
    ------
    SceneError
        It cannot be read, there is not exactly one candidate, or the size is another.
    """
    size = (scene.height, scene.width)
    lists = ((scene.height,), (1, scene.height)) if scene.width == 1 else ()
    wanted: tuple[tuple[int, ...], ...] = (size, *lists)

    def pick(known: Mapping[str, Variable]) -> list[str]:
        sized = [name for name, item in known.items() if item.shape in wanted]
        sized = sized or [name for name, item in known.items() if item.shape == (*size, 1)]
        whole = [name for name in sized if known[name].dtype.kind in "ui"]
        # MATLAB stores whole numbers as double more often than not.
        return whole if len(whole) == 1 else sized

    source = find_array(path, variable, pick, key=f"{key}_variable", wanted="of the scene's size")
    if source.shape not in (*wanted, (*size, 1)):
        raise wrong_size(path, source.shape, scene, key=key)
    if source.format == "zarr" and scene.transform is not None:
        from eigenscape.scenes.formats.arrays.arrayfiles import local_path, reading
        from eigenscape.scenes.formats.arrays.zarrstores import named_arrays
        from eigenscape.scenes.formats.named.places import place_image

        with reading(path):
            known = named_arrays(local_path(path))
            grid, _ = place_image(path, known[source.variable or ""], known, Grid(*size))
        if not lies_on(grid, scene):
            raise lies_elsewhere(path, grid, scene, key=key)
    return ArrayPlane(source, lying=source.shape[0] != scene.height)


def wrong_size(path: str, shape: tuple[int, ...], scene: Grid, *, key: str) -> SceneError:
    """Return the error for a mask or labels of another size than the scene."""
    size = f"{path}: {key} has the size {' x '.join(map(str, shape))}"
    if scene.is_table:
        image = len(shape) == 2 and min(shape) > 1
        return SceneError(
            f"{size}, and the scene is a table of {scene.height} samples. Give one number for each: "
            f"{scene.height} of them, or {scene.height} x 1."
            + (' Of an image of one band set scene.layout = "image".' if image else "")
        )
    axes = ""
    if scene.transform is None and len(shape) == 2:
        if shape[0] == scene.width != shape[1]:
            axes = (
                " An array is read as rows x columns x bands: write one of bands x rows x columns as "
                "numpy.moveaxis(cube, 0, -1)."
            )
        elif shape[1] == scene.height != shape[0]:
            axes = (
                " A cube in an HDF5 file whose axes have no names is read as bands x rows x columns: write "
                "one of rows x columns x bands as numpy.moveaxis(cube, -1, 0)."
            )
    return SceneError(
        f"{size}, the scene {scene.height} x {scene.width} (rows x columns), and their relative position "
        f"is unknown. Give it on the scene's own grid.{axes}"
    )


def lies_elsewhere(path: str, grid: Grid, scene: Grid, *, key: str) -> SceneError:
    """Return the error for a mask or labels of the size of the scene that lie on another grid."""
    differs = f"transform {grid.transform} against {scene.transform}"
    if not crs_agree(grid, scene):
        names = (CRS.from_wkt(one.crs_wkt).to_string() for one in (grid, scene))
        differs = "coordinate system {} against {}".format(*names)
    return SceneError(
        f"{path}: {key} has the size of the scene but lies elsewhere: {differs}. Bring it onto the scene's "
        "grid, for example with gdalwarp."
    )


def crs_agree(one: Grid, other: Grid) -> bool:
    """Return whether two grids have the same coordinate reference system, or one has none."""
    return one.crs_wkt is None or other.crs_wkt is None or same_crs(one, other)


def _read_on(
    dataset: Any, grid: Grid, start: int, stop: int
) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Read rows start ... stop-1 of a grid that the raster is brought onto."""
    assert grid.transform is not None
    with WarpedVRT(
        dataset,
        crs=None if grid.crs_wkt is None else CRS.from_wkt(grid.crs_wkt),
        transform=Affine(*grid.transform),
        height=grid.height,
        width=grid.width,
        resampling=Resampling.nearest,
        tolerance=_EXACT,
    ) as warped:
        return _read(warped, Window(0, start, grid.width, stop - start))


def _read(dataset: Any, window: Window) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    stored: NDArray[Any] = dataset.read(1, window=window)
    given = (dataset.read_masks(1, window=window) != 0) & ~np.isnan(stored)
    return stored, given

"""Bands of the rasters of a product through GDAL, on their own grid or brought onto another."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rasterio.windows import Window

from eigenscape.errors import SceneError
from eigenscape.scenes.files.places import check_exists
from eigenscape.scenes.formats.rasters.onegrid import common_grid, onto_grid, resampled_type
from eigenscape.scenes.formats.rasters.pixels import marks_of, sensible_row_step
from eigenscape.scenes.formats.rasters.rasterfiles import block_sizes, open_raster, read_grid
from eigenscape.scenes.types import Grid

FORMATS = ("GTiff", "JP2OpenJPEG", "JP2ECW", "JP2KAK", "JP2MrSID", "ENVI")
"""GDAL's formats in which products have their rasters."""

_MOST_BLOCK = 2**30


@dataclass(frozen=True)
class RasterBands:
    """A raster of a product; see `BandSource`.

    Attributes
    ----------
    address
        What GDAL opens: a file, or a member of an archive.
    files
        The file on disk.
    grid
        Where its pixels are, as stored.
    count
        Number of its bands.
    dtype
        Name of the type of the numbers that are read.
    row_step
        Rows of a block.
    chunk_bytes, row_bytes
        Bytes of a block, and of all blocks of all bands in as many rows.
    onto
        Grid onto which it is brought; None where it lies there.
    nodata, besides
        Stored values of missing pixels, its own and that of the job, which resampling leaves out.
    classes
        Whether its numbers are classes or bits: they are not averaged.
    """

    address: str
    files: tuple[str, ...]
    grid: Grid
    count: int
    dtype: str
    row_step: int
    chunk_bytes: int = 0
    row_bytes: int = 0
    onto: Grid | None = None
    nodata: float | None = None
    classes: bool = False
    besides: float | None = None

    @classmethod
    def of(
        cls, address: str, files: tuple[str, ...], *,
        nodata: float | None = None, classes: bool = False,
    ) -> "RasterBands":  # fmt: skip
        """Return a raster by its header.

        Parameters
        ----------
        address, files, classes
            As the attributes.
        nodata
            Stored value of missing pixels; None for what the file itself says.

        Raises
        ------
        SceneError
            It is not there, or damaged.
        """
        for name in files:
            check_exists(name)
        with open_raster(address, FORMATS) as opened:
            kinds = {np.dtype(name).kind for name in opened.dtypes}
            if not opened.count or kinds - set("uif"):
                raise SceneError(f"{address}: is not a raster of whole or real numbers.")
            dtype = np.result_type(*opened.dtypes)
            if nodata is None and not classes and opened.nodata is not None:
                nodata = float(opened.nodata)
            rows, size, row_bytes = block_sizes(opened)
            if size > _MOST_BLOCK:
                raise SceneError(
                    f"{address}: is stored in blocks of {rows:,} rows, {size:,} bytes; {_MOST_BLOCK:,} at "
                    "most are read. The file is damaged, or has to be written in tiles."
                )
            return cls(
                address, files, read_grid(opened, address), opened.count, dtype.name,
                sensible_row_step(rows, opened.height), size, row_bytes, None, nodata, classes,
            )  # fmt: skip

    @property
    def size(self) -> tuple[int, int]:
        """Rows and columns."""
        grid = self.onto or self.grid
        return grid.height, grid.width

    def moved(self, grid: Grid, besides: float | None = None) -> "RasterBands":
        """Return it brought onto a grid: itself where it lies there.

        Parameters
        ----------
        grid
            The new grid.
        besides
            Stored value of missing pixels besides its own.

        Raises
        ------
        SceneError
            It has no place, or lies somewhere else.
        """
        if grid == self.grid:
            return self
        common_grid((grid, self.grid), "finest", ("the other bands", self.address))
        dtype = self.dtype if self.classes else resampled_type(self.grid, grid, self.dtype)
        return RasterBands(
            self.address, self.files, self.grid, self.count, dtype, 1, self.chunk_bytes, 0, grid,
            self.nodata, self.classes, besides,
        )  # fmt: skip

    def read(
        self, start: int, stop: int, bands: tuple[int, ...]
    ) -> tuple[NDArray[Any], NDArray[np.bool_] | None]:
        """Read rows start ... stop-1 of some bands; see `BandSource.read`."""
        numbers = [band + 1 for band in bands]
        window = Window(0, start, self.size[1], stop - start)
        with open_raster(self.address, FORMATS) as opened:
            if (opened.height, opened.width) != (self.grid.height, self.grid.width):
                raise SceneError(f"{self.address}: has changed its size since it was opened.")
            if self.onto is None:
                stored = opened.read(numbers, window=window)
                return stored.transpose(1, 2, 0), None
            marks = marks_of((self.nodata, self.besides), np.result_type(*opened.dtypes).name)
            with onto_grid(
                opened, self.grid, self.onto, nodata=marks, classes=self.classes
            ) as moved:
                stored = moved.read(numbers, window=window)
                given = None if marks else moved.read(moved.count, window=window) != 0
            return stored.transpose(1, 2, 0), given

"""A product that was opened: its bands, what marks its pixels, and the scene that they make."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from eigenscape.errors import SceneError
from eigenscape.scenes.formats.rasters.pixels import Calibration, join_parts
from eigenscape.scenes.types import Bands, Geolocation, Grid


class BandSource(Protocol):
    """Bands in one dataset or raster; small, and pickles."""

    @property
    def size(self) -> tuple[int, int]:
        """Rows and columns."""
        ...

    @property
    def count(self) -> int:
        """Number of bands."""
        ...

    @property
    def dtype(self) -> str:
        """Name of the type of the stored numbers."""
        ...

    @property
    def row_step(self) -> int:
        """Rows per storage block."""
        ...

    @property
    def chunk_bytes(self) -> int:
        """Bytes of a storage block that is read whole."""
        ...

    @property
    def files(self) -> tuple[str, ...]:
        """The files on disk."""
        ...

    def read(
        self, start: int, stop: int, bands: tuple[int, ...]
    ) -> tuple[NDArray[Any], NDArray[np.bool_] | None]:
        """Read rows start ... stop-1 of some bands, counted from 0.

        Returns
        -------
        stored : array, shape (stop - start, columns, len(bands))
            As stored.
        given : array of bool, shape (stop - start, columns), or None
            Where the source reaches; None for everywhere.
        """
        ...


@dataclass(frozen=True)
class Flag:
    """A mark of pixels that a product has, such as its clouds.

    Attributes
    ----------
    name
        One of `eigenscape.job.scene.FLAGS`.
    told
        Where and how it stands in the product, for people: "SCL = 8, 9".
    source
        Where it stands.
    bands
        Of its bands, from 0, those that mark: one is enough.
    values
        Stored values that mark; None for all others than 0.
    bits
        Bits of which one marks, of all its bands or of each; 0 if values do.
    """

    name: str
    told: str
    source: BandSource
    bands: tuple[int, ...] = (0,)
    values: tuple[int, ...] | None = None
    bits: int | tuple[int, ...] = 0

    def marked(self, start: int, stop: int) -> NDArray[np.bool_]:
        """Return which pixels of rows start ... stop-1 are marked, shape (rows, columns)."""
        stored, _ = self.source.read(start, stop, self.bands)
        if self.bits:
            # Of one byte: bytes of all bands would be eight times as many.
            kind = np.uint8 if stored.dtype == np.uint8 else np.int64
            found = (stored.astype(kind, copy=False) & np.array(self.bits, kind)) != 0
        elif self.values is None:
            found = stored != 0
        else:
            found = np.isin(stored, self.values)
        marked: NDArray[np.bool_] = found.any(axis=-1)
        return marked


@dataclass(frozen=True)
class FlagPlane:
    """Pixels that none of some flags marks, as 1; fulfils the `Plane` protocol of masks."""

    flags: tuple[Flag, ...]

    @property
    def files(self) -> tuple[str, ...]:
        """The files of the flags."""
        return tuple(dict.fromkeys(name for flag in self.flags for name in flag.source.files))

    def rows(self, start: int, stop: int) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        """Read rows start ... stop-1: 1 where no flag is set; all of them are given."""
        marked = np.logical_or.reduce([flag.marked(start, stop) for flag in self.flags])
        return (~marked).astype(np.uint8), np.ones(marked.shape, np.bool_)


@dataclass(frozen=True)
class Cube:
    """Bands of a product that lie in one source, and what they mean.

    Attributes
    ----------
    source
        Where they are.
    wavelength, fwhm
        In nanometres, NaN where unknown; one of each for every band of the source.
    names
        Of the bands.
    scale, offset
        value = stored * scale + offset; a number for all bands or one for each.
    fill
        Stored value of missing pixels, or several; None where there is none.
    limits
        Least and greatest stored value that is not missing; None where there are none.
    dropped
        Bands, from 0, that are left out, by the reason.
    order
        Bands in the order in which they stand in the scene; None for that of the source.
    """

    source: BandSource
    wavelength: Sequence[float] | None = None
    fwhm: Sequence[float] | None = None
    names: Sequence[str] | None = None
    scale: float | Sequence[float] = 1.0
    offset: float | Sequence[float] = 0.0
    fill: float | tuple[float, ...] | None = None
    limits: tuple[float, float] | None = None
    dropped: dict[str, tuple[int, ...]] = field(default_factory=dict)
    order: tuple[int, ...] | None = None


@dataclass(frozen=True)
class Contents:
    """What a product holds.

    Attributes
    ----------
    title
        Sensor and level, for people.
    grid
        Where its pixels are; of sensor geometry rows and columns alone.
    cubes
        Its bands, in the order of the scene.
    flags
        Marks of its pixels.
    geolocation
        Of a product in sensor geometry.
    files
        Further files that belong to it: metadata.
    notes
        Further sentences for `plan`.
    empty
        Stored value that *all* bands of a pixel outside of the swath have; None where there is none.
    """

    title: str
    grid: Grid
    cubes: tuple[Cube, ...]
    flags: tuple[Flag, ...] = ()
    geolocation: Geolocation | None = None
    files: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    empty: float | None = None

    @property
    def all_files(self) -> tuple[str, ...]:
        """Every file that it is read from."""
        lookup = self.geolocation
        return tuple(
            dict.fromkeys((
                *(name for cube in self.cubes for name in cube.source.files),
                *(name for flag in self.flags for name in flag.source.files),
                *((lookup.x.path, lookup.y.path) if lookup else ()),
                *self.files,
            ))
        )  # fmt: skip


@dataclass(frozen=True)
class ProductPart:
    """The good bands of one source.

    Attributes
    ----------
    source
        Where they are.
    bands
        From 0, in the order of the scene.
    calibration
        What their stored numbers mean.
    """

    source: BandSource
    bands: tuple[int, ...]
    calibration: Calibration

    @property
    def dtype(self) -> str:
        """Name of the type of the stored numbers."""
        return self.source.dtype

    def read(
        self, start: int, stop: int, width: int
    ) -> tuple[NDArray[Any], NDArray[np.bool_] | None]:
        """Read rows start ... stop-1, as `BandSource.read` does; a scene has `width` columns.

        Raises
        ------
        SceneError
            A file is truncated, damaged or gone, or has changed its size.
        """
        stored, given = self.source.read(start, stop, self.bands)
        shape = (stop - start, width, len(self.bands))
        if stored.shape != shape:
            raise SceneError(
                f"{self.source.files[0]}: its rows {start} to {stop - 1} have the shape "
                f"{stored.shape}, and {shape} was opened: the file has changed. Start again."
            )
        return stored, given


@dataclass(frozen=True)
class ProductScene:
    """A product as a scene; fulfils the `Scene` protocol.

    Attributes
    ----------
    flags
        Marks of its pixels; none of them is left out by `read`, see `eigenscape.scenes.views.masks`.
    geolocation
        Of a product in sensor geometry.
    empty
        As in `Contents`.
    """

    title: str
    grid: Grid
    bands: Bands
    files: tuple[str, ...]
    row_step: int
    parts: tuple[ProductPart, ...]
    flags: tuple[Flag, ...] = ()
    geolocation: Geolocation | None = None
    empty: float | None = None
    notes: tuple[str, ...] = ()

    @property
    def held_bytes(self) -> int:
        """Bytes of the largest storage block, which is read whole."""
        sources = [part.source for part in self.parts] + [flag.source for flag in self.flags]
        return max(source.chunk_bytes for source in sources)

    def read(self, start: int, stop: int) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
        """Read rows start ... stop-1 of the good bands; see `Scene.read`.

        Raises
        ------
        SceneError
            A file is truncated, damaged or gone.
        """
        assert 0 <= start < stop <= self.grid.height
        width = self.grid.width
        parts = ((*part.read(start, stop, width), part.calibration) for part in self.parts)
        return join_parts(parts, (stop - start, width, self.bands.count), self.empty)

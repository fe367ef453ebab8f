"""Strips of rows to a GeoTIFF that every GIS opens, in memory that the height does not change.

The strips may have any height: they are gathered into whole rows of tiles first, because a
compressed tile that is written twice stays in the file twice.

::

    strips -> draft, tiled -> its overviews -> copy: directories first, then overviews, then pixels

The copy is a cloud-optimised GeoTIFF (OGC 21-026): its order can only be kept where all sizes are known.
"""

import contextlib
import errno
import os
import shutil
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import rasterio
import rasterio.shutil
from numpy.typing import DTypeLike, NDArray
from rasterio.control import GroundControlPoint
from rasterio.crs import CRS
from rasterio.enums import Interleaving, Resampling
from rasterio.errors import CRSError, NotGeoreferencedWarning, RasterioError
from rasterio.transform import Affine
from rasterio.windows import Window

from eigenscape.errors import InputError
from eigenscape.export.legends.embedded import class_items, embed_table
from eigenscape.export.sidecar import output_error, replacing, sidecar_path, write_crs
from eigenscape.export.strips import cut_blocks
from eigenscape.scenes.formats.rasters.handles import bounded_gdal
from eigenscape.scenes.types import Grid, Legend, Ties

Layout = Literal["tiles", "strips"]

TILE = 256
"""Side of a tile in pixels; smaller scenes get the smallest multiple of 16 that holds them."""

OVERVIEWS_FROM = 512
"""Scenes whose larger side exceeds this many pixels get overviews, unless one pixel wide."""

_STRIP_BYTES = 2**18
_WRITE_BYTES = 2**22
# A colour table and the directory of a large file.
_ROOM_BYTES = 2**21


def write_raster(
    path: str | Path,
    grid: Grid,
    rows: Iterable[tuple[int, NDArray[Any]]],
    *,
    count: int = 1,
    dtype: DTypeLike,
    nodata: float | None,
    band_names: Sequence[str] = (),
    tags: Mapping[str, str] | None = None,
    band_tags: Sequence[Mapping[str, str]] = (),
    legend: Legend | None = None,
    scale: float | None = None,
    layout: Layout = "tiles",
    threads: int = 1,
) -> None:
    """Stream strips of rows into a GeoTIFF on a grid.

    The file appears under its name only when it is complete, on disk and checked: every tile lies
    within the file and the last row of tiles reads back as it was written.

    Parameters
    ----------
    path
        The file to write; an older one is replaced, its PAM sidecar goes with it.
    grid
        Height, width, coordinate system and transform. Rotated and south-up grids stay so.
    rows
        Pairs of the first row and an array of shape (rows, width) or (count, rows, width), from the
        top to the bottom without gaps.
    count
        Number of bands.
    dtype
        Type of the file. What the strips hold must be convertible within its kind.
    nodata
        Value of missing pixels, or None.
    band_names
        One description per band, or none at all.
    tags
        Metadata of the file.
    band_tags
        Metadata of each band, or none at all.
    legend
        Names and colours of the values of one band of uint8 or uint16. 0 is transparent unless it has a
        colour.
    scale
        Factor from stored to physical values, for all bands.
    layout
        "tiles": cloud-optimised, compressed tiles, bands one after the other, overviews of large
        scenes (of classes the most frequent one); for what is looked at. "strips": pixels with all their
        bands, not compressed; for what is computed on in windows of whole rows.
    threads
        Number of threads that compress tiles; the file is the same for any number.

    Raises
    ------
    ValueError
        The strips do not make up the grid, or do not fit the type; band names or colours that
        cannot be kept.
    InputError
        The coordinate system is no WKT.
    OutputError
        The file cannot be written, or not completely.
    """
    path, kind = Path(path), np.dtype(dtype)
    _check_bands(count, kind, band_names, band_tags, legend)
    items = class_items(legend) if legend is not None else {}
    profile = _profile(grid, count, kind, nodata, layout)
    shape = (count, grid.height, grid.width)
    step = _rows_per_write(profile, shape, kind)
    with quiet(threads), replacing(path) as temporary, _draft(temporary, layout) as draft:
        # Only GDAL's own calls are translated: an error of `rows` is not one of this file.
        with _translated(path):
            _check_room(draft)
            target = rasterio.open(draft, "w", **profile)
        try:
            with _translated(path):
                _write_metadata(target, band_names, tags, band_tags, items, scale, legend)
                _write_ties(target, grid.ties)
            last = np.empty((count, 0, grid.width), kind)
            for start, block in cut_blocks(rows, shape, kind, step):
                with _translated(path):
                    _check_room(draft)
                    window = Window(0, start, grid.width, block.shape[1])
                    target.write(block, window=window)
                last = block
            with _translated(path):
                _check_room(draft)
                target.close()
        except BaseException:
            # GDAL still tries to write what it holds, and libtiff may never stop trying on a full
            # disk: make room for it first. What it then says is no news.
            with contextlib.suppress(OSError, RasterioError):
                os.truncate(draft, 0)
                target.close()
            raise
        with _translated(path):
            if layout == "tiles":
                _build_overviews(draft, grid, "average" if kind.kind == "f" else "mode")
                _check_written(draft, last)
                _copy_in_order(draft, temporary, profile)
            if items:
                embed_table(temporary, items)
            _check_written(temporary, last)
            if "crs" in profile:
                _keep_crs(temporary, profile["crs"])


@contextlib.contextmanager
def _draft(temporary: Path, layout: Layout) -> Iterator[Path]:
    """Yield the file to write first, which goes in the end; strips need no other order."""
    if layout == "strips":
        yield temporary
        return
    draft = temporary.with_name(f"{temporary.stem}.draft{temporary.suffix}")
    try:
        yield draft
    finally:
        for leftover in (draft, sidecar_path(draft)):
            with contextlib.suppress(OSError):
                leftover.unlink(missing_ok=True)


def _copy_in_order(draft: Path, target: Path, profile: Mapping[str, Any]) -> None:
    """Copy a GeoTIFF with its overviews: all directories first, then the pixels of the coarsest."""
    _check_room(target, draft.stat().st_size)
    kept = ("tiled", "blockxsize", "blockysize", "interleave", "compress", "predictor", "BIGTIFF")
    rasterio.shutil.copy(
        draft,
        target,
        driver="GTiff",
        copy_src_overviews=True,
        **{key: profile[key] for key in kept},
    )


def _check_bands(
    count: int,
    kind: np.dtype[Any],
    band_names: Sequence[str],
    band_tags: Sequence[Mapping[str, str]],
    legend: Legend | None,
) -> None:
    for what, values in (("band names", band_names), ("band tags", band_tags)):
        if len(values) not in (0, count):
            raise ValueError(f"{len(values)} {what} for {count} bands")
    if legend is None:
        return
    if count != 1 or kind not in (np.uint8, np.uint16):
        raise ValueError(f"a colour table needs one band of uint8 or uint16, not {count} of {kind}")
    most = np.iinfo(kind).max
    if any(not 0 <= value <= most for value in (*legend.names, *legend.colors)):
        raise ValueError(f"the colour table has values outside 0 ... {most} of {kind}")


def _profile(
    grid: Grid, count: int, kind: np.dtype[Any], nodata: float | None, layout: Layout
) -> dict[str, Any]:
    profile: dict[str, Any] = {
        "driver": "GTiff",
        "height": grid.height,
        "width": grid.width,
        "count": count,
        "dtype": kind,
        "nodata": nodata,
        "BIGTIFF": "IF_SAFER",
        **place_profile(grid),
    }
    if layout == "strips":
        step = max(1, min(grid.height, _STRIP_BYTES // (grid.width * count * kind.itemsize)))
        return profile | {"tiled": False, "blockysize": step, "interleave": "pixel"}
    return profile | {
        "tiled": True,
        "blockxsize": min(TILE, -(-grid.width // 16) * 16),
        "blockysize": min(TILE, -(-grid.height // 16) * 16),
        "interleave": "band",
        "compress": "deflate",
        # Differences help where values are smooth; neighbouring class numbers are equal anyway.
        "predictor": 3 if kind.kind == "f" else 1,
    }


def place_profile(grid: Grid) -> dict[str, Any]:
    """Return coordinate system and transform of a grid as rasterio takes them.

    Raises
    ------
    InputError
        The coordinate system is no WKT.
    """
    profile: dict[str, Any] = {}
    if grid.crs_wkt is not None:
        try:
            profile["crs"] = CRS.from_wkt(grid.crs_wkt)
        except CRSError as error:
            raise InputError(
                f"{grid.crs_wkt[:80]!r} is not a coordinate system that GDAL supports ({error}). "
                "Give WKT, or repair the scene's georeference with gdal_edit -a_srs."
            ) from error
    if grid.transform is not None:
        profile["transform"] = Affine(*grid.transform)
    return profile


def _rows_per_write(
    profile: Mapping[str, Any], shape: tuple[int, int, int], kind: np.dtype[Any]
) -> int:
    """Return the rows of one write: one row of tiles, or as many strips as make a few MB."""
    count, _, width = shape
    step: int = profile["blockysize"]
    if profile["tiled"]:
        return step
    return step * max(1, _WRITE_BYTES // (step * width * count * kind.itemsize))


@contextlib.contextmanager
def quiet(threads: int = 1) -> Iterator[None]:
    """Bound GDAL's cache and threads, and say nothing about a grid that has no georeference on purpose."""
    threads_of_gdal = rasterio.Env(GDAL_NUM_THREADS=str(threads))
    with bounded_gdal(), threads_of_gdal, warnings.catch_warnings():
        warnings.simplefilter("ignore", NotGeoreferencedWarning)
        yield


def _check_room(path: Path, more: int = 0) -> None:
    """Raise OSError before a full disk can catch GDAL half-way through its own tables."""
    if shutil.disk_usage(path.parent).free < _ROOM_BYTES + more:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@contextlib.contextmanager
def _translated(path: Path) -> Iterator[None]:
    """Turn what GDAL and the system say about a failed write into an `OutputError`."""
    try:
        yield
    except (OSError, RasterioError) as error:
        raise output_error(path, error) from error


def _write_metadata(
    target: Any,
    band_names: Sequence[str],
    tags: Mapping[str, str] | None,
    band_tags: Sequence[Mapping[str, str]],
    items: Mapping[str, str],
    scale: float | None,
    legend: Legend | None,
) -> None:
    # Before any pixel: GDAL would write the directory a second time at the end of the file.
    if legend is not None:
        table = {value: (*color, 255) for value, color in legend.colors.items()}
        target.write_colormap(1, {0: (0, 0, 0, 0)} | table)
    if band_names:
        target.descriptions = tuple(band_names)
    target.update_tags(**(tags or {}))
    for number, values in enumerate(band_tags, start=1):
        target.update_tags(number, **values)
    if items:
        target.update_tags(1, **items)
    if scale is not None:
        target.scales = (scale,) * target.count


def _write_ties(target: Any, ties: Ties | None) -> None:
    """Write the ground control points and coefficients of a scene that lies on no map."""
    if ties is None:
        return
    if ties.points:
        points = [
            GroundControlPoint(row, column, x, y, z, id=str(number))
            for number, (row, column, x, y, z) in enumerate(ties.points, start=1)
        ]
        target.gcps = (points, CRS.from_wkt(ties.crs_wkt) if ties.crs_wkt else CRS())
    if ties.rpc:
        target.update_tags(ns="RPC", **dict(ties.rpc))


def _build_overviews(path: Path, grid: Grid, resampling: str) -> None:
    side = max(grid.height, grid.width)
    # A line is no picture to zoom out of, and its overviews would take most of the time.
    if side <= OVERVIEWS_FROM or 1 in (grid.height, grid.width):
        return
    _check_room(path, path.stat().st_size // 2)
    factors = [2**level for level in range(1, side.bit_length()) if side >> level >= TILE]
    options = {"GDAL_TIFF_OVR_BLOCKSIZE": str(TILE)}
    with rasterio.Env(**options), rasterio.open(path, "r+") as target:
        target.build_overviews(factors, Resampling[resampling])


def _check_written(path: Path, last: NDArray[Any]) -> None:
    """Raise OSError unless the whole file is there: libtiff may lose a failed write at closing."""
    size = path.stat().st_size
    with rasterio.open(path) as source:
        tall, wide = source.block_shapes[0]
        bands = source.indexes if source.interleaving != Interleaving.pixel else source.indexes[:1]
        for band in bands:
            for row in range(-(-source.height // tall)):
                for column in range(-(-source.width // wide)):
                    where = f"_{column}_{row}"
                    start = source.get_tag_item("BLOCK_OFFSET" + where, "TIFF", bidx=band)
                    length = source.get_tag_item("BLOCK_SIZE" + where, "TIFF", bidx=band)
                    if not start or not length or int(start) + int(length) > size:
                        raise OSError(f"block {column}, {row} of band {band} is not in the file")
        window = Window(0, source.height - last.shape[1], source.width, last.shape[1])
        if source.read(window=window).tobytes() != last.tobytes():
            raise OSError("the last rows do not read back as they were written")


def _keep_crs(path: Path, crs: CRS) -> None:
    """Put a coordinate system that GeoTIFF keys cannot hold where GDAL looks first."""
    with rasterio.open(path) as source:
        kept = source.crs == crs
    if not kept:
        # In this version of WKT a system reads back as itself; in the older ones not always.
        write_crs(path, crs.to_wkt(version="WKT2_2019"))

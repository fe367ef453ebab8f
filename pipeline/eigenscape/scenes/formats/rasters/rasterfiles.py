"""Raster files through GDAL: quiet, and with errors that a stranger understands."""

import logging
import os
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element

import numpy as np
import rasterio
from rasterio._env import del_gdal_config, get_gdal_config, set_gdal_config
from rasterio._err import CPLE_BaseError
from rasterio.crs import CRS
from rasterio.enums import Interleaving
from rasterio.errors import CRSError, NotGeoreferencedWarning, RasterioError

from eigenscape.errors import SceneError
from eigenscape.scenes.files.outside import (
    DRIVERS,
    SETTINGS,
    check_sources,
    is_address,
    is_archived,
    is_contained,
)
from eigenscape.scenes.files.places import told_packed
from eigenscape.scenes.formats.rasters.handles import opened
from eigenscape.scenes.formats.xmlfiles import MOST_BYTES, parse_xml
from eigenscape.scenes.types import Grid, Ties

IDENTITY = (1.0, 0.0, 0.0, 0.0, 1.0, 0.0)

_BOTTOM_UP = "GDAL_NETCDF_BOTTOMUP"
_NETCDF = threading.RLock()
"""Held by the thread that uses a NetCDF or HDF5 file.

The order of rows is a setting of the whole process, looked at when a file is opened. And GDAL holds a lock of
its own in these drivers, with which it waits for Python to take a message, while another thread of Python may
wait for that lock.
"""
_NETCDF_ENDINGS = (".nc", ".nc4", ".cdf", ".h5", ".he5", ".hdf5", ".hdf")
_NETCDF_MARKS = {b"CDF\x01", b"CDF\x02", b"CDF\x05", b"\x89HDF"}


@contextmanager
def open_raster(path: str, drivers: tuple[str, ...] = DRIVERS) -> Iterator[Any]:
    """Open a raster for reading; every error of GDAL inside the context becomes a `SceneError`.

    Parameters
    ----------
    path
        A file or an address.
    drivers
        Formats of GDAL among which it must be.

    Yields
    ------
    rasterio.DatasetReader
        Closed when the context ends.
    """
    expect_missing_georeference()
    _expect_log_of_bytes()
    is_open = False
    alone = _NETCDF if _may_be_netcdf(path) else nullcontext()
    try:
        with opened((path, drivers), partial(_opened, path, drivers, alone)) as dataset, alone:
            is_open = True
            yield dataset
    except UnicodeDecodeError as error:
        raise SceneError(
            f"{path}: its header is not in UTF-8 ({error.reason} at byte {error.start}). Convert it, "
            "for example with: iconv -f latin1 -t utf-8 IN > OUT"
        ) from error
    except CRSError as error:
        raise unreadable_crs(path, str(error)) from error
    except (RasterioError, CPLE_BaseError, OSError) as error:
        raise _explain(path, error, is_open) from error


@contextmanager
def _opened(
    path: str, drivers: tuple[str, ...], alone: AbstractContextManager[Any]
) -> Iterator[Any]:
    # The Env also keeps GDAL's own messages off stderr: inside it they go to rasterio's log.
    with rasterio.Env(**SETTINGS):
        with alone, _unknown_crs() as unknown:
            dataset = _open(path, drivers)
        try:
            with alone:
                if unknown and dataset.crs and dataset.crs.wkt.startswith(("LOCAL_CS", "ENGCRS")):
                    raise unreadable_crs(path, unknown[0])
                _check_raw(dataset, path)
            yield dataset
        finally:
            with alone:
                dataset.close()


def block_sizes(dataset: Any) -> tuple[int, int, int]:
    """Return the rows of a block of an open raster, and bytes that are decoded at once.

    Returns
    -------
    rows : int
    block_bytes : int
        Of one block: of all bands where they are interleaved by pixel.
    row_bytes : int
        Of all blocks of all bands in as many rows.
    """
    rows, columns = max(dataset.block_shapes)
    item = int(np.result_type(*dataset.dtypes).itemsize)
    together = dataset.count if dataset.interleaving is Interleaving.pixel else 1
    across = -(-dataset.width // columns)
    return rows, rows * columns * item * together, rows * across * columns * item * dataset.count


def _open(path: str, drivers: tuple[str, ...]) -> Any:
    """Open a raster in one of some formats."""
    if not is_address(path) or drivers != DRIVERS:
        check_sources(path)
        return _by_coordinates(rasterio.DatasetReader(path, driver=drivers))
    # With the credentials that rasterio finds for the address.
    dataset = _by_coordinates(rasterio.open(path))
    kept = dataset.driver in DRIVERS and not (is_archived(path) and dataset.driver == "VRT")
    if kept:
        return dataset
    dataset.close()
    raise SceneError(
        f"{path}: rasters of the format {dataset.driver} are not read from there. Copy or unpack the file, "
        "or convert it: gdal_translate IN OUT.tif"
    )


def _may_be_netcdf(path: str) -> bool:
    if not os.path.isfile(path):
        return is_contained(path) or path.lower().endswith(_NETCDF_ENDINGS)
    try:
        with open(path, "rb") as stream:
            return stream.read(4) in _NETCDF_MARKS
    except OSError:
        return False  # which is told when it is opened


def _by_coordinates(dataset: Any) -> Any:
    """Return a raster, of NetCDF placed by its coordinates x and y, and without these as it is stored.

    Of coordinates without the attributes of CF GDAL makes no transform unless asked to, and takes the rows
    from the bottom up, whatever their order; so it does without coordinates.
    """
    if dataset.driver != "netCDF" or tuple(dataset.transform)[:6] != IDENTITY:
        return dataset
    placed = _open_by_names(dataset)
    if tuple(placed.transform)[:6] != IDENTITY:
        return placed
    before = get_gdal_config(_BOTTOM_UP)
    set_gdal_config(_BOTTOM_UP, "NO")
    try:
        return _open_by_names(placed)
    finally:
        # Of None rasterio makes a text.
        if before is None:
            del_gdal_config(_BOTTOM_UP)
        else:
            set_gdal_config(_BOTTOM_UP, before)


def _open_by_names(dataset: Any) -> Any:
    """Open a NetCDF dataset again, whose coordinates are known by the names x and y too."""
    dataset.close()
    return rasterio.DatasetReader(
        dataset.name, driver=("netCDF",), IGNORE_XY_AXIS_NAME_CHECKS="YES"
    )


@contextmanager
def _unknown_crs() -> Iterator[list[str]]:
    """Collect what PROJ says about codes that it does not know.

    GDAL makes a local system of a GeoTIFF whose EPSG code is unknown, and tells only its log.
    """
    found: list[str] = []

    class Listener(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            message = record.getMessage()
            if "crs not found" in message:
                found.append(message.rpartition(": ")[2])

    listener, log = Listener(logging.WARNING), logging.getLogger("rasterio._env")
    log.addHandler(listener)
    try:
        yield found
    finally:
        log.removeHandler(listener)


class _WithoutLogOfBytes:
    """The hook of before, without messages of GDAL that are not in UTF-8.

    Of these rasterio's log can only make tracebacks.
    """

    def __init__(self, before: "Callable[[sys.UnraisableHookArgs], Any]") -> None:
        self.before = before

    def __call__(self, unraisable: "sys.UnraisableHookArgs") -> None:
        if unraisable.object != "rasterio._env.log_error":
            self.before(unraisable)


def _expect_log_of_bytes() -> None:
    """Leave out messages of GDAL that are not in UTF-8, for the whole process.

    A hook that is put back is not safe while other threads open files; one that stays is.
    """
    if not isinstance(sys.unraisablehook, _WithoutLogOfBytes):
        sys.unraisablehook = _WithoutLogOfBytes(sys.unraisablehook)


def read_grid(dataset: Any, path: str) -> Grid:
    """Return the grid of an open raster, exactly as the file has it.

    Raises
    ------
    SceneError
        The file names a coordinate reference system that GDAL cannot read.
    """
    _check_crs(dataset, path)
    # Adding 0.0 turns the -0.0 that some drivers make of "no rotation" into 0.0.
    transform = tuple(float(value) + 0.0 for value in tuple(dataset.transform)[:6])
    located = transform != IDENTITY
    return Grid(
        height=dataset.height,
        width=dataset.width,
        crs_wkt=str(dataset.crs.to_wkt()) if dataset.crs else None,
        transform=transform if located else None,  # type: ignore[arg-type]  # six values
        ties=None if located else _ties(dataset),
    )


def _ties(dataset: Any) -> Ties | None:
    """Return ground control points and rational polynomial coefficients of a raster."""
    points, crs = dataset.gcps
    rpc = tuple(sorted(dataset.tags(ns="RPC").items()))
    if not points and not rpc:
        return None
    found = tuple((one.row, one.col, one.x, one.y, one.z or 0.0) for one in points)
    return Ties(found, str(crs.to_wkt()) if points and crs else None, rpc)


def dataset_files(dataset: Any, path: str) -> tuple[str, ...]:
    """Return the files of an open raster, side-cars included; local ones as absolute paths."""
    files = {name if is_address(name) else os.path.abspath(name) for name in dataset.files}
    return tuple(sorted(files)) or (path,)


def declared_text(path: str, tag: str) -> Iterator[Element]:
    """Yield the elements `tag` of a raster's XML side-car (.aux.xml), and of itself if a VRT."""
    for name in (f"{path}.aux.xml", path):
        if not name.endswith((".aux.xml", ".vrt")) or not os.path.isfile(name):
            continue
        # GDAL ignores a damaged side-car too. No legend is as large as the limit.
        if os.path.getsize(name) <= MOST_BYTES:
            with suppress(SceneError):
                yield from parse_xml(Path(name).read_bytes(), name).iter(tag)


def unreadable_crs(path: str, text: str) -> SceneError:
    """Return the error for a coordinate reference system that GDAL cannot read."""
    return SceneError(
        f"{path}: its coordinate reference system cannot be read: {text[:200]}. "
        "Set the right one, for example: gdal_edit.py -a_srs EPSG:32633 FILE "
        "(for ENVI, correct 'coordinate system string' in the header)."
    )


def _check_crs(dataset: Any, path: str) -> None:
    """GDAL drops a CRS it cannot parse without a word; the scene would lose its place."""
    declared = [dataset.tags(ns="ENVI").get("coordinate_system_string", "").strip("{} ")]
    if not dataset.crs:
        declared += [element.text or "" for element in declared_text(path, "SRS")]
    for text in filter(None, (text.strip() for text in declared)):
        try:
            CRS.from_user_input(text)
        except CRSError:
            raise unreadable_crs(path, text) from None


def _check_raw(dataset: Any, path: str) -> None:
    """GDAL reads zeros past the end of an ENVI file, and not what its header says of bytes between frames."""
    header = dataset.tags(ns="ENVI")
    for key in ("major_frame_offsets", "minor_frame_offsets"):
        if dataset.driver == "ENVI" and set(header.get(key, "")) - set("{}0, "):
            raise SceneError(
                f"{path}: its header says {key.replace('_', ' ')} = {header[key]}: bytes between the frames, "
                "which are not left out here. Export it from ENVI without them."
            )
    plain = header.get("file_compression", "0").strip() == "0"
    if dataset.driver != "ENVI" or not plain or not os.path.isfile(path):
        return
    item = np.dtype(dataset.dtypes[0]).itemsize
    offset = _header_offset(header, path)
    expected = offset + dataset.height * dataset.width * dataset.count * item
    if (actual := os.path.getsize(path)) < expected:
        raise SceneError(
            f"{path}: the file is truncated: it has {actual} bytes, its header says {expected}. "
            "Copy or download it again."
        )


def _header_offset(header: Mapping[str, str], path: str) -> int:
    text = header.get("header_offset", "0").strip()
    if not text.isdecimal():
        raise SceneError(
            f"{path}: its header says header offset = {text!r}. Give the bytes before the first number, "
            "a whole number from 0 up."
        )
    return int(text)


def _explain(path: str, error: Exception, opened: bool) -> SceneError:
    reason = str(error.__cause__ or error)
    if opened:
        return SceneError(
            f"{path}: cannot be read to its end: the file is truncated or damaged ({reason}). "
            "Copy or download it again."
        )
    if Path(path).is_dir():
        return SceneError(
            f"{path}: is a directory, and not a zarr store. Give the raster file inside it."
        )
    if is_archived(path):
        return SceneError(
            f"{path}: cannot be opened: it is not in the archive, or damaged ({reason}). Download "
            "the archive "
            "again."
        )
    if is_address(path):
        return SceneError(
            f"{path}: cannot be opened ({reason}). Check the address and the network."
        )
    if os.path.isfile(path) and (packed := told_packed(path)) is not None:
        return SceneError(f"{path}: {packed}")
    return SceneError(
        f"{path}: cannot be opened: the format is not supported, or the file is truncated or "
        f"damaged ({reason}). Supported are GDAL's raster files (GeoTIFF, ENVI data file with its .hdr, "
        "VRT ...), no services and databases, .mat, .npy, .npz and zarr; gdalinfo FILE tells whether "
        "GDAL can. Any other format needs an installed package with a reader of it."
    )


def expect_missing_georeference() -> None:
    """Silence rasterio's warning about files without georeference, for the whole process.

    `warnings.catch_warnings` is not safe while other threads open files; a filter that stays is.
    """
    wanted = ("ignore", None, NotGeoreferencedWarning, None, 0)
    if not warnings.filters or warnings.filters[0] != wanted:
        warnings.filterwarnings("ignore", category=NotGeoreferencedWarning)

"""Arrays in zarr stores: with codecs that are known, and which of their chunks the store has."""

import itertools
import os
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenscape.errors import SceneError
from eigenscape.scenes.formats.named.arrays import NamedArray, meant_type

_CODECS = {
    "adler32", "astype", "bitround", "blosc", "bytes", "bz2", "crc32", "crc32c", "delta", "endian",
    "fixedscaleoffset", "fletcher32", "gzip", "jenkins_lookup3", "lz4", "lzma", "packbits",
    "pcodec", "quantize", "sharding_indexed", "shuffle", "transpose", "zfpy", "zlib", "zstd",
}  # fmt: skip
"""Names that stores may ask for. Others are not even tried: numcodecs has one that unpickles."""

_MOST_COUNTED = 100_000


def zarr_arrays(path: str) -> Iterator[tuple[str, Any]]:
    """Yield the arrays of a store with their names, "" where the store is one array."""
    import zarr

    store = zarr.open(path, mode="r")
    if isinstance(store, zarr.Array):
        yield "", store
        return
    for name, item in sorted(store.members(max_depth=None), key=lambda member: member[0]):
        if isinstance(item, zarr.Array):
            yield name, item


def open_zarr(path: str, variable: str | None) -> Any:
    """Open an array of a store for reading.

    Raises
    ------
    SceneError
        Its codecs are none of those that are known.
    """
    import zarr

    store: Any = zarr.open(path, mode="r")
    array = store[variable] if variable else store
    _check_codecs(path, array.metadata.to_dict())
    return array


def named_arrays(path: str) -> dict[str, NamedArray]:
    """Return the arrays of a store with the names of their axes, by their names."""
    return {name: _named(path, name, array) for name, array in zarr_arrays(path)}


def _named(path: str, name: str, array: Any) -> NamedArray:
    attributes = dict(array.attrs)
    axes = getattr(array.metadata, "dimension_names", None) or attributes.get("_ARRAY_DIMENSIONS")
    known = axes is not None and len(axes) == len(array.shape) and None not in axes
    # In zarr 2 xarray has no other place for _FillValue; 0 is what zarr itself writes without one.
    if "_ARRAY_DIMENSIONS" in attributes and array.metadata.zarr_format == 2 and array.fill_value:
        attributes = {"_FillValue": array.fill_value} | attributes
    return NamedArray(
        name, tuple(array.shape), meant_type(np.dtype(array.dtype), attributes),
        tuple(map(str, axes or ())) if known else None, attributes, partial(_load, path, name),
    )  # fmt: skip


def _load(path: str, name: str) -> NDArray[Any]:
    return np.asarray(open_zarr(path, name)[...])


def block_shape(array: Any) -> tuple[int, ...]:
    """Return the shape of what the store keeps in one file: a chunk, or a shard of several."""
    return tuple(getattr(array, "shards", None) or array.chunks)


def given_pixels(
    path: str, variable: str | None, order: tuple[int, ...] | None, start: int, stop: int
) -> NDArray[np.bool_] | None:
    """Return which pixels of some rows have all their chunks in a store; None if all have.

    The second axis are the columns of an image, or the features of a table.

    Parameters
    ----------
    path, variable
        The array.
    order
        Places of rows and columns among its axes; None where they are stored so.
    start, stop
        Rows start ... stop-1.

    Returns
    -------
    array of bool, shape (stop - start, columns), or None
        One column for an array of one axis.
    """
    array = open_zarr(path, variable)
    down, *further = order or range(len(array.shape))
    missing = list(_missing(path, array, down, start, stop))
    if not missing:
        return None
    across = further[0] if further else None
    given = np.ones((stop - start, 1 if across is None else array.shape[across]), np.bool_)
    step = block_shape(array)
    for place in missing:
        first = place[down] * step[down] - start
        rows, columns = slice(max(first, 0), first + step[down]), slice(None)
        if across is not None:
            columns = slice(place[across] * step[across], (place[across] + 1) * step[across])
        given[rows, columns] = False
    return given


def count_missing(path: str, variable: str | None) -> tuple[int, int]:
    """Return how many chunks of an array its store lacks, and how many there should be; 0 of very many."""
    array = open_zarr(path, variable)
    total = int(np.prod([-(-n // m) for n, m in zip(array.shape, block_shape(array), strict=True)]))
    if total > _MOST_COUNTED:
        return 0, total
    return sum(1 for _ in _missing(path, array, 0, 0, array.shape[0])), total


def _missing(path: str, array: Any, down: int, start: int, stop: int) -> Iterator[tuple[int, ...]]:
    """Yield the places of the chunks that some rows, whose axis is `down`, touch and the store lacks."""
    if "://" in path:
        return
    step = block_shape(array)
    folder = os.path.join(path, array.path)
    ranges = [range(-(-n // m)) for n, m in zip(array.shape, step, strict=True)]
    ranges[down] = range(start // step[down], -(-stop // step[down]))
    for place in itertools.product(*ranges):
        if not os.path.exists(os.path.join(folder, array.metadata.encode_chunk_key(place))):
            yield place


def _check_codecs(path: str, metadata: Any) -> None:
    """Refuse codecs that are not known, those within others too."""
    for name in _codec_names(metadata):
        if name.removeprefix("numcodecs.") not in _CODECS:
            raise SceneError(
                f"{path}: is stored with the codec {name!r}, which is not read: it may run code that "
                f"the store holds. Write it with another, such as zstd or blosc."
            )


def _codec_names(metadata: Any) -> Iterator[str]:
    """Yield the names in ``codecs`` of zarr 3, and the ids in ``filters`` and ``compressor`` of zarr 2."""
    if isinstance(metadata, list | tuple):
        for item in metadata:
            yield from _codec_names(item)
        return
    if not isinstance(metadata, dict):
        return
    for key in ("codecs", "index_codecs", "filters", "compressor", "configuration"):
        inner = metadata.get(key)
        for codec in inner if isinstance(inner, list | tuple) else [inner]:
            if isinstance(codec, dict) and key != "configuration":
                yield str(codec.get("name", codec.get("id", "?")))
            if isinstance(codec, dict):
                yield from _codec_names(codec)

"""Arrays of a run as lazy dask arrays, which users read long after the run: it may be gone by then."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dask.array
import numpy as np

from eigenscape.errors import InputError
from eigenscape.store.arrays import open_array


@contextmanager
def still_there(path: "str | os.PathLike[str]") -> Iterator[None]:
    """Refuse to read an array that is gone: zarr takes missing chunks for zeros.

    Parameters
    ----------
    path
        Path of the array.

    Raises
    ------
    InputError
        There is no array of this path before or after the block, whether the block has failed or not.
    """
    # Before: zarr would make the directories again. Afterwards: an array that is there then was there while
    # it was read.
    _check(path)
    try:
        yield
    finally:
        _check(path)


def _check(path: "str | os.PathLike[str]") -> None:
    if not Path(path, "zarr.json").exists():
        raise InputError(
            f"{os.fspath(path)}: this array is gone. The run was moved, deleted or computed again after it "
            "was opened. Open it again in its present directory, or compute it again."
        )


def lazy_array(path: "str | os.PathLike[str]") -> Any:
    """Return an array of a run as a dask array, in the chunks of its files.

    Parameters
    ----------
    path
        Path of the array. It may be an object that keeps the files while the dask array refers to it.

    Returns
    -------
    dask.array.Array
        Computing it raises `InputError` once the files are gone.
    """
    stored = _Stored(path)
    meta = np.empty((0,) * stored.ndim, stored.dtype)
    return dask.array.from_array(stored, stored.array.chunks, meta=meta)


class _Stored:
    """An array of a run as dask slices it."""

    def __init__(self, path: "str | os.PathLike[str]") -> None:
        self.path, self.array = path, open_array(os.fspath(path))
        self.shape, self.dtype, self.ndim = self.array.shape, self.array.dtype, self.array.ndim

    def __getitem__(self, key: Any) -> Any:
        with still_there(self.path):
            return self.array[key]

    def __dask_tokenize__(self) -> Any:
        return os.fspath(self.path), self.array.metadata.to_dict()

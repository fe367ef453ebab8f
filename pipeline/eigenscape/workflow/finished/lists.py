"""The neighbour lists of a run as a sparse matrix."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from eigenscape.base.blocks import blocks
from eigenscape.base.memory import CHUNK_ROWS
from eigenscape.errors import InputError
from eigenscape.store.run import Run

_ENTRIES = 16 * CHUNK_ROWS


def read_lists(path: Path) -> csr_array:
    """Return the lists of a run directory: see `eigenscape.Result`.

    Parameters
    ----------
    path
        The run directory.

    Returns
    -------
    csr_array, shape (samples, samples)

    Raises
    ------
    InputError
        It has no lists.
    """
    run = Run(path, create=False)
    if run.record("neighbors") is None:
        raise InputError(
            f"{path}: no neighbour lists. Give a run that has finished the stage neighbors; one that was "
            "applied to another scene takes those of its model."
        )
    index, distance = run.open("neighbors/index"), run.open("neighbors/distance")
    if index.ndim == 1:
        starts = np.asarray(run.open("neighbors/indptr")[...])
        samples, step = len(starts) - 1, _ENTRIES
        found = np.ones(index.shape, np.bool_)
    else:
        samples, step = index.shape[0], max(1, _ENTRIES // index.shape[1])
        # -1 where there is no neighbour.
        found = np.concatenate([index[a:b] >= 0 for a, b in blocks(samples, step)])
        starts = np.concatenate([[0], np.cumsum(found.sum(axis=1))])
    kind = np.int32 if max(int(starts[-1]), samples) < 2**31 else np.int64
    columns, lengths = np.empty(int(starts[-1]), kind), np.empty(int(starts[-1]), np.float32)
    _fill(columns, index, found, step)
    _fill(lengths, distance, found, step)
    return csr_array((lengths, columns, starts.astype(kind)), shape=(samples, samples))


def _fill(target: NDArray[np.generic], stored: object, found: NDArray[np.bool_], step: int) -> None:
    """Copy the entries that are there, in their order."""
    array: NDArray[np.generic] = stored  # type: ignore[assignment]
    at = 0
    for start, stop in blocks(len(found), step):
        block = array[start:stop][found[start:stop]]
        target[at : at + len(block)] = block
        at += len(block)

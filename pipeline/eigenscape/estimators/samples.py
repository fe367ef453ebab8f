"""Checks of the samples given to an estimator, and their writing into a run, a block of rows at a time.

It takes the place of the ingest stage, which reads scenes from files: what it writes is the same.
"""

import warnings
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any, TypeAlias

import dask.array
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse
from sklearn.utils.validation import validate_data

from eigenscape.base.blocks import Block, blocks
from eigenscape.base.memory import format_bytes
from eigenscape.base.vectors import Vectors
from eigenscape.errors import EstimatorError
from eigenscape.scenes.types import Bands, Grid
from eigenscape.scenes.views.centring import F8, centre, describe_lost, describe_steps, find_origin
from eigenscape.store.arrays import attach_whole, chunk_rows, open_array
from eigenscape.store.rows import create_sparse
from eigenscape.store.run import Run
from eigenscape.store.workspace import Workspace

Samples: TypeAlias = Any
"""A NumPy array, a sparse array of compressed rows, or a dask array, shape (n, d)."""

_REAL = "uifb"
"""Kinds of types that hold real numbers; scikit-learn lets dates and durations pass."""

_BLOCK_BYTES = 16 * 2**20
_LEAST_SPREAD = 1e-16
"""Of the widest column: distances of a thousandth of it have squares of full precision then."""

_COPIES = 5
"""Copies of a block of rows that are held while it is read: its chunks, joined along rows and columns,
in single precision, and in the writer."""


def check_samples(estimator: Any, X: Any, *, reset: bool) -> Samples:
    """Return samples as scikit-learn's conventions want them, without computing a dask array.

    Parameters
    ----------
    estimator
        Learns (`reset`) or is held to the number and the names of the features.
    X : array-like, sparse array or dask array, shape (n, d)
        Or a zarr array or a data set of an HDF5 file, which become dask arrays, an `xarray.DataArray`,
        whose dask array is taken if it has chunks, or an AnnData object, whose ``X`` is taken.
    reset
        Whether this is a fit.

    Raises
    ------
    ValueError
        Wrong shape, type or number of features; NaN or infinity, for all but dask arrays, which are
        checked block by block when they are read.
    """
    X = _stored(X)
    refuse_masked(X)
    least = 2 if reset else 1
    if not isinstance(X, dask.array.Array):
        X = validate_data(estimator, X, reset=reset, accept_sparse="csr", ensure_min_samples=least)
        if X.dtype.kind not in _REAL:
            raise EstimatorError(
                f"X: an array of type {X.dtype}; real numbers are needed. Convert it, such as dates to days "
                "since the first of them."
            )
        return X
    if X.ndim != 2:
        raise EstimatorError(
            f"X: a dask array of {X.ndim} axes; (n_samples, n_features) is needed."
        )
    if np.isnan(X.shape).any():
        raise EstimatorError(
            f"X: a dask array of unknown shape {X.shape}. Call X.compute_chunk_sizes() first."
        )
    if X.dtype.kind not in _REAL or issparse(X._meta):
        raise EstimatorError(
            f"X: a dask array of {type(X._meta).__name__} of type {X.dtype}; dense real numbers are "
            "needed. Convert its blocks with X.map_blocks."
        )
    if X.shape[0] < least or X.shape[1] < 1:
        raise EstimatorError(
            f"X: a dask array of shape {X.shape}; at least {least} samples and 1 feature are needed."
        )
    validate_data(estimator, X, reset=reset, skip_check_array=True)
    return X


def refuse_masked(X: Any) -> None:
    """Refuse an array with masked values.

    Raises
    ------
    EstimatorError
        With their number.
    """
    if np.ma.is_masked(X):
        hidden = int(np.ma.getmaskarray(X).sum())
        raise EstimatorError(
            f"X: a masked array, of which {hidden} values are masked. They would be used like all others: "
            "leave such samples out, or impute the values."
        )


def _stored(X: Any) -> Any:
    """Return samples in a file as a dask array, those of an AnnData object; others as they are."""
    if _is_of(X, "anndata", "AnnData"):
        return _stored(X.X)
    if _is_of(X, "anndata", "_CSRDataset") or _is_of(X, "anndata", "_CSCDataset"):
        # Compressed rows in a file: a sparse table is read into memory once.
        return X.to_memory()
    if _is_of(X, "xarray", "DataArray") and X.chunks is not None:
        return X.data
    if not (_is_of(X, "zarr", "Array") or _is_of(X, "h5py", "Dataset")) or X.ndim != 2:
        return X
    stored = (X.chunks or (1, 1))[0]
    rows = max(1, _BLOCK_BYTES // (stored * X.shape[1] * X.dtype.itemsize)) * stored
    # Without a name the content is hashed, which reads all of it.
    return dask.array.from_array(X, chunks=(rows, -1), name=False, lock=True)


def _is_of(X: Any, package: str, name: str) -> bool:
    """Return whether a class of a package that may not be installed, or a base of it, made an object."""
    return any(
        kind.__name__ == name and kind.__module__.partition(".")[0] == package
        for kind in type(X).__mro__
    )


def write_samples(
    workspace: Workspace, X: Samples, budget: int, given: NDArray[np.integer] | None = None
) -> dict[str, Any]:
    """Write ``samples/{values,origin,pixel}`` and ``labels/given``; return what an ingest stage does.

    Columns that lie far from 0, compared with their spread, are read a second time and centred.

    Parameters
    ----------
    workspace
        Of the ingest stage.
    X
        Checked samples.
    budget
        Bytes that reading may take.
    given : array of int, shape (n,), optional
        Class numbers, 0 for none.

    Raises
    ------
    EstimatorError
        A block is not finite or does not fit, or all samples are identical.
    """
    rows, columns = X.shape
    if issparse(X):
        varied, hint = _write_sparse(workspace, X), ""
    else:
        low, high = _write_dense(workspace, X, budget)
        varied, hint = bool((low < high).any()), describe_steps(low, X.dtype)
        if varied and (spread := float((high - low).max())) < _LEAST_SPREAD:
            raise EstimatorError(
                f"X: its columns span {spread:.3g} at most, and squares of such distances are 0 in single "
                f"precision. Multiply X by a factor, such as 1 / X.std()."
            )
    if not varied:
        raise EstimatorError(
            f"X: all {rows} samples are identical, so none is nearer to another than to the rest.{hint}"
        )
    return write_numbers(workspace, rows, columns, given)


def write_numbers(
    workspace: Workspace, rows: int, columns: int, given: NDArray[np.integer] | None
) -> dict[str, Any]:
    """Write ``samples/pixel`` and ``labels/given``; return the summary of the ingest stage.

    Parameters
    ----------
    workspace
        Of the ingest stage.
    rows, columns
        Of the samples.
    given
        See `write_samples`.
    """
    pixel = workspace.create_array("samples/pixel", (rows,), np.int64, dims=("sample",))
    open_array(pixel)[...] = np.arange(rows)
    numbers, counts = np.zeros((2, 0), np.int64)
    if given is not None:
        labels = workspace.create_array("labels/given", (rows,), np.uint16, dims=("sample",))
        open_array(labels)[...] = given
        numbers, counts = np.unique(given[given > 0], return_counts=True)
    return {
        "samples": rows,
        "grid": Grid(rows, 1).to_json(),
        "bands": asdict(Bands((True,) * columns)),
        "labelled": dict(zip(map(str, numbers.tolist()), counts.tolist(), strict=True)),
        "class_names": {},
    }


def _write_dense(workspace: Workspace, X: Samples, budget: int) -> tuple[F8, F8]:
    """Write a table of dense rows; return the least and the largest value of each column."""
    columns = X.shape[1]
    path = workspace.create_array("samples/values", X.shape, np.float32, dims=("sample", "band"))
    target, ranges = open_array(path), list(_row_blocks(X, budget))
    low, high = np.full((2, columns), np.inf)
    high = -high
    for start, stop in ranges:
        block = _compute(X[start:stop])
        target[start:stop] = _single(block, None, start, stop)
        low, high = np.minimum(low, block.min(axis=0)), np.maximum(high, block.max(axis=0))
    if (origin := find_origin(low, high, X.dtype, exact=True)) is not None:
        kept = workspace.create_array("samples/origin", (columns,), np.float64, dims=("band",))
        open_array(kept)[...] = origin
        for start, stop in ranges:
            target[start:stop] = _single(_compute(X[start:stop]), origin, start, stop)
    if lost := describe_lost(low, high, X.dtype, what="column"):
        warnings.warn(f"X: {lost}", UserWarning, stacklevel=2)
    return low, high


def read_rows(X: Samples, start: int, stop: int, origin: F8 | None = None) -> Vectors:
    """Return rows start ... stop-1 in single precision, of dense ones what they are beside `origin`.

    Raises
    ------
    EstimatorError
        One of them is not finite in it.
    """
    rows = _compute(X[start:stop])
    if not issparse(rows):
        return _single(rows, origin, start, stop)
    with np.errstate(over="ignore"):
        rows = csr_array(rows, dtype=np.float32, copy=True)
    rows.sum_duplicates()
    rows.eliminate_zeros()
    check_finite(rows.data, start, stop)
    vectors: Vectors = rows
    return vectors


def _compute(rows: Samples) -> Any:
    if isinstance(rows, dask.array.Array):
        # Threads of a pool keep memory. Who has a cluster has set its scheduler.
        rows = rows.compute(scheduler=dask.base.get_scheduler() or "sync")
        refuse_masked(rows)
        return np.asarray(rows)
    refuse_masked(rows)  # A block of a dask array that is mapped.
    return rows


def _single(rows: NDArray[Any], origin: F8 | None, start: int, stop: int) -> NDArray[np.float32]:
    values = centre(rows, origin)
    check_finite(values, start, stop)
    return values


def check_finite(values: NDArray[Any], start: int, stop: int) -> None:
    """Refuse values of some rows that are not finite."""
    if not np.isfinite(values).all():
        raise EstimatorError(
            f"Input X contains NaN, infinity or a value too large for float32, in the rows from "
            f"{start} to {stop - 1}. Leave such samples out or impute them."
        )


def _row_blocks(X: Samples, budget: int) -> Iterator[Block]:
    """Yield ranges of rows to read at a time: of a dask array whole chunks, so that each is computed once.

    Raises
    ------
    EstimatorError
        A chunk of a dask array is too large.
    """
    rows, columns = X.shape
    if not isinstance(X, dask.array.Array):
        yield from blocks(rows, chunk_rows(rows, 4 * columns))
        return
    row_bytes = columns * max(X.dtype.itemsize, 4)
    largest = max(X.chunks[0]) * row_bytes
    if _COPIES * largest > budget:
        fit = max(1, budget // (_COPIES * row_bytes))
        raise EstimatorError(
            f"X: a chunk of the dask array with all its columns holds {format_bytes(largest)}, and "
            f"reading it takes {_COPIES} times as much; memory leaves {format_bytes(budget)}. "
            f"Give more memory or X.rechunk(({fit}, -1))."
        )
    most = max(largest, min(_BLOCK_BYTES, budget // _COPIES))
    start = stop = 0
    for size in X.chunks[0]:
        if (stop + size - start) * row_bytes > most:
            yield start, stop
            start = stop
        stop += size
    yield start, stop


def _write_sparse(workspace: Workspace, X: csr_array) -> bool:
    """Write a table of compressed rows; return whether its rows differ."""
    rows, columns = X.shape
    ranges = blocks(rows, max(1, int(_BLOCK_BYTES / 16 / max(1.0, X.nnz / rows))))
    # Entries that are 0 or given twice are counted first: they are not stored.
    lengths = [np.diff(read_rows(X, *block).indptr) for block in ranges]  # type: ignore[union-attr]
    starts: NDArray[np.int64] = np.concatenate([[0], np.cumsum(np.concatenate(lengths))])
    data, indices, _ = create_sparse(workspace, "samples/values", starts, columns)
    values, places = attach_whole(data), attach_whole(indices)
    varied = False
    first = read_rows(X, 0, 1)
    for start, stop in ranges:
        block = read_rows(X, start, stop)
        assert not isinstance(block, np.ndarray)
        piece = slice(int(starts[start]), int(starts[stop]))
        values[piece], places[piece] = block.data, block.indices
        varied = varied or (block != first[np.zeros(stop - start, int)]).nnz > 0
    return varied


def stored_blocks(run: Run, name: str) -> Iterator[tuple[slice, NDArray[np.float32]]]:
    """Yield the chunks of a (sample, ...) array of a run, and which samples they hold."""
    array = run.open(name)
    for start, stop in blocks(array.shape[0], array.chunks[0]):
        yield slice(start, stop), array[start:stop]

"""The features stage of methods that map samples linearly: see `eigenscape.features.linear`.

::

    fit        as the method does it   shift and basis
    project    sample blocks           samples -> features/values

Of a sparse table that stays as it is, the entries are copied instead.
"""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenscape.base.blocks import Block, blocks, sample_blocks
from eigenscape.base.files.mapped import write_range
from eigenscape.base.memory import ROW_TILE
from eigenscape.context import Context
from eigenscape.features.linear import COPY_ENTRIES, LinearMap, LinearMethod
from eigenscape.features.pieces import piece_rows
from eigenscape.features.spectral.preparation import PreparedRows, sample_rows
from eigenscape.store.arrays import chunk_rows, open_array, open_memmap, whole_file, write_rows
from eigenscape.store.rows import Rows, create_sparse
from eigenscape.store.run import Run


def write_linear(context: Context, method: LinearMethod, name: str) -> dict[str, Any]:
    """Write ``features/values`` (sample, feature), or `name`, and ``features/basis`` (band, feature).

    Where the mean is subtracted first, it is ``features/shift`` (band). Where a sparse table stays
    sparse, ``features/values`` are the three arrays of `eigenscape.store.rows.Rows`. Where all bands are
    kept there is no basis, which would be a diagonal matrix, larger than many tables, but
    ``features/scale`` (band), its diagonal, unless all are 1. What was subtracted from the samples is kept,
    as the features have it, as the attribute "origin" of ``features/values``: angles are those of whole
    vectors.
    """
    source = sample_rows(context, method.spectral)
    rows, bands = source.shape
    dimension = method.count(bands)
    told = {"dimension": dimension, "projected": method.is_projected(bands)}
    if source.sparse and method.stays_sparse(bands):
        _copy_table(context, source)
        return told
    found, summary = method.fit(context, source)
    shift, basis = found.shift, found.basis

    kept = _origin(context, source, basis) if shift is None else {}
    path = context.workspace.create_array(
        name, (rows, dimension), np.float32, dims=("sample", "feature"), **kept
    )
    if basis is not None and basis.ndim == 2:
        stored = context.workspace.create_array(
            "features/basis", basis.shape, np.float32, dims=("band", "feature")
        )
        write_rows(stored, 0, basis)
    elif basis is not None:
        _write_bands(context, "features/scale", basis)
    if shift is not None:
        _write_bands(context, "features/shift", shift)
    row = method.row_bytes(bands)
    parts = sample_blocks(rows, chunk_rows(rows, 4 * dimension), context.task_bytes, row)
    context.map("project", partial(_project_block, source, path, found), parts, label="projecting")
    return {**told, **summary}


def stored_map(method: LinearMethod, run: Run, bands: int) -> LinearMap:
    """Return the map that a run has stored.

    Raises
    ------
    InputError
        An earlier version made the run, which did not store all of it.
    """
    shift, basis, scale = (run.read(f"features/{name}") for name in ("shift", "basis", "scale"))
    if basis is None:
        basis = np.ones(bands, np.float32) if scale is None else scale
    elif not method.is_projected(bands):
        # Earlier versions stored a diagonal matrix.
        basis = np.ascontiguousarray(np.diagonal(basis))
    return LinearMap(shift, basis)


def _origin(
    context: Context, source: PreparedRows, basis: NDArray[np.float32] | None
) -> dict[str, Any]:
    """Return the origin of the samples as an attribute of their features; nothing without one."""
    origin = context.run.read("samples/origin")
    if source.prepare is not None or origin is None:
        return {}
    return {"origin": (origin if basis is None else origin @ basis).tolist()}


def _write_bands(context: Context, name: str, values: NDArray[np.float32]) -> None:
    """Write one number for each band."""
    path = context.workspace.create_array(name, values.shape, np.float32, dims=("band",))
    write_rows(path, 0, values)


def _project_block(source: Rows, target: str, found: LinearMap, block: Block) -> None:
    start, stop = block
    features = np.empty((stop - start, open_array(target).shape[1]), np.float32)
    # How many entries of a sparse table a block holds nobody has counted: a tile at a time.
    step = ROW_TILE if source.sparse else piece_rows(source.shape[1])
    for first in range(start, stop, step):
        last = min(first + step, stop)
        features[first - start : last - start] = found(source.read(first, last))
    write_rows(target, start, features)


def _copy_table(context: Context, source: Rows) -> None:
    folder = Path(source.path)
    starts = open_memmap(folder / "indptr")
    data, indices, _ = create_sparse(context.workspace, "features/values", starts, source.shape[1])
    pairs = [(str(folder / "data"), data), (str(folder / "indices"), indices)]
    work = partial(_copy_entries, pairs)
    context.map("copy", work, blocks(source.stored, COPY_ENTRIES), label="copying the table")


def _copy_entries(pairs: list[tuple[str, str]], block: Block) -> None:
    for source, target in pairs:
        write_range(whole_file(target), block[0], open_memmap(source)[slice(*block)])

"""The features stage: one pass over the samples, two where their moments are needed.

::

    moments    sample blocks   mean and covariance, where a method needs them
    noise      sample blocks   covariance of the differences between neighbouring pixels, for "mnf"
    project    sample blocks   samples -> features/values

Of a sparse table that is neither projected nor standardised, the entries are copied instead.
"""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from eigenscape.base.blocks import Block, blocks, sample_blocks
from eigenscape.base.mapped import write_range
from eigenscape.base.memory import CHUNK_ROWS, ROW_TILE
from eigenscape.base.vectors import Vectors, join
from eigenscape.context import Context
from eigenscape.errors import SceneError
from eigenscape.features.kernels import (
    add_products,
    centre_products,
    difference_scatter,
    moments,
    noise_fractions,
    orthoprojector,
    principal_components,
    project,
    project_sparse,
    sparse_scatter,
    sparse_sums,
)
from eigenscape.job.options import FeatureOptions
from eigenscape.scenes.types import Grid
from eigenscape.store.arrays import chunk_rows, open_array, open_memmap, whole_file, write_rows
from eigenscape.store.rows import Rows, create_sparse

COPY_ENTRIES = 32 * CHUNK_ROWS
"""Entries of a sparse table that a task copies."""

_MOMENT_ROWS = 16 * ROW_TILE
"""Samples per partial sum. Fixed, so that the sums add up in the same order under any limit."""

_Moments = tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64] | None]
"""Mean and variance of each band, and their covariance where it is wanted."""


def is_projected(options: FeatureOptions, bands: int) -> bool:
    """Whether samples of `bands` bands are projected: never onto as many dimensions or more.

    Noise fractions are the exception: they weigh even as many directions as there are bands.
    """
    return options.method == "mnf" or (options.method != "none" and options.dimension < bands)


def feature_count(options: FeatureOptions, bands: int) -> int:
    """Return the length of a feature vector for samples of `bands` bands."""
    return min(options.dimension, bands) if is_projected(options, bands) else bands


def stays_sparse(options: FeatureOptions, columns: int) -> bool:
    """Whether the features of a sparse table of so many columns are the table itself."""
    return not is_projected(options, columns) and not options.standardize


def features_stage(context: Context) -> dict[str, Any]:
    """Write ``features/values`` (sample, feature) and ``features/basis`` (band, feature).

    Where the mean is subtracted first, it is ``features/shift`` (band). Where a sparse table stays
    sparse, ``features/values`` are the three arrays of `eigenscape.store.rows.Rows`. Where it keeps all of
    its columns there is no basis, which would be a diagonal matrix and larger than the table, but
    ``features/scale`` (band), its diagonal. What was subtracted from the samples is kept, as the
    features have it, as the attribute "origin" of ``features/values``: angles are those of whole vectors.
    """
    options = context.job.features
    source = Rows(context.path("samples/values"))
    rows, bands = source.shape
    dimension, projected = feature_count(options, bands), is_projected(options, bands)
    told = {"dimension": dimension, "projected": projected}
    if source.sparse and stays_sparse(options, bands):
        _copy_table(context, source)
        return told
    shift, basis, summary = _fit(context, source)

    kept = _origin(context, basis) if shift is None else {}
    path = context.workspace.create_array(
        "features/values", (rows, dimension), np.float32, dims=("sample", "feature"), **kept
    )
    if projected or not source.sparse:
        stored = context.workspace.create_array(
            "features/basis", (bands, dimension), np.float32, dims=("band", "feature")
        )
        whole = np.ones(bands, np.float32) if basis is None else basis
        write_rows(stored, 0, np.diag(whole) if whole.ndim == 1 else whole)
    elif basis is not None:
        _write_bands(context, "features/scale", basis)
    if shift is not None:
        _write_bands(context, "features/shift", shift)
    work = partial(_project_block, source, path, shift, basis)
    read = 0 if source.sparse else 2 * bands
    parts = sample_blocks(
        rows, chunk_rows(rows, 4 * dimension), context.task_bytes, 4 * (read + 2 * dimension)
    )
    context.map("project", work, parts, label="projecting")
    return {**told, **summary}


def _origin(context: Context, basis: NDArray[np.float32] | None) -> dict[str, Any]:
    """Return the origin of the samples as an attribute of their features; nothing without one."""
    path = Path(context.path("samples/origin"))
    if not (path / "zarr.json").exists():
        return {}
    origin = np.asarray(open_array(path)[...])
    return {"origin": (origin if basis is None else origin @ basis).tolist()}


def _write_bands(context: Context, name: str, values: NDArray[np.float32]) -> None:
    """Write one number for each band."""
    path = context.workspace.create_array(name, values.shape, np.float32, dims=("band",))
    write_rows(path, 0, values)


def _fit(
    context: Context, source: Rows
) -> tuple[NDArray[np.float32] | None, NDArray[np.float32] | None, dict[str, Any]]:
    """Return shift, basis (of a diagonal one the diagonal) and what to say about them."""
    options = context.job.features
    bands = source.shape[1]
    projected = is_projected(options, bands)
    fitted = projected and options.method != "random-projection"
    basis: NDArray[np.float64] | None = None
    if projected and not fitted:
        basis = orthoprojector(bands, options.dimension, options.seed)
    if not (fitted or options.standardize):
        return None, None if basis is None else basis.astype(np.float32), {}

    find = _sparse_moments if source.sparse else _dense_moments
    mean, variance, covariance = find(context, source, fitted)
    if covariance is not None and options.method == "mnf":
        noise = _noise(context, source)
        basis, ratio = noise_fractions(covariance, noise, min(options.dimension, bands))
        told = {"signal_to_noise": [round(float(value) - 1, 3) for value in ratio]}
        return mean.astype(np.float32), basis.astype(np.float32), told
    scale = np.ones(bands)
    if options.standardize:
        # A constant band tells samples apart by nothing: it is left at 0 instead of 0 / 0.
        scale = np.divide(1, np.sqrt(variance), out=np.zeros(bands), where=variance > 0)
    summary: dict[str, Any] = {}
    if covariance is not None:
        covariance *= scale
        covariance *= scale[:, None]
        basis, kept = principal_components(covariance, options.dimension)
        total = float(np.trace(covariance))
        summary["explained_variance"] = float(kept.sum() / total) if total > 0 else 1.0
    basis = scale if basis is None else scale[:, None] * basis
    return mean.astype(np.float32), basis.astype(np.float32), summary


def _dense_moments(context: Context, source: Rows, whole: bool) -> _Moments:
    rows, bands = source.shape
    shift = open_array(source.path)[: min(rows, ROW_TILE)].mean(axis=0, dtype=np.float64)
    partials = context.map(
        "moments",
        partial(_block_moments, source.path, shift),
        blocks(rows, _MOMENT_ROWS),
        label="band covariances",
        keep=False,
    )
    total = sum((part[0] for part in partials), np.zeros(bands)) / rows
    scatter = sum((part[1] for part in partials), np.zeros((bands, bands))) / rows
    covariance = scatter - np.outer(total, total)
    return shift + total, np.diag(covariance).copy(), covariance if whole else None


def _block_moments(
    source: str, shift: NDArray[np.float64], block: Block
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    return moments(open_array(source)[block[0] : block[1]], shift)


def _noise(context: Context, source: Rows) -> NDArray[np.float64]:
    """Return the covariance of the noise: half that of what neighbouring pixels differ by.

    Raises
    ------
    SceneError
        The samples are no pixels of a scene, or none has a neighbour to the left or above.
    """
    ingest = context.run.record("ingest")
    assert ingest is not None, "features follow ingest"
    pixels, grid = context.path("samples/pixel"), Grid.from_json(ingest.summary["grid"])
    rows, bands = source.shape
    parts = []
    if not grid.is_table:
        work = partial(_block_noise, source.path, pixels, grid.width)
        ranges = blocks(rows, _MOMENT_ROWS)
        parts = context.map("noise", work, ranges, label="noise covariances", keep=False)
    count = sum(part[0] for part in parts)
    if count == 0:
        raise SceneError(
            'features.method = "mnf" measures noise by what neighbouring pixels differ by, and none '
            f'of the {rows} samples has a neighbour. Set features.method to "pca" or "none".'
        )
    scatter = sum((part[1] for part in parts), np.zeros((bands, bands)))
    return np.asarray(scatter / (2 * count))


def _block_noise(
    source: str, pixels: str, width: int, block: Block
) -> tuple[int, NDArray[np.float64]]:
    """Return the number of neighbours to the left of a block's pixels and above, and their scatter."""
    # The pixel above lies at most a row of samples before.
    first = max(0, block[0] - width)
    pixel = np.asarray(open_array(pixels)[first : block[1]])
    own = np.arange(block[0] - first, block[1] - first)
    ones, twos = [], []
    for step in (1, width):
        before = np.searchsorted(pixel, pixel[own] - step)
        there = pixel[before] == pixel[own] - step
        if step == 1:
            there &= pixel[own] % width > 0
        ones.append(own[there])
        twos.append(before[there])
    one, two = np.concatenate(ones), np.concatenate(twos)
    samples = open_array(source)[first : block[1]]
    return len(one), difference_scatter(samples, one, two)


def _sparse_moments(context: Context, source: Rows, whole: bool) -> _Moments:
    # One task: each of several would hold a covariance of its own, the one large thing here.
    work = partial(_table_moments, source)
    items = ["covariance" if whole else "variance"]
    found: _Moments = context.map("moments", work, items, label="column moments", keep=False)[0]
    return found


def _table_moments(source: Rows, wanted: str) -> _Moments:
    rows, bands = source.shape
    products = np.zeros((bands, bands)) if wanted == "covariance" else None
    total, scatter = np.zeros(bands), np.zeros(bands)
    for start, stop in blocks(rows, ROW_TILE):
        samples = _read_sparse(source, start, stop)
        total += sparse_sums(samples)
        if products is not None:
            add_products(samples.data, samples.indices, samples.indptr, products)
    mean = total / rows
    for start, stop in blocks(rows, ROW_TILE):
        scatter += sparse_scatter(_read_sparse(source, start, stop), mean)
    if products is not None:
        centre_products(products, mean, rows)
    return mean, scatter / rows, products


def _read_sparse(source: Rows, start: int, stop: int) -> csr_array:
    samples = source.read(start, stop)
    assert not isinstance(samples, np.ndarray)
    return samples


def _project_block(
    source: Rows,
    target: str,
    shift: NDArray[np.float32] | None,
    basis: NDArray[np.float32] | None,
    block: Block,
) -> None:
    start, stop = block
    # How many entries of a sparse table a block holds nobody has counted: a tile at a time.
    step = ROW_TILE if source.sparse else stop - start
    pieces: list[Vectors] = []
    for first in range(start, stop, step):
        samples = source.read(first, min(first + step, stop))
        if isinstance(samples, np.ndarray):
            pieces.append(project(samples, shift, basis))
        else:
            assert basis is not None, "a sparse table without a basis is copied"
            pieces.append(project_sparse(samples, shift, basis))
    write_rows(target, start, join(pieces))


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

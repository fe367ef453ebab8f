"""Mean, variance and covariance of the bands of all samples: one pass over them, or two of a sparse table."""

from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from eigenscape.base.blocks import Block, blocks
from eigenscape.base.memory import ROW_TILE
from eigenscape.context import Context
from eigenscape.features.kernels import (
    add_moments,
    add_products,
    centre_products,
    sparse_scatter,
    sparse_sums,
)
from eigenscape.features.pieces import partial_blocks, piece_rows
from eigenscape.store.rows import Rows

Moments = tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64] | None]
"""Mean and variance of each band, and their covariance where it is wanted."""


def find_moments(context: Context, source: Rows, *, whole: bool) -> Moments:
    """Return mean, variance and, if `whole`, covariance of the bands of all samples, in double."""
    find = _sparse_moments if source.sparse else _dense_moments
    return find(context, source, whole)


def _dense_moments(context: Context, source: Rows, whole: bool) -> Moments:
    rows, bands = source.shape
    shift = _dense(source, 0, min(rows, ROW_TILE)).mean(axis=0, dtype=np.float64)
    partials = context.map(
        "moments",
        partial(_block_moments, source, shift, whole),
        partial_blocks(rows, bands, whole=whole),
        label="band covariances" if whole else "band variances",
        keep=False,
    )
    total, scatter = _zeros(bands, whole)
    for part in partials:
        total += part[0]
        scatter += part[1]
    del partials
    total /= rows
    scatter /= rows
    if not whole:
        return shift + total, scatter - total**2, None
    scatter -= np.outer(total, total)
    return shift + total, np.diag(scatter).copy(), scatter


def _zeros(bands: int, whole: bool) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    return np.zeros(bands), np.zeros((bands, bands) if whole else bands)


def _block_moments(
    source: Rows, shift: NDArray[np.float64], whole: bool, block: Block
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    total, scatter = _zeros(source.shape[1], whole)
    step = piece_rows(len(total))
    for start in range(*block, step):
        add_moments(_dense(source, start, min(start + step, block[1])), shift, total, scatter)
    return total, scatter


def _dense(source: Rows, start: int, stop: int) -> NDArray[np.float32]:
    samples = source.read(start, stop)
    assert isinstance(samples, np.ndarray)
    return samples


def _sparse_moments(context: Context, source: Rows, whole: bool) -> Moments:
    # One task: each of several would hold a covariance of its own, the one large thing here.
    work = partial(_table_moments, source)
    items = ["covariance" if whole else "variance"]
    found: Moments = context.map("moments", work, items, label="column moments", keep=False)[0]
    return found


def _table_moments(source: Rows, wanted: str) -> Moments:
    rows, bands = source.shape
    products = np.zeros((bands, bands)) if wanted == "covariance" else None
    total, scatter = np.zeros(bands), np.zeros(bands)
    for start, stop in blocks(rows, ROW_TILE):
        samples = read_sparse(source, start, stop)
        total += sparse_sums(samples)
        if products is not None:
            add_products(samples.data, samples.indices, samples.indptr, products)
    mean = total / rows
    for start, stop in blocks(rows, ROW_TILE):
        scatter += sparse_scatter(read_sparse(source, start, stop), mean)
    if products is not None:
        centre_products(products, mean, rows)
    return mean, scatter / rows, products


def read_sparse(source: Rows, start: int, stop: int) -> csr_array:
    """Read rows of a sparse table."""
    samples = source.read(start, stop)
    assert not isinstance(samples, np.ndarray)
    return samples

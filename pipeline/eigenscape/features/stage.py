"""The features stage: one pass over the samples, two where their moments are needed."""

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenscape.arrays import chunk_rows, open_array
from eigenscape.features.kernels import moments, orthoprojector, principal_components, project
from eigenscape.memory import ROW_TILE
from eigenscape.options import FeatureOptions
from eigenscape.stage import Block, Context, blocks, sample_blocks

_MOMENT_ROWS = 16 * ROW_TILE
"""Samples per partial sum. Fixed, so that the sums add up in the same order under any limit."""


def is_projected(options: FeatureOptions, bands: int) -> bool:
    """Whether samples of `bands` bands are projected: never onto as many dimensions or more."""
    return options.method != "none" and options.dimension < bands


def feature_count(options: FeatureOptions, bands: int) -> int:
    """Return the length of a feature vector for samples of `bands` bands."""
    return options.dimension if is_projected(options, bands) else bands


def features_stage(context: Context) -> dict[str, Any]:
    """Write ``features/values`` (sample, feature) and ``features/basis`` (band, feature)."""
    options = context.job.features
    values = context.open("samples/values")
    rows, bands = values.shape
    dimension = feature_count(options, bands)
    shift, basis, summary = _fit(context, rows, bands)

    path = context.workspace.create_array(
        "features/values", (rows, dimension), np.float32, dims=("sample", "feature")
    )
    stored = context.workspace.create_array(
        "features/basis", (bands, dimension), np.float32, dims=("band", "feature")
    )
    open_array(stored)[...] = np.eye(bands, dtype=np.float32) if basis is None else basis
    work = partial(_project_block, context.path("samples/values"), path, shift, basis)
    chunk = chunk_rows(rows, 4 * dimension)
    parts = sample_blocks(rows, chunk, context.task_bytes, 4 * (2 * bands + 2 * dimension))
    context.map("project", work, parts, label="projecting")
    return {"dimension": dimension, "projected": is_projected(options, bands), **summary}


def _fit(
    context: Context, rows: int, bands: int
) -> tuple[NDArray[np.float32] | None, NDArray[np.float32] | None, dict[str, Any]]:
    """Return shift, basis and what to say about them."""
    options = context.job.features
    projected = is_projected(options, bands)
    use_pca = projected and options.method == "pca"
    basis: NDArray[np.float64] | None = None
    if projected and not use_pca:
        basis = orthoprojector(bands, options.dimension, options.seed)
    if not (use_pca or options.standardize):
        return None, None if basis is None else basis.astype(np.float32), {}

    mean, covariance = _covariance(context, rows, bands)
    scale = np.ones(bands)
    if options.standardize:
        deviation = np.sqrt(np.diag(covariance))
        # A constant band tells samples apart by nothing: it is left at 0 instead of 0 / 0.
        scale = np.divide(1, deviation, out=np.zeros(bands), where=deviation > 0)
        covariance = covariance * np.outer(scale, scale)
    summary: dict[str, Any] = {}
    if use_pca:
        basis, variance = principal_components(covariance, options.dimension)
        total = float(np.trace(covariance))
        summary["explained_variance"] = float(variance.sum() / total) if total > 0 else 1.0
    basis = np.diag(scale) if basis is None else scale[:, None] * basis
    return mean.astype(np.float32), basis.astype(np.float32), summary


def _covariance(
    context: Context, rows: int, bands: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    source = context.path("samples/values")
    shift = open_array(source)[: min(rows, ROW_TILE)].mean(axis=0, dtype=np.float64)
    partials = context.map(
        "moments",
        partial(_block_moments, source, shift),
        blocks(rows, _MOMENT_ROWS),
        label="band covariances",
        keep=False,
    )
    total = sum((part[0] for part in partials), np.zeros(bands)) / rows
    scatter = sum((part[1] for part in partials), np.zeros((bands, bands))) / rows
    return shift + total, scatter - np.outer(total, total)


def _block_moments(
    source: str, shift: NDArray[np.float64], block: Block
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    return moments(open_array(source)[block[0] : block[1]], shift)


def _project_block(
    source: str,
    target: str,
    shift: NDArray[np.float32] | None,
    basis: NDArray[np.float32] | None,
    block: Block,
) -> None:
    start, stop = block
    samples = open_array(source)[start:stop]
    open_array(target)[start:stop] = project(samples, shift, basis)

"""Labels spread over the graph of a run, and read at new samples."""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenscape.base.blocks import Block, blocks, sample_blocks
from eigenscape.base.memory import rows_within
from eigenscape.context import Context
from eigenscape.estimators.samples import Samples, read_rows
from eigenscape.features.method import feature_method
from eigenscape.job.jobfile import Job
from eigenscape.labels.training import Labelled
from eigenscape.learn.kernels.decisions import Calibration, probabilities
from eigenscape.learn.method import Prepared
from eigenscape.learn.propagate.fields import prepare_fields
from eigenscape.spectrum.trained import Trained
from eigenscape.store.arrays import chunk_rows, open_array
from eigenscape.store.rows import Rows
from eigenscape.store.run import Run

VOTERS = 3
"""Fitted samples that a new one takes its classes from (Belkin 2003, 3.8.4)."""


def spread_labels(context: Context, classes: NDArray[np.intp], count: int) -> dict[str, Any]:
    """Write ``labels/share`` (sample, class): a stage that follows the graph.

    Parameters
    ----------
    context
        Of the stage; ``learn.method`` of its job is one that spreads labels.
    classes : array of int, shape (n,)
        Class of each sample, -1 for none.
    count
        Number of classes.
    """
    sample = np.flatnonzero(classes >= 0)
    train = np.ones((1, len(sample)), np.bool_)
    numbers = np.arange(count).astype(np.uint16)
    method = prepare_fields(context, Labelled(sample, classes[sample], numbers, train))
    method.fit(0)
    path = context.workspace.create_array(
        "labels/share", (len(classes), count), np.float32, dims=("sample", "class")
    )
    each = method.bytes_per_sample + 24 * count
    ranges = sample_blocks(
        len(classes), chunk_rows(len(classes), 4 * count), context.task_bytes, each
    )
    context.map("write", partial(_write_shares, method, path), ranges)
    return {"classes": count, "labelled": len(sample), "residual": method.residual}


def _write_shares(method: Prepared, target: str, block: Block) -> None:
    scores = method.scores(0, block)
    none = Calibration.none(scores.shape[1])
    open_array(target)[slice(*block)] = probabilities(scores, none)


def new_shares(path: Path, job: Job, X: Samples, memory: int) -> NDArray[np.float32]:
    """Return the shares of the classes of new samples: the mean of the nearest fitted ones'.

    A sample that coincides with a fitted one has its shares.

    Parameters
    ----------
    path
        Run directory with ``labels/share``.
    job
        Its job.
    X
        Checked samples, not a dask array.
    memory
        Bytes that the work may take.

    Returns
    -------
    array, shape (m, classes)
    """
    run = Run(path, create=False)
    rows = Rows(str(run.array_path("features/values")), unit=job.neighbors.metric == "angle")
    good = np.ones(X.shape[1], np.bool_)
    trained = Trained(run, feature_method(job), job.neighbors, job.graph, good, rows)
    stored = Rows(str(run.array_path("labels/share")))
    found = np.empty((X.shape[0], stored.shape[1]), np.float32)
    row = 12 * X.shape[1] + 16 * rows.shape[1] + 32 * stored.shape[1] + 64 * job.neighbors.k
    for start, stop in blocks(X.shape[0], rows_within(memory, row)):
        features = trained.project(read_rows(X, start, stop, trained.origin))
        near = trained.search(features)
        twins = trained.twins(features, near)
        found[start:stop] = _mean_share(stored, near[0], near[1], twins)
    return found


def _mean_share(
    stored: Rows, starts: NDArray[np.int64], index: NDArray[np.int64], twins: NDArray[np.int64]
) -> NDArray[np.float32]:
    # Each has at least one neighbour, nearest first; a twin stands for all of its own.
    places = np.minimum(starts[:-1, None] + np.arange(VOTERS), starts[1:, None] - 1)
    voters = np.where(twins[:, None] >= 0, twins[:, None], index[places])
    samples, where = np.unique(voters, return_inverse=True)
    shares = stored.take(samples)
    assert isinstance(shares, np.ndarray), "shares are dense"
    mean: NDArray[np.float32] = shares[where.reshape(voters.shape)].mean(axis=1)
    return mean

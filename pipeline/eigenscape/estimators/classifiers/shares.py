"""Labels spread over the graph of a run, and read at new samples."""

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from eigenscape.base.blocks import Block, blocks, sample_blocks
from eigenscape.base.memory import rows_within
from eigenscape.context import Context
from eigenscape.estimators.samples import Samples, read_rows
from eigenscape.features.method import feature_method
from eigenscape.job.jobfile import Job
from eigenscape.labels.priors import Prior as Factors
from eigenscape.labels.training import Labelled
from eigenscape.learn.decide.kernels.decisions import Calibration, probabilities
from eigenscape.learn.method import Classifier, Prepared
from eigenscape.scenes.types import Bands
from eigenscape.spectrum.trained import Trained
from eigenscape.store.arrays import chunk_rows, open_array
from eigenscape.store.rows import Rows
from eigenscape.store.run import Run

Prior = Literal["none", "training", "uniform"] | Sequence[float]
"""Assumed shares of the classes, as ``learn.prior`` of a job."""

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
    learner = context.job.learn
    assert isinstance(learner, Classifier), "it learns from labels"
    labelled = all_train(classes, count)
    method = learner.prepare(context, labelled)
    method.fit(0)
    prior = Factors(learner.wanted_prior, context.workspace.folder("learn"))
    if prior.wanted != "none":
        prior.settle(labelled, 0, method.implied(0))
    path = context.workspace.create_array(
        "labels/share", (len(classes), count), np.float32, dims=("sample", "class")
    )
    each = method.bytes_per_sample + 24 * count
    ranges = sample_blocks(
        len(classes), chunk_rows(len(classes), 4 * count), context.task_bytes, each
    )
    context.map("write", partial(_write_shares, method, prior, path), ranges)
    residual = getattr(method, "residual", 0.0)
    return {"classes": count, "labelled": len(labelled.sample), "residual": residual}


def all_train(classes: NDArray[np.intp], count: int) -> Labelled:
    """Return the labelled samples as one training set.

    Parameters
    ----------
    classes : array of int, shape (n,)
        Class of each sample, -1 for none.
    count
        Number of classes.
    """
    sample = np.flatnonzero(classes >= 0)
    numbers = np.arange(count).astype(np.uint16)
    return Labelled(sample, classes[sample], numbers, np.ones((1, len(sample)), np.bool_))


def _write_shares(method: Prepared, prior: Factors, target: str, block: Block) -> None:
    scores = prior.weigh(method.scores(0, block), 0)
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
    stored = Rows(str(Run(path, create=False).array_path("labels/share")))
    found = np.empty((X.shape[0], stored.shape[1]), np.float32)
    for start, stop, voters in nearest_fitted(path, job, X, memory, 32 * stored.shape[1]):
        samples, where = np.unique(voters, return_inverse=True)
        shares = stored.take(samples)
        assert isinstance(shares, np.ndarray), "shares are dense"
        found[start:stop] = shares[where.reshape(voters.shape)].mean(axis=1)
    return found


def nearest_fitted(
    path: Path, job: Job, X: Samples, memory: int, row_bytes: int = 0
) -> Iterator[tuple[int, int, NDArray[np.int64]]]:
    """Yield the three fitted samples that are nearest to new ones, a block of these at a time.

    A sample that coincides with a fitted one is near to that alone.

    Parameters
    ----------
    path
        Run directory with a graph.
    job
        Its job.
    X
        Checked samples, not a dask array.
    memory
        Bytes that the work may take.
    row_bytes
        What the caller takes for each new sample.

    Yields
    ------
    start, stop : int
        Range of new samples.
    voters : array of int, shape (stop - start, 3)
        Numbers of fitted samples, some of them twice.
    """
    run = Run(path, create=False)
    rows = Rows(str(run.array_path("features/values")), unit=job.neighbors.metric == "angle")
    bands = Bands((True,) * X.shape[1])
    trained = Trained(run, feature_method(job), job.neighbors, job.graph, bands, rows)
    row = 12 * X.shape[1] + 16 * rows.shape[1] + 64 * job.neighbors.k + row_bytes
    for start, stop in blocks(X.shape[0], rows_within(memory, row)):
        features = trained.project(read_rows(X, start, stop, trained.origin))
        near = trained.search(features)
        twins = trained.twins(features, trained.closest(features, near))
        starts, index, _ = near
        # Each has at least one neighbour, nearest first; a twin stands for all of its own. Where there are
        # fewer than three, the nearest takes the places that are left: it decides a tie.
        first, places = starts[:-1, None], starts[:-1, None] + np.arange(VOTERS)
        places = np.where(places < starts[1:, None], places, first)
        yield start, stop, np.where(twins[:, None] >= 0, twins[:, None], index[places])

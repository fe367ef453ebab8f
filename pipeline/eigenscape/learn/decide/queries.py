"""Which pixels to label next: uncertain ones, each for many others, unlike each other.

The most uncertain samples alone lie side by side on one border, and those far from everything are
outliers. So the most uncertain ones are put into as many groups as there are queries, by k-means in
eigenmap coordinates weighted by uncertainty, and the sample nearest to each centre is proposed
(Zhdanov 2019, *Diverse mini-batch active learning*).
"""

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenscape.base.blocks import blocks
from eigenscape.context import Context
from eigenscape.labels.training import Labelled
from eigenscape.learn.decide.fitscores import FitScores
from eigenscape.learn.kernels.decisions import Calibration, decide, lowered
from eigenscape.store.arrays import open_array, write_rows

F4 = NDArray[np.float32]

_SHORT_LIST = 50
_LEAST_LIST, _MOST_LIST = 2000, 50_000
"""Candidates for each query, and in all."""

_MODES = 30
"""Eigenvectors in which groups are sought: more describe ever smaller parts."""


def propose(
    context: Context, source: FitScores, labelled: Labelled, calibration: Calibration
) -> int:
    """Write ``labels/query``, the samples, and ``labels/query_runner_up``, their second classes.

    Parameters
    ----------
    context
        Of the learn stage.
    source, calibration
        Scores of the map and how they become probabilities.
    labelled
        Samples that have a label: none of them is proposed.

    Returns
    -------
    int
        Number of queries: fewer than asked for where fewer samples have no label.
    """
    spectrum = context.run.record("spectrum")
    assert spectrum is not None, "learn follows the spectrum"
    constant = int(spectrum.summary["null_vectors"] == 1)
    vectors = context.path("spectrum/vector")
    work = partial(_choose, source, labelled, calibration, vectors, constant)
    found = context.map("queries", work, [context.job.learn.queries], label="queries")[0]
    for name, kind in (("query", np.int64), ("query_runner_up", np.uint16)):
        values = np.array(found[name], kind)
        path = context.workspace.create_array(f"labels/{name}", values.shape, kind, dims=("query",))
        write_rows(path, 0, values)
    return len(found["query"])


def _choose(
    source: FitScores,
    labelled: Labelled,
    calibration: Calibration,
    vectors: str,
    constant: int,
    count: int,
) -> dict[str, Any]:
    """Return the samples to label next, and the second most probable class of each."""
    stored = open_array(vectors)
    most = max(_LEAST_LIST, min(_MOST_LIST, _SHORT_LIST * count), count)
    candidates, uncertainty = np.empty(0, np.int64), np.empty(0, np.float32)
    for block in blocks(stored.shape[0], stored.chunks[0]):
        values = ambiguity(source.scores(block))
        values[labelled.sample[labelled.within(block)] - block[0]] = np.nan
        known = np.flatnonzero(np.isfinite(values))
        candidates = np.concatenate([candidates, block[0] + known])
        uncertainty = np.concatenate([uncertainty, values[known]])
        # Stable: of equally uncertain ones the first.
        best = np.sort(np.argsort(-uncertainty, kind="stable")[:most])
        candidates, uncertainty = candidates[best], uncertainty[best]
    order = diverse(uncertainty, _directions(stored, candidates, constant), count)
    chosen = candidates[order]
    runner_up = [
        int(decide(source.scores((sample, sample + 1)), calibration).runner_up[0])
        for sample in chosen.tolist()
    ]
    return {
        "query": chosen.tolist(),
        "query_runner_up": [int(labelled.numbers[c]) if c >= 0 else 0 for c in runner_up],
    }


def ambiguity(scores: F4) -> F4:
    """Return 1 less the lead of the first over the second share, NaN without scores.

    Parameters
    ----------
    scores : array, shape (m, classes)
        Shares as they are: with few labels no calibration of them can be trusted.
    """
    shares = np.maximum(lowered(scores), 0)
    if shares.shape[1] == 1:
        return np.where(np.isnan(shares[:, 0]), np.nan, 0).astype(np.float32)
    top = np.partition(shares, -2, axis=1)[:, -2:]
    total = shares.sum(axis=1)
    lead = np.divide(top[:, 1] - top[:, 0], total, out=np.zeros_like(total), where=total > 0)
    return np.where(np.isnan(shares).any(axis=1), np.nan, 1 - lead).astype(np.float32)


def diverse(uncertainty: F4, candidates: F4, count: int) -> NDArray[np.intp]:
    """Return candidates in the order in which they should be labelled.

    The group with the most uncertainty in all comes first. Where groups share a nearest candidate,
    as copies make them do, the most uncertain others take the places left over.

    Parameters
    ----------
    uncertainty : array, shape (m,)
        At least 0.
    candidates : array, shape (m, d)
        Their coordinates.
    count
        How many; all if there are fewer.
    """
    from sklearn.cluster import KMeans
    from threadpoolctl import threadpool_limits

    by_itself = np.argsort(-uncertainty, kind="stable")
    groups = min(count, len(np.unique(candidates, axis=0)))
    if groups < 2 or len(candidates) <= count:
        return by_itself[:count]
    weights = np.maximum(uncertainty, np.float32(1e-6))
    # One thread: the order of sums, and so the answer, would follow their number.
    with threadpool_limits(1):
        found = KMeans(groups, n_init=1, random_state=0).fit(candidates, sample_weight=weights)
    centres, member = found.cluster_centers_, found.labels_
    away = np.linalg.norm(candidates - centres[member], axis=1)
    # Members group by group, the nearest first.
    sorted_members = np.lexsort((away, member))
    first = sorted_members[np.unique(member[sorted_members], return_index=True)[1]]
    total = np.bincount(member, weights)[member[first]]
    chosen = first[np.argsort(-total, kind="stable")]
    rest = by_itself[~np.isin(by_itself, chosen)]
    return np.concatenate([chosen, rest])[:count]


def _directions(stored: Any, samples: NDArray[np.int64], constant: int) -> F4:
    """Return the eigenmap coordinates of some samples, ascending, scaled to length 1."""
    last = min(stored.shape[1], constant + _MODES)
    parts = [np.empty((0, last - constant), np.float32)]
    for start, stop in blocks(stored.shape[0], stored.chunks[0]):
        first, end = np.searchsorted(samples, [start, stop])
        if end > first:
            parts.append(stored[start:stop, constant:last][samples[first:end] - start])
    rows = np.nan_to_num(np.concatenate(parts))
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(np.divide(rows, lengths, out=rows, where=lengths > 0))

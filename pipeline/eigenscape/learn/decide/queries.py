"""Pixels to label next: local maxima, on the graph, of the expected information of a label.

The most uncertain samples alone lie side by side on one border, so that a batch of them tells little more
than one. A local maximum is a sample none of whose neighbours in the graph has more to tell, so those of
a batch lie apart without being compared (LocalMax: Chapman, Chen, Tan, Calder, Miller, Bertozzi 2023;
Chen, Miller, Bertozzi, Schwenk 2023, for hyperspectral scenes). What a label would tell is the product of
two things::

    ambiguity     1 less the lead of the first class over the second
    exploration   |C u| / sqrt(s + u' C u)      how far a label moves a Gaussian field  (VOpt: Ji, Han 2012)
    C = (diag(l + e) + U' U / s)^-1             its covariance, U the rows of what has a label

u holds the first eigenvectors of a sample, scaled to variance 1, and l their eigenvalues as shares of the
largest. Without the second factor the first batches stay on borders that are known already. Samples of no
ambiguity, which all are where scores are one class or another, come after the others, by exploration.
The papers are cited from memory.
"""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenscape.base.blocks import blocks
from eigenscape.base.files.mapped import attach_memmap, create_memmap, note_rows
from eigenscape.context import Context
from eigenscape.labels.training import Labelled
from eigenscape.learn.decide.fitscores import FitScores
from eigenscape.learn.decide.kernels.decisions import Calibration, decide, lowered
from eigenscape.spectrum.kernels.operator import RowBlock
from eigenscape.spectrum.scaled import StoredGraph, stored_graph
from eigenscape.store.arrays import open_array, open_memmap

F4 = NDArray[np.float32]
F8 = NDArray[np.float64]

_MODES = 60
"""Eigenvectors of the field: more describe ever smaller parts."""

_NOISE = 25.0
"""s: a label tells of its surroundings as much as this many unit rows together leave open."""

_LEAST_VALUE = 0.03
"""e, in shares of the largest eigenvalue: what is open of the constant."""

_PIECE = 2**14
"""Rows whose neighbours, or whose eigenvectors, are looked at together."""

_MOST_MAXIMA = 50_000


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
    work = partial(
        _choose, source, labelled, calibration, context.path("spectrum/vector"),
        np.asarray(context.open("spectrum/value")[...], np.float64), stored_graph(context.run),
        context.path("graph/sample"), context.workspace.folder("learn"),
    )  # fmt: skip
    found = context.map("queries", work, [context.job.learn.queries], label="queries")[0]
    for name, kind in (("query", np.int64), ("query_runner_up", np.uint16)):
        values = np.array(found[name], kind)
        context.workspace.write_array(f"labels/{name}", values, dims=("query",))
    return len(found["query"])


def _choose(
    source: FitScores,
    labelled: Labelled,
    calibration: Calibration,
    vectors: str,
    values: F8,
    graph: StoredGraph,
    order: str,
    folder: Path,
    count: int,
) -> dict[str, Any]:
    """Return the samples to label next, and the second most probable class of each."""
    stored, modes = open_array(vectors), min(_MODES, len(values))
    ranges = blocks(stored.shape[0], stored.chunks[0])

    # Those of the random-walk Laplacian have unit length in the degrees; of a part of the graph, few rows.
    squares = np.zeros(modes)
    for block in ranges:
        rows = np.nan_to_num(stored[slice(*block)][:, :modes])
        squares += np.square(rows, dtype=np.float64).sum(axis=0)
    unit = np.sqrt(graph.rows / squares).astype(np.float32)

    def scaled(rows: F4) -> F4:
        return np.asarray(np.nan_to_num(rows) * unit, np.float32)

    outer = np.zeros((modes, modes))
    for block in ranges:
        own = labelled.sample[labelled.within(block)] - block[0]
        if len(own):
            known = scaled(stored[slice(*block)][own, :modes]).astype(np.float64)
            outer += known.T @ known
    covariance = posterior(values[:modes], outer)
    place = folder / "acquisition"
    create_memmap(place, stored.shape[:1], np.float32)
    acquired = attach_memmap(place, stored.shape[:1], np.float32, "r+")
    for block in ranges:
        found, chunk = ambiguity(source.scores(block)), stored[slice(*block)]
        for start, stop in blocks(len(found), _PIECE):
            moved = exploration(scaled(chunk[start:stop, :modes]), covariance)
            found[start:stop] = acquisition(found[start:stop], moved)
        found[labelled.sample[labelled.within(block)] - block[0]] = np.nan
        acquired[slice(*block)] = found
        note_rows(acquired, *block)
    samples = open_memmap(order)
    chosen = np.asarray(samples[local_maxima(acquired, samples, graph.open(), count)], np.int64)
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


def posterior(values: F8, outer: F8) -> F8:
    """Return C of the head of this module.

    Parameters
    ----------
    values : array, shape (modes,)
        Eigenvalues.
    outer : array, shape (modes, modes)
        Sum of u u' over the samples that have a label.
    """
    largest = max(float(values.max(initial=0)), np.finfo(np.float64).tiny)
    prior = np.maximum(values, 0) / largest + _LEAST_VALUE
    return np.asarray(np.linalg.inv(np.diag(prior) + outer / _NOISE))


def exploration(rows: F4, covariance: F8) -> F4:
    """Return how far a label would move the field, for each sample.

    Parameters
    ----------
    rows : array, shape (m, modes)
        Eigenvectors, scaled to variance 1.
    covariance : array, shape (modes, modes)
        See `posterior`.
    """
    moved = rows @ covariance.astype(np.float32)
    own = np.einsum("ij,ij->i", moved, rows)
    square = np.einsum("ij,ij->i", moved, moved)
    return np.asarray(np.sqrt(square / (np.float32(_NOISE) + own)), np.float32)


def acquisition(ambiguous: F4, explored: F4) -> F4:
    """Return the product of ambiguity and exploration; without ambiguity, below 0 by exploration alone.

    Parameters
    ----------
    ambiguous, explored : array, shape (m,)
        See `ambiguity` and `exploration`.
    """
    alone = -1 / np.maximum(explored, np.finfo(np.float32).tiny)
    return np.asarray(np.where(ambiguous == 0, alone, ambiguous * explored), np.float32)


def local_maxima(
    acquired: F4, samples: NDArray[np.int64], graph: list[RowBlock], count: int
) -> NDArray[np.int64]:
    """Return rows of a graph in the order in which their samples should be labelled.

    Parameters
    ----------
    acquired : array, shape (samples,)
        What a label of each sample would tell; NaN for those that are not asked for.
    samples : array of int, shape (rows,)
        Sample of each row.
    graph
        Blocks of its rows.
    count
        How many. Where there are fewer maxima the other rows follow, all if there are no more.
    """
    found, value = np.empty(0, np.int64), np.empty(0, np.float32)
    for block in graph:
        for start, stop in blocks(len(block.indptr) - 1, _PIECE):
            own = acquired[samples[block.first + start : block.first + stop]]
            best = _best_of_neighbors(block, start, stop, acquired, samples)
            top = np.flatnonzero(np.isfinite(own) & (own >= best))
            found = np.concatenate([found, block.first + start + top])
            value = np.concatenate([value, own[top]])
        # Stable: of equal ones the first.
        first = np.sort(np.argsort(-value, kind="stable")[:_MOST_MAXIMA])
        found, value = found[first], value[first]
    chosen: list[int] = []
    beside: set[int] = set()
    for row in found[np.argsort(-value, kind="stable")].tolist():
        # Where neighbours tell equally much, both are maxima.
        if row not in beside:
            chosen.append(row)
            beside.update(_neighbors(graph, row))
        if len(chosen) == count:
            return np.array(chosen, np.int64)
    rest = np.asarray(acquired[samples])
    rest[chosen] = np.nan
    others = np.argsort(-rest, kind="stable")[: np.isfinite(rest).sum()]
    return np.concatenate([np.array(chosen, np.int64), others])[:count]


def _best_of_neighbors(
    block: RowBlock, start: int, stop: int, acquired: F4, samples: NDArray[np.int64]
) -> F4:
    """Return the largest value among the neighbours of some rows, minus infinity without one."""
    starts = np.asarray(block.indptr[start : stop + 1], np.int64)
    near = acquired[samples[block.indices[starts[0] : starts[-1]]]]
    near = np.where(np.isnan(near), np.float32(-np.inf), near)
    best = np.full(stop - start, -np.inf, np.float32)
    filled = np.flatnonzero(np.diff(starts))
    if len(filled):
        best[filled] = np.maximum.reduceat(near, starts[filled] - starts[0])
    return best


def _neighbors(graph: list[RowBlock], row: int) -> list[int]:
    block = next(b for b in graph if row < b.first + len(b.indptr) - 1)
    starts = block.indptr[row - block.first : row - block.first + 2]
    neighbors: list[int] = np.asarray(block.indices[int(starts[0]) : int(starts[1])]).tolist()
    return neighbors

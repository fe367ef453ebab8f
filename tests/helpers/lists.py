"""Neighbour lists of the neighbors stage on given features, and the obvious ways to them."""

import importlib
import math
import os
import pkgutil
import signal
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.spatial.distance import cdist

from eigenscape.base.vectors import unit_vectors
from eigenscape.clusters import OnDone, Order, Serial, Task, Threads
from eigenscape.neighbors import search
from eigenscape.neighbors.search.duplicates import most_equal
from eigenscape.store.arrays import attach_whole
from eigenscape.store.rows import create_sparse
from graphs import lists_of_rows
from harness import Frail, Harness, name_of

# Methods import these on demand, and would take over the constants that `cut_small` has changed by then.
for _found in pkgutil.iter_modules(search.__path__, f"{search.__name__}."):
    importlib.import_module(_found.name)
importlib.import_module("eigenscape.neighbors.writing")

COMPILED_FIRST = pytest.param("pynndescent", marks=pytest.mark.slow)
"""The library compiles itself in every process, for most of a minute."""

METHODS = ["lanczos-bisection", "exact", COMPILED_FIRST]


def cut_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let some thousand samples have several tasks in every step.

    Only what the process of the stage looks at is changed: worker processes are not.
    """
    monkeypatch.setattr("eigenscape.base.memory.ROW_TILE", 128)
    monkeypatch.setattr("eigenscape.store.arrays.ROW_TILE", 512)
    monkeypatch.setattr("eigenscape.store.arrays._CHUNK_ROWS", 512)
    monkeypatch.setattr("eigenscape.neighbors.kernels.partition.LEAST_PART", 800)
    monkeypatch.setattr("eigenscape.neighbors.search.exhaustive.TASK_RANKS", 512)
    monkeypatch.setattr("eigenscape.neighbors.search.recall._ROWS", 1024)
    monkeypatch.setattr("eigenscape.neighbors.search.bisection.MOST_RANKS", 512)


class Fatal(Frail):
    """Ends its process by SIGKILL, half way through the second task of a step.

    Half of the calls that the first one made; where the second makes fewer, before it is noted.
    """

    def __init__(self, step: str) -> None:
        super().__init__()
        self._step, self._calls = step, 0

    def run(
        self, function: Task, items: Sequence[Any], on_done: OnDone, order: Order | None = None
    ) -> None:
        if name_of(function) != self._step:
            super().run(function, items, on_done, order)
            return
        super().run(partial(self._count, function), items[:1], on_done)
        half = self._calls // 2
        self._calls = 0
        sys.setprofile(lambda *_: self._end(half))
        function(items[1])
        self._end(0)

    def _count(self, function: Task, item: Any) -> Any:
        sys.setprofile(lambda *_: self._end(math.inf))
        try:
            return function(item)
        finally:
            sys.setprofile(None)

    def _end(self, most: float) -> None:
        self._calls += 1
        if self._calls > most:
            os.kill(os.getpid(), signal.SIGKILL)


class Found:
    """What a neighbors stage wrote; with a radius, `index` and `distance` hold a list per sample."""

    def __init__(self, harness: Harness, summary: dict[str, Any]) -> None:
        self.summary = summary
        self.index, self.distance = harness["neighbors/index"], harness["neighbors/distance"]
        self.order = harness["neighbors/order"]
        self.indptr = harness["neighbors/indptr"] if "radius" in summary else None

    def rows(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return neighbours and distances of each sample."""
        return lists_of_rows(self.index, self.distance, self.indptr)


def put_features(harness: Harness, features: Any) -> None:
    """Commit dense or sparse features, as the features stage would."""
    if not sp.issparse(features):
        harness.put("features", {"features/values": np.asarray(features, np.float32)})
        return
    table = sp.csr_array(features)
    workspace = harness.run_directory.workspace("features", "given")
    paths = create_sparse(workspace, "features/values", table.indptr, table.shape[1])
    for path, part in zip(paths, (table.data, table.indices), strict=False):
        attach_whole(path)[...] = part
    harness._commit("features", workspace, {})


def find_lists(
    path: Path,
    features: Any,
    *,
    memory: str = "2GiB",
    threads: int | None = None,
    executor: Any = None,
    **options: Any,
) -> Found:
    """Run the neighbors stage on given features, or go on with it.

    Parameters
    ----------
    path
        Of the run directory.
    features : array or csr_array, shape (samples, columns)
    threads
        Work on as many; in this one by default.
    options
        Table ``[neighbors]`` of the job.
    """
    harness = Harness(path, neighbors=options, limits={"memory": memory})
    if harness.run_directory.record("features") is None:
        put_features(harness, features)
    executor = executor or (Threads(threads) if threads else Serial())
    return Found(harness, harness.run("neighbors", executor))


def as_points(features: Any, metric: str = "euclidean") -> np.ndarray:
    """Return the points in double whose straight distances count: for angles, of length 1."""
    dense = features.toarray() if sp.issparse(features) else np.asarray(features)
    points = dense.astype(np.float32).astype(np.float64)
    if metric == "euclidean":
        return points
    length = np.linalg.norm(points, axis=1, keepdims=True)
    unit = np.divide(points, length, out=np.zeros_like(points), where=length > 0)
    return np.column_stack([unit, length == 0])


def as_chords(distance: np.ndarray, metric: str = "euclidean") -> np.ndarray:
    """Return the straight distances that belong to what lists say."""
    distance = distance.astype(np.float64)
    return 2 * np.sin(distance / 2) if metric == "angle" else distance


def chords(points: np.ndarray) -> np.ndarray:
    """Return all straight distances, inf from a sample to itself."""
    out = cdist(points, points)  # by differences
    np.fill_diagonal(out, np.inf)
    return out


def choose_copies_slowly(rows: Any, k: int, most: int) -> dict[int, int]:
    """Return the copies among some rows (or hashes), and who stands for each: as documented."""
    groups: dict[Any, list[int]] = {}
    for number, row in enumerate(np.asarray(rows).reshape(len(rows), -1) + 0):
        groups.setdefault(row.tobytes(), []).append(number)
    large = [group for group in groups.values() if len(group) > most]
    left = len(rows) - sum(len(group) for group in large)
    keep = 1
    while large:
        here = left + sum(min(keep, len(group)) for group in large)
        if here > (4 * k if keep < k else k):
            break
        keep += 1
    return {
        number: group[place % keep]
        for group in large
        for place, number in enumerate(group)
        if place >= keep
    }


def brute_chords(features: Any, k: int, metric: str = "euclidean") -> np.ndarray:
    """Return the straight distances of exact lists, under the rule for identical samples."""
    points = as_points(features, metric)
    # Which vectors of length 1 are identical is a matter of how they are rounded.
    rows = unit_vectors(features) if metric == "angle" else features
    copies = choose_copies_slowly(as_points(rows), k, most_equal(k))
    left = np.setdiff1d(np.arange(len(points)), list(copies))
    out = np.zeros((len(points), k))
    out[left] = np.sort(chords(points[left]), axis=1)[:, :k]
    for copy, represented in copies.items():
        out[copy, 1:] = out[represented, :-1]
    return out


def check_found(features: Any, found: Found, metric: str = "euclidean") -> None:
    """No self, no repeats, valid numbers, sorted, distances as the features have them."""
    points = as_points(features, metric)
    n = len(points)
    np.testing.assert_array_equal(np.sort(found.order), np.arange(n))
    if found.indptr is None:
        assert found.index.shape == found.distance.shape
        assert len(found.index) == n
        owner = np.repeat(np.arange(n), found.index.shape[1])
    else:
        assert found.indptr[0] == 0
        assert found.indptr[-1] == len(found.index) == len(found.distance)
        owner = np.repeat(np.arange(n), np.diff(found.indptr))
    index, distance = found.index.ravel().astype(np.int64), found.distance.ravel()
    assert distance.dtype == np.float32
    assert index.min() >= 0
    assert index.max() < n
    assert (index != owner).all()
    assert len(np.unique(owner * n + index)) == len(index)
    # Squares that differ in the last bit may have the same root.
    assert (np.diff(distance)[owner[1:] == owner[:-1]] >= 0).all()
    own = np.empty(len(index))
    for first in range(0, len(index), 10_000):
        piece = slice(first, first + 10_000)
        own[piece] = np.sqrt(((points[index[piece]] - points[owner[piece]]) ** 2).sum(axis=1))
    # Vectors of length 1 are rounded to single precision before they are compared.
    slack = 1e-6 if metric == "angle" else 1e-30
    np.testing.assert_allclose(as_chords(distance, metric), own, rtol=1e-5, atol=slack)


def check_exact(features: Any, found: Found, metric: str = "euclidean") -> None:
    """Every list is as near as a list can be: with `check_found`, equal to brute force up to ties."""
    expected = brute_chords(features, found.index.shape[1], metric)
    slack = 1e-6 if metric == "angle" else 1e-7 * max(float(expected.max()), 1e-30)
    np.testing.assert_allclose(as_chords(found.distance, metric), expected, rtol=1e-5, atol=slack)


def true_recall(features: Any, found: Found, metric: str = "euclidean") -> float:
    """Return the share of neighbours that are as near as the k-th true one."""
    limit = brute_chords(features, found.index.shape[1], metric)[:, -1:]
    return float((as_chords(found.distance, metric) <= limit * (1 + 1e-5) + 1e-9).mean())


def assert_same(one: Found, other: Found) -> None:
    """Both are the same, bit for bit."""
    for name in ("index", "distance", "order", "indptr"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), name)


def clustered(rng: np.random.Generator, n: int, width: int = 12, clusters: int = 6) -> np.ndarray:
    """Return samples in overlapping clusters of fewer dimensions than columns."""
    centres = 4 * rng.standard_normal((clusters, width))
    flat = rng.standard_normal((width, width)) * np.geomspace(1, 0.05, width)[:, None]
    samples = centres[rng.integers(0, clusters, n)] + rng.standard_normal((n, width)) @ flat
    return samples.astype(np.float32)


def words(rng: np.random.Generator, n: int, columns: int = 60, share: float = 0.1) -> sp.csr_array:
    """Return a sparse table of counts, in which few rows are alike."""
    counts = rng.integers(1, 9, (n, columns)) * (rng.random((n, columns)) < share)
    return sp.csr_array((counts * rng.uniform(0.5, 2, (n, 1))).astype(np.float32))

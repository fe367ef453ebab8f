"""What the lists of every method obey, and what no setting of the machine changes."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from eigenscape.clusters import ClusterOptions, connect
from harness import Frail
from lists import (
    as_chords,
    as_points,
    assert_same,
    check_exact,
    check_found,
    chords,
    clustered,
    find_lists,
    true_recall,
    words,
)

# Few values: most samples have equals, and most distances are ties.
points = arrays(
    np.float32,
    st.tuples(st.integers(2, 40), st.integers(1, 4)),
    elements=st.integers(-3, 3).map(float),
)


@settings(max_examples=20)
@given(
    features=points, k=st.integers(1, 12), sparse=st.booleans(),
    metric=st.sampled_from(["euclidean", "angle"]),
    method=st.sampled_from(["lanczos-bisection", "exact"]),
)  # fmt: skip
def test_neighbors_stage__equals_brute_force(tmp_path_factory, features, k, sparse, metric, method):
    k = min(k, len(features) - 1)
    table = sp.csr_array(features) if sparse else features
    path = tmp_path_factory.mktemp("lists") / "run"
    found = find_lists(path, table, k=k, metric=metric, method=method)
    check_found(table, found, metric)
    check_exact(table, found, metric)
    if metric == "euclidean":
        # Equally near ones by number, but for the one that a copy stands for.
        steps, ties = np.diff(found.index, axis=1), np.diff(found.distance, axis=1) == 0
        assert (steps[:, 1:][ties[:, 1:]] > 0).all()


@settings(max_examples=8)
@given(
    n=st.integers(40, 200), width=st.integers(1, 6), k=st.integers(1, 9), seed=st.integers(0, 99),
    overlap=st.floats(0, 0.5),
)  # fmt: skip
def test_bisection__lists_are_valid_in_small_leaves(tmp_path_factory, n, width, k, seed, overlap):
    features = np.random.default_rng(seed).standard_normal((n, width)).astype(np.float32)
    path = tmp_path_factory.mktemp("lists") / "run"
    found = find_lists(path, features, k=k, leaf_size=32, overlap=overlap)
    check_found(features, found)
    assert true_recall(features, found) > 0.3


@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize("metric", ["euclidean", "angle"])
def test_bisection__is_exact_within_one_leaf(find, rng, kind, metric):
    features = words(rng, 900) if kind == "sparse" else clustered(rng, 900)
    found = find(features, k=12, leaf_size=1000, metric=metric)
    assert found.summary["parts"] == 1
    check_exact(features, found, metric)


def test_bisection__is_exact_with_much_overlap(find, rng):
    features = rng.uniform(0, 1, (1500, 2))
    check_exact(features, find(features, k=6, leaf_size=100, overlap=0.5))


def test_exact__counts_are_symmetric(find, rng):
    features = clustered(rng, 2000)
    found = find(features, method="exact", k=10)
    reach = found.distance[:, -1]
    rows = np.repeat(np.arange(2000), 10)
    near, away = found.index.ravel(), found.distance.ravel()
    inside = away < np.minimum(reach[rows], reach[near])
    pairs = set(zip(rows[inside].tolist(), near[inside].tolist(), strict=True))
    assert len(pairs) > 5000
    assert pairs == {(other, row) for row, other in pairs}


OPTIONS = {
    "lanczos-bisection": {"k": 5, "leaf_size": 100},
    "exact": {"k": 5},
    "radius": {"k": 5, "radius": 0.1},
}


@pytest.mark.mostly_slow(2)
@pytest.mark.parametrize(
    ("method", "kind", "metric"),
    [
        ("lanczos-bisection", "dense", "euclidean"),
        ("lanczos-bisection", "sparse", "angle"),
        ("exact", "sparse", "euclidean"),
        ("radius", "dense", "angle"),
    ],
)
def test_neighbors_stage__block_size_and_threads_change_nothing(
    find, rng, small_blocks, method, kind, metric
):
    features = words(rng, 2100, 30) if kind == "sparse" else 0.5 * clustered(rng, 2100, 6)
    logs, found = [], []
    for memory in ("200MiB", "8GiB"):
        frail = Frail()
        options = {**OPTIONS[method], "method": method, "metric": metric, "memory": memory}
        found.append(find(features, name=memory, executor=frail, **options))
        logs.append([item for name, item in frail.log if name == "route_block"])
    options = {**options, "memory": "300MiB"}
    found.append(find(features, name="threads", threads=5, **options))
    # Blocks did differ.
    assert logs[0] != logs[1]
    assert found[0].summary["parts"] == 4
    for other in found[1:]:
        assert_same(found[0], other)
        assert other.summary == found[0].summary


@pytest.mark.slow
def test_neighbors_stage__worker_processes_change_nothing(find, rng, small_blocks):
    hard = rng.standard_normal((2000, 12))
    runs = {
        "bisection": (hard, {"k": 5, "leaf_size": 48, "recall": 0.9}),
        "radius": (words(rng, 2000), {"method": "radius", "radius": 0.7, "metric": "angle"}),
    }
    with connect(ClusterOptions(kind="local", workers=2), None, 2**31) as workers:
        for name, (table, options) in runs.items():
            one = find(table, name=name, executor=workers, memory="200MiB", **options)
            other = find(table, name=f"{name}-threads", threads=3, memory="8GiB", **options)
            assert_same(one, other)
            assert one.summary == other.summary
            trees = [step["step"].startswith("tree") for step in one.summary.get("steps", [])]
            assert name != "bisection" or sum(trees) > 1


@pytest.mark.parametrize("metric", ["euclidean", "angle"])
def test_neighbors_stage__summary_says_what_was_done(find, rng, metric):
    features = clustered(rng, 600)
    found = find(features, k=6, metric=metric)
    expected = {"method": "lanczos-bisection", "metric": metric, "parts": 1, "copies": 0, "k": 6}
    assert {key: found.summary[key] for key in expected} == expected
    assert [step["step"] for step in found.summary["steps"]][:1] == ["tree 1"]
    away = chords(as_points(features, metric))
    near = np.take_along_axis(away, found.index.astype(np.int64), axis=1)
    np.testing.assert_allclose(as_chords(found.distance, metric), near, rtol=1e-5, atol=1e-6)


def test_neighbors_stage__measures_the_intrinsic_dimension(find, rng, monkeypatch):
    plane = rng.random((3000, 2)) @ rng.normal(size=(2, 9))
    found = find(plane.astype(np.float32), k=8, method="exact").summary["intrinsic_dimension"]
    assert found["value"] == pytest.approx(2, abs=0.15)
    assert found["low"] < found["value"] < found["high"]
    assert found["samples"] == 3000
    # Of many samples some segments, in every chunk of the lists.
    monkeypatch.setattr("eigenscape.neighbors.writing._DIMENSION_SEGMENTS", 4)
    some = find(plane.astype(np.float32), k=8, method="exact").summary["intrinsic_dimension"]
    assert some["samples"] == 4 * 256
    assert some["value"] == pytest.approx(2, abs=0.3)


def test_neighbors_stage__no_dimension_where_all_distances_are_equal(find):
    found = find(np.repeat(np.eye(3, dtype=np.float32), 20, axis=0), k=4)
    assert found.summary["intrinsic_dimension"] == {
        "value": None, "low": None, "high": None, "samples": 0,
    }  # fmt: skip

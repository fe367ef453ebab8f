"""All pairs within a radius, against a dense reference."""

import math
import re

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from eigenscape.errors import InputError
from eigenscape.neighbors.search import exhaustive
from lists import (
    as_chords,
    as_points,
    check_found,
    choose_copies_slowly,
    chords,
    clustered,
    find_lists,
    words,
)


def check_radius(features, found, radius, metric="euclidean", copies=()):
    """Who is within, with what distance; pairs within rounding of the radius may be either."""
    away = chords(as_points(features, metric))
    away[list(copies)] = away[:, list(copies)] = np.inf
    chord = float(as_chords(np.array(radius), metric))
    slack = 1e-6 * chord if metric == "euclidean" else 1e-6
    for row, (near, distance) in enumerate(found.rows()):
        if row in copies:
            continue
        surely, perhaps = (np.flatnonzero(away[row] <= chord + sign * slack) for sign in (-1, 1))
        assert set(surely) <= set(near) <= set(perhaps)
        np.testing.assert_allclose(
            as_chords(distance, metric), away[row, near], rtol=1e-5, atol=1e-6 * chord
        )
    counts = np.diff(found.indptr)
    assert found.summary["entries"] == len(found.index) == counts.sum()
    assert found.summary["mean_neighbors"] == pytest.approx(counts.mean())
    assert found.summary["isolated"] == (counts == 0).sum()
    assert found.summary["radius"] == radius


@pytest.mark.mostly_slow(2)
@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize("metric", ["euclidean", "angle"])
def test_radius__equals_comparing_all_pairs(find, rng, small_blocks, kind, metric):
    features = words(rng, 1500, 40) if kind == "sparse" else clustered(rng, 1500, 5)
    radius = {
        ("dense", "euclidean"): 1.5,
        ("dense", "angle"): 0.1,
        ("sparse", "euclidean"): 5.0,
        ("sparse", "angle"): 0.8,
    }[kind, metric]
    found = find(features, method="radius", metric=metric, radius=radius, k=1000)
    assert found.index.dtype == np.int32
    assert 1 < found.summary["mean_neighbors"] < 300
    check_radius(features, found, radius, metric)


@pytest.mark.slow
@settings(max_examples=12)
@given(
    n=st.integers(2, 60), width=st.integers(1, 3), squared=st.integers(1, 8),
    seed=st.integers(0, 999), sparse=st.booleans(),
)  # fmt: skip
def test_radius__holds_pairs_that_are_just_as_far(
    tmp_path_factory, n, width, squared, seed, sparse
):
    # Whole numbers: every squared distance is exact, and many are the radius itself.
    features = np.random.default_rng(seed).integers(-3, 4, (n, width)).astype(np.float32)
    features[-1] = features[0] + np.eye(1, width)[0]
    radius = math.nextafter(math.sqrt(squared), math.inf) + 1e-7
    table = sp.csr_array(features) if sparse else features
    path = tmp_path_factory.mktemp("lists") / "run"
    found = find_lists(path, table, method="radius", radius=radius, k=1000)
    check_found(table, found)
    away = chords(features.astype(np.float64))
    for row, (near, _) in enumerate(found.rows()):
        within = np.flatnonzero(away[row] ** 2 <= squared + 0.5)
        np.testing.assert_array_equal(near, within[np.argsort(away[row, within], kind="stable")])


def test_radius__lists_may_be_empty(find, rng):
    features = clustered(rng, 1000, 3)
    features[[0, 500, 999]] = [[900, 0, 0], [0, 900, 0], [0, 0, 900]]
    found = find(features, method="radius", radius=0.5)
    for sample in (0, 500, 999):
        assert found.indptr[sample] == found.indptr[sample + 1]
    check_radius(features, found, 0.5)
    assert found.summary["isolated"] >= 3


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_radius__may_hold_all_pairs(find, rng, kind):
    features = clustered(rng, 400)
    table = sp.csr_array(features) if kind == "sparse" else features
    found = find(table, method="radius", radius=1e4)
    assert (np.diff(found.indptr) == 399).all()


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_radius__of_a_half_turn_holds_all_pairs(find, rng, kind):
    features = rng.standard_normal((200, 5))
    features = np.concatenate([features, -3 * features, np.zeros((2, 5))]).astype(np.float32)
    table = sp.csr_array(features) if kind == "sparse" else features
    found = find(table, method="radius", metric="angle", radius=math.pi)
    assert (np.diff(found.indptr) == 401).all()
    opposite = [
        distance[near == row + 200] for row, (near, distance) in enumerate(found.rows()[:200])
    ]
    np.testing.assert_allclose(np.concatenate(opposite), math.pi, atol=1e-3)


def test_radius__just_short_of_a_right_angle_leaves_zeros_alone(find, rng):
    features = np.abs(rng.standard_normal((300, 4)))
    features[[3, 8]] = 0
    found = find(features, method="radius", metric="angle", radius=1.57)
    for sample, other in ((3, 8), (8, 3)):
        near, distance = found.rows()[sample]
        assert near.tolist() == [other]
        assert distance.tolist() == [0]
    wider = find(features, name="wider", method="radius", metric="angle", radius=1.58)
    assert (np.diff(wider.indptr) == 299).all()


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_radius__copies_have_the_list_of_their_representative(find, rng, small_blocks, kind):
    features = clustered(rng, 1500, 3)
    features[rng.random(1500) < 0.3] = features[0]
    features[[5, 1499, 700, 1234]] = features[3]
    features[[100, 101]] = features[102]  # few enough to be left alone
    features[[7, 8, 9, 10]] = 1e3 * np.arange(3)  # neighbours of nobody but themselves
    table = sp.csr_array(features) if kind == "sparse" else features
    found = find(table, method="radius", radius=0.5, k=12)
    copies = choose_copies_slowly(features, 0, 3)
    assert found.summary["copies"] == len(copies) > 400
    check_radius(features, found, 0.5, copies=list(copies))
    rows = found.rows()
    for copy, represented in copies.items():
        np.testing.assert_array_equal(rows[copy][0], [represented, *rows[represented][0]])
        np.testing.assert_array_equal(rows[copy][1], [0, *rows[represented][1]])
    assert rows[7][0].size == 0
    assert [rows[copy][0].tolist() for copy in (8, 9, 10)] == [[7]] * 3
    assert set(rows[100][0][:2]) == {101, 102}


@pytest.mark.parametrize("n", [2, 700])
def test_radius__takes_samples_that_are_all_equal(find, n):
    found = find(np.full((n, 4), 3.3), method="radius", radius=0.1)
    # Up to a quarter of k of them stand for themselves.
    assert found.summary["entries"] == (2 if n == 2 else n - 1)
    assert (found.distance == 0).all()


def test_radius__says_where_there_are_too_many_pairs(find, rng, monkeypatch):
    monkeypatch.setattr(exhaustive, "MOST_NEIGHBORS", 5)
    features = rng.uniform(0, 1, (900, 2))
    find(features, name="few", method="radius", radius=0.02)
    with pytest.raises(InputError) as caught:
        find(features, method="radius", radius=0.25)
    message = str(caught.value)
    for word in (
        "neighbors.radius = 0.25",
        "900 samples",
        "4500",
        "5 each",
        "smaller",
        "k nearest",
    ):
        assert word in message, message


def test_radius__is_the_job_s_own_in_messages_about_angles(find, rng, monkeypatch):
    monkeypatch.setattr(exhaustive, "MOST_NEIGHBORS", 5)
    with pytest.raises(InputError, match=r"neighbors\.radius = 1\.25: 900 samples"):
        find(rng.standard_normal((900, 3)), method="radius", metric="angle", radius=1.25)


@pytest.mark.parametrize("metric", ["euclidean", "angle"])
@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_radius__says_where_there_are_no_pairs(find, rng, metric, kind):
    features = rng.standard_normal((500, 3))
    nearest = np.median(chords(as_points(features, metric)).min(axis=1))
    nearest = 2 * np.arcsin(nearest / 2) if metric == "angle" else nearest
    table = sp.csr_array(features) if kind == "sparse" else features
    with pytest.raises(InputError) as caught:
        find(table, method="radius", metric=metric, radius=1e-5)
    message = str(caught.value)
    for word in ("neighbors.radius = 1e-05", "no sample has another within", "larger"):
        assert word in message, message
    told = float(re.search(r"nearest at (\S+) or less", message)[1])
    assert told == pytest.approx(nearest, rel=2e-3)

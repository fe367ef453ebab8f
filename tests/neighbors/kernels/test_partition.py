import math

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from eigenscape.neighbors.kernels import partition
from eigenscape.neighbors.kernels.partition import (
    Leaves,
    build_tree,
    part_size,
    route,
    search_part,
    split_levels,
)
from lists import chords

KINDS = {"dense": np.asarray, "sparse": sp.csr_array}
kinds = st.sampled_from(list(KINDS))


def build(features, levels, overlap, sample=None, turn=0):
    samples = np.arange(features.shape[0]) if sample is None else sample
    return build_tree(features[samples], samples, levels, overlap, turn)


def routed(features, tree, step=None):
    """Route block by block; return the samples and the homes of each part."""
    n = features.shape[0]
    samples, homes = [[] for _ in range(tree.parts)], [[] for _ in range(tree.parts)]
    for first in range(0, n, step or n):
        numbers = np.arange(first, min(first + (step or n), n))
        rows, home, offsets = route(features[numbers], numbers, tree)
        for part in range(tree.parts):
            piece = slice(offsets[part], offsets[part + 1])
            samples[part].append(rows[piece] + first)
            homes[part].append(home[piece])
    return [np.concatenate(part) for part in samples], [np.concatenate(part) for part in homes]


@pytest.mark.parametrize(
    ("overlap", "exponent"),
    [(0.05, 1.08), (0.1, 1.16), (0.15, 1.25), (0.2, 1.36), (0.25, 1.47), (0.3, 1.61), (0.35, 1.76)],
)
def test_split_levels__gives_the_cost_exponent_of_the_thesis(overlap, exponent):
    # Leaves of one size cost alike, so the cost grows like their number, 2**levels.
    few, many = (split_levels(rows, 1000, overlap) for rows in (10**6, 10**60))
    assert (many - few) * math.log(2) / math.log(10**54) == pytest.approx(exponent, abs=0.01)


@pytest.mark.mostly_slow(1)
@pytest.mark.parametrize("overlap", [0.0, 0.1, 0.2, 0.3])
def test_search_part__compares_as_many_pairs_as_the_exponent_says(rng, monkeypatch, overlap):
    compared = []

    def count(left, right):
        compared.append(len(left) * len(right))
        return np.empty((0, 0), np.float32)

    monkeypatch.setattr(partition, "products", count)
    monkeypatch.setattr(partition.kernels, "push_products", lambda *_: None)
    step, leaf = 2 / (1 + overlap), 1024
    # From 2**12 to 2**16, whole numbers of splits: what lies between costs as much as the next.
    levels = [level for level in range(20) if 2**12 <= leaf * step**level <= 2**16]
    sizes, costs = [math.floor(leaf * step**level) for level in levels], []
    for size in sizes:
        features = rng.standard_normal((size, 2)).astype(np.float32)
        compared.clear()
        search_part(features, np.arange(size), Leaves(1, overlap, leaf))
        costs.append(sum(compared))
    slope = np.polyfit(np.log(sizes), np.log(costs), 1)[0]
    assert len(levels) >= 4
    assert slope == pytest.approx(1 / (1 - math.log2(1 + overlap)), abs=0.03)


@given(rows=st.integers(1, 10**9), size=st.integers(1, 10**5), overlap=st.floats(0, 0.5))
def test_split_levels__reaches_the_size_and_no_more(rows, size, overlap):
    levels = split_levels(rows, size, overlap)
    share = (1 + overlap) / 2
    assert rows * share**levels <= size * (1 + 1e-6)
    assert levels == 0 or rows * share ** (levels - 1) > size


def test_part_size__is_bounded_on_both_sides():
    assert [part_size(rows) for rows in (1, 50_000, 10**5, 10**6, 10**9)] == [
        2**13, 2**13, 12_500, 2**16, 2**16,
    ]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("overlap", [0.0, 0.1, 0.5])
@pytest.mark.parametrize("duplicates", [False, True])
@pytest.mark.parametrize("turn", [0, 1])
def test_route__splits_evenly_and_shares_as_asked(rng, kind, overlap, duplicates, turn):
    features = rng.standard_normal((6000, 6)).astype(np.float32)
    if duplicates:
        features[rng.random(6000) < 0.9] = features[0]
    features = KINDS[kind](features)
    samples, homes = routed(features, build(features, 2, overlap, turn=turn))
    shared = (1 + overlap) / 2
    for part in range(4):
        residents = samples[part][homes[part] == part]
        assert len(samples[part]) == pytest.approx(6000 * shared**2, rel=0.02)
        # A median is over all members of a set: guests take their places in one half of it.
        assert len(residents) == pytest.approx(1500, rel=0.01 + overlap)


@given(
    n=st.integers(2, 300), levels=st.integers(1, 4), overlap=st.floats(0, 0.5),
    duplicates=st.floats(0, 1), seed=st.integers(0, 99), step=st.integers(1, 300), kind=kinds,
)  # fmt: skip
def test_route__gives_every_sample_one_home(n, levels, overlap, duplicates, seed, step, kind):
    rng = np.random.default_rng(seed)
    features = rng.standard_normal((n, 3)).astype(np.float32)
    features[rng.random(n) < duplicates] = features[0]
    features = KINDS[kind](features)
    # The tree may be built from few of the samples.
    tree = build(features, levels, overlap, np.sort(rng.choice(n, (n + 1) // 2, replace=False)))
    samples, homes = routed(features, tree)
    owned = np.concatenate(
        [s[h == part] for part, (s, h) in enumerate(zip(samples, homes, strict=True))]
    )
    np.testing.assert_array_equal(np.sort(owned), np.arange(n))
    home = np.empty(n, int)
    for part in range(tree.parts):
        home[samples[part][homes[part] == part]] = part
    for part in range(tree.parts):
        assert (np.diff(samples[part]) > 0).all()
        np.testing.assert_array_equal(homes[part], home[samples[part]])
    # Block by block it is the same.
    again, homes_again = routed(features, tree, step)
    for part in range(tree.parts):
        np.testing.assert_array_equal(again[part], samples[part])
        np.testing.assert_array_equal(homes_again[part], homes[part])


def test_route__sends_a_sample_to_the_parts_that_its_projections_name(rng):
    features = rng.standard_normal((400, 2)).astype(np.float32)
    tree = build(features, 1, 0.2)
    samples, homes = routed(features, tree)
    values = features @ tree.directions[0]
    lower, middle, upper = tree.bounds[0]
    np.testing.assert_array_equal(samples[0], np.flatnonzero(values < upper - 1e-6))
    np.testing.assert_array_equal(samples[1], np.flatnonzero(values > lower - 1e-6))
    np.testing.assert_array_equal(homes[0] == 1, values[samples[0]] > middle - 1e-6)


def test_route__without_splits_has_one_part(rng):
    features = rng.standard_normal((30, 2)).astype(np.float32)
    rows, home, offsets = route(features, np.arange(100, 130), build(features, 0, 0.1))
    np.testing.assert_array_equal(rows, np.arange(30))
    np.testing.assert_array_equal(home, 0)
    np.testing.assert_array_equal(offsets, [0, 30])


def test_route__goes_by_numbers_where_samples_are_equal():
    features = np.ones((200, 3), np.float32)
    tree = build(features, 3, 0.0)
    samples, _ = routed(features, tree)
    assert [len(part) for part in samples] == [25] * 8
    # Whichever others come along, a number has its part.
    chosen = np.arange(0, 200, 7)
    rows, home, _ = route(features[chosen], chosen, tree)
    for row, part in zip(rows, home, strict=True):
        assert chosen[row] in samples[part]


def test_build_tree__of_another_turn_has_other_directions(rng):
    features = rng.standard_normal((500, 4)).astype(np.float32)
    trees = [build(features, 2, 0.1, turn=turn) for turn in (0, 1, 2, 1)]
    for one, other in ((0, 1), (1, 2), (0, 2)):
        apart = np.abs(trees[one].directions - trees[other].directions).max(axis=1)
        assert (apart > 1e-3).all()
    np.testing.assert_array_equal(trees[1].directions, trees[3].directions)


def brute(features, k):
    distance = chords(features.astype(np.float64))
    index = np.argsort(distance, axis=1, kind="stable")[:, :k]
    return index, np.take_along_axis(distance, index, axis=1) ** 2


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [2, 3, 50, 700])
def test_search_part__of_one_leaf_is_brute_force(rng, kind, n):
    features = rng.standard_normal((n, 12)).astype(np.float32)
    numbers = np.sort(rng.choice(10_000, n, replace=False)).astype(np.int32)
    leaves = Leaves(6, 0.1, 1000)
    index, distance, place = search_part(KINDS[kind](features), numbers, leaves)
    expected, squared = brute(features, min(6, n - 1))
    assert (index.dtype, distance.dtype) == (np.int32, np.float32)
    np.testing.assert_array_equal(index[:, : n - 1], numbers[expected])
    np.testing.assert_allclose(distance[:, : n - 1], squared, rtol=1e-5)
    assert (index[:, n - 1 :] == -1).all()
    assert np.isinf(distance[:, n - 1 :]).all()
    np.testing.assert_array_equal(np.sort(place), np.arange(n))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("turn", [0, 2])
def test_search_part__finds_most_neighbours_in_small_leaves(rng, kind, turn):
    features = rng.standard_normal((1500, 4)).astype(np.float32)
    leaves = Leaves(8, 0.3, 200, turn=turn)
    index, distance, place = search_part(KINDS[kind](features), np.arange(1500), leaves)
    _, squared = brute(features, 8)
    assert (distance <= squared[:, -1:] * (1 + 1e-5)).mean() > 0.97
    assert (index != np.arange(1500)[:, None]).all()
    own = ((features[:, None] - features[index]) ** 2).sum(axis=2)
    np.testing.assert_allclose(distance, own, rtol=1e-5)
    assert (np.diff(distance, axis=1) >= 0).all()
    np.testing.assert_array_equal(np.sort(place), np.arange(1500))


@pytest.mark.parametrize("kind", KINDS)
def test_search_part__orders_samples_by_where_they_are(rng, kind):
    features = rng.uniform(0, 1, (4000, 1)).astype(np.float32)
    leaves = Leaves(0, 0.0, 500)
    index, _, place = search_part(KINDS[kind](features), np.arange(4000), leaves)
    assert index.shape == (4000, 0)
    # In one dimension the leaves in order are intervals in order, from either end.
    ends = np.array([features[place // 500 == leaf].mean() for leaf in range(8)])
    assert (np.diff(ends) > 0).all()


@pytest.mark.parametrize("overlap", [0.1, 0.5])
def test_search_part__splits_duplicates_evenly(overlap):
    features = np.ones((2000, 3), np.float32)
    index, distance, place = search_part(features, np.arange(2000), Leaves(5, overlap, 300))
    np.testing.assert_array_equal(distance, 0)
    assert (index >= 0).all()
    np.testing.assert_array_equal(np.sort(place), np.arange(2000))

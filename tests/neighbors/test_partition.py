import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eigenscape.neighbors.partition import (
    build_tree,
    principal_direction,
    route,
    search_part,
    split_levels,
)


def build(features, levels, overlap, sample=None):
    samples = np.arange(len(features)) if sample is None else sample
    return build_tree(features[samples], samples, levels, overlap)


def routed(features, tree, step=None):
    """Route block by block; return the samples and the homes of each part."""
    step = step or len(features)
    samples, homes = [[] for _ in range(tree.parts)], [[] for _ in range(tree.parts)]
    for first in range(0, len(features), step):
        rows, home, offsets = route(features[first : first + step], first, tree)
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


@given(rows=st.integers(1, 10**9), size=st.integers(1, 10**5), overlap=st.floats(0, 0.5))
def test_split_levels__reaches_the_size_and_no_more(rows, size, overlap):
    levels = split_levels(rows, size, overlap)
    share = (1 + overlap) / 2
    assert rows * share**levels <= size * (1 + 1e-6)
    assert levels == 0 or rows * share ** (levels - 1) > size


@pytest.mark.parametrize(("rows", "width"), [(5, 3), (500, 30), (20_000, 4), (300, 200)])
def test_principal_direction__agrees_with_the_svd(rng, rows, width):
    points = 100 + rng.standard_normal((rows, width)) * np.geomspace(9, 1, width)
    points = (points @ np.linalg.qr(rng.standard_normal((width, width)))[0]).astype(np.float32)
    found = principal_direction(points)
    kept = points[:: max(1, rows // 4096)][:4096].astype(np.float64)
    _, lengths, right = np.linalg.svd(kept - kept.mean(axis=0), full_matrices=False)
    along = np.linalg.norm((kept - kept.mean(axis=0)) @ found)
    # Along it the points vary as much as along the best, within what 12 Lanczos steps can tell.
    assert along > 0.995 * lengths[0]
    if lengths[1] < 0.7 * lengths[0]:
        assert abs(found @ right[0]) > 0.999
    assert np.linalg.norm(found) == pytest.approx(1, abs=1e-6)
    assert found[np.abs(found).argmax()] > 0


def test_principal_direction__of_one_dimensional_data_is_exact(rng):
    direction = rng.standard_normal(200)
    direction *= np.sign(direction[np.abs(direction).argmax()]) / np.linalg.norm(direction)
    points = (rng.standard_normal((1000, 1)) * direction).astype(np.float32)
    np.testing.assert_allclose(principal_direction(points), direction, atol=1e-5)


@pytest.mark.parametrize("rows", [1, 2, 10])
def test_principal_direction__of_equal_rows_is_the_first_axis(rows):
    np.testing.assert_array_equal(
        principal_direction(np.full((rows, 3), 7.3, np.float32)), [1, 0, 0]
    )


@pytest.mark.parametrize("overlap", [0.0, 0.1, 0.5])
@pytest.mark.parametrize("duplicates", [False, True])
def test_route__splits_evenly_and_shares_as_asked(rng, overlap, duplicates):
    features = rng.standard_normal((6000, 6)).astype(np.float32)
    if duplicates:
        features[rng.random(6000) < 0.9] = features[0]
    tree = build(features, 2, overlap)
    samples, homes = routed(features, tree)
    shared = (1 + overlap) / 2
    for part in range(4):
        residents = samples[part][homes[part] == part]
        assert len(samples[part]) == pytest.approx(6000 * shared**2, rel=0.02)
        # A median is over all members of a set: guests take their places in one half of it.
        assert len(residents) == pytest.approx(1500, rel=0.01 + overlap)


@given(
    n=st.integers(2, 300), levels=st.integers(1, 4), overlap=st.floats(0, 0.5),
    duplicates=st.floats(0, 1), seed=st.integers(0, 99), step=st.integers(1, 300),
)  # fmt: skip
def test_route__gives_every_sample_one_home(n, levels, overlap, duplicates, seed, step):
    rng = np.random.default_rng(seed)
    features = rng.standard_normal((n, 3)).astype(np.float32)
    features[rng.random(n) < duplicates] = features[0]
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
    rows, home, offsets = route(features, 100, build(features, 0, 0.1))
    np.testing.assert_array_equal(rows, np.arange(30))
    np.testing.assert_array_equal(home, 0)
    np.testing.assert_array_equal(offsets, [0, 30])


def brute(features, k):
    squared = ((features[:, None].astype(np.float64) - features[None]) ** 2).sum(axis=2)
    np.fill_diagonal(squared, np.inf)
    index = np.argsort(squared, axis=1, kind="stable")[:, :k]
    return index, np.take_along_axis(squared, index, axis=1)


@pytest.mark.parametrize("n", [2, 3, 50, 700])
def test_search_part__of_one_leaf_is_brute_force(rng, n):
    features = rng.standard_normal((n, 12)).astype(np.float32)
    k = min(6, n - 1)
    numbers = np.sort(rng.choice(10_000, n, replace=False))
    index, distance, place = search_part(features, numbers, k, 0.1, 1000, np.int32)
    expected, squared = brute(features, k)
    np.testing.assert_array_equal(index, numbers[expected])
    np.testing.assert_allclose(distance, squared, rtol=1e-5)
    np.testing.assert_array_equal(np.sort(place), np.arange(n))


def test_search_part__finds_most_neighbours_in_small_leaves(rng):
    features = rng.standard_normal((3000, 4)).astype(np.float32)
    index, distance, place = search_part(features, np.arange(3000), 8, 0.3, 300, np.int64)
    _, squared = brute(features, 8)
    assert (distance <= squared[:, -1:] * (1 + 1e-5)).mean() > 0.97
    assert (index != np.arange(3000)[:, None]).all()
    own = ((features[:, None] - features[index]) ** 2).sum(axis=2)
    np.testing.assert_allclose(distance, own, rtol=1e-5)
    assert (np.diff(distance, axis=1) >= 0).all()
    np.testing.assert_array_equal(np.sort(place), np.arange(3000))


def test_search_part__orders_samples_by_where_they_are(rng):
    features = rng.uniform(0, 1, (4000, 1)).astype(np.float32)
    _, _, place = search_part(features, np.arange(4000), 0, 0.0, 500, np.int32)
    # In one dimension the leaves in order are intervals in order, from either end.
    ends = np.array([features[place // 500 == leaf].mean() for leaf in range(8)])
    assert len(ends) == 8
    assert (np.diff(ends) > 0).all()


def test_search_part__splits_duplicates_evenly(rng):
    features = np.ones((4000, 3), np.float32)
    index, distance, place = search_part(features, np.arange(4000), 5, 0.1, 300, np.int32)
    np.testing.assert_array_equal(distance, 0)
    assert (index >= 0).all()
    np.testing.assert_array_equal(np.sort(place), np.arange(4000))

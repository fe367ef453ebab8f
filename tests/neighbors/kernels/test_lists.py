import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from eigenscape.base.vectors import as_parts
from eigenscape.neighbors.kernels import lists as kernels

KINDS = {"dense": lambda points: points, "sparse": lambda points: as_parts(sp.csr_array(points))}

# Small integers: every product and distance is exact, and most of them are ties.
points = arrays(
    np.float32,
    st.tuples(st.integers(2, 40), st.integers(1, 5)),
    elements=st.integers(-3, 3).map(float),
)
kinds = st.sampled_from(list(KINDS))


def empty_lists(rows, k):
    return np.full((rows, k), -1, np.int32), np.full((rows, k), np.inf, np.float32)


def squared_distances(x, y):
    return ((x[:, None, :].astype(np.float64) - y[None, :, :]) ** 2).sum(axis=2)


def sorted_lists(squared, k):
    """Return the k nearest columns of each row by (distance, number), infinite ones as -1."""
    index = np.lexsort((np.broadcast_to(np.arange(squared.shape[1]), squared.shape), squared))
    index = index[:, :k]
    distance = np.take_along_axis(squared, index, axis=1)
    index = np.where(np.isfinite(distance), index, -1)
    short = ((0, 0), (0, k - index.shape[1]))
    return np.pad(index, short, constant_values=-1), np.pad(distance, short, constant_values=np.inf)


def others(points):
    squared = squared_distances(points, points)
    np.fill_diagonal(squared, np.inf)
    return squared


def random_lists(rng, n, k):
    """Return lists of k samples each, in no order, without the sample itself."""
    return np.stack([rng.permutation(np.delete(np.arange(n), row))[:k] for row in range(n)])


def push(points, tiles, k, kind="dense", about=0.0):
    """Offer tiles of samples to the lists of all samples."""
    n = len(points)
    moved = points - np.float32(about)
    norms, rows = (moved**2).sum(axis=1), np.arange(n)
    index, distance = empty_lists(n, k)
    for tile in tiles:
        kernels.push_products(
            KINDS[kind](points), KINDS[kind](points[tile]), moved @ moved[tile].T, norms,
            norms[tile], rows, np.asarray(tile), rows, index, distance,
        )  # fmt: skip
    return index, distance


@given(points=points, k=st.integers(1, 10), kind=kinds)
def test_push_products__equals_sorting_all_distances(points, k, kind):
    index, distance = push(points, [np.arange(len(points))], k, kind)
    expected, squared = sorted_lists(others(points), k)
    np.testing.assert_array_equal(index, expected)
    np.testing.assert_array_equal(distance, squared)


@given(
    n=st.integers(120, 400), k=st.integers(1, 60), most=st.sampled_from([1, 5, 1000]),
    width=st.integers(1, 6), kind=kinds, seed=st.integers(0, 999),
)  # fmt: skip
def test_push_products__bounds_lose_nothing_of_long_tiles(n, k, most, width, kind, seed):
    points = np.random.default_rng(seed).integers(-most, most, (n, width)).astype(np.float32)
    index, distance = push(points, [np.arange(n)], k, kind)
    expected, squared = sorted_lists(others(points), k)
    np.testing.assert_array_equal(index, expected)
    np.testing.assert_array_equal(distance, squared)


@given(points=points, k=st.integers(1, 6), seed=st.integers(0, 99), kind=kinds)
def test_push_products__does_not_depend_on_the_order_of_candidates(points, k, seed, kind):
    order = np.arange(len(points))
    one = push(points, np.array_split(order, 3), k, kind)
    # Offered twice over, they stand there once.
    order = np.random.default_rng(seed).permutation(np.tile(order, 2))
    other = push(points, np.array_split(order, 3), k, kind)
    np.testing.assert_array_equal(one[0], other[0])
    np.testing.assert_array_equal(one[1], other[1])


@pytest.mark.parametrize("n", [100, 400])
def test_push_products__sees_differences_that_products_lose(rng, n):
    # Beside 1e5, the rounding of a product is as large as the distances within either half.
    points = rng.standard_normal((n, 4)).astype(np.float32)
    points[n // 2 :] += 1e5
    index, distance = push(points, [np.arange(n)], 5, about=points.mean())
    expected, squared = sorted_lists(others(points), 5)
    np.testing.assert_array_equal(index, expected)
    np.testing.assert_allclose(distance, squared, rtol=1e-6)


@given(points=points, radius=st.integers(0, 40), room=st.integers(0, 2000), kind=kinds)
def test_within_products__equals_comparing_all_distances(points, radius, room, kind):
    n = len(points)
    norms, rows = (points**2).sum(axis=1), np.arange(n)
    found = (np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room, np.float32))
    parts = KINDS[kind](points)
    limit = np.float32(radius)
    pairs = kernels.within_products(
        parts, parts, points @ points.T, norms, norms, rows, rows + 7, limit, found
    )
    # Candidate b has the number b + 7: it is query b + 7, and no query at all past the last.
    squared = squared_distances(points, points)
    squared[rows[7:], rows[:-7]] = np.inf
    expected = np.argwhere(squared <= radius)
    assert pairs == len(expected)
    filled = min(pairs, room)
    np.testing.assert_array_equal(found[0][:filled], expected[:filled, 0])
    np.testing.assert_array_equal(found[1][:filled], expected[:filled, 1] + 7)
    np.testing.assert_array_equal(found[2][:filled], squared[tuple(expected[:filled].T)])


@given(points=points, k=st.integers(1, 6), seed=st.integers(0, 99), kind=kinds)
def test_offer_lists__takes_the_nearest_of_what_is_offered(points, k, seed, kind):
    rng, n = np.random.default_rng(seed), len(points)
    offered = rng.integers(-1, n, (n, 8)).astype(np.int32)
    index, distance = empty_lists(n, k)
    kernels.offer_lists(KINDS[kind](points), offered, index, distance)
    squared = np.full((n, n), np.inf)
    rows, slots = np.nonzero(offered >= 0)
    squared[rows, offered[rows, slots]] = others(points)[rows, offered[rows, slots]]
    expected, lengths = sorted_lists(squared, k)
    np.testing.assert_array_equal(index, expected)
    np.testing.assert_array_equal(distance, lengths)


@given(n=st.integers(3, 30), k=st.integers(1, 8), more=st.integers(1, 8), seed=st.integers(0, 999))
def test_merge_lists__equals_the_union_of_both(n, k, more, seed):
    rng = np.random.default_rng(seed)
    # Few values, so that ties are common; the same pair has the same distance in both.
    squared = rng.integers(0, 4, (n, n)).astype(float)
    lists = [
        sorted_lists(np.where(rng.random((n, n)) < share, squared, np.inf), width)
        for share, width in ((0.4, k), (0.3, more))
    ]
    taken = np.full((n, n), np.inf)
    for found, _ in lists:
        rows, slots = np.nonzero(found >= 0)
        taken[rows, found[rows, slots]] = squared[rows, found[rows, slots]]
    (index, distance), (other, lengths) = (
        (found.astype(np.int32), near.astype(np.float32)) for found, near in lists
    )
    rows = rng.permutation(n).astype(np.int32)
    kernels.merge_lists(rows, other[rows], lengths[rows], index, distance)
    expected, expected_lengths = sorted_lists(taken, k)
    np.testing.assert_array_equal(index, expected)
    np.testing.assert_array_equal(distance, expected_lengths)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("k", [1, 4, 30])
def test_refine_lists__equals_trying_all_ways_with_a_fresh_step(kind, share, k):
    rng = np.random.default_rng(round(10 * share) + k)
    n = 60
    points = rng.integers(-4, 5, (n, 3)).astype(np.float32)
    squared = others(points)
    near = random_lists(rng, n, k)
    start = np.full((n, n), np.inf)
    np.put_along_axis(start, near, np.take_along_axis(squared, near, 1), 1)
    index, distance = sorted_lists(start, k)
    index[0, 2:], distance[0, 2:] = -1, np.inf  # a short list
    fresh = rng.random((n, k)) < share
    offered = np.full((n, n), np.inf)
    for row in range(n):
        for slot, middle in enumerate(index[row]):
            if middle < 0:
                continue
            offered[row, middle] = squared[row, middle]
            for further, ahead in enumerate(index[middle]):
                if ahead >= 0 and ahead != row and (fresh[row, slot] or fresh[middle, further]):
                    offered[row, ahead] = squared[row, ahead]
    expected, lengths = sorted_lists(offered, k)
    index, distance = index.astype(np.int32), distance.astype(np.float32)
    whole = np.empty_like(index), np.empty_like(distance)
    for first, last in ((0, 25), (25, n)):
        out = tuple(np.empty_like(part[first:last]) for part in whole)
        kernels.refine_lists(KINDS[kind](points), first, index, distance, fresh, *out)
        whole[0][first:last], whole[1][first:last] = out
    np.testing.assert_array_equal(whole[0], expected)
    np.testing.assert_array_equal(whole[1], lengths)
    if not share:
        np.testing.assert_array_equal(whole[0], index)


def test_mark_fresh__marks_what_was_not_there(rng):
    before, after = (random_lists(rng, 40, 6).astype(np.int32) for _ in range(2))
    before[3] = -1
    fresh = kernels.mark_fresh(before, after)
    expected = [[entry not in row for entry in new] for row, new in zip(before, after, strict=True)]
    np.testing.assert_array_equal(fresh, expected)
    assert 0.3 < fresh.mean() < 1


@pytest.mark.parametrize("kind", KINDS)
def test_squared_pairs__by_differences(rng, kind):
    points = rng.integers(-9, 9, (50, 7)).astype(np.float32)
    rows = np.array([4, 49, 4])
    lists = rng.integers(-1, 50, (3, 6)).astype(np.int32)
    found = kernels.squared_pairs(KINDS[kind](points), rows, lists)
    expected = np.where(
        lists >= 0, squared_distances(points[rows], points)[range(3), lists.T].T, np.inf
    )
    np.testing.assert_array_equal(found, expected)

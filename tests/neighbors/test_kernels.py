import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from eigenscape.neighbors import kernels


def empty_lists(rows, k, dtype=np.int32):
    return np.full((rows, k), -1, dtype), np.full((rows, k), np.inf, np.float32)


def squared_distances(x, y):
    return ((x[:, None, :].astype(np.float64) - y[None, :, :]) ** 2).sum(axis=2)


def sorted_lists(squared, k):
    """Return the k nearest columns of each row by (distance, number), infinite ones as -1."""
    index = np.lexsort((np.broadcast_to(np.arange(squared.shape[1]), squared.shape), squared))
    index = index[:, :k]
    distance = np.take_along_axis(squared, index, axis=1)
    return np.where(np.isfinite(distance), index, -1), distance


# Small integers: every product and distance is exact, and most of them are ties.
points = arrays(
    np.float32,
    st.tuples(st.integers(2, 40), st.integers(1, 5)),
    elements=st.integers(-3, 3).map(float),
)


def test_hash_tie__is_uniform_and_does_not_follow_the_numbers():
    hashes = np.array([kernels.hash_tie(number) for number in range(20_000)])
    assert hashes.min() >= 0
    assert hashes.max() < 1
    assert np.unique(hashes).size == hashes.size
    counts, _ = np.histogram(hashes, 20, (0, 1))
    assert np.abs(counts - 1000).max() < 150
    assert abs(np.corrcoef(hashes[:-1], hashes[1:])[0, 1]) < 0.03
    assert abs(np.corrcoef(hashes, np.arange(20_000))[0, 1]) < 0.03


def test_hash_tie__takes_numbers_beyond_32_bits():
    assert kernels.hash_tie(2**40) != kernels.hash_tie(0)


@given(points=points, k=st.integers(1, 10))
def test_push_products__equals_sorting_all_distances(points, k):
    n = len(points)
    index, distance = empty_lists(n, k)
    norms = (points**2).sum(axis=1)
    rows = np.arange(n, dtype=np.int32)
    kernels.push_products(
        points, points, points @ points.T, norms, norms, rows, rows, rows, index, distance
    )
    squared = squared_distances(points, points)
    np.fill_diagonal(squared, np.inf)
    expected, lengths = sorted_lists(squared, min(k, n))
    np.testing.assert_array_equal(index[:, :n], expected)
    np.testing.assert_array_equal(distance[:, :n], lengths)
    assert (index[:, n:] == -1).all()


@given(points=points, k=st.integers(1, 6), seed=st.integers(0, 99))
def test_push_products__does_not_depend_on_the_order_of_candidates(points, k, seed):
    n = len(points)
    norms = (points**2).sum(axis=1)
    rows = np.arange(n, dtype=np.int32)
    results = []
    for order in (rows, np.random.default_rng(seed).permutation(rows)):
        index, distance = empty_lists(n, k)
        for tile in np.array_split(order, 3):
            kernels.push_products(
                points,
                points,
                points @ points[tile].T,
                norms,
                norms[tile],
                rows,
                rows,
                tile,
                index,
                distance,
            )
        results.append((index, distance))
    np.testing.assert_array_equal(results[0][0], results[1][0])
    np.testing.assert_array_equal(results[0][1], results[1][1])


def test_push_products__replaces_products_that_cancel(rng):
    # Beside 1e5, the rounding of a product is as large as the distances within either half.
    points = rng.standard_normal((400, 4)).astype(np.float32)
    points[200:] += 1e5
    centred = points - points.mean(axis=0)
    norms = (centred**2).sum(axis=1)
    index, distance = empty_lists(400, 5)
    rows = np.arange(400, dtype=np.int32)
    kernels.push_products(
        points, points, centred @ centred.T, norms, norms, rows, rows, rows, index, distance
    )
    squared = squared_distances(points, points)
    np.fill_diagonal(squared, np.inf)
    expected, lengths = sorted_lists(squared, 5)
    np.testing.assert_array_equal(index, expected)
    np.testing.assert_allclose(distance, lengths, rtol=1e-6)


@given(points=points, k=st.integers(1, 10), seed=st.integers(0, 99))
def test_exact_distances__recomputes_renames_and_sorts(points, k, seed):
    rng = np.random.default_rng(seed)
    n = len(points)
    names = np.sort(rng.choice(1000, n, replace=False))
    index = np.stack([rng.permutation(np.r_[np.arange(n), [-1] * k])[:k] for _ in range(n)])
    index = np.sort(np.where(index < 0, n, index), axis=1)
    index = np.where(index == n, -1, index).astype(np.int32)
    # Distances as a rounded product would leave them: in no order at all.
    distance = np.where(index >= 0, rng.random((n, k)), np.inf).astype(np.float32)
    squared = np.full((n, 1000), np.inf)
    for row in range(n):
        known = index[row][index[row] >= 0]
        squared[row, names[known]] = ((points[row] - points[known]) ** 2).sum(axis=1)
    expected, lengths = sorted_lists(squared, k)
    kernels.exact_distances(points, points, names, index, distance)
    np.testing.assert_array_equal(index, expected)
    np.testing.assert_array_equal(distance, lengths)


def test_exact_distances__sees_differences_that_products_lose(rng):
    points = np.full((3, 8), 1e4, np.float32)
    points[1, 0] += np.float32(0.01)
    points[2, 0] += np.float32(0.02)
    index, distance = np.array([[2, 1]], np.int32), np.zeros((1, 2), np.float32)
    kernels.exact_distances(points, points[:1], np.arange(3), index, distance)
    np.testing.assert_array_equal(index, [[1, 2]])
    expected = (points[1:, 0] - points[0, 0]) ** 2
    np.testing.assert_array_equal(distance[0], expected)


@given(n=st.integers(3, 30), k=st.integers(1, 8), more=st.integers(1, 8), seed=st.integers(0, 999))
def test_merge_lists__equals_the_union_of_both(n, k, more, seed):
    rng = np.random.default_rng(seed)
    # Few values, so that ties are common; the same pair has the same distance in both.
    squared = rng.integers(0, 4, (n, n)).astype(float)
    offered = [rng.random((n, n)) < share for share in (0.4, 0.3)]
    lists = [
        tuple(part.astype(kind) for part, kind in zip(found, (np.int32, np.float32), strict=True))
        for found in (
            sorted_lists(np.where(mask, squared, np.inf), width)
            for mask, width in zip(offered, (min(k, n), min(more, n)), strict=True)
        )
    ]
    (index, distance), (other, lengths) = lists
    taken = np.full((n, n), np.inf)
    for found in (index, other):
        rows, slots = np.nonzero(found >= 0)
        taken[rows, found[rows, slots]] = squared[rows, found[rows, slots]]
    expected, expected_lengths = sorted_lists(taken, index.shape[1])
    rows = rng.permutation(n)
    kernels.merge_lists(rows, other[rows], lengths[rows], index, distance)
    np.testing.assert_array_equal(index, expected)
    np.testing.assert_array_equal(distance, expected_lengths)


@pytest.mark.parametrize("seed", range(5))
def test_refine_lists__equals_trying_all_neighbours_of_neighbours(seed):
    rng = np.random.default_rng(seed)
    n, k = 60, 4
    points = rng.integers(-4, 5, (n, 3)).astype(np.float32)
    squared = squared_distances(points, points)
    index = np.stack(
        [rng.choice(np.delete(np.arange(n), row), k, replace=False) for row in range(n)]
    )
    start = np.full((n, n), np.inf)
    np.put_along_axis(start, index, np.take_along_axis(squared, index, 1), 1)
    index, distance = (part.copy() for part in sorted_lists(start, k))
    index[0, 2:], distance[0, 2:] = -1, np.inf  # a short list
    offered = np.full((n, n), np.inf)
    for row in range(n):
        near = index[row][index[row] >= 0]
        further = np.union1d(near, index[near].ravel())
        further = further[(further != row) & (further >= 0)]
        offered[row, further] = squared[row, further]
    expected, lengths = sorted_lists(offered, k)
    index, distance = index.astype(np.int32), distance.astype(np.float32)
    whole = np.empty_like(index), np.empty_like(distance)
    changed = 0
    for first, last in ((0, 25), (25, n)):
        out = np.empty((last - first, k), np.int32), np.empty((last - first, k), np.float32)
        changed += kernels.refine_lists(points, first, last, index, distance, *out)
        whole[0][first:last], whole[1][first:last] = out
    np.testing.assert_array_equal(whole[0], expected)
    np.testing.assert_array_equal(whole[1], lengths)
    new = [np.setdiff1d(after, before).size for after, before in zip(whole[0], index, strict=True)]
    assert changed == sum(new) > 0


def test_project_rows__equals_numpy(rng):
    features = rng.standard_normal((50, 37)).astype(np.float32)
    direction = rng.standard_normal(37).astype(np.float32)
    expected = features.astype(np.float64) @ direction
    np.testing.assert_allclose(kernels.project_rows(features, direction), expected, atol=1e-5)
    np.testing.assert_array_equal(
        kernels.project_rows(features, direction)[7], kernels.project_row(features, 7, direction)
    )

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from eigenscape.neighbors.kernels.tiles import (
    ball,
    centred,
    find_within,
    mean_row,
    products,
    push_tile,
)
from lists import chords

KINDS = {"dense": np.asarray, "sparse": sp.csr_array}
kinds = st.sampled_from(list(KINDS))


def cloud(rng, rows, width, offset=0.0, size=1.0):
    return (offset + size * rng.standard_normal((rows, width))).astype(np.float32)


@pytest.mark.parametrize("kind", KINDS)
def test_products__and_norms_give_distances(rng, kind):
    vectors = cloud(rng, 60, 9, offset=3)
    moved, norms = centred(KINDS[kind](vectors))
    squared = norms[:, None] + norms - 2 * products(moved, moved)
    expected = ((vectors[:, None] - vectors[None]) ** 2).sum(axis=2)
    np.testing.assert_allclose(squared, expected, atol=1e-4)
    np.testing.assert_allclose(mean_row(KINDS[kind](vectors)), vectors.mean(axis=0), rtol=1e-5)


def test_centred__takes_the_mean_off_dense_rows_only(rng):
    vectors = cloud(rng, 60, 9, offset=1e4)
    assert centred(vectors)[1].max() < 100
    sparse = sp.csr_array(vectors)
    moved, norms = centred(sparse)
    assert moved is sparse
    assert norms.min() > 1e8


@given(
    kind=kinds, seed=st.integers(0, 999), rows=st.integers(1, 50), width=st.integers(1, 200),
    offset=st.sampled_from([0, 1, 1e3, 1e6]), size=st.sampled_from([1e-3, 1, 1e4]),
    share=st.floats(0, 1),
)  # fmt: skip
def test_ball__holds_every_row(kind, seed, rows, width, offset, size, share):
    rng = np.random.default_rng(seed)
    vectors = cloud(rng, rows, width, offset, size)
    vectors[rng.random(vectors.shape) < share] = 0
    centre, radius = ball(KINDS[kind](vectors))
    away = np.linalg.norm(vectors.astype(np.float64) - centre.astype(np.float64), axis=1)
    assert away.max() <= radius
    if kind == "dense":
        assert radius <= 1.001 * away.max()


@given(
    kind=kinds, seed=st.integers(0, 999), k=st.integers(1, 12), step=st.integers(1, 90),
    offset=st.sampled_from([0, 1e3]),
)  # fmt: skip
def test_push_tile__finds_the_nearest_among_all_tiles(kind, seed, k, step, offset):
    rng = np.random.default_rng(seed)
    vectors = np.round(cloud(rng, 90, 4, offset, 3))
    queries = np.sort(rng.choice(90, 20, replace=False))
    index, distance = np.full((20, k), -1, np.int32), np.full((20, k), np.inf, np.float32)
    table = KINDS[kind](vectors)
    for first in rng.permutation(range(0, 90, step)).tolist():
        numbers = np.arange(first, min(first + step, 90))
        push_tile(table[queries], queries, table[first : first + step], numbers, index, distance)
    squared = chords(vectors.astype(np.float64))[queries] ** 2
    expected = np.argsort(squared, axis=1, kind="stable")[:, :k]
    np.testing.assert_array_equal(index, expected)
    np.testing.assert_array_equal(distance, np.take_along_axis(squared.round(), expected, axis=1))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("radius", [0.0, 2.0, 3.0, np.inf])
def test_find_within__finds_all_pairs_however_many(rng, kind, radius):
    vectors = np.round(cloud(rng, 400, 3, 10, 2))
    table = KINDS[kind](vectors)
    queries = np.arange(50, 350)
    positions, numbers, squared = find_within(table[50:350], queries, table[100:], 100, radius)
    away = chords(vectors.astype(np.float64))[50:350, 100:]
    expected = np.argwhere((away <= radius) & np.isfinite(away))
    np.testing.assert_array_equal(positions, expected[:, 0])
    np.testing.assert_array_equal(numbers, expected[:, 1] + 100)
    np.testing.assert_array_equal(squared, (away[tuple(expected.T)] ** 2).round())
    assert (len(positions) > 2**16) == (radius == np.inf)  # more than the first room

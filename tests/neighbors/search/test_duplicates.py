import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.sparse.csgraph import connected_components

from eigenscape.neighbors.search.duplicates import choose_copies, most_equal
from lists import METHODS, check_exact, choose_copies_slowly, clustered

KINDS = {"dense": np.asarray, "sparse": sp.csr_array}


@given(
    groups=st.lists(st.integers(0, 8), min_size=1, max_size=60),
    k=st.integers(0, 30),
    most=st.integers(1, 5),
)
@example(groups=[0] * 20, k=0, most=1)
@example(groups=[0] * 20, k=19, most=1)
@example(groups=[0] * 10 + [1] * 3 + [2], k=10, most=2)
def test_choose_copies__equals_the_slow_way(groups, k, most):
    k = min(k, len(groups) - 1)
    hashes = np.random.default_rng(5).integers(0, 2**64, 9, dtype=np.uint64)[groups]
    copies, represented = choose_copies(hashes, k, most)
    expected = choose_copies_slowly(hashes, k, most)
    assert dict(zip(copies.tolist(), represented.tolist(), strict=True)) == expected
    assert (np.diff(copies) > 0).all()
    # More than k are left, and nobody is represented by a copy.
    assert len(groups) - len(copies) > k
    assert not np.isin(represented, copies).any()


def test_choose_copies__representatives_share_the_copies_evenly():
    # Two values, each of which keeps 6 for lists of 6.
    hashes = np.array([7, 9] * 50, np.uint64)
    copies, represented = choose_copies(hashes, 6, 1)
    np.testing.assert_array_equal(copies, np.arange(12, 100))
    np.testing.assert_array_equal(np.unique(represented), np.arange(12))
    assert set(np.unique(represented, return_counts=True)[1]) == {7, 8}


def test_choose_copies__four_lists_are_left_where_groups_have_as_many():
    hashes = np.repeat(np.arange(20, dtype=np.uint64), 50)
    assert len(hashes) - len(choose_copies(hashes, 12, 3)[0]) == 60
    assert len(hashes) - len(choose_copies(hashes, 12, 50)[0]) == 1000
    # One more would leave a list nothing but its own value.
    assert 100 - len(choose_copies(hashes[:100], 12, 3)[0]) == 24


def test_most_equal__is_a_quarter_of_a_list_and_at_least_one():
    assert [most_equal(k) for k in (1, 4, 7, 8, 12, 1000)] == [1, 1, 1, 2, 3, 250]


def joined(found):
    """Return how many components the union of the lists has."""
    n, k = found.index.shape
    graph = sp.csr_array(
        (np.ones(n * k), (np.repeat(np.arange(n), k), found.index.ravel())), shape=(n, n)
    )
    return connected_components(graph, directed=False)[0]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("method", ["lanczos-bisection", "exact"])
def test_neighbors_stage__identical_samples_do_not_break_the_graph(find, rng, kind, method):
    values = clustered(rng, 300, width=5, clusters=1)
    values[:12] += 1e3  # a second piece, which nothing should join
    times = np.where(rng.random(300) < 0.1, 1, rng.integers(30, 60, 300))
    which = rng.permutation(np.repeat(np.arange(300), times))
    assert len(which) > 8000
    options = {"k": 8, "leaf_size": 500}
    single = find(KINDS[kind](values), name="single", method="exact", **options)
    found = find(KINDS[kind](values[which]), method=method, **options)
    assert joined(found) == joined(single) == 2
    assert found.summary["copies"] == len(which) - 300
    # Brute force joins every value to itself alone: as many components as values repeated.
    assert (times > 8).sum() > 200
    check_exact(values[which], found)


def test_neighbors_stage__few_identical_samples_are_left_alone(find, rng):
    features = clustered(rng, 900)
    features[300:600] = features[:300]  # three of each at most, k // 4
    features[600:700] = features[:100]
    found = find(features, k=12)
    assert found.summary["copies"] == 0
    check_exact(features, found)
    # Each has the other two in its list.
    assert (found.distance[600:700, 1] == 0).all()
    assert (found.distance[600:700, 2] > 0).all()


@pytest.mark.parametrize("method", METHODS)
def test_neighbors_stage__copies_have_the_list_of_their_representative(find, rng, method):
    features = clustered(rng, 1000)
    features[rng.random(1000) < 0.3] = features[0]
    features[[5, 999, 700]] = features[3]  # two more would be left alone
    found = find(features, method=method, k=12, leaf_size=300)
    expected = choose_copies_slowly(features, 12, 3)
    assert found.summary["copies"] == len(expected) > 250
    for copy, represented in expected.items():
        assert found.index[copy, 0] == represented
        assert found.distance[copy, 0] == 0
        np.testing.assert_array_equal(found.index[copy, 1:], found.index[represented, :-1])
        np.testing.assert_array_equal(found.distance[copy, 1:], found.distance[represented, :-1])
    # Nobody finds a copy, and the order puts copies behind who represents them.
    assert not np.isin(found.index, list(expected)).any()
    last = found.order[0]
    for sample in found.order.tolist():
        last = sample if sample not in expected else last
        assert expected.get(sample, sample) == last


@pytest.mark.parametrize(("method", "kind"), [("lanczos-bisection", "dense"), ("exact", "sparse")])
@pytest.mark.parametrize("distinct", [1, 2, 3, 10])
def test_neighbors_stage__takes_fewer_values_than_neighbours(find, rng, kind, method, distinct):
    values = rng.integers(-9, 9, (distinct, 4)).astype(np.float32)
    features = KINDS[kind](values[rng.integers(0, distinct, 700)])
    found = find(features, method=method, k=10, leaf_size=100, overlap=0.5)
    left = 700 - found.summary["copies"]
    assert left == (11 if distinct == 1 else distinct * min(10, 40 // distinct + 1))
    check_exact(features, found)


@pytest.mark.parametrize("kind", KINDS)
def test_neighbors_stage__zero_has_no_sign(find, rng, kind):
    features = clustered(rng, 400, width=4)
    features[::2, 1] = 0
    features[::8] = features[0]
    signed = features.copy()
    signed[::4, 1] = -0.0
    one = find(KINDS[kind](features), name="one", k=6)
    other = find(KINDS[kind](signed), name="other", k=6)
    np.testing.assert_array_equal(one.index, other.index)
    assert one.summary["copies"] == other.summary["copies"] == 49


def test_neighbors_stage__sparse_copies_are_those_of_dense_rows(find, rng):
    features = rng.integers(0, 2, (1500, 6)).astype(np.float32)
    dense = find(features, name="dense", method="exact", k=8)
    sparse = find(sp.csr_array(features), name="sparse", method="exact", k=8)
    assert dense.summary["copies"] == sparse.summary["copies"] == 1500 - 64
    np.testing.assert_array_equal(dense.distance, sparse.distance)

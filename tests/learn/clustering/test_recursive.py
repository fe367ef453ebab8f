import networkx as nx
import numpy as np
import pytest
import scipy.sparse
from sklearn.metrics import adjusted_rand_score

from eigenscape.learn.clustering.kernels.cuts import sweep_cuts
from eigenscape.learn.clustering.recursive import (
    Splits,
    smallest_part,
    split_cheapest,
    split_part,
)
from graphs import as_block, fiedler_vector, planted


def recursive_cut(blocks, degree, count, fiedler=None, *, limit=np.inf, least=None):
    """Split a graph in memory as the stage does over its files; return clusters and prices."""
    [block], rows = blocks, len(degree)
    graph = scipy.sparse.csr_array((block.data, block.indices, block.indptr), (rows, rows))
    fewest = smallest_part(rows, count) if least is None else least
    parts = {0: np.ones(rows, bool)}
    inside = {}

    def propose(made, fresh):
        prices = []
        for part in fresh:
            if parent := made.parent(part):
                side = inside[parent[0]]
                parts[part] = parts[parent[0]] & (side if parent[1] else ~side)
            members = np.flatnonzero(parts[part])

            def vector(_, members=members):
                if fiedler is None:
                    return fiedler_vector(graph[members][:, members], fewest)
                return fiedler(members)

            split = split_part(blocks, parts[part], vector, fewest)
            prices.append(None if split is None else split.ncut)
            if split is not None:
                inside[part] = np.zeros(rows, bool)
                inside[part][members[split.inside]] = True
        return prices

    made = split_cheapest(propose, count, limit)
    clusters = np.zeros(rows, np.int32)
    for number, part in enumerate(made.parts, 1):
        clusters[parts[part] & inside[part]] = number
    return clusters, np.array(made.prices)


def test_recursive_cut__finds_communities(rng):
    W, truth = planted(rng, [40, 50, 30, 60])
    found, prices = recursive_cut([as_block(W)], W.sum(axis=1), 4)
    assert adjusted_rand_score(truth, found) > 0.95
    assert len(prices) == 3


def test_recursive_cut__stops_at_the_limit(rng):
    W, truth = planted(rng, [50, 50, 50], within=0.6, between=0.01)
    found, prices = recursive_cut([as_block(W)], W.sum(axis=1), 100, limit=0.3)
    assert adjusted_rand_score(truth, found) == 1
    assert (prices < 0.3).all()


def test_recursive_cut__pieces_first_and_down_to_single_rows():
    pieces = [nx.path_graph(2), nx.complete_graph(4), nx.empty_graph(1)]
    graph = nx.disjoint_union_all(pieces)
    W = scipy.sparse.csr_array(nx.to_scipy_sparse_array(graph, dtype=float))
    blocks = [as_block(W)]
    found, prices = recursive_cut(blocks, W.sum(axis=1), 3)
    assert adjusted_rand_score([0, 0, 1, 1, 1, 1, 2], found) == 1
    assert prices.tolist() == [0, 0]
    assert len(np.unique(recursive_cut(blocks, W.sum(axis=1), 100)[0])) == 7


def test_recursive_cut__keeps_specks_from_using_up_the_count(rng):
    W, truth = planted(rng, [40, 50, 60])
    specks = scipy.sparse.csr_array((5, 5))
    W = scipy.sparse.block_array([[W, None], [None, specks]]).tocsr()
    found, _ = recursive_cut([as_block(W)], W.sum(axis=1), 3, least=10)
    assert adjusted_rand_score(truth, found[:150]) > 0.95
    found, _ = recursive_cut([as_block(W)], W.sum(axis=1), 3, least=1)
    assert adjusted_rand_score(truth, found[:150]) == 0


def test_recursive_cut__part_without_thresholds_stays_whole():
    W = scipy.sparse.csr_array(np.ones((6, 6)) - np.eye(6))
    found, prices = recursive_cut([as_block(W)], W.sum(axis=1), 3, lambda rows: np.zeros(len(rows)))
    assert not found.any()
    assert len(prices) == 0


def test_recursive_cut__takes_the_cheapest_part_by_the_callers_vectors(rng):
    W, _ = planted(rng, [20, 20, 20])
    asked = []

    def by_number(members):
        asked.append(members)
        return members.astype(float)

    found, prices = recursive_cut([as_block(W)], W.sum(axis=1), 2, by_number, least=1)
    first = sweep_cuts([as_block(W)], W.sum(axis=1), np.arange(60.0)).ncut
    np.testing.assert_array_equal(found == 1, first.inside)
    np.testing.assert_array_equal(asked[0], np.arange(60))
    # Neither of the parts is asked about that are not going to be split.
    assert len(asked) == 1
    assert prices.tolist() == [first.ncut]


def test_recursive_cut__into_one():
    W = scipy.sparse.csr_array(np.ones((3, 3)) - np.eye(3))
    found, prices = recursive_cut([as_block(W)], W.sum(axis=1), 1)
    assert not found.any()
    assert len(prices) == 0


def test_smallest_part__is_a_tenth_of_the_mean():
    assert smallest_part(21_025, 16) == 131
    assert smallest_part(5, 16) == 1


def test_split_cheapest__takes_the_cheapest_first_and_numbers_the_parts():
    prices = {0: 0.5, 1: 0.3, 2: 0.1, 3: None, 4: 0.9, 5: 0.2, 6: 0.05}
    asked = []

    def propose(made, fresh):
        asked.append((made.parts, fresh))
        return [prices[part] for part in fresh]

    made = split_cheapest(propose, 4)
    assert made == Splits((0, 2, 1), (0.5, 0.1, 0.3))
    assert asked == [((), [0]), ((0,), [1, 2]), ((0, 2), [3, 4])]
    assert [made.parent(part) for part in (0, 1, 2, 3, 6)] == [
        None, (0, False), (0, True), (2, False), (1, True),
    ]  # fmt: skip
    assert split_cheapest(propose, 100, limit=0.4).parts == ()


@pytest.mark.parametrize("limit", [0.0, 0.15, 2.0])
def test_split_cheapest__never_pays_more_than_the_limit(limit, rng):
    made = split_cheapest(lambda _, fresh: [float(rng.random()) for _ in fresh], 30, limit)
    assert all(price <= limit for price in made.prices)
    assert len(made.parts) <= 29

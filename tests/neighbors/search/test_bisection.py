import numpy as np
import pytest
import scipy.sparse as sp

from eigenscape.job.options import NeighborOptions
from eigenscape.neighbors.search.bisection import list_length, rank_blocks
from lists import check_exact, clustered, true_recall, words

LEAST_PART = "eigenscape.neighbors.kernels.partition.LEAST_PART"


def test_list_length__is_half_as_long_again():
    assert [list_length(k) for k in (1, 2, 4, 8, 12, 1000)] == [3, 4, 6, 12, 18, 1500]


@pytest.mark.parametrize("rows", [1, 4096, 4097, 10**5, 2**20, 10**7])
def test_rank_blocks__cover_the_ranks(rows):
    cuts = rank_blocks(rows)
    assert [stop for _, stop in cuts[:-1]] == [start for start, _ in cuts[1:]]
    assert (cuts[0][0], cuts[-1][1]) == (0, rows)
    assert max(stop - start for start, stop in cuts) <= 2**16
    assert len(cuts) <= max(16, rows // 2**16 + 1)


@pytest.mark.parametrize(
    ("options", "k", "overlap", "size"),
    [
        ({}, 18, 0.1, 1000),
        ({"k": 1000, "overlap": 0.3, "leaf_size": 100}, 1500, 0.3, 6000),
        ({"k": 4, "leaf_size": 32}, 6, 0.1, 32),
        ({"method": "exact", "overlap": 0.3}, 0, 0, 1000),
        ({"method": "radius", "radius": 1.0, "k": 1000, "leaf_size": 64}, 0, 0, 64),
    ],
)
def test_plan_leaves__leave_room_for_the_lists(options, k, overlap, size):
    leaves = NeighborOptions.model_validate(options).leaves(5000, 20)
    assert (leaves.k, leaves.overlap, leaves.size, leaves.turn) == (k, overlap, size, 0)


@pytest.mark.mostly_slow(2)
@pytest.mark.parametrize(("least", "parts"), [(2**13, 1), (500, 16)])
@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_bisection__recalls_clustered_data(find, rng, monkeypatch, least, parts, kind):
    monkeypatch.setattr(LEAST_PART, least)
    features = clustered(rng, 2500)
    table = sp.csr_array(features) if kind == "sparse" else features
    found = find(table, k=12, leaf_size=300, overlap=0.2)
    assert found.summary["parts"] == parts
    assert true_recall(features, found) >= 0.98


def test_bisection__merges_what_the_parts_have_found(find, rng, monkeypatch):
    # Half of every part are guests of another: the lists of all parts together miss nothing.
    monkeypatch.setattr(LEAST_PART, 500)
    features = rng.uniform(0, 1, (2000, 2)).astype(np.float32)
    found = find(features, k=4, leaf_size=250, overlap=0.5, refine=0)
    assert found.summary["parts"] > 8
    check_exact(features, found)


@pytest.mark.parametrize("k", [1, 40])
def test_bisection__takes_short_and_long_lists(find, rng, k):
    features = clustered(rng, 3000)
    found = find(features, k=k, leaf_size=32, overlap=0.2)
    assert true_recall(features, found) > 0.95


@pytest.mark.slow
def test_bisection__lists_may_be_as_long_as_a_leaf(find, rng):
    # Of 450 samples for lists of 300; leaves hold four times as many.
    features = clustered(rng, 700)
    found = find(features, k=300, leaf_size=32)
    check_exact(features, found)


@pytest.mark.slow
def test_bisection__recalls_rare_words(find, rng):
    features = words(rng, 2000, 300, 0.02)
    found = find(features, k=6, leaf_size=200, metric="angle", recall=0.9)
    assert true_recall(features, found, "angle") > 0.88

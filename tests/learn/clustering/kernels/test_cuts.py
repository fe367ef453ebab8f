import itertools

import networkx as nx
import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

from eigenscape.errors import InputError
from eigenscape.learn.clustering.kernels.cuts import (
    cheeger_bounds,
    measure_split,
    separates,
    sweep_cuts,
)
from eigenscape.learn.clustering.kernels.parts import degrees_within
from eigenscape.spectrum.kernels.operator import RowBlock
from graphs import as_block, random_graph


def as_blocks(W, starts):
    """Cut a matrix into row blocks."""
    blocks = []
    for start, stop in itertools.pairwise([*starts, W.shape[0]]):
        piece = W[start:stop]
        blocks.append(RowBlock(start, piece.indptr, piece.indices, piece.data))
    return blocks


def first_pair(W):
    """Return lambda_1 of the normalised Laplacian and its vector times D^-1/2, by LAPACK."""
    degree = W.sum(axis=1)
    A = np.eye(len(degree)) - W.toarray() / np.sqrt(np.outer(degree, degree))
    values, vectors = np.linalg.eigh(A)
    return values[1], vectors[:, 1] / np.sqrt(degree)


def test_measure_split__against_networkx(rng):
    W = random_graph(rng, 40)
    graph = nx.from_scipy_sparse_array(W)
    inside = rng.random(40) < 0.4
    split = measure_split(as_blocks(W, [0, 13, 27]), W.sum(axis=1), inside)
    one, other = set(np.flatnonzero(inside)), set(np.flatnonzero(~inside))
    assert split.cut == pytest.approx(nx.cut_size(graph, one, other, weight="weight"))
    assert split.volume == pytest.approx(nx.volume(graph, one, weight="weight"))
    assert split.volume_outside == pytest.approx(nx.volume(graph, other, weight="weight"))
    ncut = nx.normalized_cut_size(graph, one, other, weight="weight")
    assert split.ncut == pytest.approx(ncut)
    conductance = nx.conductance(graph, one, other, weight="weight")
    assert split.cheeger == pytest.approx(conductance)


@given(
    seed=st.integers(0, 2**32 - 1),
    rows=st.integers(2, 25),
    tied=st.booleans(),
    least=st.integers(1, 4),
)
def test_sweep_cuts__against_every_threshold(seed, rows, tied, least):
    rng = np.random.default_rng(seed)
    W = random_graph(rng, rows)
    degree = W.sum(axis=1)
    vector = rng.integers(-3, 4, rows).astype(float) if tied else rng.normal(size=rows)
    vector[:2] = -1, 1
    blocks = as_blocks(W, [0, rows // 2])
    levels = np.unique(vector)[:-1]
    every = [measure_split(blocks, degree, vector > level) for level in levels]
    every = [split for split in every if least <= split.inside.sum() <= rows - least]
    assert separates(vector, least) == bool(every)
    if not every:
        with pytest.raises(InputError, match="no threshold"):
            sweep_cuts(blocks, degree, vector, least=least)
        return
    sweep = sweep_cuts(blocks, degree, vector, least=least)
    assert sweep.ncut.ncut == pytest.approx(min(split.ncut for split in every))
    assert sweep.cheeger.cheeger == pytest.approx(min(split.cheeger for split in every))
    for split in (sweep.cheeger, sweep.ncut, sweep.sign):
        np.testing.assert_array_equal(split.inside, vector > split.threshold)


def test_sweep_cuts__finds_the_bottleneck():
    graph = nx.barbell_graph(8, 0)
    W = scipy.sparse.csr_array(nx.to_scipy_sparse_array(graph, dtype=float))
    sweep = sweep_cuts([as_block(W)], W.sum(axis=1), first_pair(W)[1])
    for split in (sweep.cheeger, sweep.ncut, sweep.sign):
        assert split.cut == 1
        assert split.volume == split.volume_outside == 57


def test_sweep_cuts__small_cut_between_large_weights():
    # Running sums must not lose 1e-9 among weights of a million.
    weights = np.full((200, 200), 1e6)
    weights[:100, 100:] = weights[100:, :100] = 0
    weights[99, 100] = weights[100, 99] = 1e-9
    W = scipy.sparse.csr_array(weights - np.diag(np.diag(weights)))
    sweep = sweep_cuts([as_block(W)], W.sum(axis=1), np.arange(200.0))
    assert sweep.ncut.threshold == sweep.cheeger.threshold == 99
    assert sweep.ncut.cut == 1e-9


def test_sweep_cuts__row_without_edges_costs_nothing():
    W = scipy.sparse.csr_array(np.array([[0, 1.0, 0], [1.0, 0, 0], [0, 0, 0]]))
    sweep = sweep_cuts([as_block(W)], W.sum(axis=1), np.array([0.0, 1, 2]))
    assert sweep.ncut.ncut == sweep.cheeger.cheeger == 0
    assert sweep.ncut.inside.tolist() == [False, False, True]
    assert sweep.sign.cut == 1


def test_sweep_cuts__no_sign_split_of_one_sign(rng):
    W = random_graph(rng, 5)
    assert sweep_cuts([as_block(W)], W.sum(axis=1), np.arange(1.0, 6)).sign is None


@pytest.mark.parametrize("vector", [[2.0, 2.0, 2.0], [0.0, np.nan, 1.0]])
def test_sweep_cuts__raises_without_thresholds(rng, vector):
    W = random_graph(rng, 3)
    with pytest.raises(InputError, match="no threshold"):
        sweep_cuts([as_block(W)], W.sum(axis=1), np.array(vector))


@given(seed=st.integers(0, 2**32 - 1), rows=st.integers(3, 9))
def test_cheeger_bounds__hold_for_the_least_of_all_subsets(seed, rows):
    W = random_graph(np.random.default_rng(seed), rows)
    degree = W.sum(axis=1)
    blocks = [as_block(W)]
    value, vector = first_pair(W)
    every = (
        measure_split(blocks, degree, np.array([True, *chosen]))
        for chosen in itertools.product([False, True], repeat=rows - 1)
        if not all(chosen)
    )
    least = min(every, key=lambda split: split.cheeger)
    sweep = sweep_cuts(blocks, degree, vector)
    assert least.cheeger <= sweep.cheeger.cheeger * (1 + 1e-9)
    for split in (least, sweep.cheeger):
        bounds = cheeger_bounds(value, split.cheeger)
        assert bounds.holds
        assert bounds.lower == pytest.approx(value / 2)
        assert bounds.upper == pytest.approx(np.sqrt(2 * value))


def test_cheeger_bounds__do_not_hold_for_a_poor_vector():
    W = scipy.sparse.csr_array(nx.to_scipy_sparse_array(nx.cycle_graph(200), dtype=float))
    poor = np.arange(200) % 2
    sweep = sweep_cuts([as_block(W)], W.sum(axis=1), poor)
    assert sweep.cheeger.cheeger == 1
    assert not cheeger_bounds(first_pair(W)[0], sweep.cheeger.cheeger).holds
    # An eigenvalue that is too large shows at the lower bound.
    good = sweep_cuts([as_block(W)], W.sum(axis=1), first_pair(W)[1])
    assert not cheeger_bounds(1.0, good.cheeger.cheeger).holds


def test_cheeger_bounds__hold_for_a_graph_in_pieces():
    W = scipy.sparse.csr_array(np.kron(np.eye(2), np.ones((3, 3)) - np.eye(3)))
    split = sweep_cuts([as_block(W)], W.sum(axis=1), np.repeat([0.0, 1.0], 3)).cheeger.cheeger
    assert cheeger_bounds(0.0, split).holds
    assert cheeger_bounds(-1e-17, split).holds


def test_sweep_cuts__of_a_part_as_of_a_graph_of_its_own(rng):
    W = random_graph(rng, 40)
    members = rng.random(40) < 0.6
    part = W[members][:, members]
    vector = rng.normal(size=part.shape[0])
    blocks = as_blocks(W, [0, 9, 30])
    found = sweep_cuts(
        blocks, degrees_within(blocks, members), vector, least=3, members=members
    )  # fmt: skip
    wanted = sweep_cuts([as_block(part)], part.sum(axis=1), vector, least=3)
    for name in ("cheeger", "ncut", "sign"):
        one, other = getattr(found, name), getattr(wanted, name)
        np.testing.assert_array_equal(one.inside, other.inside)
        assert one.cut == pytest.approx(other.cut)
        assert one.ncut == pytest.approx(other.ncut)


def test_cheeger__of_a_path_in_closed_form():
    # The middle edge of an even path: vol = 2 m - 1 on either side; lambda_1 = 1 - cos(pi / (n - 1)).
    n = 20
    W = scipy.sparse.diags_array([np.ones(n - 1)] * 2, offsets=[-1, 1], shape=(n, n)).tocsr()
    value, vector = first_pair(W)
    assert value == pytest.approx(1 - np.cos(np.pi / (n - 1)))
    best = sweep_cuts([as_block(W)], W.sum(axis=1), vector).cheeger
    assert best.cheeger == pytest.approx(1 / (n - 1))
    bounds = cheeger_bounds(value, best.cheeger)
    assert bounds.holds
    assert bounds.lower <= 1 / (n - 1) < bounds.upper

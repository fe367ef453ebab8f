from itertools import pairwise

import numpy as np
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

from eigenscape.learn.decide import queries
from eigenscape.learn.decide.queries import (
    acquisition,
    ambiguity,
    exploration,
    local_maxima,
    posterior,
)
from eigenscape.spectrum.kernels.operator import RowBlock


def test_ambiguity__by_hand():
    scores = np.array(
        [[0.7, 0.2, 0.1], [1, 1, 0], [np.nan] * 3, [0.4, -3, 0], [0, 0, 0], [7, 6.5, -9]],
        np.float32,
    )
    np.testing.assert_allclose(ambiguity(scores), [0.5, 1, np.nan, 0, 1, 2 / 3], rtol=1e-6)
    assert ambiguity(np.ones((2, 1), np.float32)).tolist() == [0, 0]


def graph_of(rng, n, cuts):
    """A symmetric graph in blocks of rows, dense, and the sample of each row."""
    dense = rng.random((n, n)) < 3 / n
    dense = (dense | dense.T) & ~np.eye(n, dtype=bool)
    table = scipy.sparse.csr_array(dense.astype(np.float32))
    bounds = [0, *sorted(rng.choice(np.arange(1, n), cuts, replace=False).tolist()), n]
    parts = [table[a:b] for a, b in pairwise(bounds)]
    blocks = [
        RowBlock(first, part.indptr, part.indices, part.data)
        for first, part in zip(bounds, parts, strict=False)
    ]
    return blocks, dense, rng.permutation(n)


@given(
    seed=st.integers(0, 999),
    n=st.integers(4, 40),
    count=st.integers(1, 12),
    levels=st.integers(1, 50),
)
def test_local_maxima__none_has_a_neighbour_with_more_and_they_lie_apart(seed, n, count, levels):
    rng = np.random.default_rng(seed)
    graph, dense, samples = graph_of(rng, n, 2)
    # Few levels make ties; some are not asked for.
    acquired = rng.integers(0, levels, n).astype(np.float32)
    acquired[rng.random(n) < 0.2] = np.nan
    rows = local_maxima(acquired, samples, graph, count)
    own = acquired[samples]
    assert len(rows) == len(set(rows.tolist())) == min(count, np.isfinite(own).sum())
    assert np.isfinite(own[rows]).all()
    expected: list[int] = []
    for row in np.argsort(-own, kind="stable")[: np.isfinite(own).sum()]:
        top = not (own[dense[row]] > own[row]).any()
        if top and not any(dense[row, other] for other in expected):
            expected.append(int(row))
    wanted = min(count, len(expected))
    assert rows[:wanted].tolist() == expected[:wanted]


def test_local_maxima__do_not_depend_on_the_cuts(rng, monkeypatch):
    n = 300
    _, dense, samples = graph_of(rng, n, 1)
    acquired = rng.random(n).astype(np.float32)
    table = scipy.sparse.csr_array(dense.astype(np.float32))
    whole = [RowBlock(0, table.indptr, table.indices, table.data)]
    found = local_maxima(acquired, samples, whole, 20)
    parts = [table[first : first + 70] for first in range(0, n, 70)]
    cut = [RowBlock(70 * k, p.indptr, p.indices, p.data) for k, p in enumerate(parts)]
    monkeypatch.setattr(queries, "_PIECE", 9)
    np.testing.assert_array_equal(local_maxima(acquired, samples, cut, 20), found)
    assert not dense[np.ix_(found, found)].any()


def test_exploration__is_the_change_of_a_gaussian_field(rng, monkeypatch):
    """A label changes the field by its covariance with it, over the root of the variance of the label."""
    monkeypatch.setattr(queries, "_NOISE", 4.0)
    monkeypatch.setattr(queries, "_LEAST_VALUE", 0.1)
    rows = rng.standard_normal((30, 5)).astype(np.float32)
    values, known = np.array([0, 0.1, 0.2, 0.3, 0.5]), [3, 8, 9]
    prior = np.diag(1 / (values / 0.5 + 0.1))
    # Of all coefficients, by conditioning on the labels one after the other.
    covariance = prior
    for row in known:
        u = rows[row].astype(float)
        covariance = covariance - np.outer(covariance @ u, u @ covariance) / (
            4 + u @ covariance @ u
        )
    outer = rows[known].T.astype(float) @ rows[known]
    found = posterior(values, outer)
    np.testing.assert_allclose(found, covariance, rtol=1e-5, atol=1e-7)
    expected = [
        np.linalg.norm(covariance @ u) / np.sqrt(4 + u @ covariance @ u) for u in rows.astype(float)
    ]
    np.testing.assert_allclose(exploration(rows, found), expected, rtol=1e-4)
    # What is known is explored.
    assert exploration(rows, found)[known].mean() < exploration(rows, prior)[known].mean()


def test_acquisition__without_ambiguity_the_most_explored_come_first_after_all_others():
    ambiguous = np.array([0, 0.5, 0, np.nan, 1e-7, 0], np.float32)
    explored = np.array([0.2, 2, 30, 4, 1e-6, 0], np.float32)
    found = acquisition(ambiguous, explored)
    assert np.argsort(-found).tolist() == [1, 4, 2, 0, 5, 3]
    assert found[1] == 1
    assert np.isnan(found).tolist() == [False, False, False, True, False, False]
    assert np.isfinite(found[5])

import itertools
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse
from sklearn.svm import SVC

from eigenscape.learn.classify.kernels.supportvectors import (
    COSTS,
    Parameters,
    Scaling,
    SearchOptions,
    fit,
    pairs_to_shares,
    score,
    search,
)
from inputs.training import groups

OPTIONS = SearchOptions(COSTS, (1 / 16, 1 / 4, 1.0, 4.0), (100.0, 1.0), all_pairs=False)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("classes", [2, 3, 6])
def test_score__calls_what_scikit_learn_calls(rng, classes, sparse):
    rows, of = groups(rng, classes)
    new, _ = groups(rng, classes)
    if sparse:
        rows, new = (scipy.sparse.csr_array(np.maximum(part, 0)) for part in (rows, new))
    machine = fit(rows, of, 10.0, 0.5)
    found = score(machine, rows[machine.support], new, classes)
    oracle = SVC(C=10.0, gamma=0.5 / rows.shape[1], break_ties=True).fit(rows, of)
    np.testing.assert_array_equal(found.argmax(axis=1), oracle.predict(new))
    # Of pairs that contradict each other the class with most wins is raised to the largest share.
    assert found.max() <= 1 + 1e-6
    assert found.sum(axis=1).min() > 1 - 1e-5
    decisions = SVC(C=10.0, gamma=0.5 / rows.shape[1], decision_function_shape="ovo").fit(rows, of)
    if classes == 2:
        # The share of two classes is the logistic curve of twice the distance to the border.
        expected = 1 / (1 + np.exp(-2 * decisions.decision_function(new)))
        clear = np.abs(expected - 0.5) > 1e-3
        np.testing.assert_allclose(found[clear, 1], expected[clear], atol=1e-3)


def test_score__tiles_do_not_change_it(rng, monkeypatch):
    rows, of = groups(rng, 4)
    machine = fit(rows, of, 10.0, 0.5)
    whole = score(machine, rows[machine.support], rows, 4)
    monkeypatch.setattr("eigenscape.learn.classify.kernels.supportvectors._TILE_ENTRIES", 300)
    np.testing.assert_allclose(score(machine, rows[machine.support], rows, 4), whole, atol=1e-6)


def test_pairs_to_shares__most_wins_whatever_the_margins_are():
    # The first class beats both others by little, the last one beats the second one by much.
    shares = pairs_to_shares(np.array([[0.1], [0.1], [-9.0]], np.float32), 3)
    assert shares.argmax() == 0
    # Each beats one: the sum of what they win by decides.
    circle = pairs_to_shares(np.array([[0.5], [-0.2], [0.3]], np.float32), 3)
    assert circle.argmax() == 0


def test_pairs_to_shares__equals_a_loop_over_pairs(rng):
    decisions = (3 * rng.standard_normal((10, 7))).astype(np.float32)
    expected, logs = np.zeros((2, 7, 5))
    for pair, (first, second) in enumerate(itertools.combinations(range(5), 2)):
        logs[:, first] -= np.logaddexp(0, -2 * decisions[pair].astype(float))
        logs[:, second] -= np.logaddexp(0, 2 * decisions[pair].astype(float))
        expected[:, first] += decisions[pair] > 0
        expected[:, second] += decisions[pair] <= 0
    found = pairs_to_shares(decisions, 5)
    best = expected.max(axis=1)
    assert (expected[np.arange(7), found.argmax(axis=1)] == best).all()
    shares = np.exp(logs)
    shares /= shares.sum(axis=1, keepdims=True)
    alike = shares.argmax(axis=1) == found.argmax(axis=1)
    assert alike.sum() > 3
    np.testing.assert_allclose(found[alike], shares[alike], atol=1e-5)


def test_score__of_classes_that_were_never_seen_is_0(rng):
    rows, of = groups(rng, 3)
    machine = fit(rows, 2 * of, 10.0, 0.5)
    found = score(machine, rows[machine.support], rows, 6)
    assert not found[:, [1, 3, 5]].any()
    assert machine.coefficients.shape == (len(machine.support), 3)


def test_scaling__variance_1_and_sparse_rows_stay_sparse(rng):
    rows = (rng.standard_normal((500, 4)) * [1, 10, 100, 0] + 7).astype(np.float32)
    scaled = Scaling.of(rows)(rows)
    np.testing.assert_allclose(scaled[:, :3].std(axis=0), 1, rtol=1e-3)
    assert not scaled[:, 3].any()
    # A column that is constant in training and not elsewhere does not make all rows far away.
    other = rows + np.array([0, 0, 0, 50], np.float32)
    np.testing.assert_array_equal(Scaling.of(rows)(other), scaled)
    words = scipy.sparse.random_array((50, 30), density=0.1, rng=rng, dtype=np.float32).tocsr()
    found = Scaling.of(words)(words)
    assert found.nnz == words.nnz
    np.testing.assert_allclose((found.toarray() ** 2).mean(), 1, rtol=1e-3)


@pytest.mark.parametrize("all_pairs", [False, True])
def test_search__finds_the_scale_of_the_classes(rng, all_pairs):
    rows = rng.uniform(-1.7, 1.7, (300, 2)).astype(np.float32)
    fold = rng.integers(0, 3, 300)
    checkers = (np.floor(rows * 2).sum(axis=1) % 2).astype(int)
    halves = (rows[:, 0] + rows[:, 1] > 0).astype(int)
    options = replace(OPTIONS, all_pairs=all_pairs)
    fine, coarse = (search(rows, of, fold, options) for of in (checkers, halves))
    assert fine.gamma == OPTIONS.gammas[-1]
    assert coarse.gamma < fine.gamma
    assert fine.cost in COSTS
    assert 150 < fine.right < 300
    assert search(rows, halves, fold, options, 7.0).cost == 7.0
    assert search(rows, halves, fold, options, 7.0, 0.3) == Parameters(7.0, 0.3, 0)


def test_search__a_fold_that_holds_all_of_a_class_is_no_test(rng):
    rows, _ = groups(rng, 2, 10)
    of = np.arange(20) // 10
    assert search(rows, of, of, OPTIONS) == Parameters(100.0, 1.0, 0)
    assert search(rows, of, of, OPTIONS, 7.0) == Parameters(7.0, 1.0, 0)

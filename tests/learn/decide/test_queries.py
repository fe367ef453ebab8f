import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import make_blobs
from sklearn.linear_model import LogisticRegression

from eigenscape.learn.decide.queries import ambiguity, diverse


def test_ambiguity__by_hand():
    scores = np.array(
        [[0.7, 0.2, 0.1], [1, 1, 0], [np.nan] * 3, [0.4, -3, 0], [0, 0, 0], [7, 6.5, -9]],
        np.float32,
    )
    np.testing.assert_allclose(ambiguity(scores), [0.5, 1, np.nan, 0, 1, 2 / 3], rtol=1e-6)
    assert ambiguity(np.ones((2, 1), np.float32)).tolist() == [0, 0]


@given(seed=st.integers(0, 999), m=st.integers(1, 40), count=st.integers(1, 45))
def test_diverse__as_many_as_there_are_each_once(seed, m, count):
    rng = np.random.default_rng(seed)
    u = rng.random(m).astype(np.float32)
    # Few distinct places: copies.
    X = rng.integers(0, 3, (m, 2)).astype(np.float32)
    order = diverse(u, X, count)
    assert len(order) == len(set(order.tolist())) == min(m, count)
    np.testing.assert_array_equal(diverse(u, X, count), order)


def test_diverse__one_of_each_group_the_heaviest_first():
    X, group = make_blobs([10, 60, 30], 2, centers=[[0, 0], [20, 0], [0, 20]], random_state=0)
    order = diverse(np.ones(100, np.float32), X.astype(np.float32), 3)
    assert group[order].tolist() == [1, 2, 0]
    # Uncertainty counts as much as number.
    heavy = np.where(group == 0, 9, 1).astype(np.float32)
    assert group[diverse(heavy, X.astype(np.float32), 3)].tolist() == [0, 1, 2]


def test_diverse__teaches_more_than_chance():
    X, truth = make_blobs(
        1500, 2, centers=12, cluster_std=1.0, center_box=(-20, 20), random_state=3
    )
    X, truth = X.astype(np.float32), truth % 4
    gains = []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        start = np.concatenate([rng.choice(np.flatnonzero(truth == c), 2) for c in range(4)])
        lift = np.hstack([X, X**2, X[:, :1] * X[:, 1:]]) / 20
        p = LogisticRegression(max_iter=500).fit(lift[start], truth[start]).predict_proba(lift)
        free = np.setdiff1d(np.arange(1500), start)
        proposed = free[diverse(ambiguity(p[free].astype(np.float32)), X[free], 12)]
        accuracy = []
        for more in (proposed, rng.choice(free, 12, replace=False)):
            own = np.concatenate([start, more])
            # The nearest label wins: what a harmonic function does on a good graph.
            near = ((X[:, None] - X[own]) ** 2).sum(axis=2).argmin(axis=1)
            accuracy.append((truth[own][near] == truth).mean())
        gains.append(accuracy[0] - accuracy[1])
    assert np.mean(gains) > 0.02

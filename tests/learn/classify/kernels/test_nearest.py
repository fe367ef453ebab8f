import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from sklearn.neighbors import KNeighborsClassifier, NearestNeighbors

from eigenscape.learn.classify.kernels.nearest import nearest_rows, vote


@pytest.mark.parametrize("sparse", [False, True])
def test_nearest_rows__against_scikit_learn(rng, sparse):
    features = rng.normal(size=(700, 9)).astype(np.float32)
    candidates = rng.normal(size=(2300, 9)).astype(np.float32)
    distance, index = NearestNeighbors(n_neighbors=4).fit(candidates).kneighbors(features)
    if sparse:
        features, candidates = (scipy.sparse.csr_array(rows) for rows in (features, candidates))
    found = nearest_rows(features, lambda a, b: candidates[a:b], 2300, 4)
    np.testing.assert_array_equal(found[0], index)
    np.testing.assert_allclose(found[1], distance, rtol=1e-5)


def test_nearest_rows__fewer_candidates_than_asked_for():
    only = np.ones((1, 1), np.float32)
    index, distance = nearest_rows(np.zeros((2, 1), np.float32), lambda a, b: only[a:b], 1, 3)
    assert index.tolist() == [[0, -1, -1]] * 2
    assert distance.tolist() == [[1, np.inf, np.inf]] * 2


def test_nearest_rows__ties_by_number():
    points = np.array([[1.0], [-1.0], [1.0]], np.float32)
    index, _ = nearest_rows(np.zeros((1, 1), np.float32), lambda a, b: points[a:b], 3, 2)
    assert index.tolist() == [[0, 1]]


@given(
    seed=st.integers(0, 2**32 - 1),
    width=st.integers(1, 6),
    k=st.integers(1, 7),
    classes=st.integers(1, 4),
)
def test_vote__against_counting(seed, width, k, classes):
    rng = np.random.default_rng(seed)
    index = rng.integers(-1, 12, (20, width))
    of = rng.integers(-1, classes, 12)
    shares = vote(index, of, k, classes)
    for row in range(20):
        voters = [of[i] for i in index[row] if i >= 0 and of[i] >= 0][:k]
        if not voters:
            assert np.isnan(shares[row]).all()
            continue
        most = max(map(voters.count, voters))
        assert shares[row].argmax() == next(c for c in voters if voters.count(c) == most)
        counts = np.bincount(voters, minlength=classes)
        np.testing.assert_allclose(shares[row], counts / len(voters), atol=0.011)


def test_vote__neighbours_behind_take_the_place_of_those_without_class():
    classes = np.array([-1, 5, 6, 6])
    lists = np.array([[0, 1, 2, 3]])
    assert vote(lists, classes, 3, 7).argmax() == 6
    assert vote(lists, classes, 2, 7).argmax() == 5


@pytest.mark.parametrize("k", [1, 3, 5])
def test_vote__against_scikit_learn(rng, k):
    # Two classes and an odd k: no ties, which scikit-learn breaks otherwise.
    features = rng.normal(size=(400, 6)).astype(np.float32)
    labelled = rng.normal(size=(300, 6)).astype(np.float32)
    classes = (labelled[:, 0] + rng.normal(size=300) > 0).astype(np.intp)
    index, _ = nearest_rows(features, lambda a, b: labelled[a:b], 300, k)
    model = KNeighborsClassifier(k).fit(labelled, classes)
    shares = vote(index, classes, k, 2)
    np.testing.assert_array_equal(shares.argmax(axis=1), model.predict(features))
    np.testing.assert_allclose(shares, model.predict_proba(features), atol=0.011)


def test_vote__same_in_longer_lists_with_others_that_do_not_vote():
    classes = np.array([-1, -1, 0, 1, 1])
    for k in (2, 3):
        short = vote(np.array([[2, 3, 4]]), classes, k, 2)
        long = vote(np.array([[0, 2, 1, 0, 3, 1, 4, -1, -1]]), classes, k, 2)
        np.testing.assert_array_equal(short, long)


def test_vote__same_answer_for_any_block(rng):
    index, classes = rng.integers(-1, 200, (9000, 4)), rng.integers(-1, 5, 200)
    whole = vote(index, classes, 3, 5)
    parts = [vote(part, classes, 3, 5) for part in np.split(index, [311, 5000])]
    np.testing.assert_array_equal(np.concatenate(parts), whole)

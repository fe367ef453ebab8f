import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from sklearn.neighbors import KNeighborsClassifier, NearestNeighbors

from eigenscape.learn.nearest import nearest_classes, nearest_rows, vote


@pytest.mark.parametrize("sparse", [False, True])
def test_nearest_rows__against_scikit_learn(rng, sparse):
    features = rng.normal(size=(700, 9)).astype(np.float32)
    candidates = rng.normal(size=(2300, 9)).astype(np.float32)
    distance, index = NearestNeighbors(n_neighbors=4).fit(candidates).kneighbors(features)
    if sparse:
        features, candidates = (scipy.sparse.csr_array(rows) for rows in (features, candidates))
    found = nearest_rows(features, candidates, 4)
    np.testing.assert_array_equal(found[0], index)
    np.testing.assert_allclose(found[1], distance, rtol=1e-5)


def test_nearest_rows__fewer_candidates_than_asked_for():
    index, distance = nearest_rows(np.zeros((2, 1), np.float32), np.ones((1, 1), np.float32), 3)
    assert index.tolist() == [[0, -1, -1]] * 2
    assert distance.tolist() == [[1, np.inf, np.inf]] * 2


def test_nearest_rows__ties_by_number():
    points = np.array([[1.0], [-1.0], [1.0]], np.float32)
    assert nearest_rows(np.zeros((1, 1), np.float32), points, 2)[0].tolist() == [[0, 1]]


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
    best, share = vote(index, of, k)
    for row in range(20):
        voters = [of[i] for i in index[row] if i >= 0 and of[i] >= 0][:k]
        if not voters:
            assert best[row] == -1
            assert share[row] == 0
            continue
        most = max(map(voters.count, voters))
        assert best[row] == next(c for c in voters if voters.count(c) == most)
        assert share[row] == pytest.approx(most / len(voters))


def test_vote__neighbours_behind_take_the_place_of_those_without_class():
    classes = np.array([-1, 5, 6, 6])
    assert vote(np.array([[0, 1, 2, 3]]), classes, 3)[0].tolist() == [6]
    assert vote(np.array([[0, 1, 2, 3]]), classes, 2)[0].tolist() == [5]


@pytest.mark.parametrize("k", [1, 3, 5])
def test_nearest_classes__against_scikit_learn(rng, k):
    # Two classes and an odd k: no ties, which scikit-learn breaks otherwise.
    features = rng.normal(size=(400, 6)).astype(np.float32)
    labelled = rng.normal(size=(300, 6)).astype(np.float32)
    classes = (labelled[:, 0] + rng.normal(size=300) > 0).astype(np.intp)
    train = rng.random((3, 300)) < 0.5
    found, share = nearest_classes(features, labelled, classes, train, (1, k))
    assert found.shape == share.shape == (3, 2, 400)
    for fit, chosen in enumerate(train):
        model = KNeighborsClassifier(k).fit(labelled[chosen], classes[chosen])
        np.testing.assert_array_equal(found[fit, 1], model.predict(features))
        np.testing.assert_allclose(share[fit, 1], model.predict_proba(features).max(axis=1))


def test_nearest_classes__same_answer_for_any_block(rng):
    features = rng.normal(size=(900, 4)).astype(np.float32)
    classes = rng.integers(0, 5, 200)
    labelled = rng.normal(size=(200, 4)).astype(np.float32)
    train = rng.random((2, 200)) < 0.5
    whole = nearest_classes(features, labelled, classes, train)
    parts = [
        nearest_classes(features[a:b], labelled, classes, train) for a, b in ((0, 311), (311, 900))
    ]
    for number in range(2):
        joined = np.concatenate([part[number] for part in parts], axis=2)
        np.testing.assert_array_equal(joined, whole[number])


def test_nearest_classes__nothing_to_learn_from():
    rows = np.zeros((2, 3), np.float32)
    best, share = nearest_classes(rows, rows, np.zeros(2, np.intp), np.zeros((1, 2), bool))
    assert (best == -1).all()
    assert not share.any()

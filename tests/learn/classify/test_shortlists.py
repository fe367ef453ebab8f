import numpy as np
import pytest

from eigenscape.learn.classify.kernels.nearest import nearest_rows, vote
from eigenscape.learn.classify.shortlists import plan_shortlists

LABELLED, CLASSES = 400, 3


@pytest.fixture
def features(rng):
    return rng.standard_normal((LABELLED, 5)).astype(np.float32)


def fits_of(rng, share, fits=6):
    return rng.random((fits, LABELLED)) < share


@pytest.mark.parametrize("k", [1, 3, 5])
def test_shortlists__vote_as_a_search_for_each_fit(tmp_path, rng, features, k):
    train = fits_of(rng, 0.7)
    train[:, :20] = False
    classes = rng.integers(CLASSES, size=LABELLED)
    lists = plan_shortlists(tmp_path / "lists", train, k)
    assert lists is not None
    assert lists.candidates.min() == 20
    lists.create()
    for block in ((0, 150), (150, LABELLED)):
        lists.search(features, block)
    for own in train:
        votes, short = lists.vote((50, LABELLED), own, classes, CLASSES)
        members = np.flatnonzero(own)
        index, _ = nearest_rows(
            features[50:], lambda start, stop, m=members: features[m[start:stop]], len(members), k
        )
        expected = vote(index, classes[members], k, CLASSES)
        clear = np.setdiff1d(np.arange(len(votes)), short)
        np.testing.assert_array_equal(votes[clear].argmax(axis=1), expected[clear].argmax(axis=1))
        np.testing.assert_allclose(votes[clear], expected[clear], atol=0.011)
        assert len(clear) > 0.9 * len(votes)


def test_shortlists__say_which_samples_lack_voters(tmp_path, rng, features):
    train = fits_of(rng, 0.5)
    lists = plan_shortlists(tmp_path / "lists", train, 3)
    lists.create()
    lists.search(features, (0, LABELLED))
    # A fit that learns from none of those in the first list.
    found = np.memmap(lists.path, np.int32, "r", shape=(LABELLED, lists.width))
    own = train[0].copy()
    own[found[0]] = False
    assert 0 in lists.vote((0, 10), own, np.zeros(LABELLED, int), CLASSES)[1]


@pytest.mark.parametrize(("share", "fits"), [(0.02, 40), (0.7, 2)])
def test_shortlists__none_where_they_do_not_pay(tmp_path, rng, share, fits):
    assert plan_shortlists(tmp_path / "lists", fits_of(rng, share, fits), 3) is None

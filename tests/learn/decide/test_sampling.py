"""Tests of the labelled samples that calibrations read, and of what is kept of scores."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eigenscape.labels.training import Labelled
from eigenscape.learn.decide import sampling
from eigenscape.learn.decide.fitscores import LabelScores
from eigenscape.learn.decide.kernels.decisions import choose
from eigenscape.learn.decide.sampling import Sampling


def draw(seed, rows, fits, count=3):
    rng = np.random.default_rng(seed)
    numbers = np.arange(1, count + 1, dtype=np.uint16)
    train = rng.random((fits, rows)) < rng.random((fits, 1))
    return Labelled(np.arange(rows), rng.integers(0, count, rows), numbers, train)


@given(seed=st.integers(0, 99), rows=st.integers(1, 400), fits=st.integers(1, 6))
def test_of_fit__holds_all_that_calibrations_read_and_few_more(seed, rows, fits):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sampling, "MOST_VALUES", 90)
        patch.setattr(sampling, "MOST_CALLED", 120)
        protocols = {"random": list(range(fits)), "blocked": [fits - 1]}
        drawn = Sampling(draw(seed, rows, fits), protocols, seed)
        second = drawn.parted()
        for number in range(fits):
            kept = drawn.of_fit(number)
            assert (np.diff(kept) > 0).all()
            assert np.isin(drawn.called(number), kept).all()
            for protocol in protocols:
                for last in (False, True):
                    if number in drawn.fits(protocol, last=last):
                        held = drawn.held(number, second, last=last)
                        assert np.isin(held, kept).all()
                        assert (second[held] == last).all()
                        assert not drawn.labelled.train[number][held].any()
            # Calls, and both halves of both protocols; no fewer than there are.
            assert min(rows, 1) <= len(kept) <= 120 / 3 + 1 + 4 * (90 / 3 / fits + 1)


@pytest.mark.parametrize("count", [3, 127, 128, 129, 300])
def test_label_scores__gives_back_calls_of_all_and_the_scores_that_are_read(tmp_path, rng, count):
    labelled = draw(1, 500, 2, count)
    drawn = Sampling(labelled, {"random": [0, 1]}, 7)
    kept = LabelScores(tmp_path, "fit", labelled, drawn)
    scores = rng.random((500, count), np.float32)
    scores[3] = np.nan
    scores[5, count - 1] = 2
    for number in (0, 1):
        confusions = kept.keep(number, scores)
        assert np.sum(confusions[0][:][:]) == labelled.train[number].sum()
        np.testing.assert_array_equal(kept.called(number), choose(scores))
        rows = drawn.called(number)
        np.testing.assert_array_equal(kept.at_labels(number, rows), scores[rows])
    assert kept.called(0)[3] == -1
    assert kept.called(0)[5] == count - 1


def test_label_scores__keeps_calls_alone_where_no_scores_are_read(tmp_path, rng):
    labelled = draw(1, 50, 1)
    LabelScores(tmp_path, "fit", labelled, None).keep(0, rng.random((50, 3), np.float32))
    assert [path.name for path in tmp_path.iterdir()] == ["fit-called-0.npy"]


def test_label_scores__of_many_samples_are_a_few(tmp_path, rng, monkeypatch):
    monkeypatch.setattr(sampling, "MOST_VALUES", 600)
    monkeypatch.setattr(sampling, "MOST_CALLED", 900)
    labelled = draw(1, 20_000, 2)
    kept = LabelScores(tmp_path, "fit", labelled, Sampling(labelled, {"random": [0, 1]}, 7))
    kept.keep(0, rng.random((20_000, 3), np.float32))
    assert np.load(tmp_path / "fit-scores-0.npy").shape[0] < 1000
    assert kept.called(0).shape == (20_000,)

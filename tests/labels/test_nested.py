from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eigenscape.labels.nested import BESIDE, Nested, halves_of_squares
from eigenscape.learn.methods.centroid_angle import CentroidAngle
from eigenscape.scenes.types import Grid


def nested(split="blocked", *, height=60, width=48, classes=4, seed=0, share=1.0, **options):
    rng = np.random.default_rng(seed)
    row, column = np.divmod(np.arange(height * width), width)
    truth = (row // 9 + 3 * (column // 7)) % classes
    kept = rng.random(len(row)) < share
    return Nested(
        CentroidAngle(**options), split, truth[kept], row[kept], column[kept], Grid(height, width)
    )


@given(
    split=st.sampled_from(["blocked", "random", "uniform", "balanced"]),
    seed=st.integers(0, 50),
    share=st.sampled_from([0.05, 0.3, 1.0]),
)
def test_draw__tests_on_nothing_that_was_seen(split, seed, share):
    draws = nested(split, seed=seed, share=share)
    seen = draws.seen
    for trial in range(3):
        train, chosen = draws.draw("choosing", trial)
        again, judged = draws.draw("judging", trial)
        np.testing.assert_array_equal(train, again)
        assert train.any()
        assert chosen.any()
        assert judged.any()
        assert not (train & chosen).any()
        # The verdict's samples are in no draw of the choice.
        assert not (judged & seen).any()
        assert not ((train | chosen) & ~seen).any()


def test_draw__blocked_keeps_squares_whole():
    draws = nested()
    side = draws.side
    square = (draws.row // side) * 1000 + draws.column // side
    train, chosen = draws.draw("choosing", 1)
    _, judged = draws.draw("judging", 1)
    parts = [set(square[part]) for part in (train, chosen, judged)]
    assert sum(map(len, parts)) == len(set.union(*parts))


def test_draw__every_class_is_learned():
    draws = nested(classes=6, share=0.02, seed=3)
    for trial in range(5):
        train, _ = draws.draw("choosing", trial)
        assert set(draws.classes[train]) == set(draws.classes)


def test_draw__learns_from_as_many_as_the_job_would():
    draws = nested("random", train=0.1)
    train, _ = draws.draw("judging", 0)
    assert train.sum() == pytest.approx(0.1 * len(train), rel=0.05)
    few, _ = nested("random", train=40).draw("judging", 0)
    assert few.sum() == pytest.approx(40, abs=4)


def test_draw__learns_from_half_as_the_map_learns_from_all():
    # Whole squares are less exact.
    for split, options, off in (
        ("random", {}, 0.05), ("random", {"test": "test.npy"}, 0.05), ("blocked", {}, 0.2),
    ):  # fmt: skip
        draws = nested(split, **options)
        for part, seen in (("all", 1.0), ("choosing", 0.5), ("judging", 0.5)):
            train, _ = draws.draw(part, 0)
            assert train.sum() == pytest.approx(0.5 * seen * len(train), rel=off)
    # Draws of the job's own share are tested on the file, too.
    train, _ = nested("random", test="test.npy", train=0.1).draw("all", 0)
    assert train.sum() == pytest.approx(0.1 * len(train), rel=0.05)


def test_draw__beside_squares_keeps_to_what_the_blocked_split_sees():
    blocked, beside = nested(), nested(BESIDE)
    np.testing.assert_array_equal(beside.seen, blocked.seen)
    train, tested = beside.draw("choosing", 0)
    assert not ((train | tested) & ~blocked.seen).any()
    assert train.sum() == pytest.approx(0.25 * len(train), rel=0.05)
    square = (beside.row // beside.side) * 1000 + beside.column // beside.side
    assert set(square[train]) & set(square[tested])


def test_draw__trials_differ_and_repeat():
    draws = nested()
    first, second = (draws.draw("choosing", trial)[0] for trial in (0, 1))
    assert (first != second).any()
    np.testing.assert_array_equal(first, nested().draw("choosing", 0)[0])


def test_seen__squares_shrink_until_some_are_left_to_judge():
    # One square of the usual side holds all labels.
    row, column = np.divmod(np.arange(400), 20)
    draws = Nested(CentroidAngle(), "blocked", (row + column) % 2, row, column, Grid(240, 240))
    assert draws.side == 10
    assert (~draws.seen).mean() >= 0.25


def test_draw__given_training_samples_are_all_that_the_choice_sees():
    base = nested()
    marked = base.column < 20
    draws = Nested(base.options, "blocked", base.classes, base.row, base.column, base.grid, marked)
    train, tested = draws.draw("judging", 0)
    np.testing.assert_array_equal(train, marked)
    np.testing.assert_array_equal(tested, ~marked)
    assert draws.trials("judging", 10) == 1
    train, chosen = draws.draw("choosing", 0)
    assert not ((train | chosen) & ~marked).any()
    assert chosen.any()


def test_draw__a_test_file_judges_what_was_chosen_by_all_others():
    base = nested(share=0.5)
    tested = base.column < 20
    files = {"given": ~tested, "tested": tested}
    draws = replace(base, options=CentroidAngle(test="test.npy"), **files)
    train, judged = draws.draw("judging", 0)
    np.testing.assert_array_equal(train, ~tested)
    np.testing.assert_array_equal(judged, tested)
    assert draws.trials("judging", 5) == 1
    for part in ("choosing", "all"):
        train, chosen = draws.draw(part, 1)
        np.testing.assert_array_equal(train | chosen, ~tested)
    # Draws of a share of what is left to learn from are each tested on the file.
    shares = replace(draws, options=CentroidAngle(test="test.npy", train=0.1), split="random")
    assert shares.trials("judging", 5) == 5
    for part in ("choosing", "judging", "all"):
        train, judged = shares.draw(part, 2)
        assert train.sum() == pytest.approx(0.1 * (~tested).sum(), rel=0.05)
        assert not (train & tested).any()
    np.testing.assert_array_equal(shares.draw("judging", 2)[1], tested)


@given(seed=st.integers(0, 200), squares=st.integers(1, 40), count=st.integers(1, 8))
def test_halves_of_squares__every_class_is_learned_and_about_half_of_it(seed, squares, count):
    rng = np.random.default_rng(seed)
    square = rng.integers(0, squares, 600)
    square = np.unique(square, return_inverse=True)[1]
    classes = np.unique((square * 7 + rng.integers(0, 2, 600)) % count, return_inverse=True)[1]
    chosen = halves_of_squares(classes, square, rng)
    assert chosen.shape == (square.max() + 1,)
    for one in range(classes.max() + 1):
        sizes = np.bincount(square[classes == one], minlength=len(chosen))
        assert sizes[chosen].sum() > 0
    sizes = np.bincount(square)
    if len(sizes) > 20 and count == 1:
        # As in dealing: no farther from half than the largest part.
        assert abs(sizes[chosen].sum() - 300) <= sizes.max()

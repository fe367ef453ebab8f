import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eigenscape.labels.splits import (
    Squares,
    Strata,
    balanced_split,
    blocked_split,
    random_split,
    uniform_split,
)


def scene(seed, size=40, classes=4):
    rng = np.random.default_rng(seed)
    row, column = np.nonzero(rng.random((size, size)) < 0.5)
    return rng.integers(0, classes, len(row)), row.astype(np.int64), column.astype(np.int64)


def squares(classes, row, column, side):
    return Squares.of(Strata.of(classes), row, column, side)


@given(classes=st.lists(st.sampled_from([0, 3, 70000]), max_size=30))
def test_strata__places_of_each_class(classes):
    classes = np.array(classes, np.intp)
    strata = Strata.of(classes)
    expected = [np.flatnonzero(classes == number) for number in np.unique(classes)]
    assert [members.tolist() for members in strata.members] == [e.tolist() for e in expected]
    assert strata.labelled == len(classes)
    assert strata.sizes.tolist() == [len(places) for places in expected]


@given(seed=st.integers(0, 1000), side=st.integers(1, 50))
def test_squares__those_that_hold_pixels(seed, side):
    classes, row, column = scene(seed, size=12)
    found = squares(classes, row, column, side)
    places = [*zip(row // side, column // side, strict=True)]
    names = sorted(set(places))
    assert found.square.tolist() == [names.index(place) for place in places]
    assert found.sizes.tolist() == [places.count(name) for name in names]
    for number, held in zip(np.unique(classes), found.of_class, strict=True):
        assert held.tolist() == sorted(set(found.square[classes == number]))


@given(seed=st.integers(0, 1000), share=st.floats(0.01, 0.99))
def test_random_split__share_of_every_class(seed, share):
    rng = np.random.default_rng(seed)
    classes = rng.permutation(np.repeat(np.arange(5), [1, 2, 3, 50, 200]))
    train = random_split(Strata.of(classes), share, rng)
    for number, size in enumerate([1, 2, 3, 50, 200]):
        drawn = int(train[classes == number].sum())
        assert drawn >= 1
        if size > 1:
            assert drawn <= size - 1
        assert abs(drawn - share * size) <= 1 or drawn in (1, size - 1)


def test_random_split__follows_the_seed_alone():
    classes = np.repeat(np.arange(3), 100)
    draws = [
        random_split(Strata.of(classes), 0.3, np.random.default_rng(seed)) for seed in (1, 1, 2)
    ]
    np.testing.assert_array_equal(draws[0], draws[1])
    assert (draws[0] != draws[2]).any()


@given(seed=st.integers(0, 1000), share=st.floats(0.05, 0.9), side=st.integers(3, 15))
def test_blocked_split__no_square_in_both(seed, share, side):
    classes, row, column = scene(seed)
    train = blocked_split(squares(classes, row, column, side), share, np.random.default_rng(seed))
    square = {}
    for place, chosen in zip(zip(row // side, column // side, strict=True), train, strict=True):
        assert square.setdefault(place, chosen) == chosen


@given(seed=st.integers(0, 1000), share=st.floats(0.05, 0.9))
def test_blocked_split__every_class_and_about_the_share(seed, share):
    classes, row, column = scene(seed)
    train = blocked_split(squares(classes, row, column, 5), share, np.random.default_rng(seed))
    assert set(classes[train]) == set(classes)
    # One square holds at most 25 of the pixels; each of four classes asks for one square.
    assert share * len(classes) - 1e-9 <= train.sum() < max(share * len(classes), 4 * 25) + 25


def test_blocked_split__follows_the_seed_alone():
    draws = [
        blocked_split(squares(*scene(0), 5), 0.3, np.random.default_rng(seed)) for seed in (1, 1, 2)
    ]
    np.testing.assert_array_equal(draws[0], draws[1])
    assert (draws[0] != draws[2]).any()


def test_blocked_split__squares_are_drawn_evenly():
    classes, row, column = scene(0)
    drawn = np.mean(
        [
            blocked_split(squares(classes, row, column, 10), 0.3, np.random.default_rng(n))
            for n in range(300)
        ],
        axis=0,
    )
    assert drawn.min() > 0.15
    assert drawn.max() < 0.5


@pytest.mark.parametrize("share", [0.1, 0.9])
def test_blocked_split__one_square(share):
    classes = np.array([0, 1, 1])
    zeros = np.zeros(3, np.int64)
    assert blocked_split(squares(classes, zeros, zeros, 5), share, np.random.default_rng(0)).all()


@given(seed=st.integers(0, 1000), size=st.integers(4, 250))
def test_uniform_split__exactly_that_many_and_every_class(seed, size):
    rng = np.random.default_rng(seed)
    classes = rng.permutation(np.repeat(np.arange(4), [6, 20, 60, 200]))
    train = uniform_split(Strata.of(classes), size, rng)
    assert train.sum() == size
    assert set(classes[train]) == set(range(4))


@pytest.mark.slow
def test_uniform_split__is_the_uniform_draw_given_that_every_class_is_there():
    classes = np.repeat([0, 1, 2], [2, 3, 5])
    rng = np.random.default_rng(0)
    drawn = np.array([uniform_split(Strata.of(classes), 4, rng) for _ in range(4000)])
    sets = np.array(
        [
            [number in chosen for number in range(10)]
            for chosen in itertools.combinations(range(10), 4)
            if len(set(classes[list(chosen)])) == 3
        ]
    )
    # Every complete set is as likely as any other.
    names = drawn @ (1 << np.arange(10))
    counts = np.array([(names == s @ (1 << np.arange(10))).sum() for s in sets])
    assert counts.sum() == 4000
    expected = 4000 / len(sets)
    assert ((counts - expected) ** 2 / expected).sum() < 1.5 * len(sets)


def test_uniform_split__gives_up_on_a_class_that_is_too_rare():
    classes = np.repeat([0, 1, 2], [10**6, 1, 1])
    assert uniform_split(Strata.of(classes), 3, np.random.default_rng(0)) is None


@given(seed=st.integers(0, 1000), each=st.integers(1, 6))
def test_balanced_split__as_many_of_each_class(seed, each):
    rng = np.random.default_rng(seed)
    classes = rng.permutation(np.repeat(np.arange(4), [6, 20, 60, 200]))
    train = balanced_split(Strata.of(classes), each, rng)
    np.testing.assert_array_equal(np.bincount(classes[train]), np.full(4, each))

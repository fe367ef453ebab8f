import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eigenscape.base.memory import ROW_TILE
from eigenscape.learn.classify.kernels.eigenfunctions import (
    choose_count,
    estimates,
    normal_equations,
    solve,
)


def one_against_all(vectors, classes, count):
    """The formula of the thesis: least squares on values of 1 and -1, by LAPACK."""
    C = np.where(classes[:, None] == np.arange(count), 1.0, -1.0)
    return np.linalg.lstsq(vectors.astype(float), C, rcond=None)[0]


@pytest.mark.parametrize(("labels", "vectors"), [(60, 8), (20, 20), (10, 25)])
def test_solve__equals_lstsq(rng, labels, vectors):
    X = rng.standard_normal((labels, vectors)).astype(np.float32)
    classes = rng.integers(0, 3, labels)
    found = solve(*normal_equations(X, classes, 3))
    # With fewer labels than vectors many solutions fit: both are the shortest.
    np.testing.assert_allclose(found, one_against_all(X, classes, 3), rtol=1e-3, atol=1e-4)


def test_normal_equations__of_blocks_add_up(rng):
    X, classes = rng.standard_normal((50, 6)).astype(np.float32), rng.integers(0, 4, 50)
    whole = normal_equations(X, classes, 4)
    parts = [normal_equations(X[h], classes[h], 4) for h in (slice(0, 13), slice(13, 50))]
    for number in (0, 1):
        np.testing.assert_allclose(parts[0][number] + parts[1][number], whole[number], rtol=1e-12)


@pytest.mark.parametrize(
    ("asked", "labels", "classes", "extended", "expected"),
    [
        ("auto", 100, 2, 56, 20), ("auto", 1000, 2, 56, 56), ("auto", 3, 2, 56, 1),
        ("auto", 20, 10, 56, 9), ("auto", 100, 2, 12, 12), ("auto", 100, 2, 0, 1),
        (7, 10, 10, 56, 7), (90, 9, 2, 5, 56),
    ],
)  # fmt: skip
def test_choose_count__is_a_fifth_of_the_labels(asked, labels, classes, extended, expected):
    assert choose_count(asked, labels, classes, 56, extended) == expected


@given(seed=st.integers(0, 99), scale=st.floats(1e-3, 1e3))
def test_estimates__do_not_depend_on_the_length_of_the_vectors(seed, scale):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((80, 5)).astype(np.float32)
    classes = (X[:, 0] > 0).astype(int) + 2 * (X[:, 1] > 0)
    first = estimates(X, solve(*normal_equations(X, classes, 4)))
    longer = X * np.float32(scale)
    again = estimates(longer, solve(*normal_equations(longer, classes, 4)))
    np.testing.assert_allclose(again, first, atol=1e-3)


def test_estimates__are_the_shares_of_the_classes_where_nothing_else_is_known(rng):
    classes = rng.choice(3, 400, p=[0.6, 0.3, 0.1])
    constant = np.ones((400, 1), np.float32)
    scores = estimates(constant, solve(*normal_equations(constant, classes, 3)))
    shares = np.bincount(classes) / 400
    np.testing.assert_allclose(scores, np.tile(shares, (400, 1)), rtol=1e-5)


def test_estimates__same_answer_for_any_block(rng):
    X = rng.standard_normal((2 * ROW_TILE + 10, 4)).astype(np.float32)
    X[5, 1] = np.nan
    weights = rng.standard_normal((4, 5)).astype(np.float32)
    whole = estimates(X, weights)
    parts = [estimates(part, weights) for part in np.split(X, [ROW_TILE])]
    np.testing.assert_array_equal(np.concatenate(parts), whole)
    assert np.isnan(whole).any(axis=1).sum() == 1

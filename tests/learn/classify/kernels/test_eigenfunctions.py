import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eigenscape.base.memory import ROW_TILE
from eigenscape.learn.classify.kernels.eigenfunctions import (
    choose_count,
    estimates,
    normal_equations,
    roughness,
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


def test_choose_count__all_that_extend_where_functions_are_smooth():
    assert choose_count("auto", 20, 2, 56, 40, smooth=True) == 40
    assert choose_count(7, 20, 2, 56, 40, smooth=True) == 7


@pytest.mark.parametrize("power", [1, 2])
def test_roughness__is_tikhonov_regularisation_by_all_eigenvectors(rng, power):
    # A path with all of its eigenvectors: minimise |f - y|^2 + weight f^T L^p f over all f.
    n, known = 40, np.array([3, 20, 33])
    L = 2 * np.eye(n) - np.eye(n, k=1) - np.eye(n, k=-1)
    L[0, 0] = L[-1, -1] = 1
    values, U = np.linalg.eigh(L)
    values[0] = 0
    classes = np.array([0, 1, 0])
    G, B = normal_equations(U[known].astype(np.float32), classes, 2)
    gamma = 0.3
    penalty = roughness(G, values, 1, gamma, power)
    f = U @ solve(G + np.diag(penalty), B)
    weight = gamma * np.diagonal(G)[1:].mean() / values[30] ** power
    selected = np.zeros((n, n))
    selected[known, known] = 1
    Y = np.zeros((n, 2))
    Y[known] = np.where(classes[:, None] == np.arange(2), 1, -1)
    expected = np.linalg.solve(selected + weight * np.linalg.matrix_power(L, power), Y)
    np.testing.assert_allclose(f, expected, atol=2e-4)


@given(seed=st.integers(0, 99), scale=st.floats(1e-3, 1e3), unit=st.floats(1e-6, 1e3))
def test_roughness__scale_of_vectors_and_eigenvalues_has_no_effect(seed, scale, unit):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((60, 40)).astype(np.float32)
    classes, values = rng.integers(0, 3, 60), np.sort(rng.random(40))
    values[0] = 0

    def fitted(factor, values):
        longer = X * np.float32(factor)
        G, B = normal_equations(longer, classes, 3)
        return estimates(longer, solve(G + np.diag(roughness(G, values, 1, 0.1, 2)), B))

    np.testing.assert_allclose(fitted(scale, unit * values), fitted(1, values), atol=1e-3)


def test_roughness__few_eigenvectors_and_null_vectors():
    G = 2 * np.eye(4)
    found = roughness(G, np.array([0.0, 0.0, 1.0, 2.0]), 2, 0.5, 2)
    np.testing.assert_allclose(found, [0, 0, 0.5 * 2 / 4, 0.5 * 2])
    np.testing.assert_array_equal(roughness(G[:2, :2], np.zeros(2), 2, 0.5, 2), [0, 0])


@pytest.mark.parametrize("small", [1e-3, 1e-7, 1e-9, 0.0])
@pytest.mark.parametrize("power", [1, 2, 8])
def test_roughness__many_eigenvalues_next_to_0_leave_functions_on_their_vectors(rng, small, power):
    X = np.column_stack([np.ones(300), rng.standard_normal((300, 59))]).astype(np.float32)
    classes = (X[:, 1] > 0).astype(int)
    values = np.r_[0, np.full(35, small), np.linspace(0.1, 0.2, 24)]
    G, B = normal_equations(X, classes, 2)
    weights = solve(G + np.diag(roughness(G, values, 1, 0.1, power)), B)
    assert (estimates(X, weights).argmax(axis=1) == classes).mean() > 0.95
    assert np.abs(weights[36:]).max() < 0.02 * np.abs(weights).max()


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

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eigenscape.learn.decide.kernels.areas import estimate_areas

# Olofsson and others 2014, table 8: deforestation, forest gain, stable forest, stable non-forest.
SAMPLE = np.array([[66, 0, 5, 4], [0, 55, 8, 12], [1, 0, 153, 11], [2, 1, 9, 313]])
MAPPED = np.array([200_000, 150_000, 3_200_000, 6_450_000])
PIXEL = 0.09  # ha


def test_estimate_areas__the_published_example():
    found = estimate_areas(SAMPLE, MAPPED)
    assert found["overall_accuracy"] == pytest.approx(0.95, abs=0.005)
    assert 1.96 * found["overall_accuracy_se"] == pytest.approx(0.02, abs=0.005)
    np.testing.assert_allclose(found["users_accuracy"], [0.88, 0.73, 0.93, 0.96], atol=0.006)
    half_widths = 1.96 * np.array(found["users_accuracy_se"])
    np.testing.assert_allclose(half_widths, [0.07, 0.10, 0.04, 0.02], atol=0.006)
    np.testing.assert_allclose(found["producers_accuracy"], [0.75, 0.85, 0.93, 0.96], atol=0.006)
    hectares = [21_158, 11_686, 285_770, 581_386]
    np.testing.assert_allclose(PIXEL * np.array(found["pixels"]), hectares, atol=1)
    half_widths = [6158, 3756, 15_510, 16_282]
    np.testing.assert_allclose(1.96 * PIXEL * np.array(found["pixels_se"]), half_widths, atol=2)


def slow(sample, mapped):
    """The equations of the paper, one sum after the other, with areas where the code has shares."""
    q = range(len(mapped))
    total = sum(mapped)
    n = [sum(sample[i]) for i in q]
    W = [mapped[i] / total for i in q]
    p = [[W[i] * sample[i][j] / n[i] for j in q] for i in q]
    U = [sample[i][i] / n[i] for i in q]
    column = [sum(p[i][j] for i in q) for j in q]
    recall = [p[j][j] / column[j] for j in q]
    found = {"overall_accuracy": sum(p[j][j] for j in q)}
    found["overall_accuracy_se"] = math.sqrt(
        sum(W[i] ** 2 * U[i] * (1 - U[i]) / (n[i] - 1) for i in q)
    )
    found["users_accuracy"] = U
    found["users_accuracy_se"] = [math.sqrt(U[i] * (1 - U[i]) / (n[i] - 1)) for i in q]
    found["producers_accuracy"], found["producers_accuracy_se"] = recall, []
    for j in q:
        area = sum(mapped[i] * sample[i][j] / n[i] for i in q)
        others = sum(
            mapped[i] ** 2 * sample[i][j] / n[i] * (1 - sample[i][j] / n[i]) / (n[i] - 1)
            for i in q
            if i != j
        )
        first = mapped[j] ** 2 * (1 - recall[j]) ** 2 * U[j] * (1 - U[j]) / (n[j] - 1)
        found["producers_accuracy_se"].append(
            math.sqrt((first + recall[j] ** 2 * others) / area**2)
        )
    # Equation 10 has a second form: W_i p_ik - p_ik^2 over n_i - 1.
    found["proportion"] = column
    found["proportion_se"] = [
        math.sqrt(sum((W[i] * p[i][k] - p[i][k] ** 2) / (n[i] - 1) for i in q)) for k in q
    ]
    return found


@given(seed=st.integers(0, 10**6), count=st.integers(2, 7))
def test_estimate_areas__against_the_equations(seed, count):
    rng = np.random.default_rng(seed)
    sample = rng.integers(0, 30, (count, count)) + np.eye(count, dtype=int) * 2
    mapped = rng.integers(1, 10**6, count)
    found = estimate_areas(sample, mapped)
    for name, values in slow(sample.tolist(), mapped.tolist()).items():
        np.testing.assert_allclose(found[name], values, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(sum(found["pixels"]), mapped.sum())


def test_estimate_areas__a_sample_of_the_whole_map_leaves_no_doubt_of_what_is_right():
    found = estimate_areas(np.diag([10, 20]), np.array([100, 300]))
    assert found["pixels"] == [100, 300]
    assert found["pixels_se"] == [0, 0]


def test_estimate_areas__standard_errors_hold_in_simulations():
    """Means over many samples of a known map: estimates without bias, errors as large as told."""
    rng = np.random.default_rng(0)
    truth = rng.choice(3, 30_000, p=[0.05, 0.35, 0.6])
    called = np.where(rng.random(30_000) < 0.85, truth, rng.integers(0, 3, 30_000))
    mapped = np.bincount(called)
    members = [np.flatnonzero(called == number) for number in range(3)]
    found = []
    for _ in range(400):
        drawn = np.concatenate([rng.choice(own, 300, replace=True) for own in members])
        sample = np.zeros((3, 3), int)
        np.add.at(sample, (called[drawn], truth[drawn]), 1)
        found.append(estimate_areas(sample, mapped))
    right = np.bincount(truth[truth == called])
    known = {
        "pixels": np.bincount(truth), "users_accuracy": right / mapped,
        "producers_accuracy": right / np.bincount(truth), "overall_accuracy": right.sum() / 30_000,
    }  # fmt: skip
    for name, expected in known.items():
        values, errors = (np.array([one[key] for one in found]) for key in (name, f"{name}_se"))
        spread = np.std(values, axis=0)
        assert (np.abs(values.mean(axis=0) - expected) < 0.2 * spread).all()
        np.testing.assert_allclose(errors.mean(axis=0), spread, rtol=0.12)


def test_estimate_areas__strata_without_units_or_with_one():
    sample = np.array([[5, 1, 0], [0, 0, 0], [0, 1, 9]])
    found = estimate_areas(sample, np.array([50, 20, 30]))
    assert found["without_sample"] == [1]
    assert found["pixels"] == [None] * 3
    # The map does not have that class: no stratum lacks a unit, and its area is what others hide.
    found = estimate_areas(sample, np.array([60, 0, 40]))
    assert found["without_sample"] == []
    np.testing.assert_allclose(found["pixels"], [50, 14, 36])
    assert found["users_accuracy"][1] is None
    sample[0] = [1, 0, 0]
    found = estimate_areas(sample, np.array([60, 0, 40]))
    assert found["one_unit"] == [0]
    assert found["users_accuracy_se"][0] is None
    assert found["pixels"][0] == pytest.approx(60)
    assert found["overall_accuracy_se"] is None


@given(seed=st.integers(0, 10**6), count=st.integers(2, 5))
def test_estimate_areas__what_has_no_class_is_a_stratum_that_is_never_right(seed, count):
    rng = np.random.default_rng(seed)
    sample = rng.integers(1, 30, (count + 1, count))
    mapped = rng.integers(1, 10**6, count + 1)
    found = estimate_areas(sample, mapped)
    # As if it were a class that the reference does not have.
    square = estimate_areas(np.pad(sample, [(0, 0), (0, 1)]), mapped)
    for name, values in square.items():
        if name.startswith("overall") or name in ("without_sample", "one_unit"):
            assert found[name] == values
        else:
            assert found[name] == pytest.approx(values[:-1])
    assert sum(found["pixels"]) == pytest.approx(mapped.sum())
    assert found["overall_accuracy"] <= 1 - mapped[-1] / mapped.sum()


def test_estimate_areas__without_a_sample_of_what_has_no_class():
    sample = np.array([[5, 1], [1, 9], [0, 0]])
    assert estimate_areas(sample, np.array([60, 40, 3]))["without_sample"] == [2]
    assert estimate_areas(sample, np.array([60, 40, 0])) == estimate_areas(
        sample[:2], np.array([60, 40])
    )

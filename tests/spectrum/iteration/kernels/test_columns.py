from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eigenscape.spectrum.iteration.kernels import columns
from eigenscape.spectrum.iteration.kernels.columns import (
    MOST_COLUMNS,
    PROBES,
    choose_columns,
    column_count,
    cut_above,
    extrapolate,
    gram_block,
    gram_rows,
    plan_filter,
    plan_short,
    rotation_rows,
    tile_rows,
    window,
)
from eigenscape.spectrum.iteration.kernels.filter import FilterPlan, degree_for, safe_degree
from eigenscape.spectrum.kernels.gather import WIDTH

DOUBLE, SINGLE = np.dtype(np.float64), np.dtype(np.float32)


@given(pairs=st.integers(1, 20_000))
def test_column_count__leaves_guards_and_fills_groups(pairs):
    count = column_count(pairs)
    assert count == WIDTH or count % (2 * WIDTH) == 0
    assert count - pairs >= max(24, 9 * np.sqrt(pairs))
    assert count - pairs < max(24, 9 * np.sqrt(pairs)) + 2 * WIDTH + 1


@given(pairs=st.integers(1, 20_000), locked=st.integers(0, 300))
def test_window__moves_up_until_it_holds_all_pairs(pairs, locked):
    most, goal = window(WIDTH * locked, pairs)
    assert most <= column_count(pairs)
    assert most - WIDTH * locked <= MOST_COLUMNS
    if most == column_count(pairs):
        assert goal == pairs
    else:
        assert goal == pairs or goal % WIDTH == 0
        assert WIDTH * locked + MOST_COLUMNS // 2 < goal or goal == pairs
        assert most - goal >= 9 * np.sqrt(MOST_COLUMNS)


@pytest.mark.parametrize("exponent", [2, 1, 0.5])
def test_extrapolate__follows_a_power(exponent):
    values = 1e-3 * np.arange(1, 401.0) ** exponent
    np.testing.assert_allclose(extrapolate(values[:300], 100), values[300:], rtol=1e-10)


def test_extrapolate__bears_any_values():
    np.testing.assert_array_equal(extrapolate(np.full(50, 0.3), 3), np.full(3, 0.3))
    np.testing.assert_array_equal(extrapolate(np.array([0.1, 0.2]), 2), [0.2, 0.2])
    assert np.isfinite(extrapolate(np.concatenate([np.zeros(30), np.ones(10)]), 5)).all()


def test_choose_columns__stops_before_what_costs_more():
    # A gap right after the wanted ones: more columns than needed would gain nothing.
    values = np.concatenate([np.linspace(0.001, 0.01, 50), np.linspace(0.5, 0.6, 142)])
    assert choose_columns(values, 50, 2.0, 0.1) == 128
    # As long as the values crowd, a cut beyond them is worth its columns.
    values = np.concatenate([np.linspace(0.01, 0.0101, 128), np.linspace(0.5, 0.6, 64)])
    assert choose_columns(values, 50, 2.0, 0.1) == 192


@given(
    pairs=st.integers(1, 200), power=st.floats(0.3, 3), per_entry=st.floats(0.01, 0.3),
    top=st.floats(1e-6, 1),
)  # fmt: skip
def test_choose_columns__takes_whole_groups_of_those_there_are(pairs, power, per_entry, top):
    values = top * np.linspace(0.01, 1, column_count(pairs)) ** power
    chosen = choose_columns(values, pairs, 2.0, per_entry)
    assert chosen % WIDTH == 0
    assert pairs + PROBES + 8 <= chosen <= len(values)


def test_choose_columns__bears_equal_values():
    assert choose_columns(np.ones(128), 50, 2.0, 0.1) in (128,)
    assert choose_columns(np.full(64, 1e-9), 10, 2.0, 0.1) <= 64


def plan(
    values,
    residuals,
    *,
    pairs=20,
    tolerance=1e-9,
    bound=2.0,
    most_cut=2.0,
    dtype=DOUBLE,
    halves=False,
):
    return plan_filter(
        np.asarray(values), np.asarray(residuals), pairs, np.full(pairs, tolerance), 0.0, bound,
        most_cut, dtype, halves=halves,
    )  # fmt: skip


def test_plan_filter__aims_at_the_tolerance():
    values, residuals = np.linspace(0.01, 0.5, 64), np.full(64, 1e-4)
    residuals[:10] = 1e-12
    found = plan(values, residuals)
    # Begins before the last columns that are no probes; what has converged needs nothing more.
    assert found.cut == values[columns.guard_count(64, 20) - 1]
    gain = [degree_for(4e5, value, found.cut, 2.0) for value in values[:20]]
    assert found.degree == gain[19] < safe_degree(found, DOUBLE)
    assert (found.low, found.bound) == (0.0, 2.0)


def test_plan_filter__does_not_pass_the_safe_degree():
    values, residuals = np.linspace(0.01, 0.5, 64), np.full(64, 1.0)
    for dtype, tolerance in ((SINGLE, 1e-6), (DOUBLE, 1e-12)):
        found = plan(values, residuals, dtype=dtype, tolerance=tolerance, pairs=50)
        assert found.degree == safe_degree(found, dtype)


def test_plan_filter__is_bounded_where_the_gap_is_tiny():
    values, residuals = 1e-6 * np.linspace(1, 1.001, 64), np.full(64, 1e-1)
    assert plan(values, residuals).degree == columns._MOST_DEGREE


def test_plan_filter__raises_the_cut_where_it_stalls():
    # One eigenvalue fills all columns: a cut at itself would amplify nothing.
    values, residuals = np.full(64, 0.5), np.full(64, 1e-4)
    found = plan(values, residuals)
    assert found.cut == pytest.approx(0.65)
    assert found.degree < 100
    # Without residuals nothing is known to stall.
    assert plan(values, np.full(64, np.inf)).cut == 0.5


def test_plan_filter__raises_the_cut_where_it_stalls_above_locked_columns():
    # Where the spectrum of the others begins, `cut_above` keeps the cut off it.
    values = np.repeat([0.05, 0.19], [32, 64])
    values[-PROBES - 1 :] += 1e-7
    residuals = np.repeat([1e-7, 1e-3], [32, 64])
    found = plan_filter(
        values, residuals, 40, np.full(40, 1e-5), 0.19, 2.0, 2.0, SINGLE, locked=32
    )  # fmt: skip
    assert found.cut == pytest.approx(0.19 + 0.1 * 1.81, rel=1e-3)
    assert found.degree * found.times < 100


@pytest.mark.parametrize("dtype", [SINGLE, DOUBLE])
def test_plan_filter__lets_no_locked_column_grow_from_one_stretch_to_the_next(dtype):
    eps = np.finfo(dtype).eps
    values = np.concatenate([np.full(160, 0.05), np.linspace(0.19, 0.191, 160)])
    residuals = np.repeat([10 * eps, 1e-3], 160)
    found = plan_filter(
        values, residuals, 180, np.full(180, 1e-5), 0.19, 2.0, 2.0, dtype, locked=160
    )  # fmt: skip
    assert found.times > 2
    # Rounding leaves a share eps of what is projected out; without a projection it grows on.
    inside = 1.0
    for taken in found.between:
        growth = np.cosh(found.degree * np.arccosh(1 + 2 * (found.cut - 0.05) / (2 - found.cut)))
        inside *= growth * (eps if taken >= 160 else 1)
    assert inside <= 1


def test_plan_filter__starts_cautiously():
    infinite = np.full(64, np.inf)
    # From a coarse level.
    assert plan(np.linspace(0.01, 0.5, 64), infinite).degree == columns._START_DEGREE
    # From random vectors, where all that is known is a guess of the cut.
    found = plan(np.full(64, 0.2), infinite)
    assert found.cut == 0.2
    assert found.degree == degree_for(1e2, 0.0, 0.2, 2.0)
    # From random vectors beside locked ones.
    values = np.linspace(0.01, 0.5, 96)
    residuals = np.r_[np.full(64, 1e-12), np.full(32, np.inf)]
    limits = np.full(80, 1e-9)
    found = plan_filter(values, residuals, 80, limits, 0.17, 2.0, 0.45, DOUBLE, 32)
    assert found.cut == 0.45
    assert found.degree == degree_for(1e2, 0.17, 0.45, 2.0)


@given(pairs=st.integers(1, 3000), spare=st.integers(0, 500))
def test_guard_count__leaves_the_wanted_pairs_and_no_probe_below_the_cut(pairs, spare):
    count = column_count(pairs) + WIDTH * spare
    below = columns.guard_count(count, pairs)
    assert pairs < below <= count - PROBES
    assert count - PROBES - below <= 1 + (count - PROBES - pairs) // 8


def test_plan_filter__brings_residuals_down_step_by_step_in_half_precision():
    values, residuals = np.linspace(0.01, 0.5, 64), np.full(64, 1e-4)
    whole, found = plan(values, residuals), plan(values, residuals, halves=True)
    assert (whole.halves, found.halves) == (False, True)
    assert found.cut == whole.cut
    assert found.degree == degree_for(columns._HALF_REDUCTION, values[19], found.cut, 2.0)
    assert found.degree < whole.degree
    # What is not known yet begins in full.
    assert not plan(values, np.full(64, np.inf), halves=True).halves


@pytest.mark.parametrize(
    ("pairs", "guards", "groups"),
    [
        (20, 1e-6, (0,)), (20, 0.2, None), (20, np.inf, None), (32, 1e-6, (0,)),
        (33, 1e-6, (0, 1)), (40, 1e-10, (0, 1)),
    ],
)  # fmt: skip
def test_plan_filter__lets_guards_rest_that_are_known_well(pairs, guards, groups):
    values = np.linspace(0.01, 0.5, 96)
    residuals = np.where(np.arange(96) < pairs, 1e-6, guards)
    # Probes lack anything, but no filter counts on them.
    residuals[-PROBES:] = 0.4
    assert plan(values, residuals, pairs=pairs, halves=True).groups == groups
    assert plan(values, residuals, pairs=pairs).groups is None


def test_plan_filter__lets_groups_rest_that_have_converged():
    values, residuals = np.linspace(0.01, 0.5, 128), np.full(128, 1e-6)
    residuals[32:64] = 1e-13
    found = plan(values, residuals, pairs=90, halves=True)
    assert found.groups == (0, 2)
    residuals[50] = 1e-6
    assert plan(values, residuals, pairs=90, halves=True).groups == (0, 1, 2)


def test_single_tolerance__is_no_less_than_rounding_allows():
    assert columns.single_tolerance(1e-8, 2.0) == pytest.approx(1e-5)
    assert 1e-6 < columns.single_tolerance(1e-12, 2.0) < 1e-5
    assert columns.single_tolerance(1e-12, 40.0) == 20 * columns.single_tolerance(1e-12, 2.0)


def test_plan_filter__works_in_half_precision_where_it_is_applied_once():
    """After a first time there are no Ritz vectors, nor residuals of them."""
    values = np.linspace(0.01, 0.5, 96)
    limits = np.full(80, 1e-9)
    found = []
    for locked in (1e-12, 1e-4):
        residuals = np.r_[np.full(32, locked), np.full(64, 1e-2)]
        found.append(
            plan_filter(
                values, residuals, 80, limits, 0.17, 2.0, 0.45, DOUBLE, 32, halves=True
            )
        )  # fmt: skip
    assert [one.times > 1 for one in found] == [False, True]
    assert [one.halves for one in found] == [True, False]


def test_plan_filter__keeps_the_cut_below_its_most():
    values = np.linspace(0.01, 0.9, 64)
    assert plan(values, np.full(64, 1e-4), most_cut=0.4).cut == 0.4
    # Of the wanted values one is above it, by more than its residual: the guess was wrong.
    assert (
        plan(values, np.full(64, 1e-4), most_cut=0.2).cut == values[columns.guard_count(64, 20) - 1]
    )
    assert plan(values, np.full(64, 0.2), most_cut=0.2).cut == pytest.approx(0.2 + 0.18)


def test_plan_filter__leaves_columns_without_a_direction_out():
    values, residuals = np.linspace(0.01, 0.5, 64), np.full(64, 1e-4)
    values[40:], residuals[40:] = np.inf, np.inf
    found = plan(values, residuals)
    assert found.cut == values[39]
    assert found.degree >= 1


def test_plan_filter__begins_anew_where_no_direction_is_left():
    nothing = np.full(64, np.inf)
    found = plan(nothing, nothing, most_cut=0.4)
    assert found.cut == 0.4
    assert found.degree >= 1


def test_known_values__continue_the_last_known_one():
    found = columns.known_values(np.array([0.1, 0.3, np.inf, np.nan]))
    np.testing.assert_array_equal(found, [0.1, 0.3, 0.3, 0.3])
    assert columns.known_values(np.array([np.inf, np.nan])) is None


def limits(values, goal=20, tolerance=1e-5, dtype=SINGLE):
    return columns.residual_limits(np.asarray(values), goal, tolerance, 2.0, dtype)


def test_residual_limits__are_the_tolerance_where_it_tells_vectors_apart():
    np.testing.assert_array_equal(limits(np.linspace(0.01, 0.5, 64)), 1e-5)
    # Clusters: twenty tiny values, then a gap.
    np.testing.assert_array_equal(
        limits(np.r_[np.full(20, 1e-12), np.linspace(0.6, 0.7, 44)]), 1e-5
    )


def test_residual_limits__follow_small_eigenvalues():
    values = 1e-8 * np.arange(1, 65) ** 2
    told = limits(values, dtype=DOUBLE)
    np.testing.assert_allclose(told, 0.05 * (values[64 - PROBES - 1] - values[:20]))
    # No less than single precision allows.
    least = columns._ROUNDING * np.finfo(np.float32).eps * 2.0
    np.testing.assert_allclose(limits(values), least)


def test_residual_limits__ask_no_more_of_equal_values():
    np.testing.assert_array_equal(
        limits(np.full(64, 1e-7) * (1 + 1e-5 * np.arange(64)[::-1])), 1e-5
    )


def test_plan_short__has_the_degree_it_is_given():
    values = np.linspace(0.01, 0.2, 64)
    assert plan_short(values, 36, 0.0, 2.0, DOUBLE) == FilterPlan(36, 0.2, 2.0, 0.0)
    squeezed = plan_short(np.full(64, 1.8), 36, 0.0, 2.0, SINGLE)
    assert squeezed.degree == safe_degree(squeezed, SINGLE) < 36


def test_cut_above__takes_the_last_finite_value_within_limits():
    assert cut_above(np.array([0.1, 0.3, np.inf]), 0.0, 2.0) == 0.3
    assert cut_above(np.array([1e-20]), 0.0, 2.0) == 2e-6
    assert cut_above(np.array([1.99]), 0.0, 2.0) == 1.8
    assert cut_above(np.array([1.0]), 1.0, 3.0) == pytest.approx(1 + 2e-6)
    assert cut_above(np.array([2.99]), 1.0, 3.0) == pytest.approx(2.8)


@given(count=st.integers(1, 700), dtype=st.sampled_from([np.float32, np.float64]))
def test_gram_block__takes_whole_groups_and_larger_blocks_of_many_columns(count, dtype):
    block = gram_block(WIDTH * count, np.dtype(dtype))
    assert block % WIDTH == 0
    assert block == 256 if count <= 32 else 512 <= block <= 1024


@given(
    rows=st.integers(1, 10**9), count=st.integers(1, 700), block=st.sampled_from([256, 512, 1024])
)
def test_gram_rows__covers_every_row_once(rows, count, block):
    ranges = gram_rows(rows, WIDTH * count, block)
    assert ranges[0][0] == 0
    assert ranges[-1][1] == rows
    assert all(one[1] == other[0] for one, other in pairwise(ranges))
    assert all(first < last for first, last in ranges)
    assert len(ranges) <= 16


@given(rows=st.integers(1, 10**9), count=st.integers(1, 700))
def test_rotation_rows__takes_whole_tiles_in_few_tasks(rows, count):
    tile = tile_rows(WIDTH * count)
    assert tile >= 1
    assert tile % 512 == 0 or WIDTH * count * 16 * 512 > 2**26
    step = rotation_rows(rows, tile)
    assert step % tile == 0
    assert step * 64 >= rows

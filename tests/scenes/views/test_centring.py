import numpy as np
import pytest

from eigenscape.scenes.views.centring import centre, describe_lost, describe_steps, find_origin

F8, F4 = np.dtype(np.float64), np.dtype(np.float32)


def ranges(values):
    return values.min(axis=0).astype(np.float64), values.max(axis=0).astype(np.float64)


@pytest.mark.parametrize("offset", [-1e12, -1e3, 1e3, 1e7, 1e8, 1e12])
def test_centre__keeps_the_spread_of_columns_far_from_0(offset):
    values = np.random.default_rng(0).normal(size=(500, 3)) + offset
    origin = find_origin(*ranges(values), F8, exact=True)
    back = centre(values, origin) + origin
    # To single precision of the spread, not of the values.
    np.testing.assert_allclose(back, values, rtol=0, atol=4 * 2.0**-24)


def test_centre__differences_are_exact_before_they_are_rounded():
    values = 1e9 + np.random.default_rng(0).random((200, 2))
    origin = find_origin(*ranges(values), F8, exact=True)
    exact = np.array(
        [[float(a) for a in row] for row in values.astype(object) - origin.astype(object)]
    )
    np.testing.assert_array_equal(centre(values, origin), exact.astype(np.float32))


def test_find_origin__leaves_near_columns_and_types_without_loss():
    values = np.random.default_rng(0).normal(size=(50, 3)) * [1, 1e-6, 1e6]
    assert find_origin(*ranges(values), F8, exact=True) is None
    far = values + 1e5
    assert find_origin(*ranges(far), F8, exact=True).astype(bool).tolist() == [True, True, False]
    for dtype in (np.float32, np.float16, np.int16, np.uint16, np.bool_):
        assert find_origin(*ranges(far), np.dtype(dtype), exact=True) is None
    # Whole numbers of 24 bits have no loss, larger ones have.
    numbers = np.array([[1000, 2**40], [1001, 2**40 + 1]])
    assert find_origin(*ranges(numbers), np.dtype(np.int64), exact=True).tolist() == [
        0,
        2**40 + 0.5,
    ]


def test_find_origin__constant_columns():
    values = np.array([[1.0, 0.0, 1e9, 0.0], [1.0, 1.0, 1e9, 0.0]])
    # In double a 1 beside others is no harm, and a billion drowns them in a projection.
    assert find_origin(*ranges(values), F8, exact=True).tolist() == [0, 0, 1e9, 0]
    # Rounded, the 1 may be anything next to 1.
    assert find_origin(*ranges(values), F8, exact=False).tolist() == [1, 0, 1e9, 0]


def test_describe_lost__names_columns_and_numbers():
    low, high = np.array([0.0, 1e7, 3.0]), np.array([1.0, 1e7 + 3, 3.0])
    assert describe_lost(low, high, F8, what="band") == ""
    text = describe_lost(low, high, F4, what="band")
    assert "band 2 from 10000000 to 10000003 in steps of 1." in text
    assert "band 1" not in text
    assert "band 3" not in text
    many = describe_lost(np.full(9, 1e16), np.full(9, 1e16 + 4), F8, what="column")
    assert many.count("column") == 5
    assert "and 4 more" in many
    assert describe_lost(low, high, np.dtype(np.int64), what="band") == ""


def test_describe_steps__only_where_they_are_coarse():
    assert describe_steps(np.ones(3), F8) == ""
    assert "lie 8 apart" in describe_steps(np.full(3, 1e8), F4)
    assert "lie 2 apart" in describe_steps(np.array([-1e16]), F8)
    assert describe_steps(np.zeros(0), F8) == ""
    assert describe_steps(np.array([2**40]), np.dtype(np.int64)) == ""

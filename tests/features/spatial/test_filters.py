import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import ndimage

import filtering
from eigenscape.features.spatial import unfiltered
from eigenscape.features.spatial.filters import FILTERS, make_filter
from eigenscape.features.spatial.kernels.profiles import erode, reconstruct
from eigenscape.job.options import FilterOptions

OPTIONS = {
    "bilateral": {"radius": [2, 4], "range_sigma": [2.0, 5.0]},
    "guided": {"radius": 2, "epsilon": 0.5, "components": 2},
    "profiles": {"radius": [1, 3], "components": 2},
}

with_fixtures = settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=20, deadline=None
)


@pytest.fixture(params=OPTIONS)
def options(request):
    return {"method": request.param, **OPTIONS[request.param]}


def test_filters__are_those_of_the_options():
    assert set(FILTERS) == set(OPTIONS)
    assert all(FilterOptions(method=name).radii for name in FILTERS)


def test_filters__depend_on_no_pixel_beyond_their_reach(filter_cube, rng, options):
    if (reach := make_filter(FilterOptions(**options)).reach) is None:
        assert options["method"] == "profiles"
        return
    cube = rng.standard_normal((21, 23, 4)).astype(np.float32)
    other = cube.copy()
    other[10, 11] += 1
    valid = np.ones(cube.shape[:2], bool)
    before, after = (filter_cube(image, valid, **options) for image in (cube, other))
    rows, columns = np.nonzero((before != after).any(axis=-1))
    away = np.maximum(abs(rows - 10), abs(columns - 11))
    assert (away.max(), reach) == (4, 4)


@pytest.mark.parametrize("whole", [True, False])
def test_bilateral__equals_loops_over_pixels(filter_cube, cube, valid, whole):
    valid = np.ones_like(valid) if whole else valid
    found = filter_cube(cube, valid, radius=3, space_sigma=2.0, range_sigma=1.5, unit=2.0)
    expected = filtering.bilateral_image(cube, valid, 3, 2.0, 3.0)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def test_bilateral__puts_scales_side_by_side(filter_cube, cube, valid):
    found = filter_cube(cube, valid, radius=[1, 4], space_sigma=[1.0, 2.5], range_sigma=3.0)
    parts = [
        filter_cube(cube, valid, radius=radius, space_sigma=space, range_sigma=3.0)
        for radius, space in ((1, 1.0), (4, 2.5))
    ]
    np.testing.assert_array_equal(found, np.concatenate(parts, axis=-1))


def test_bilateral__is_gaussian_without_a_range(filter_cube, cube, valid):
    found = filter_cube(cube, valid, radius=6, space_sigma=1.5, range_sigma=1e6)
    for feature in range(4):
        # Normalised convolution: means of valid pixels.
        parts = [
            ndimage.gaussian_filter(part, 1.5, mode="constant", radius=6)
            for part in (np.where(valid, cube[..., feature], 0), valid.astype(np.float32))
        ]
        expected = np.where(valid, parts[0] / np.where(valid, parts[1], 1), np.nan)
        np.testing.assert_allclose(found[..., feature], expected, rtol=1e-4, atol=1e-4)


def test_bilateral__keeps_borders_that_a_gaussian_blurs(filter_cube, cube):
    truth = np.where(np.arange(37) < 15, 0.0, 6.0)
    sharp, blurred = (
        filter_cube(cube, radius=3, range_sigma=alike)[..., 0] for alike in (3.0, 1e6)
    )
    beside = np.s_[:, 13:17]
    assert np.abs(sharp - truth)[beside].mean() < 0.5 * np.abs(blurred - truth)[beside].mean()
    assert np.abs(sharp - truth).std() < 0.5


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize(("guides", "epsilon"), [(1, 0.1), (3, 1.0), (4, 4.0)])
def test_guided__equals_fits_by_loops_over_squares(
    filter_cube, cube, valid, whole, guides, epsilon
):
    valid = np.ones_like(valid) if whole else valid
    given = {"radius": 2, "components": guides, "epsilon": epsilon / 4}
    found = filter_cube(cube, valid, method="guided", unit=2.0, **given)
    expected = filtering.guided_image(cube, valid, 2, guides, epsilon)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def test_guided__is_the_identity_of_a_guide_that_costs_nothing(filter_cube, cube):
    found = filter_cube(cube[..., :1], method="guided", radius=3, components=1, epsilon=1e-9)
    np.testing.assert_allclose(found, cube[..., :1], atol=1e-4)


def test_guided__stays_finite_where_values_are_far_from_0(filter_cube, rng):
    cube = np.where(np.arange(40)[:, None] < 20, 0.3 * rng.standard_normal((30, 40, 3)).T, 0.0).T
    far = (1e6 + cube).astype(np.float32)
    found = filter_cube(far, method="guided", radius=3, components=3, epsilon=1e-3)
    assert np.isfinite(found).all()
    # Nowhere farther off than what is filtered.
    assert np.abs(found - 1e6).max() < 2


@pytest.mark.parametrize("whole", [True, False])
def test_profiles__equal_dilations_until_nothing_changes(filter_cube, cube, valid, whole):
    valid = np.ones_like(valid) if whole else valid
    found = filter_cube(cube, valid, method="profiles", radius=[1, 2, 5], components=3)
    np.testing.assert_array_equal(found[..., :4][valid], cube[valid])
    expected = filtering.profile_images(cube, valid, (1, 2, 5), 3)
    np.testing.assert_array_equal(found[..., 4:], expected)


def test_profiles__lie_on_either_side_of_their_feature(filter_cube, cube, valid):
    found = filter_cube(cube, valid, method="profiles", radius=[1, 2, 5], components=1)
    opened, closed, own = found[valid][:, 4:7], found[valid][:, 7:], cube[valid][:, :1]
    # The larger the disk, the less is left.
    assert (np.diff(np.hstack([own, opened])) <= 0).all()
    assert (np.diff(np.hstack([own, closed])) >= 0).all()


def test_reconstruct__goes_through_a_maze():
    # A corridor that turns at each end: each turn is another sweep.
    image = np.zeros((41, 33), np.float32)
    image[::2] = 1
    image[1::4, -1] = image[3::4, 0] = 1
    marker = np.where(image == 0, 0, -1).astype(np.float32)
    marker[0, 0] = 1
    expected = marker.copy()
    while True:
        larger = np.minimum(ndimage.grey_dilation(expected, footprint=filtering.EIGHT), image)
        if (larger == expected).all():
            break
        expected = larger
    worked = reconstruct(image, np.float32(1), marker)
    np.testing.assert_array_equal(marker, expected)
    assert marker.min() == 0
    assert marker.max() == 1
    assert worked < 41 * 25


@pytest.mark.parametrize("shape", [(1, 1), (1, 9), (9, 1), (2, 2)])
def test_profiles__of_the_smallest_images(shape, rng):
    image = rng.standard_normal(shape).astype(np.float32)
    marker = np.empty_like(image)
    erode(image, np.float32(1), 3, marker)
    reconstruct(image, np.float32(1), marker)
    valid = np.ones(shape, bool)
    np.testing.assert_array_equal(marker, filtering.opened_image(image, valid, 3))


@pytest.mark.mostly_slow(1)
def test_filters__give_the_same_bits_for_any_block(filter_cube, cube, valid, options, monkeypatch):
    whole = filter_cube(cube, valid, **options)
    for step, window in ((50, (32, 256)), (133, (4, 8)), (1, (1, 5))):
        monkeypatch.setattr(unfiltered, "WINDOW", window)
        np.testing.assert_array_equal(filter_cube(cube, valid, step=step, **options), whole)


@with_fixtures
@given(
    value=st.floats(-1e4, 1e4, width=32), share=st.floats(0.05, 1), seed=st.integers(0, 2**32 - 1)
)
def test_filters__leave_a_constant_image(filter_cube, options, value, share, seed):
    valid = np.random.default_rng(seed).random((9, 14)) < share
    valid[3, 3] = True
    cube = np.full((9, 14, 3), value, np.float32)
    found = filter_cube(cube, valid, **options)
    exact = {"rtol": 1e-6, "atol": 1e-30} if options["method"] == "guided" else {"rtol": 0}
    np.testing.assert_allclose(found[valid], value, **exact)


@with_fixtures
@given(seed=st.integers(0, 2**32 - 1), share=st.floats(0.05, 1))
def test_filters__read_valid_pixels_alone(filter_cube, options, seed, share):
    rng = np.random.default_rng(seed)
    valid = rng.random((11, 8)) < share
    valid[5, 5] = True
    cube = rng.standard_normal((11, 8, 3)).astype(np.float32)
    found = filter_cube(cube, valid, **options)
    # Between the least and the largest valid value, but for the slopes of the guided filter.
    if options["method"] != "guided":
        assert found[valid].min() >= cube[valid].min() - 1e-5
        assert found[valid].max() <= cube[valid].max() + 1e-5
    assert np.isfinite(found[valid]).all()
    # An isolated pixel is left as it is.
    lone = np.zeros_like(valid)
    lone[5, 5] = True
    alone = filter_cube(cube, lone, **options)[5, 5, :3]
    np.testing.assert_allclose(alone, cube[5, 5], rtol=1e-6)


@with_fixtures
@given(seed=st.integers(0, 2**32 - 1), shift=st.floats(-50, 50), scale=st.floats(0.1, 10))
def test_filters__follow_units_and_origin(filter_cube, options, seed, shift, scale):
    cube = np.random.default_rng(seed).standard_normal((9, 8, 3))
    one = filter_cube(cube, **options)
    two = filter_cube(scale * cube + shift, unit=scale, **options)
    np.testing.assert_allclose(two, scale * one + shift, atol=1e-3 * scale + 1e-4)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"radius": []}, "an empty list has no scale"),
        ({"radius": [1, 2], "range_sigma": [1.0, 2.0, 3.0]}, "2 of radius, 3 of range_sigma"),
        ({"method": "guided", "radius": [1, 2]}, "has one scale"),
        ({"radius": 0}, "greater than or equal to 1"),
        ({"radius": 65}, "less than or equal to 64"),
        ({"range_sigma": 0}, "greater than 0"),
        ({"space_sigma": float("inf")}, "less than or equal to"),
        ({"components": 9}, "less than or equal to 8"),
    ],
)
def test_filter_options__refuse_impossible_values(options, message):
    with pytest.raises(ValueError, match=message):
        FilterOptions(**options)


def test_filter_options__one_number_stands_for_all_scales():
    options = FilterOptions(radius=(5, 10), range_sigma=3)
    assert options.scales == ((5, 3.0, 3.0), (10, 6.0, 3.0))
    assert FilterOptions(radius=5).scales == ((5, 3.0, 4.0),)
    assert FilterOptions(range_sigma=2).radii == (2, 5)
    assert FilterOptions(radius=2, space_sigma=(1.0, 2.0)).scales == ((2, 1.0, 4.0), (2, 2.0, 4.0))

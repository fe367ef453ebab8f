import numpy as np
import pytest
from pyproj import CRS, Proj

from eigenscape.export.vectors.sizes import pixel_sizes
from eigenscape.scenes.types import Grid


def sizes_of(code, transform, height=3):
    return pixel_sizes(Grid(height, 4, CRS.from_epsg(code).to_wkt(), transform))


@pytest.mark.parametrize("code", [32633, 3035, 31467, 27572])
def test_pixel_sizes__of_a_map_that_keeps_areas_are_those_of_the_map(code):
    # Degrees of EPSG:27572 are grads.
    east = {32633: 5e5, 3035: 4.3e6, 31467: 3.5e6, 27572: 6e5}[code]
    north = {3035: 3.2e6, 27572: 2.2e6}.get(code, 5.6e6)
    assert sizes_of(code, (30.0, 0, east, 0, -30.0, north)).tolist() == [900.0] * 3


def test_pixel_sizes__feet():
    (size,) = set(sizes_of(2263, (100.0, 0, 981000, 0, -100.0, 195000)))
    assert size == pytest.approx((100 * 1200 / 3937) ** 2)


@pytest.mark.parametrize("code", [3857, 3395])
def test_pixel_sizes__of_a_mercator_map_are_those_on_the_ground(code):
    found = sizes_of(code, (30.0, 0, 1.1e6, 0, -30.0, 5.6e6), height=100)
    assert (np.diff(found) > 0).all()  # towards the equator they are less enlarged
    at = [
        Proj(CRS.from_epsg(code))(1.1e6, 5.6e6 - 30 * (row + 0.5), inverse=True) for row in (0, 99)
    ]
    # The plane of EPSG:3857 is that of a sphere, so that its scale differs along and across.
    scales = [Proj(CRS.from_epsg(code)).get_factors(*place) for place in at]
    wanted = [900 / (scale.meridional_scale * scale.parallel_scale) for scale in scales]
    np.testing.assert_allclose(found[[0, 99]], wanted, rtol=1e-4)
    assert 300 < found[0] < 500


@pytest.mark.parametrize(("code", "degree"), [(4326, 1.0), (4807, 100 / 90)])
def test_pixel_sizes__of_degrees_and_grads(code, degree):
    found = sizes_of(code, (1e-3 * degree, 0, 10 * degree, 0, -1e-3 * degree, 45 * degree))
    np.testing.assert_allclose(found, 111.13e3 * 78.85e3 * 1e-6, rtol=2e-3)


def test_pixel_sizes__of_no_place():
    assert pixel_sizes(Grid(3, 4)) is None

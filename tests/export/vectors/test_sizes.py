import numpy as np
import pytest
from pyproj import CRS, Proj, Transformer

from eigenscape.export.vectors import sizes
from eigenscape.export.vectors.polygons import trace_areas
from eigenscape.export.vectors.sizes import pixel_sizes
from eigenscape.scenes.types import Grid


def sizes_of(code, transform, height=3):
    found = pixel_sizes(Grid(height, 4, CRS.from_epsg(code).to_wkt(), transform))(0, height)
    assert found.shape == (height, 1)
    return found[:, 0]


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


def geodesic_areas(grid):
    """Return the areas of pixels between geodesics, one by one."""
    (a, b, c, d, e, f), crs = grid.transform, CRS.from_wkt(grid.crs_wkt)
    j, i = np.mgrid[: grid.height + 1, : grid.width + 1]
    to_degrees = Transformer.from_crs(crs, crs.geodetic_crs, always_xy=True).transform
    at = np.stack(to_degrees(a * i + b * j + c, d * i + e * j + f))
    corners = np.stack([at[:, :-1, :-1], at[:, :-1, 1:], at[:, 1:, 1:], at[:, 1:, :-1]], axis=-1)
    geod = crs.get_geod()
    found = np.empty((grid.height, grid.width))
    for place in np.ndindex(found.shape):
        found[place] = abs(geod.polygon_area_perimeter(*corners[:, *place])[0])
    return found


@pytest.mark.parametrize(
    ("code", "transform"),
    [
        # The whole Arctic, the Antarctic beside the pole, and degrees whose rows run along meridians.
        (3413, (150e3, 0, -3850e3, 0, -250e3, 5850e3)),
        (3031, (60e3, 0, -2e6, 0, -60e3, 2.5e6)),
        (4326, (0, 0.01, 10, -0.8, 0, 60)),
    ],
)
def test_pixel_sizes__that_vary_along_a_row(monkeypatch, rng, code, transform):
    grid = Grid(45, 52, CRS.from_epsg(code).to_wkt(), transform)
    wanted = geodesic_areas(grid)
    assert wanted.max() > 1.1 * wanted.min()
    found = pixel_sizes(grid)(0, 45)
    np.testing.assert_allclose(found, wanted, rtol=3e-4)
    # Blocks and strips of any height.
    monkeypatch.setattr(sizes, "_PIXELS", 160)
    in_blocks = pixel_sizes(grid)
    np.testing.assert_array_equal(np.vstack([in_blocks(0, 16), in_blocks(16, 45)]), found)
    classes = rng.integers(0, 4, (9, 13)).repeat(5, 0).repeat(4, 1)
    for step in (1, 7, 45):
        strips = [(row, classes[row : row + step], wanted * 0) for row in range(0, 45, step)]
        strips = [(row, strip, share[: len(strip)]) for row, strip, share in strips]
        areas = list(trace_areas(strips, in_blocks))
        for number in (1, 2, 3):
            size = sum(area.size for area in areas if area.number == number)
            assert size == pytest.approx(wanted[classes == number].sum(), rel=3e-4)


def test_pixel_sizes__off_the_ellipsoid_are_none():
    disc = CRS.from_user_input("+proj=ortho +lat_0=40 +lon_0=10 +datum=WGS84").to_wkt()
    found = pixel_sizes(Grid(160, 160, disc, (1e5, 0, -8e6, 0, -1e5, 8e6)))(0, 160)
    assert (found[:2] == 0).all()
    # The half of the Earth that is seen, but for pixels at the edge of which some corners lie beside it.
    assert 0.75 < found.sum() / (510.07e12 / 2) < 1

import pytest
from rasterio.crs import CRS
from rasterio.warp import transform

from eigenscape.scenes.pixelareas import plane_area
from eigenscape.scenes.types import Grid

FOOT = 1200 / 3937


def area(code, longitude, latitude, *, pixel=30.0, height=100, width=130):
    """Return what `plane_area` says of a scene whose upper left corner lies there."""
    crs = CRS.from_user_input(code)
    (x,), (y,) = transform(CRS.from_epsg(4326), crs, [longitude], [latitude])
    return plane_area(Grid(height, width, crs.to_wkt(), (pixel, 0, x, 0, -pixel, y)))


@pytest.mark.parametrize(
    ("code", "longitude", "latitude"),
    [
        ("EPSG:32633", 13, 52), ("EPSG:32633", 17.99, 0), ("EPSG:32660", 179.99, 70),
        ("EPSG:3035", 13, 52), ("EPSG:3035", -20, 65), ("EPSG:2154", 2, 48), ("EPSG:2154", 9, 41.4),
        ("EPSG:27572", 2.3, 47), ("EPSG:5070", -100, 40), ("EPSG:3031", -62, -71), ("ESRI:54009", 13, 75),
        ("EPSG:6933", 179.999, 50), ("EPSG:32633+5773", 13, 52), ("+proj=sinu +R=6371007.181", 13, 85),
    ],
)  # fmt: skip
def test_plane_area__of_maps_that_keep_areas(code, longitude, latitude):
    assert area(code, longitude, latitude) == pytest.approx(900)


@pytest.mark.parametrize("pixel", [0.01, 3000])
def test_plane_area__of_small_and_large_pixels(pixel):
    assert area("EPSG:32633", 13, 52, pixel=pixel, height=30, width=30) == pytest.approx(pixel**2)
    assert area("EPSG:3034", 13, 52, pixel=pixel, height=30, width=30) is None


@pytest.mark.parametrize(
    ("code", "longitude", "latitude"),
    [
        ("EPSG:3857", 13, 52), ("EPSG:3857+5773", 13, 52), ("EPSG:3395", 13, 52), ("EPSG:3388", 51, 40),
        ("EPSG:4087", 13, 60), ("EPSG:32662", 13, 52), ("EPSG:3034", 13, 52), ("EPSG:3347", -79, 43.5),
        ("EPSG:3031", -62, -62), ("EPSG:3031", 0, -89.999), ("EPSG:3413", -45, 60), ("ESRI:54030", 13, 60),
    ],
)  # fmt: skip
def test_plane_area__of_maps_that_change_areas(code, longitude, latitude):
    assert area(code, longitude, latitude) is None


def test_plane_area__is_measured_all_over_the_scene():
    # True at 71 degrees south, in the upper corner alone.
    assert area("EPSG:3031", 0, -71, height=9, width=9) == pytest.approx(900)
    assert area("EPSG:3031", 0, -71, height=9, width=9, pixel=90_000) is None


def test_plane_area__corners_off_the_map_are_left_out():
    mollweide = CRS.from_user_input("ESRI:54009").to_wkt()
    world = Grid(1700, 3600, mollweide, (1e4, 0, -18e6, 0, -1e4, 8.5e6))
    assert plane_area(world) == pytest.approx(1e8)
    beside = Grid(9, 9, mollweide, (1e4, 0, 18e6, 0, -1e4, 8.5e6))
    assert plane_area(beside) is None


def test_plane_area__of_a_disc_of_which_edges_are_off_the_map():
    disc = CRS.from_user_input("+proj=geos +h=35785831 +datum=WGS84").to_wkt()
    assert plane_area(Grid(100, 100, disc, (112e3, 0, -56e5, 0, -112e3, 56e5))) is None


@pytest.mark.parametrize(("north", "expected"), [(0.0, 900), (2e6, None)])
def test_plane_area__on_mars(north, expected):
    mars = CRS.from_user_input("IAU_2015:49910").to_wkt()
    found = plane_area(Grid(9, 9, mars, (30.0, 0, 1e5, 0, -30.0, north)))
    assert found == (expected and pytest.approx(expected))


@pytest.mark.parametrize(
    ("wkt", "expected"),
    [
        ('LOCAL_CS["site",UNIT["metre",1]]', 900),
        (f'LOCAL_CS["site",UNIT["US survey foot",{FOOT}]]', 900 * FOOT**2),
        ('LOCAL_CS["arbitrary",UNIT["unknown",1]]', None),
        (CRS.from_epsg(4326).to_wkt(), None),
        (None, None),
    ],
)
def test_plane_area__of_systems_without_an_ellipsoid_or_metres(wkt, expected):
    found = plane_area(Grid(9, 9, wkt, (30.0, 0, 10.0, 0, -30.0, 45.0)))
    assert found == (expected and pytest.approx(expected))
    assert plane_area(Grid(9, 9, wkt)) is None

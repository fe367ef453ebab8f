import geopandas
import numpy as np
import pytest
import shapely
from pyproj import CRS, Transformer
from rasterio.transform import Affine
from shapely import box

from eigenscape.errors import SceneError
from eigenscape.scenes.geometry import polygons
from eigenscape.scenes.geometry.polygons import transformed
from eigenscape.scenes.types import Grid

POLAR = ("EPSG:3413", Affine(40_000, 0, -1.61e6, 0, -40_000, 1.23e6))
UTM = ("EPSG:32633", Affine(30, 0, 499_000, 0, -30, 6_650_000))
DATE_LINE = ("EPSG:4326", Affine(0.05, 0, 178, 0, -0.05, 69))
NEAR_POLE = ("EPSG:4326", Affine(0.5, 0, 0, 0, -0.25, 89.9))


def within(shapes, crs, system, affine, height=60, width=80):
    """Return the last of the polygons that holds the centre of each pixel, from 1: the obvious way."""
    rows, columns = np.mgrid[:height, :width] + 0.5
    a, b, c, d, e, f = tuple(affine)[:6]
    places = a * columns + b * rows + c, d * columns + e * rows + f
    x, y = Transformer.from_crs(system, crs, always_xy=True).transform(*places)
    found = np.zeros((height, width), int)
    for number, shape in enumerate(shapes, 1):
        for turn in (-360, 0, 360) if crs == "EPSG:4326" else (0,):
            found[shapely.contains_xy(shape, x + turn, y)] = number
    return found


@pytest.mark.parametrize(
    ("where", "crs", "shapes"),
    [
        # Edges along circles, a ring around the pole, and a tile with a corner there.
        (POLAR, "EPSG:4326", [box(-180, 80, 180, 84), box(-90, 84, 90, 90)]),
        (POLAR, "EPSG:4326", [box(0, 76, 90, 90)]),
        # Tiles of 6 degrees that meet on the scene.
        (UTM, "EPSG:4326", [box(12, 59.9755, 18, 60.4), box(12, 59.5, 18, 59.9755)]),
        # The projection does not reach all vertices.
        (UTM, "EPSG:4326", [box(-180, -90, 180, 90), box(15, -90, 180, 90)]),
        # Torn by the date line, and around the pole.
        (DATE_LINE, "EPSG:32660", [box(5e5, 7.40e6, 8e5, 7.60e6)]),
        (DATE_LINE, "EPSG:3413", [shapely.Point(0, 0).buffer(2.5e6)]),
        (NEAR_POLE, "EPSG:3413", [shapely.Point(0, 0).buffer(1e6)]),
    ],
)
def test_polygons__hold_the_same_pixels_as_in_their_own_system(
    write, labels, tmp_path, where, crs, shapes
):
    system, affine = where
    path = write("s.tif", np.zeros((2, 60, 80), np.int16), crs=system, transform=affine)
    classes = np.arange(len(shapes)) + 1
    frame = geopandas.GeoDataFrame({"class": classes}, geometry=shapes, crs=crs)
    frame.to_file(tmp_path / "p.gpkg")
    opened, expected = labels(path, labels="p.gpkg"), within(shapes, crs, *where)
    assert {*classes.tolist()} <= {*np.unique(expected).tolist()}
    np.testing.assert_array_equal(opened.read(0, 60), expected)
    np.testing.assert_array_equal(opened.read(7, 9), expected[7:9])


def grid(where):
    return Grid(60, 80, CRS.from_user_input(where[0]).to_wkt(), tuple(where[1])[:6])


def test_transformed__vertices_are_added_only_where_edges_need_them(monkeypatch):
    fields = [box(15 + x, 59.97, 15.001 + x, 59.971) for x in np.arange(0, 0.02, 0.002)]
    far, wide = box(30, 50, 31, 51), box(12, 59.9755, 18, 60.4)
    parts = geopandas.GeoSeries([*fields, far, wide], crs="EPSG:4326")
    monkeypatch.setattr(polygons, "_BATCH", 13)
    found = transformed(parts, grid(UTM))
    exact = parts.to_crs(UTM[0])
    assert found[:-1].geom_equals(exact[:-1]).all()
    assert 20 < shapely.get_num_coordinates(found.iloc[-1]) < 200
    # Neighbours have the vertices of a shared edge in common, whichever way it runs.
    one, other = transformed(
        geopandas.GeoSeries([wide, box(12, 59.5, 18, 59.9755)], crs="EPSG:4326"), grid(UTM)
    )
    assert one.intersection(other).area == 0
    assert one.intersection(other).length > 300_000


def test_transformed__too_many_vertices_become_pixels(monkeypatch):
    parts = geopandas.GeoSeries([box(12, 59.9755, 18, 60.4), box(100, 0, 101, 1)], crs="EPSG:4326")
    monkeypatch.setattr(polygons, "_MOST_ADDED", 5)
    monkeypatch.setattr(polygons, "_STRIP_PIXELS", 7 * 80)
    found = transformed(parts, grid(UTM))
    pixels = within(parts[:1], "EPSG:4326", *UTM)
    assert found.iloc[0].area == pytest.approx(pixels.sum() * 900)


def test_transformed__no_pixel_of_the_scene(write, labels, tmp_path):
    path = write("s.tif", np.zeros((2, 60, 80), np.int16), crs="EPSG:4326", transform=NEAR_POLE[1])
    frame = geopandas.GeoDataFrame({"class": [1]}, geometry=[box(3e5, 0, 9e5, 9e4)], crs=32660)
    frame.to_file(tmp_path / "p.gpkg")
    with pytest.raises(
        SceneError, match=r"do not overlap .* from 300000 to 900000 .* UTM zone 60N"
    ):
        labels(path, labels="p.gpkg")

import pickle

import geopandas
import numpy as np
import pandas
import pyogrio
import pytest
import shapely
from rasterio.transform import Affine
from shapely.geometry import LineString, Point, Polygon

from eigenscape.errors import SceneError
from eigenscape.scenes.describe import notes_of
from eigenscape.scenes.labels.vectorclasses import classify

UTM = "EPSG:32633"
TRANSFORMS = {
    "north-up": Affine(30, 0, 364095, 0, -30, 5809965),
    "rotated": Affine(26.7, 13.6, 364095, 13.6, -26.7, 5809965),
    "south-up": Affine(30, 0, 364095, 0, 30, 5809365),
}


def to_map(affine, columns, rows):
    a, b, c, d, e, f = tuple(affine)[:6]
    columns, rows = np.asarray(columns), np.asarray(rows)
    return np.column_stack([a * columns + b * rows + c, d * columns + e * rows + f])


@pytest.fixture
def save(tmp_path):
    def writer(name, geometry, crs=UTM, **columns):
        frame = geopandas.GeoDataFrame(columns, geometry=list(geometry), crs=UTM)
        frame = frame.to_crs(crs) if crs else frame.set_crs(None, allow_override=True)
        if name.endswith(".parquet"):
            # A box around each feature, a second column of geometries, and an index that counts in no order.
            frame = frame.assign(middle=frame.centroid)
            frame.index = 7 * np.arange(len(frame))[::-1]
            frame.to_parquet(tmp_path / name, write_covering_bbox=True)
        else:
            frame.to_file(tmp_path / name)
        return str(tmp_path / name)

    return writer


@pytest.mark.parametrize("place", TRANSFORMS)
@pytest.mark.parametrize(
    ("name", "crs"),
    [
        ("p.gpkg", UTM), ("p.geojson", "EPSG:4326"), ("p.shp", None), ("p.parquet", None),
        ("p.parquet", "EPSG:3035"),
    ],
)  # fmt: skip
def test_points_label_the_pixel_around_them(write, labels, save, cube, recwarn, place, name, crs):
    path = write("scene.tif", cube, transform=TRANSFORMS[place])
    pixels = np.random.default_rng(0).uniform((-3, -3), (16, 23), (60, 2))
    points = [Point(xy) for xy in to_map(TRANSFORMS[place], *pixels.T)]
    numbers = np.arange(1, 61)
    saved = save(name, points, crs, **{"class": numbers})
    recwarn.clear()  # of geopandas, about a shapefile without CRS
    opened = labels(path, labels=saved)
    expected = np.zeros((20, 13), int)
    for (column, row), number in zip(np.floor(pixels).astype(int), numbers, strict=True):
        if 0 <= row < 20 and 0 <= column < 13:
            expected[row, column] = number
    found = pickle.loads(pickle.dumps(opened)).read(0, 20)
    assert (found > 0).sum() > 20
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(opened.read(7, 12), expected[7:12])
    assert not recwarn.list


@pytest.mark.parametrize("place", TRANSFORMS)
@pytest.mark.parametrize(
    ("name", "crs"), [("p.gpkg", UTM), ("p.gpkg", "EPSG:3035"), ("p.parquet", "EPSG:3035")]
)
def test_polygons_label_the_centres_within(write, labels, save, cube, place, name, crs):
    path = write("scene.tif", cube, transform=TRANSFORMS[place])
    shapes = [
        Polygon(
            [(1.2, 0.3), (11.7, 2.1), (9.4, 11.6), (2.3, 8.8)], [[(4, 4.1), (6.2, 4), (5, 6.6)]]
        ),
        Polygon([(-4, 12.2), (8.3, 13.1), (7.7, 30), (-4, 26.7)]),
    ]
    drawn = [
        shapely.transform(shape, lambda xy: to_map(TRANSFORMS[place], *xy.T)) for shape in shapes
    ]
    opened = labels(path, labels=save(name, drawn, crs, kind=["b", "a"]))
    rows, columns = np.mgrid[:20, :13] + 0.5
    expected = np.zeros((20, 13), int)
    for shape, number in zip(shapes, (2, 1), strict=True):
        expected[shapely.contains_xy(shape, columns, rows)] = number
    assert opened.legend.names == {1: "a", 2: "b"}
    np.testing.assert_array_equal(opened.read(0, 20), expected)
    for start in range(0, 20, 3):
        stop = min(20, start + 3)
        np.testing.assert_array_equal(opened.read(start, stop), expected[start:stop])


def test_shapefile_parts_are_files(write, labels, save, cube, tmp_path):
    path = save("p.shp", [Point(364100, 5809950)], label=[1])
    names = {
        name.removeprefix(str(tmp_path)) for name in labels(write("s.tif", cube), labels=path).files
    }
    assert names == {"/p.shp", "/p.dbf", "/p.shx", "/p.prj", "/p.cpg"}


@pytest.mark.parametrize(
    ("columns", "field", "numbers", "names"),
    [
        ({"label": [3, 1, 3]}, None, [3, 1, 3], {}),
        ({"name": ["x", "a", "x"]}, None, [2, 1, 2], {1: "a", 2: "x"}),
        ({"name": ["x", None, "y"]}, None, [1, 0, 2], {1: "x", 2: "y"}),
        ({"label": ["x", "a", "x"], "id": [7, 9, 7]}, None, [7, 9, 7], {7: "x", 9: "a"}),
        ({"label": ["x", "a", "x"], "id": [7, 9, 7]}, "id", [7, 9, 7], {7: "x", 9: "a"}),
        ({"label": ["x", "a", "x"], "id": [1, 2, 3]}, None, [2, 1, 2], {1: "a", 2: "x"}),
        ({"code": [7, 9, 7], "what": ["x", "a", "x"]}, None, [7, 9, 7], {7: "x", 9: "a"}),
        ({"Class": [1.0, np.nan, 2.0], "b1": [1.5, 2.5, 3.5]}, None, [1, 0, 2], {}),
        ({"code": ["10", "9", "10"]}, None, [10, 9, 10], {}),
        ({"label": ["x", "a", "x"], "id": [0, 1, 0]}, None, [2, 1, 2], {1: "a", 2: "x"}),
        ({"label": ["x", "a"], "OBJECTID": [7, 9]}, None, [2, 1], {1: "a", 2: "x"}),
        ({"class": [1, 2], "date": ["2020-05-03", "2020-05-01"]}, None, [1, 2], {}),
        (
            {"class": [1, 2], "date": ["y", "x"], "Class_Name": ["b", "a"]},
            None,
            [1, 2],
            {1: "b", 2: "a"},
        ),
        (
            {"class": [1, 2, 2], "day": [*"xyy"], "name": [*"baa"]},
            None,
            [1, 2, 2],
            {1: "b", 2: "a"},
        ),
        ({"class": ["x", "a"], "count": [7, 9]}, None, [2, 1], {1: "a", 2: "x"}),
        ({"class": ["x", "a"], "count": [7, 9], "code": [4, 3]}, None, [4, 3], {4: "x", 3: "a"}),
        ({"what": ["x", "a"], "count": [7, 9]}, None, [2, 1], {1: "a", 2: "x"}),
        ({"code": [4, 3], "day": ["x", "a"]}, None, [4, 3], {}),
        ({"code": [4, 3], "name": ["x", "a"]}, None, [4, 3], {4: "x", 3: "a"}),
        ({"water": [True, False, True]}, None, [2, 1, 2], {1: "False", 2: "True"}),
        ({"water": [True, None, False]}, None, [2, 0, 1], {1: "False", 2: "True"}),
        ({"class": [5, 6, 5], "wet": [True, False, True]}, None, [5, 6, 5], {}),
        ({"gml_id": ["x", "a"], "kind": ["b", "c"]}, None, [1, 2], {1: "b", 2: "c"}),
        ({"label": ["1_1", "11", "1_2"]}, None, [2, 1, 3], {1: "11", 2: "1_1", 3: "1_2"}),
    ],
)
def test_classify(columns, field, numbers, names):
    arrays = {
        key: np.array(values, object if any(isinstance(v, str | bool) for v in values) else None)
        for key, values in columns.items()
    }
    found, legend = classify(arrays, field, "file")
    assert found.tolist() == numbers
    assert legend.names == names
    assert not legend.alphabetical or list(names) == list(range(1, len(names) + 1))


@pytest.mark.parametrize(
    ("columns", "field", "words"),
    [
        (
            {"level_1": ["a", "b"], "level_2": ["c", "d"]},
            None,
            r"several.*level_1, level_2.*labels_field",
        ),
        (
            {"height": [1.0, 2.5], "fid": [1, 2], "empty": [np.nan, np.nan]},
            None,
            r"no attribute could.*height holds 2\.5; fid numbers the features; empty is empty",
        ),
        ({"label": [1, 2]}, "klass", r"no attribute 'klass'.*Attributes: label"),
        ({"label": [1, -2]}, None, r"out of range: -2"),
        ({"label": [1, 70000]}, None, r"out of range: 70000.*65535"),
        ({"h": [1.5, 2.0]}, "h", r"out of range: 1.5"),
    ],
)
def test_classify__refuses(columns, field, words):
    arrays = {
        key: np.array(values, dtype=object if isinstance(values[0], str) else None)
        for key, values in columns.items()
    }
    with pytest.raises(SceneError, match=words):
        classify(arrays, field, "file")


def test_vectors__refused(write, labels, save, cube):
    path, lost = write("scene.tif", cube), write("lost.tif", cube, crs=None, transform=None)
    no_crs = write("no_crs.tif", cube, crs=None)
    here = save("here.gpkg", [Point(364100, 5809950)], label=[1])
    for scene_path, label_path, words in (
        (lost, here, "no georeference"),
        (no_crs, here, "the scene has none"),
        (path, save("far.gpkg", [Point(500000, 5000000)], label=[1]), r"do not overlap.*500000"),
        (path, save("line.gpkg", [LineString([(364100, 5809950), (364200, 5809950)])], label=[1]),
         "LineString.*points or polygons"),
    ):  # fmt: skip
        with pytest.raises(SceneError, match=words):
            labels(scene_path, labels=label_path)


def test_vectors__without_geometries(write, labels, cube, tmp_path):
    table = pandas.DataFrame({"label": [1, 2]})
    pyogrio.write_dataframe(table, tmp_path / "table.gpkg")
    with pytest.raises(SceneError, match="none of its layers has geometries"):
        labels(write("scene.tif", cube), labels="table.gpkg")


def squares(*corners):
    """Return squares of pixels as (column, row, size), on the map of the default scene."""
    return [
        Polygon(to_map(TRANSFORMS["north-up"], [x, x + n, x + n, x], [y, y, y + n, y + n]))
        for x, y, n in corners
    ]


def centres(*pixels):
    return [Point(xy) for xy in to_map(TRANSFORMS["north-up"], *np.transpose(pixels) + 0.5)]


def test_vectors__notes_count_what_is_left_out(write, labels, save, cube):
    points = [*centres((1, 1), (2, 2), (3, 3), (40, 40), (2, 90)), Point(), None]
    opened = labels(
        write("scene.tif", cube), labels=save("few.gpkg", points, kind=["A", "B", "", *"ABAB"])
    )
    assert opened.notes == (
        "2 of 7 features of the labels have no geometry and are left out",
        "1 of 7 features of the labels have no class and are left out",
        "2 of 4 points lie outside of the scene and are left out",
    )
    assert notes_of(opened) == opened.notes
    assert np.count_nonzero(opened.read(0, 20)) == 2
    drawn = squares((1, 1, 3), (50, 1, 3), (-8, 2, 3))
    opened = labels(write("scene.tif", cube), labels=save("poly.gpkg", drawn, kind=[*"ABA"]))
    assert opened.notes == ("2 of 3 polygons lie outside of the scene and are left out",)
    np.testing.assert_array_equal(np.argwhere(opened.read(0, 20))[[0, -1]], [[1, 1], [3, 3]])


def test_vectors__booleans_are_classes(write, labels, save, cube):
    points = centres((1, 1), (2, 2), (3, 3))
    for kinds in ([True, False, True], [True, False, None]):
        opened = labels(write("s.tif", cube), labels=save("bool.gpkg", points, water=kinds))
        assert opened.legend.names == {1: "False", 2: "True"}
        assert opened.read(1, 3)[[0, 1], [1, 2]].tolist() == [2, 1]


@pytest.mark.parametrize("numbers", [[0, 1, 2, np.nan], ["0", "1", "2", None]])
def test_vectors__zero_is_told_apart_from_empty(write, labels, save, cube, numbers):
    points = centres((1, 1), (2, 2), (3, 3), (4, 4))
    path = save("zero.gpkg", points, **{"class": numbers})
    assert labels(write("scene.tif", cube), labels=path).notes == (
        "0 in the attribute 'class' means no label. If it is a class, number the classes from 1 or give "
        "them names",
        "1 of 4 features of the labels have no class and are left out",
        "1 of 4 features of the labels have the class 0 and are left out",
    )


@pytest.mark.parametrize(
    ("values", "found", "names", "none"),
    [
        (["oak", "NA", "elm", "None"], [2, 0, 1, 0], {1: "elm", 2: "oak"}, "NA, None"),
        (["oak", "0", "elm", "-1"], [2, 0, 1, 0], {1: "elm", 2: "oak"}, "-1, 0"),
        (["10", "NA", "9", "n/a"], [10, 0, 9, 0], {}, "NA, n/a"),
    ],
)
def test_vectors__texts_that_mean_no_label(
    write, labels, save, cube, tmp_path, values, found, names, none
):
    """They mean none in a CSV file too, from which many vector files are made."""
    points = centres((1, 1), (2, 2), (3, 3), (4, 4))
    path = write("scene.tif", cube)
    opened = labels(path, labels=save("p.gpkg", points, kind=values))
    place = np.arange(1, 5)
    assert opened.read(0, 20)[place, place].tolist() == found
    assert opened.legend.names == names
    assert opened.notes == (
        f"{none} in the attribute 'kind' means no label (2 of 4 features). If it is a class, give it "
        "another name",
        "2 of 4 features of the labels have no class and are left out",
    )
    rows = [f"{number},{number},{value}\n" for number, value in zip(place, values, strict=True)]
    (tmp_path / "p.csv").write_text("row,column,kind\n" + "".join(rows))
    table = labels(path, labels="p.csv")
    assert table.read(0, 20)[place, place].tolist() == found
    assert table.legend.names == names


def test_vectors__codes_that_are_one_number_are_told(write, labels, save, cube):
    points = centres((1, 1), (2, 2), (3, 3), (4, 4), (5, 5))
    opened = labels(
        write("scene.tif", cube), labels=save("p.gpkg", points, code=["1", "2", "01", "2", None])
    )
    place = np.arange(1, 6)
    assert opened.read(0, 20)[place, place].tolist() == [1, 2, 1, 2, 0]
    assert opened.notes == (
        "01 and 1 in the attribute 'code' are numbers of the same class. If they are different classes, "
        "give them names",
        "1 of 5 features of the labels have no class and are left out",
    )


@pytest.mark.parametrize("values", [["NA", "NA"], [None, None]])
def test_vectors__attribute_without_a_class(write, labels, save, cube, values):
    path = save("p.gpkg", centres((1, 1), (2, 2)), kind=values)
    with pytest.raises(SceneError, match=r"'kind' gives no feature a class.*labels_field"):
        labels(write("scene.tif", cube), labels=path, labels_field="kind")


def test_vectors__of_another_system_than_theirs(write, labels, save, cube, tmp_path):
    path, points = write("scene.tif", cube), centres((1, 1), (2, 2))
    # What a reader takes a file of metres without a system for.
    frame = geopandas.GeoDataFrame({"label": [1, 2]}, geometry=points, crs="EPSG:4326")
    frame.to_file(tmp_path / "metres.geojson")
    words = r"from 364140 to 364170 and from .* not degrees of EPSG:4326.*-a_srs"
    with pytest.raises(SceneError, match=words):
        labels(path, labels="metres.geojson")
    with pytest.raises(SceneError, match="has no feature with a geometry"):
        labels(path, labels=save("none.gpkg", [Point(), None], label=[1, 2]))
    # No point of the ellipsoid has these coordinates.
    frame = geopandas.GeoDataFrame({"label": [1, 2]}, geometry=points, crs=UTM).to_crs("EPSG:3035")
    frame.loc[0, "geometry"] = Point(1e9, 1e9)
    frame.to_file(tmp_path / "far.gpkg")
    opened = labels(path, labels="far.gpkg")
    assert opened.notes == (
        "1 of 2 features of the labels cannot be brought into the coordinate system of the scene and are "
        "left out",
    )
    assert opened.read(2, 3)[0, 2] == 2
    frame.loc[1, "geometry"] = Point(2e9, 1e9)
    frame.to_file(tmp_path / "lost.gpkg")
    with pytest.raises(SceneError, match=r"no feature can be brought .* 1e\+09 to 2e\+09 .*LAEA"):
        labels(path, labels="lost.gpkg")


@pytest.mark.parametrize(
    ("crs", "heights"),
    [("EPSG:4326", [np.nan, 1, 2]), ("EPSG:4979", [300, 1, 2]), ("EPSG:4978", [300, 1, 2])],
)
def test_points__with_heights_keep_their_place(write, labels, cube, tmp_path, crs, heights):
    flat = geopandas.GeoSeries(centres((1, 1), (2, 2), (3, 3)), crs=UTM).to_crs("EPSG:4326")
    points = geopandas.points_from_xy(flat.x, flat.y, heights, crs="EPSG:4979")
    points = points.to_crs(crs) if crs == "EPSG:4978" else points  # geocentric
    frame = geopandas.GeoDataFrame({"class": [1, 2, 3]}, geometry=np.asarray(points), crs=crs)
    frame.to_file(tmp_path / "heights.gpkg")
    opened = labels(write("scene.tif", cube), labels="heights.gpkg")
    assert opened.notes == ()
    assert opened.read(0, 20)[[1, 2, 3], [1, 2, 3]].tolist() == [1, 2, 3]


@pytest.mark.parametrize("west", [-182, 178, 182])
def test_vectors__of_longitudes_that_count_from_elsewhere(write, labels, cube, tmp_path, west):
    """Scenes of 13 x 20 pixels of half a degree near the date line, and a file from -180 to 180."""
    path = write("scene.tif", cube, crs="EPSG:4326", transform=Affine(0.5, 0, west, 0, -0.5, 6))
    rows, columns = np.mgrid[:20, :13]
    numbers = np.random.default_rng(0).integers(1, 4, (20, 13))
    x = (west + 0.5 * columns.ravel() + 0.25 + 180) % 360 - 180
    points = geopandas.points_from_xy(x, 5.75 - 0.5 * rows.ravel())
    shapes = {
        "points.geojson": (numbers.ravel(), points, numbers),
        "world.gpkg": ([2], [shapely.box(-180, -90, 180, 90)], np.full((20, 13), 2)),
        "halves.gpkg": (
            [1, 2],
            [shapely.box(160, -90, 180, 90), shapely.box(-180, -90, -160, 90)],
            np.where((west + 0.5 * columns) % 360 < 180, 1, 2),
        ),
    }
    for name, (classes, geometry, expected) in shapes.items():
        frame = geopandas.GeoDataFrame({"class": classes}, geometry=geometry, crs="EPSG:4326")
        frame.to_file(tmp_path / name)
        opened = labels(path, labels=name)
        np.testing.assert_array_equal(opened.read(0, 20), expected)
        np.testing.assert_array_equal(opened.read(7, 9), expected[7:9])
        assert not any("outside" in note for note in opened.notes) or west == 182


def test_polygons__without_a_pixel_centre_are_told(write, labels, save, cube):
    shapes = squares((0.6, 0.6, 0.3), (3.1, 3.6, 0.8), (4, 4, 3), (8, 1, 2))
    # The box around it holds a centre, and it does not.
    shapes = [*shapes, Polygon(to_map(TRANSFORMS["north-up"], [6, 7, 6], [9, 9, 9.8]))]
    path = save("small.gpkg", shapes, kind=["eau", "Wald", "Feld", "Wald", "eau"])
    opened = labels(write("scene.tif", cube), labels=path)
    assert opened.notes == (
        "no pixel centre lies within 3 polygons: nothing is labelled there; no other has the class eau",
    )
    assert {*np.unique(opened.read(0, 20)).tolist()} == {0, 1, 2}
    path = save("one.gpkg", [shapes[0], shapes[2]], kind=["eau", "Feld"])
    assert labels(write("scene.tif", cube), labels=path).notes == (
        "no pixel centre lies within 1 polygon: nothing is labelled there; no other has the class eau",
    )


@pytest.mark.parametrize("strip", [2**20, 13])
def test_polygons__of_different_classes_that_overlap(write, labels, save, cube, monkeypatch, strip):
    monkeypatch.setattr("eigenscape.scenes.labels.vectors.pixels._STRIP_PIXELS", strip)
    # A, B and A again over 2 x 2 pixels, C inside A; two of D overlap, E only touches F.
    drawn = squares(
        (0, 0, 4), (2, 2, 4), (2, 2, 2), (0, 0, 1), (7, 7, 3), (8, 8, 3), (0, 12, 3), (3, 12, 3)
    )
    path = save("overlap.gpkg", drawn, kind=[*"ABACDDEF"])
    opened = labels(write("scene.tif", cube), labels=path)
    assert opened.notes == (
        "polygons of different classes overlap on 5 pixels: the last polygon in the file gives the class",
    )
    np.testing.assert_array_equal(opened.read(2, 4)[:, :6], [[1, 1, 1, 1, 2, 2]] * 2)


def test_points__of_different_classes_in_a_pixel(write, labels, save, cube):
    points = centres((3, 4), (3, 4), (5, 5), (5, 5), (6, 5))
    opened = labels(write("scene.tif", cube), labels=save("p.gpkg", points, kind=[*"ABAAB"]))
    assert opened.notes == (
        "points of different classes lie in 1 pixel: the last point in the file gives the class",
    )
    assert opened.read(4, 5)[0, 3] == 2


def test_partner__is_told(write, labels, save, cube):
    points = centres((1, 1), (2, 2), (3, 3))
    scene, day = write("scene.tif", cube), ["a", "b", "c"]
    path = save("names.gpkg", points, **{"class": [1, 2, 1], "what": [*"xyx"], "day": day})
    assert labels(scene, labels=path).notes == (
        "the class is read from the attribute class (not day)",
        "numbers and names of the classes are read from the attributes class and what",
    )
    path = save("numbers.gpkg", points, **{"class": [*"xyx"], "nr": [4, 9, 4]})
    assert labels(scene, labels=path, labels_field="class").notes == (
        "numbers and names of the classes are read from the attributes class and nr",
    )


@pytest.fixture
def save_layers(tmp_path):
    def save(name, **layers):
        for layer, (geometry, columns) in layers.items():
            frame = geopandas.GeoDataFrame(columns, geometry=list(geometry), crs=UTM)
            frame.to_file(tmp_path / name, layer=layer)
        return name

    return save


def test_layers__one_is_named_or_the_only_fitting(write, labels, save_layers, cube):
    path = write("scene.tif", cube)
    here, there = centres((1, 1), (2, 2)), centres((5, 5), (6, 6))
    line = [LineString([(364100, 5809950), (364200, 5809950)])]
    two = save_layers("two.gpkg", one=(here, {"kind": [*"AB"]}), other=(there, {"kind": [*"XY"]}))
    with pytest.raises(
        SceneError, match=r"2 layers \(one, other\), and one, other can.*labels_layer"
    ):
        labels(path, labels=two)
    with pytest.raises(SceneError, match=r"no layer 'othr' .*Did you mean other\?.*: one, other"):
        labels(path, labels=two, labels_layer="othr")
    opened = labels(path, labels=two, labels_layer="other")
    assert opened.legend.names == {1: "X", 2: "Y"}
    assert opened.notes == ()
    assert opened.read(0, 20)[6, 6] == 2
    roads = save_layers(
        "roads.gpkg",
        roads=(line, {"kind": ["A"]}),
        fields=(here, {"kind": [*"AB"]}),
        heights=(there, {"height": [1.5, 2.5]}),
    )
    opened = labels(path, labels=roads)
    assert opened.notes == ("labels are read from layer fields of 3 (not roads, heights)",)
    assert opened.legend.names == {1: "A", 2: "B"}
    with pytest.raises(SceneError, match=r"3 layers \(.*\), and none of them can.*labels_field"):
        labels(path, labels=roads, labels_field="what")


@pytest.mark.parametrize("source", ["labels.tif", None])
def test_layers__of_a_file_without_any(write, labels, cube, source):
    path = write("scene.tif", cube)
    write("labels.tif", np.ones((20, 13), np.uint8))
    with pytest.raises(SceneError, match=r"labels_layer = 'one': names a layer of a vector file"):
        labels(path, labels=source, labels_layer="one")

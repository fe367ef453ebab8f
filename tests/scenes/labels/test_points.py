import pickle

import numpy as np
import pandas as pd
import pytest
from rasterio.transform import Affine
from rasterio.warp import transform

from eigenscape.errors import SceneError
from eigenscape.scenes.describe import notes_of

TRANSFORMS = {
    "north-up": Affine(30, 0, 364095, 0, -30, 5809965),
    "rotated": Affine(26.7, 13.6, 364095, 13.6, -26.7, 5809965),
}


@pytest.fixture
def points():
    """Places in pixels (row, column), some outside of 20 x 13, each pixel with one class."""
    rng = np.random.default_rng(0)
    places = rng.uniform((-3, -3), (23, 16), (80, 2))
    return places, (7 * np.floor(places[:, 0]) + np.floor(places[:, 1])).astype(int) % 5 + 1


@pytest.fixture
def save(tmp_path):
    def writer(name="points.csv", **columns):
        frame = pd.DataFrame(columns)
        frame.to_parquet(tmp_path / name) if name.endswith("parquet") else frame.to_csv(
            tmp_path / name, index=False
        )
        return str(tmp_path / name)

    return writer


def expected(points):
    found = np.zeros((20, 13), int)
    for (row, column), number in zip(np.floor(points[0]).astype(int), points[1], strict=True):
        if 0 <= row < 20 and 0 <= column < 13:
            found[row, column] = number
    return found


def xy(affine, points):
    rows, columns = points[0].T
    return (
        affine.a * columns + affine.b * rows + affine.c,
        affine.d * columns + affine.e * rows + affine.f,
    )


@pytest.mark.parametrize("place", TRANSFORMS)
@pytest.mark.parametrize(
    ("names", "crs", "key"),
    [
        (("x", "y"), None, None), (("Easting", "Northing"), None, None),
        (("lon", "lat"), "EPSG:4326", None), (("longitude", "latitude"), "EPSG:4326", None),
        (("x", "y"), "EPSG:3035", "EPSG:3035"), (("row", "col"), None, None),
        (("row", "column"), None, None), (("POINT_X", "POINT_Y"), None, None),
    ],
)  # fmt: skip
def test_points_of_a_table_label_the_pixel_around_them(
    write, labels, save, cube, points, place, names, crs, key
):
    path = write("scene.tif", cube, transform=TRANSFORMS[place])
    if names[0] == "row":
        first, second = points[0].T
    else:
        first, second = xy(TRANSFORMS[place], points)
    if crs is not None:
        first, second = transform("EPSG:32633", crs, first, second)
    file = save(**{"id": np.arange(80), names[0]: first, names[1]: second, "class": points[1]})
    opened = labels(path, labels=file, labels_crs=key)
    found = pickle.loads(pickle.dumps(opened))
    np.testing.assert_array_equal(found.read(0, 20), expected(points))
    np.testing.assert_array_equal(opened.read(7, 12), expected(points)[7:12])
    inside = ((points[0] >= 0) & (points[0] < (20, 13))).all(axis=1)
    assert any(f"{(~inside).sum()} of 80 points lie outside" in note for note in notes_of(opened))


@pytest.mark.parametrize("west", [-182, 178, 182])
@pytest.mark.parametrize("least", [-180, 0])
def test_points__of_longitudes_that_count_from_elsewhere(
    write, labels, save, cube, points, west, least
):
    affine = Affine(0.5, 0, west, 0, -0.5, 6)
    path = write("scene.tif", cube, crs="EPSG:4326", transform=affine)
    x, y = xy(affine, points)
    file = save(lon=(x - least) % 360 + least, lat=y, label=points[1])
    np.testing.assert_array_equal(labels(path, labels=file).read(0, 20), expected(points))


def test_points__names_of_classes_parquet_and_a_named_column(write, labels, save, cube):
    path = write("scene.tif", cube)
    columns = {"row": [0.0, 1, np.nan, 2], "col": [0, 1, 2, 3], "a": ["wood", "lake", "lake", ""]}
    for name in ("points.csv", "points.parquet"):
        opened = labels(path, labels=save(name, **columns, b=[4, 3, 2, 1]), labels_field="a")
        found = opened.read(0, 20)
        assert (found > 0).sum() == 2
        assert (found[0, 0], found[1, 1]) == (2, 1)
        assert opened.legend.names == {1: "lake", 2: "wood"}
        assert any("1 of 4 points have no coordinates" in note for note in notes_of(opened))


@pytest.mark.parametrize(
    ("classes", "numbers", "names"),
    [
        ({1: "ash", 2: "lake", 5: "wood"}, [5, 2], {1: "ash", 2: "lake", 5: "wood"}),
        ({3: "wood"}, [3, 4], {3: "wood", 4: "lake"}),
        ({1: "water"}, [2, 1], {1: "water", 2: "wood"}),
        ({9: "moor"}, [2, 1], {1: "lake", 2: "wood", 9: "moor"}),
    ],
    ids=["numbers", "one of two", "another name", "one more"],
)
def test_points__the_job_numbers_classes_that_are_names(
    write, labels, save, cube, classes, numbers, names
):
    path = write("scene.tif", cube)
    file = save(row=[0, 1], col=[0, 1], kind=["wood", "lake"])
    opened = labels(path, labels=file, classes=classes)
    assert opened.read(0, 2)[[0, 1], [0, 1]].tolist() == numbers
    assert opened.legend.names == names


@pytest.mark.parametrize(
    ("columns", "keys", "message"),
    [
        ({"u": [1], "v": [1], "class": [1]}, {}, "no columns x and y.*Columns: u, v, class"),
        ({"row": [1], "col": [1], "p": [1], "q": [2]}, {}, "several columns could hold the class"),
        ({"row": [1], "col": [1]}, {}, "no column holds the class"),
        ({"row": [1], "col": [1], "p": [1]}, {"labels_field": "species"}, "no column 'species'"),
        ({"row": [99], "col": [1], "p": [1]}, {}, "none of its 1 points lies on the scene"),
        ({"x": [5.0], "y": [4.0], "p": [1]}, {}, "none of its 1 points.*labels_crs"),
        ({"lon": [364100.0], "lat": [5809000.0], "p": [1]}, {}, "not degrees of EPSG:4326"),
        ({"x": [5.0], "y": [4.0], "p": [1]}, {"labels_crs": "EPSG:0"}, "not a coordinate system"),
        ({"row": [1], "col": [1], "p": [1]}, {"labels_crs": "EPSG:4326"}, "Leave the key out"),
        ({"row": ["a"], "col": [1], "p": [1]}, {}, "column 'row' holds 'a'"),
        ({"row": [np.nan], "col": [1], "p": [1]}, {}, "no row has both"),
        (
            {"row": [1, 1.5, 4], "col": [2, 2.5, 4], "p": [1, 2, 2]}, {},
            "different classes lie in 1 pixel, first in row 1, column 2: class 1 by point 1 and class 2",
        ),
        ({"row": [1], "col": [1], "p": [-4]}, {}, "out of range: -4"),
    ],
)  # fmt: skip
def test_points__what_cannot_be_used_is_said(write, labels, save, cube, columns, keys, message):
    path = write("scene.tif", cube)
    with pytest.raises(SceneError, match=message):
        labels(path, labels=save(**columns), **keys)


def test_points__decimal_commas_and_a_column_without_a_name(write, labels, cube, tmp_path):
    path = write("scene.tif", cube)
    (tmp_path / "a.csv").write_text('x;y;kind\n"364110,5";"5809950,5";1\n')
    with pytest.raises(SceneError, match="'364110,5' in row 1, and decimals need a point"):
        labels(path, labels=str(tmp_path / "a.csv"))
    (tmp_path / "b.csv").write_text(",row,col,kind\n0,1,1,4\n1,2,2,5\n")
    opened = labels(path, labels=str(tmp_path / "b.csv"))
    assert (opened.read(1, 2)[0, 1], notes_of(opened)) == (4, ())


def test_points__coordinates_need_a_georeference(write, labels, save, cube, tmp_path):
    np.save(tmp_path / "cube.npy", cube.transpose(1, 2, 0))
    with pytest.raises(SceneError, match=r"no georeference.*columns row and column"):
        labels("cube.npy", labels=save(x=[1.0], y=[2.0], p=[1]))
    opened = labels("cube.npy", labels=save(row=[1], column=[2], p=[9]))
    assert opened.read(0, 20)[1, 2] == 9
    path = write("plain.tif", cube, crs=None)
    with pytest.raises(SceneError, match="the scene has no coordinate system"):
        labels(path, labels=save(lon=[1.0], lat=[2.0], p=[1]))


def test_points__a_system_of_something_else_is_refused(write, labels, cube):
    path = write("scene.tif", cube)
    raster = write("labels.tif", np.ones((20, 13), "uint8"))
    with pytest.raises(SceneError, match=r"labels_crs.*Leave the key out"):
        labels(path, labels=raster, labels_crs="EPSG:4326")

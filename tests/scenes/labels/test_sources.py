import pickle
from pathlib import Path

import geopandas
import h5py
import numpy as np
import pandas as pd
import pytest
import zarr
from rasterio.crs import CRS
from rasterio.transform import Affine
from rasterio.warp import transform
from scipy.io import netcdf_file
from shapely.geometry import Point

from eigenscape.errors import SceneError
from eigenscape.job.options import SceneOptions
from eigenscape.scenes.describe import notes_of
from eigenscape.scenes.labels.sources import open_marks
from eigenscape.scenes.types import Grid

TRANSFORMS = {
    "north-up": Affine(30, 0, 364095, 0, -30, 5809965),
    "rotated": Affine(26.7, 13.6, 364095, 13.6, -26.7, 5809965),
    "south-up": Affine(30, 0, 364095, 0, 30, 5809365),
}


def look_up(grid, array, crs, affine):
    """Labels at the pixel centres of a grid, by transforming every centre: the obvious way."""
    rows, columns = np.mgrid[: grid.height, : grid.width] + 0.5
    a, b, c, d, e, f = grid.transform
    x, y = a * columns + b * rows + c, d * columns + e * rows + f
    x, y = transform(CRS.from_wkt(grid.crs_wkt), CRS.from_string(crs), x.ravel(), y.ravel())
    a, b, c, d, e, f = tuple(~affine)[:6]
    column = np.floor(a * np.array(x) + b * np.array(y) + c).astype(int)
    row = np.floor(d * np.array(x) + e * np.array(y) + f).astype(int)
    inside = (row >= 0) & (row < array.shape[0]) & (column >= 0) & (column < array.shape[1])
    found = np.zeros(row.shape, array.dtype)
    found[inside] = array[row[inside], column[inside]]
    return found.reshape(grid.height, grid.width)


@pytest.fixture
def random_labels():
    return np.random.default_rng(3).integers(0, 6, (90, 80)).astype("uint8")


def test_same_grid_is_read_as_it_is(write, labels, cube):
    path = write("scene.tif", cube)
    stored = np.full((20, 13), 3, "float32")
    stored[0, 0], stored[1, 1], stored[2, 2] = np.nan, 0, -99999
    opened = labels(path, labels=write("labels.tif", stored, nodata=-99999))
    assert not opened.plane.warp_to
    expected = np.full((20, 13), 3)
    expected[[0, 1, 2], [0, 1, 2]] = 0
    found = pickle.loads(pickle.dumps(opened)).read(0, 20)
    assert found.dtype == np.uint16
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("place", TRANSFORMS)
@pytest.mark.parametrize(
    ("crs", "affine"),
    [
        ("EPSG:32633", Affine(11.3, 0, 364000, 0, -9.7, 5810100)),
        ("EPSG:4326", Affine(0.0001, 0, 12.9998, 0, -0.00012, 52.4239)),
        ("EPSG:3035", Affine(12, 0, 4524900, 0, -12, 3261500)),
        ("EPSG:32633", Affine(9, 3, 363901.7, 4, -11, 5809991.3)),
    ],
)
def test_another_grid_against_brute_force(
    write, labels, scene, cube, random_labels, place, crs, affine
):
    path = write("scene.tif", cube, transform=TRANSFORMS[place])
    other = write("labels.tif", random_labels, crs=crs, transform=affine)
    expected = look_up(scene(path).grid, random_labels, crs, affine)
    assert expected.any(), "the case is worth nothing if nothing overlaps"
    opened = labels(path, labels=other)
    np.testing.assert_array_equal(opened.read(0, 20), expected)
    for start in range(0, 20, 7):
        stop = min(20, start + 7)
        np.testing.assert_array_equal(opened.read(start, stop), expected[start:stop])


@pytest.mark.parametrize("west", [-182, 178, 182])
@pytest.mark.parametrize(("first", "nodata"), [(-180, None), (-180, 9), (0, 0)])
def test_another_grid__of_longitudes_that_count_from_elsewhere(
    write, labels, cube, west, first, nodata
):
    """The world, and scenes of 13 x 20 pixels of half a degree near the date line."""
    path = write("scene.tif", cube, crs="EPSG:4326", transform=Affine(0.5, 0, west, 0, -0.5, 6))
    world = np.random.default_rng(0).integers(1, 6, (30, 720)).astype("uint8")
    where = Affine(0.5, 0, first, 0, -0.5, 8)
    file = write("world.tif", world, crs="EPSG:4326", transform=where, nodata=nodata)
    columns = (2 * (west - first) + np.arange(13)) % 720
    opened = labels(path, labels=file)
    np.testing.assert_array_equal(opened.read(0, 20), world[4:24, columns])
    np.testing.assert_array_equal(opened.read(7, 9), world[11:13, columns])


def test_another_grid__in_a_projection_across_the_date_line(
    write, labels, scene, cube, random_labels
):
    path = write("s.tif", cube, crs="EPSG:4326", transform=Affine(0.1, 0, 179.4, 0, -0.1, 1))
    affine = Affine(3000, 0, 730000, 0, -3000, 120000)
    other = write("labels.tif", random_labels, crs="EPSG:32660", transform=affine)
    expected = look_up(scene(path).grid, random_labels, "EPSG:32660", affine)
    assert (expected > 0)[:, [1, -2]].any(axis=0).all(), "on both sides"
    np.testing.assert_array_equal(labels(path, labels=other).read(0, 20), expected)


def test_nodata_of_another_grid_means_none(write, labels, cube, random_labels):
    path = write("scene.tif", cube)
    stored = np.where(random_labels == 2, -99999, random_labels).astype("float32")
    where = {"transform": Affine(11.3, 0, 364000, 0, -9.7, 5810100)}
    opened = labels(path, labels=write("labels.tif", stored, nodata=-99999, **where))
    found = opened.read(0, 20)
    assert 2 not in found
    assert 3 in found


def test_no_crs_needs_the_size_of_the_scene(write, labels, cube):
    stored = np.full((20, 13), 2, "uint8")
    located, lost = write("scene.tif", cube), write("lost.tif", cube, crs=None, transform=None)
    lost_labels = write("lost_labels.tif", stored, crs=None, transform=None)
    for scene_path, label_path in (
        (located, lost_labels),
        (lost, write("labels.tif", stored)),
        (lost, lost_labels),
    ):
        np.testing.assert_array_equal(labels(scene_path, labels=label_path).read(0, 20), stored)
    small = write("small.tif", stored[:9], crs=None, transform=None)
    with pytest.raises(SceneError, match=r"without a CRS.*9 x 13.*20 x 13"):
        labels(located, labels=small)
    with pytest.raises(SceneError, match="9 x 13"):
        labels(lost, labels=write("small.tif", stored[:9]))


SYSTEMS = [(None, None), ("EPSG:32633", None), (None, "EPSG:32633")]


@pytest.mark.parametrize(("scene_crs", "crs"), SYSTEMS)
def test_transforms_without_a_crs__place_the_labels(
    write, labels, cube, random_labels, scene_crs, crs
):
    scene_path = write("scene.tif", cube, crs=scene_crs)
    stored = random_labels[:20, :13]
    there = write("there.tif", stored, crs=crs)
    np.testing.assert_array_equal(labels(scene_path, labels=there).read(0, 20), stored)
    south_up = write("south_up.tif", stored[::-1], crs=crs, transform=TRANSFORMS["south-up"])
    np.testing.assert_array_equal(labels(scene_path, labels=south_up).read(0, 20), stored)
    far = {"crs": crs, "transform": Affine(30, 0, 900000, 0, -30, 100000)}
    wide = {"crs": crs, "transform": Affine(30, 0, 364005, 0, -30, 5810055)}
    far_path, wide_path = (
        write("far.tif", stored, **far),
        write("wide.tif", np.pad(stored, 3), **wide),
    )
    if scene_crs is None and crs is None:
        np.testing.assert_array_equal(labels(scene_path, labels=wide_path).read(5, 20), stored[5:])
        with pytest.raises(SceneError, match="do not overlap"):
            labels(scene_path, labels=far_path)
    else:
        with pytest.raises(SceneError, match=r"one of the two has no CRS.*lies elsewhere"):
            labels(scene_path, labels=far_path)
        with pytest.raises(SceneError, match=r"without a CRS.*26 x 19"):
            labels(scene_path, labels=wide_path)


def test_labels_elsewhere(write, labels, cube):
    far = write(
        "far.tif", np.ones((5, 5), "uint8"), transform=Affine(30, 0, 500000, 0, -30, 5000000)
    )
    with pytest.raises(SceneError, match=r"do not overlap.*x 500000.*x 364095"):
        labels(write("scene.tif", cube), labels=far)


@pytest.mark.parametrize("value", [-1, 65536, 2.5, np.inf])
def test_label_value_out_of_range(write, labels, cube, value):
    stored = np.ones((20, 13), "float64")
    stored[7, 4] = value
    opened = labels(write("scene.tif", cube), labels=write("labels.tif", stored))
    assert opened.read(0, 7).all()
    with pytest.raises(
        SceneError, match=r"row 7, column 4: label value out of range.*65535"
    ) as caught:
        opened.read(5, 20)
    assert str(value) in str(caught.value)


def test_several_bands_and_labels_field(write, labels, cube):
    path = write("scene.tif", cube)
    with pytest.raises(SceneError, match="labels has 5 bands"):
        labels(path, labels=path)
    one = write("labels.tif", np.ones((20, 13), "uint8"))
    with pytest.raises(SceneError, match=r"scene\.labels_field = 'x'"):
        labels(path, labels=one, labels_field="x")


@pytest.mark.parametrize(
    ("table", "colors"),
    [
        ({n: (n, n, n) for n in range(256)}, {}),
        ({1: (255, 0, 0)}, {1: (255, 0, 0)}),
        (
            {n: (255, 255, 255) if n > 2 else (n, 90, 0) for n in range(256)},
            {1: (1, 90, 0), 2: (2, 90, 0)},
        ),
        ({n: (9, 9, 99) for n in range(256)} | {2: (2, 90, 0)}, {2: (2, 90, 0)}),
    ],
    ids=["greys", "one", "filled with white", "filled"],
)
def test_legend_of_color_table__that_tells_no_classes_apart(write, labels, cube, table, colors):
    stored = write("labels.tif", np.ones((20, 13), "uint8"),
                   after=lambda dataset: dataset.write_colormap(1, table))  # fmt: skip
    assert labels(write("scene.tif", cube), labels=stored).legend.colors == colors


def test_legend_of_color_table_and_category_names(write, labels, cube, tmp_path):
    path = write("scene.tif", cube)
    table = {1: (255, 0, 0, 255), 2: (0, 255, 0, 255), 3: (0, 0, 0, 255)}
    stored = write("labels.tif", np.ones((20, 13), "uint8"),
                   after=lambda dataset: dataset.write_colormap(1, table))  # fmt: skip
    assert labels(path, labels=stored).legend.colors == {1: (255, 0, 0), 2: (0, 255, 0)}
    Path(stored + ".aux.xml").write_text(
        '<PAMDataset><PAMRasterBand band="1"><CategoryNames><Category>none</Category>'
        "<Category>roof</Category><Category/><Category>coal</Category></CategoryNames>"
        "</PAMRasterBand></PAMDataset>"
    )
    opened = labels(path, labels=stored)
    assert opened.legend.names == {1: "roof", 3: "coal"}
    assert opened.legend.colors == {1: (255, 0, 0), 3: (0, 0, 0)}
    assert stored + ".aux.xml" in opened.files


@pytest.mark.parametrize(
    ("first", "nodata", "told"),
    [
        ("Water", 255, True), ("Water", None, True), ("Unclassified", 255, False), ("", 255, True),
        ("", None, False), ("Water", 0, False),
    ],
)  # fmt: skip
def test_zero_that_may_be_a_class__is_told(write, labels, cube, tmp_path, first, nodata, told):
    stored = np.ones((20, 13), "uint8")
    stored[3:7] = 0
    names = f"<Category>{first}</Category><Category>Forest</Category>"
    band = f'<PAMRasterBand band="1"><CategoryNames>{names}</CategoryNames></PAMRasterBand>'
    for name, values in (("zero.tif", stored), ("none.tif", np.ones_like(stored))):
        path = write(name, values, nodata=nodata)
        Path(f"{path}.aux.xml").write_text(f"<PAMDataset>{band}</PAMDataset>")
    scene_path = write("scene.tif", cube)
    notes = notes_of(labels(scene_path, labels=str(tmp_path / "zero.tif")))
    assert [note[:19] for note in notes] == ["0 means no label. I"] * told
    assert ("'Water'" in str(notes)) == (told and first == "Water")
    assert notes_of(labels(scene_path, labels=str(tmp_path / "none.tif"))) == ()


FLAGS = {"flag_values": [0, 1, 3], "flag_meanings": "no_data open_water bare_soil"}


def flagged(path, stored, attributes):
    """Write labels with attributes of flags as NetCDF or, with that ending, as zarr."""
    if path.suffix == ".zarr":
        array = zarr.create_array(path, data=stored, dimension_names=("y", "x"))
        array.attrs.update(attributes)
        return str(path)
    with netcdf_file(path, "w") as file:
        file.createDimension("y", stored.shape[0])
        file.createDimension("x", stored.shape[1])
        variable = file.createVariable("land", "i1", ("y", "x"))
        variable[:] = stored
        for name, value in attributes.items():
            setattr(variable, name, value if isinstance(value, str) else np.array(value, "i1"))
    return str(path)


@pytest.mark.parametrize("ending", ["nc", "zarr"])
@pytest.mark.parametrize(
    ("attributes", "names"),
    [
        (FLAGS, {1: "open_water", 3: "bare_soil"}),
        (FLAGS | {"flag_values": [-1, 1, 3]}, {1: "open_water", 3: "bare_soil"}),
        (FLAGS | {"flag_meanings": "open_water bare_soil"}, {}),
        (FLAGS | {"flag_masks": [3, 3, 3]}, {}),
        ({"flag_masks": [1, 2], "flag_meanings": "cloud shadow"}, {}),
        ({"flag_meanings": "cloud shadow"}, {}),
    ],
)
def test_legend_of_flags(labels, tmp_path, ending, attributes, names):
    np.save(tmp_path / "scene.npy", np.ones((20, 13, 4)))
    stored = np.arange(260, dtype="int8").reshape(20, 13) % 4
    path = flagged(tmp_path / f"labels.{ending}", stored, attributes)
    opened = labels(str(tmp_path / "scene.npy"), labels=path)
    assert opened.legend.names == names
    assert sorted(np.unique(opened.read(0, 20))) == [0, 1, 2, 3]
    assert notes_of(opened) == ()
    path = flagged(
        tmp_path / f"water.{ending}", stored, FLAGS | {"flag_meanings": "water wood soil"}
    )
    opened = labels(str(tmp_path / "scene.npy"), labels=path)
    assert "(its name in the file is 'water')" in str(notes_of(opened))


def test_legend_of_attribute_table(write, labels, cube):
    stored = write("labels.tif", np.ones((20, 13), "uint8"))
    columns = [("Value", 5), ("Name", 2), ("R", 6), ("G", 7), ("B", 8)]
    fields = "".join(
        f'<FieldDefn index="{i}"><Name>{name}</Name><Type>0</Type>'
        f"<Usage>{usage}</Usage></FieldDefn>"
        for i, (name, usage) in enumerate(columns)
    )
    rows = "".join(
        f'<Row index="{i}">' + "".join(f"<F>{cell}</F>" for cell in row) + "</Row>"
        for i, row in enumerate(
            [(0, "none", 0, 0, 0), (4, "wheat", 1, 2, 3), (70, "oats", 4, 5, 6)]
        )
    )
    Path(stored + ".aux.xml").write_text(
        '<PAMDataset><PAMRasterBand band="1"><GDALRasterAttributeTable>'
        f"{fields}{rows}</GDALRasterAttributeTable></PAMRasterBand></PAMDataset>"
    )
    legend = labels(write("scene.tif", cube), labels=stored).legend
    assert legend.names == {4: "wheat", 70: "oats"}
    assert legend.colors == {4: (1, 2, 3), 70: (4, 5, 6)}


def test_legend_of_envi_classes(write, labels, cube, tmp_path):
    stored = write("labels.img", np.ones((20, 13), "uint8"), driver="ENVI")
    header = tmp_path / "labels.hdr"
    text = header.read_text().replace("ENVI Standard", "ENVI Classification")
    header.write_text(
        text + "classes = 3\nclass names = {Unclassified, bare soil, tree}\n"
        "class lookup = {0, 0, 0, 10, 20, 30, 40, 50, 60}\n"
    )
    legend = labels(write("scene.tif", cube), labels=stored).legend
    assert legend.names == {1: "bare soil", 2: "tree"}
    assert legend.colors == {1: (10, 20, 30), 2: (40, 50, 60)}
    # A number that is no part of a colour leaves its class without one, and the others as they are.
    header.write_text(header.read_text().replace("40, 50, 60", "40, 65536, 60"))
    legend = labels(stored, labels=stored).legend
    assert legend.names == {1: "bare soil", 2: "tree"}
    assert legend.colors == {1: (10, 20, 30)}
    # A class without a name does not take that of the next one.
    header.write_text(header.read_text().replace("bare soil, tree", ", tree,"))
    assert labels(stored, labels=stored).legend.names == {2: "tree"}


def test_labels__by_the_header_of_an_envi_file(write, labels, cube, tmp_path):
    path = write("scene.tif", cube)
    stored = np.arange(260, dtype="uint16").reshape(20, 13)
    write("labels.img", stored, driver="ENVI")
    opened = labels(path, labels="labels.hdr")
    np.testing.assert_array_equal(opened.read(0, 20), stored)
    assert {Path(name).name for name in opened.files} >= {"labels.img", "labels.hdr"}
    (tmp_path / "labels.img").unlink()
    with pytest.raises(SceneError, match="its data file is not beside it"):
        labels(path, labels="labels.hdr")


@pytest.mark.parametrize("name", ["labels.tif", "labels.npy"])
def test_negative_class__the_fix_suits_the_file(write, labels, cube, tmp_path, name):
    wrong = np.ones((20, 13), np.int16)
    wrong[3, 4] = -1
    write("labels.tif", wrong)
    np.save(tmp_path / "labels.npy", wrong)
    opened = labels(write("scene.tif", cube), labels=name)
    with pytest.raises(SceneError, match=r"row 3, column 4: label value out of range: -1") as error:
        opened.read(0, 20)
    assert ("gdal_edit.py" in str(error.value)) == (name == "labels.tif")
    assert ("set the value to 0" in str(error.value)) == (name == "labels.npy")


def test_bands_first__the_order_of_the_axes_is_named(labels, tmp_path):
    cube = np.random.default_rng(0).random((5, 20, 13), np.float32)
    np.save(tmp_path / "first.npy", cube)
    np.save(tmp_path / "last.npy", np.moveaxis(cube, 0, -1))
    np.save(tmp_path / "labels.npy", np.ones((20, 13), np.uint8))
    np.save(tmp_path / "small.npy", np.ones((19, 13), np.uint8))
    with pytest.raises(SceneError, match=r"rows x columns x bands.*numpy\.moveaxis\(cube, 0, -1\)"):
        labels(str(tmp_path / "first.npy"), labels="labels.npy")
    assert labels(str(tmp_path / "last.npy"), labels="labels.npy") is not None
    with h5py.File(tmp_path / "last.h5", "w") as file:
        file["cube"] = np.moveaxis(cube, 0, -1)
    with pytest.raises(SceneError, match=r"bands x rows x columns.*numpy\.moveaxis\(cube, -1, 0\)"):
        labels(str(tmp_path / "last.h5"), labels="labels.npy")
    with pytest.raises(SceneError, match=r"19 x 13, the scene 20 x 13") as error:
        labels(str(tmp_path / "last.npy"), labels="small.npy")
    assert "moveaxis" not in str(error.value)


def test_names_of_the_job(write, labels, cube, tmp_path):
    path = write("scene.tif", cube)
    file = write("labels.tif", np.ones((20, 13), "uint8"))
    (tmp_path / "labels.tif.aux.xml").write_text(
        "<PAMDataset><PAMRasterBand band='1'><CategoryNames><Category/><Category>oats</Category>"
        "<Category>rye</Category></CategoryNames></PAMRasterBand></PAMDataset>"
    )
    opened = labels(path, labels=file, classes={2: "wheat", 300: "barley"})
    assert opened.legend.names == {1: "oats", 2: "wheat", 300: "barley"}
    assert opened.read(0, 20).max() == 1
    with pytest.raises(SceneError, match=r"scene\.classes.*has no labels.*leave the table out"):
        labels(path, classes={1: "oats"})


@pytest.fixture
def marked(write, scene, cube, resolve):
    """Return the notes on a file of learn.train, and the pixels that it marks."""

    def read(name, **keys):
        keys = {"path": write("scene.tif", cube), "labels": "labels.gpkg", **keys}
        grid = scene(keys["path"]).grid
        opened = open_marks(resolve(name), SceneOptions(**keys), grid, None)
        return opened.notes, np.argwhere(opened.read(0, 20)).tolist()

    return read


@pytest.fixture
def three_points():
    """Points in the pixels (1, 1), (2, 2), (3, 3) of the scene."""
    places = [TRANSFORMS["north-up"] @ (n + 0.5, n + 0.5) for n in (1, 2, 3)]
    return geopandas.GeoDataFrame(
        {"id": [4, 5, 6], "kind": ["a", None, "a"]},
        geometry=[Point(place) for place in places],
        crs="EPSG:32633",
    )


def test_marks__of_a_vector_file_follow_the_keys_of_the_labels(marked, three_points, tmp_path):
    every = "every feature marks pixels: no attribute holds the class"
    three_points.to_file(tmp_path / "p.gpkg", layer="points")
    assert marked("p.gpkg", labels_field="kind")[1] == [[1, 1], [3, 3]]
    notes, pixels = marked("p.gpkg", labels_field="crop", labels_layer="crops")
    assert (notes, pixels) == ((every,), [[1, 1], [2, 2], [3, 3]])
    with pytest.raises(SceneError, match="several attributes could hold the class: id, kind"):
        marked("p.gpkg")
    three_points[["geometry"]].to_file(tmp_path / "bare.gpkg")
    assert marked("bare.gpkg") == ((every,), [[1, 1], [2, 2], [3, 3]])
    three_points[:1].to_file(tmp_path / "p.gpkg", layer="fields")
    assert marked("p.gpkg", labels_layer="fields", labels_field="crop")[1] == [[1, 1]]


def test_marks__of_a_table_of_points_follow_the_keys_of_the_labels(marked, three_points, tmp_path):
    every = "every point marks its pixel: no column holds the class"
    pixels = pd.DataFrame({"row": [1, 2], "column": [1, 2]})
    pixels.to_csv(tmp_path / "p.csv", index=False)
    # The labels lie on a map, and these points count pixels.
    for keys in ({}, {"labels_field": "kind", "labels_crs": "EPSG:3035"}):
        assert marked("p.csv", **keys) == ((every,), [[1, 1], [2, 2]])
    moved = three_points.to_crs("EPSG:3035")
    table = moved[["id", "kind"]].assign(x=moved.geometry.x, y=moved.geometry.y)
    table.to_csv(tmp_path / "xy.csv", index=False)
    crs = {"labels_crs": "EPSG:3035"}
    assert marked("xy.csv", labels_field="kind", **crs)[1] == [[1, 1], [3, 3]]
    assert marked("xy.csv", labels_field="crop", **crs)[1] == [[1, 1], [2, 2], [3, 3]]
    with pytest.raises(SceneError, match="several columns could hold the class"):
        marked("xy.csv", **crs)


def test_marks__of_samples_in_a_column_of_another_name(tmp_path):
    pd.DataFrame({"train": [0, 1, 1]}).to_csv(tmp_path / "train.csv", index=False)
    options = SceneOptions(path="table.csv", labels_field="species")
    opened = open_marks(str(tmp_path / "train.csv"), options, Grid(3, 1), None)
    assert opened.read(0, 3).ravel().tolist() == [0, 1, 1]


def test_scene_classes__none_of_the_names_of_a_file_is_told(labels, tmp_path):
    (tmp_path / "s.csv").write_text("a,b,kind\n1,2,pine\n3,4,beech\n5,6,oak\n")
    opened = labels("s.csv", labels_field="kind", classes={1: "water", 2: "forest"})
    assert opened.legend.names == {1: "water", 2: "forest", 3: "pine"}
    assert opened.notes[-1] == (
        "scene.classes has none of the names in s.csv (beech, oak, pine), which are numbered by the "
        "alphabet: beech becomes water, oak becomes forest"
    )
    assert labels("s.csv", labels_field="kind", classes={2: "pine"}).labels.notes == ()

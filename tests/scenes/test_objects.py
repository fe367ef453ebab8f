"""Cubes and labels in memory as files: the georeference goes with them, whatever gives it."""

import dask.array
import numpy as np
import pytest
import rasterio
import xarray

from eigenscape.errors import SceneError
from eigenscape.scenes.formats.rasters.rasterfiles import open_raster
from eigenscape.scenes.objects import numbered, raster_of
from eigenscape.scenes.writing import write_frame, write_raster, write_table

UTM = rasterio.CRS.from_epsg(32633).to_wkt()


@pytest.fixture
def cube():
    """Return an array with axes band, y, x, wavelengths in micrometres and a coordinate system."""
    values = np.arange(3 * 4 * 5, dtype=np.float32).reshape(3, 4, 5)
    return xarray.DataArray(
        values,
        dims=("band", "y", "x"),
        coords={
            "y": 5000.0 - 30 * np.arange(4),
            "x": 400.0 + 20 * np.arange(5),
            "wavelength": ("band", [0.45, 0.55, 0.65], {"units": "um"}),
            "spatial_ref": ((), 0, {"crs_wkt": UTM}),
        },
    )


def test_raster_of__tells_of_numbers_that_are_no_wavelengths(cube):
    cube.wavelength.attrs["units"] = "cm-1"
    with pytest.warns(UserWarning, match="wavelengths are not known: their unit, 'cm-1'"):
        assert raster_of(cube).wavelength is None


def test_write_raster__has_grid_wavelengths_and_values(tmp_path, cube):
    cube.attrs["_FillValue"] = -9.0
    path = write_raster(raster_of(cube), tmp_path / "new", "line")
    with rasterio.open(path) as source:
        np.testing.assert_array_equal(source.read(), cube)
        assert source.crs == rasterio.CRS.from_wkt(UTM)
        # Coordinates are those of centres, a transform that of corners.
        assert source.transform == rasterio.Affine(20, 0, 390, 0, -30, 5015)
        assert [float(source.tags(band)["wavelength"]) for band in (1, 2, 3)] == [450, 550, 650]
        assert source.nodata == -9


def test_write_raster__is_named_by_its_content(tmp_path, cube):
    first = write_raster(raster_of(cube), tmp_path, "line")
    written = first.stat().st_mtime_ns
    lazy = cube.chunk({"y": 3, "x": 2, "band": 1})
    assert write_raster(raster_of(lazy), tmp_path, "line") == first
    assert first.stat().st_mtime_ns == written
    moved = cube.assign_coords(x=cube.x + 20)
    assert write_raster(raster_of(moved), tmp_path, "line") != first
    assert len(list(tmp_path.iterdir())) == 2


def test_raster_of__rotated_and_datasets(cube):
    rotated = cube.drop_vars(["x", "y"])
    rotated.spatial_ref.attrs["GeoTransform"] = "400 20 5 5000 4 -30"
    assert raster_of(rotated).grid.transform == (20, 5, 400, 4, -30, 5000)
    bands = (
        cube.drop_vars("wavelength").to_dataset("band").rename_vars({0: "red", 1: "nir", 2: "swir"})
    )
    raster = raster_of(bands)
    assert raster.values.shape == (4, 5, 3)
    assert raster.wavelength is None
    assert raster.grid.crs_wkt == UTM


@pytest.mark.parametrize(
    ("rows", "columns", "geotransform", "expected"),
    [
        (1, 5, "390 20 0 5015 0 -30", (20, 0, 390, 0, -30, 5015)),
        (4, 1, "390 20 0 5015 0 -30", (20, 0, 390, 0, -30, 5015)),
        (1, 1, "390 20 0 5015 0 -30", (20, 0, 390, 0, -30, 5015)),
        (1, 5, None, (20, 0, 390, 0, -20, 5010)),
        (4, 1, None, (30, 0, 385, 0, -30, 5015)),
        (1, 1, None, (1, 0, 399.5, 0, -1, 5000.5)),
    ],
)
def test_raster_of__one_row_or_column(cube, rows, columns, geotransform, expected):
    part = cube[:, :rows, :columns]
    if geotransform:
        part.spatial_ref.attrs["GeoTransform"] = geotransform
    assert raster_of(part).grid.transform == expected


def test_write_raster__without_a_place(tmp_path):
    path = write_raster(raster_of(np.ones((4, 5, 2))), tmp_path, "cube")
    with open_raster(str(path)) as source:
        assert (source.count, source.crs, source.transform.is_identity) == (2, None, True)


def test_raster_of__arrays_without_names():
    raster = raster_of(np.zeros((4, 5), bool))
    assert raster.values.shape == (4, 5, 1)
    assert raster.grid.transform is None
    assert raster_of(dask.array.zeros((4, 5, 2))).grid.width == 5


@pytest.mark.parametrize("lazy", [False, True])
def test_raster_of__masked_values_are_missing(lazy):
    mask = np.zeros((4, 5, 2), bool)
    mask[1, 2] = True
    for given in (np.full((4, 5, 2), 7, "int16"), np.full((4, 5, 2), 7.0)):
        masked = np.ma.array(given, mask=mask)
        raster = raster_of(dask.array.from_array(masked, chunks=2) if lazy else masked)
        values = np.asarray(raster.values)
        missing = np.isnan(values) if raster.nodata is None else values == raster.nodata
        np.testing.assert_array_equal(missing, mask)
        assert (values[~mask] == 7).all()
    full = np.ma.array(np.array([0, 255, 1], "uint8").reshape(1, 3), mask=[[False, False, True]])
    np.testing.assert_array_equal(raster_of(full).values[..., 0], [[0, 255, np.nan]])


def test_numbered__masked_labels_are_none():
    mask = [False, True, False]
    numbers, _ = numbered(np.ma.array([1, 2, 3], mask=mask))
    assert numbers.tolist() == [1, 0, 3]
    numbers, names = numbered(np.ma.array(["oak", "elm", "ash"], mask=mask))
    assert (numbers.tolist(), names) == ([2, 0, 1], {1: "ash", 2: "oak"})
    lazy, _ = numbered(dask.array.from_array(np.ma.array([1, 2, 3], mask=mask)))
    assert lazy.compute().tolist() == [1, 0, 3]


def test_raster_of__a_packed_fill_value_marks_no_decoded_number(cube, tmp_path):
    cube = (cube - 30).astype(np.float64)
    cube.encoding = {"dtype": "int16", "scale_factor": 0.5, "_FillValue": -1}
    assert raster_of(cube).nodata is None
    cube.encoding = {"dtype": "int16", "_FillValue": -1}
    assert raster_of(cube).nodata is None, "NaN since it was decoded"
    cube.encoding = {"_FillValue": -1}
    assert raster_of(cube).nodata is None
    whole = cube.astype("int16")
    whole.encoding = {"_FillValue": -1}
    assert raster_of(whole).nodata == -1


def test_write_raster__packed_whole_numbers_keep_their_scale(cube, tmp_path):
    packed = cube.astype("int16").assign_attrs(scale_factor=0.5, add_offset=-3.0)
    path = write_raster(raster_of(packed), tmp_path, "line")
    with rasterio.open(path) as source:
        assert (source.scales, source.offsets) == ((0.5,) * 3, (-3.0,) * 3)
        np.testing.assert_array_equal(source.read(), packed)
    assert write_raster(raster_of(packed.drop_attrs()), tmp_path, "line") != path
    bands = xarray.Dataset({f"b{n}": packed.isel(band=n, drop=True) for n in range(3)})
    assert raster_of(bands).packing == (0.5, -3)
    bands["b1"].attrs["add_offset"] = 0
    with pytest.raises(SceneError, match=r"packed with different .*mask_and_scale=True"):
        raster_of(bands)
    # Decoded numbers are real ones; xarray keeps the attributes of what they were computed from.
    assert raster_of(packed.astype(np.float32)).packing is None
    assert raster_of(packed.assign_attrs(scale_factor=1.0, add_offset=0)).packing is None
    with pytest.raises(SceneError, match="its scale_factor is 'half'"):
        raster_of(packed.assign_attrs(scale_factor="half"))


def test_raster_of__a_dataset_as_xarray_opens_it(cube):
    mapping = cube.spatial_ref
    bands = {
        f"b{place}": cube[place].drop_vars(["wavelength", "spatial_ref"]) for place in range(3)
    }
    plain = xarray.Dataset(bands | {"crs": mapping.variable})
    for name in bands:
        plain[name].encoding["grid_mapping"] = "crs"
    raster = raster_of(plain)
    assert raster.values.shape == (4, 5, 3)
    assert raster.grid.crs_wkt == UTM
    named = (
        cube.drop_vars("spatial_ref")
        .to_dataset(name="reflectance")
        .assign(spatial_ref=mapping.variable)
    )
    raster = raster_of(named)
    np.testing.assert_array_equal(np.moveaxis(raster.values, 2, 0), cube)
    assert raster.grid.crs_wkt == UTM
    mapping.attrs = {"grid_mapping_name": "transverse_mercator", "false_easting": 500000.0}
    mapping.attrs |= {"longitude_of_central_meridian": 15.0, "latitude_of_projection_origin": 0.0}
    mapping.attrs["scale_factor_at_central_meridian"] = 0.9996
    named = named.assign(crs=mapping.variable).drop_vars("spatial_ref")
    named.reflectance.encoding["grid_mapping"] = "crs"
    found = rasterio.CRS.from_wkt(raster_of(named).grid.crs_wkt)
    assert found.to_dict()["proj"] in ("tmerc", "utm")
    with pytest.warns(UserWarning, match=r"in the variable 'crs' of the Dataset"):
        assert raster_of(named.reflectance).grid.crs_wkt is None
    with pytest.raises(SceneError, match=r"different axes: b0 has \(y, x\), t has \(time\)"):
        raster_of(plain.assign(t=("time", [1.0])))


@pytest.mark.parametrize("dtype", [">f4", "f2", "g", ">i2", "<u4"])
def test_write_raster__numbers_of_any_type(tmp_path, dtype):
    values = np.arange(40).reshape(4, 5, 2).astype(dtype)
    with open_raster(str(write_raster(raster_of(values), tmp_path, "cube"))) as source:
        np.testing.assert_array_equal(np.moveaxis(source.read(), 0, 2), values.astype(float))


@pytest.mark.parametrize(
    ("nodata", "words"),
    [
        ("none", "'none', not a number"),
        ([1, 2], "not a number"),
        (-9999, "type uint16 cannot have"),
        (0.5, "cannot have"),
    ],
)
def test_raster_of__refuses_a_nodata_value_that_marks_nothing(cube, nodata, words):
    cube = cube.astype("uint16")
    cube.attrs["nodata"] = nodata
    with pytest.raises(SceneError, match=words):
        raster_of(cube)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda c: c.rename(y="a"), "none of its axes band, a, x is called y or row"),
        (
            lambda c: c.expand_dims("time"),
            "axes time, band, y, x; two axes in space and one of bands",
        ),
        (lambda c: c.assign_coords(x=[0, 1, 2, 3, 7]), "the axis x are not an even grid"),
        (lambda c: c.values.astype(str), "an array of type <U32"),
    ],
)
def test_raster_of__refuses_what_is_no_cube(cube, change, words):
    with pytest.raises(SceneError, match=words):
        raster_of(change(cube))


def test_write_table__and_frame(tmp_path):
    geopandas = pytest.importorskip("geopandas")
    table = np.arange(12.0).reshape(6, 2)
    path = write_table(dask.array.from_array(table, (2, 1)), tmp_path, "table")
    np.testing.assert_array_equal(np.load(path), table)
    assert write_table(table, tmp_path, "table") == path
    frame = geopandas.GeoDataFrame(
        {"kind": ["a", "b"]}, geometry=geopandas.points_from_xy([0, 1], [2, 3]), crs=32633
    )
    path = write_frame(frame, tmp_path, "points")
    again = geopandas.read_file(path)
    assert again.kind.tolist() == ["a", "b"]
    assert again.crs == frame.crs
    assert write_frame(frame, tmp_path, "points") == path
    assert write_frame(frame.assign(kind="c"), tmp_path, "points") != path


def test_write_frame__has_the_columns_of_classes_alone(tmp_path):
    geopandas = pytest.importorskip("geopandas")
    points = geopandas.points_from_xy([0, 1, 2], [2, 3, 4])
    frame = geopandas.GeoDataFrame({"kind": ["a", "b", "b"]}, geometry=points, crs=32633)
    for extra in ({"fid": [7.0, 7.0, 8.0]}, {"parts": [[1], [2], [3]]}, {"other": frame.geometry}):
        again = geopandas.read_file(write_frame(frame.assign(**extra), tmp_path, "points", "kind"))
        assert again.columns.tolist() == ["kind", "geometry"]
    assert "0" in geopandas.read_file(write_frame(frame.rename(columns={"kind": 0}), tmp_path, "p"))
    by_fid = frame.rename(columns={"kind": "fid"})
    assert geopandas.read_file(write_frame(by_fid, tmp_path, "p", "fid")).fid.tolist() == [
        "a",
        "b",
        "b",
    ]
    by_index = frame.iloc[1:].dissolve("kind")
    assert geopandas.read_file(write_frame(by_index, tmp_path, "p", "kind")).kind.tolist() == ["b"]
    for bad, words in (
        (frame.iloc[:0], "has no rows"),
        (frame[["geometry"]], "no attribute could hold the class"),
        (frame.geometry, "geometries without classes"),
    ):
        with pytest.raises(SceneError, match=words):
            write_frame(bad, tmp_path, "p")

"""NetCDF and HDF5 cubes in any order of axes, with lists along their bands, as xarray reads them."""

import itertools
from pathlib import Path

import h5py
import numpy as np
import pytest
import rasterio
import xarray
from rasterio.crs import CRS
from rasterio.transform import Affine
from scipy.io import netcdf_file

from eigenscape.errors import SceneError
from eigenscape.job.options import SceneOptions
from eigenscape.scenes.describe import describe_scene
from eigenscape.scenes.open import chosen_variable, open_scene

SIZES = {"y": 7, "x": 8, "wavelength": 5}
CUBE = np.random.default_rng(0).permutation(7 * 8 * 5).reshape(7, 8, 5).astype("i2")
PLACES = {"y": 5000 - 30.0 * np.arange(7), "x": 400 + 20.0 * np.arange(8)}
ORDERS = [" ".join(order) for order in itertools.permutations(SIZES)]
BOTH_ORDERS = pytest.mark.parametrize("axes", ["y x wavelength", "wavelength y x"])
UNNAMED = "This is a netCDF dimension but not a netCDF variable. "


def turned(axes):
    """Return the cube with its axes in another order."""
    return CUBE.transpose([[*SIZES].index(axis) for axis in axes])


def write_classic(path, variables, coordinates, attributes):
    """Write NetCDF of the classic format: variables with their axes, and 1-D ones by their axis."""
    with netcdf_file(path, "w") as file:
        for name, size in SIZES.items():
            file.createDimension(name, size)
        for name, (axes, values) in (variables | coordinates).items():
            one = file.createVariable(name, values.dtype, axes)
            one[...] = values
            for key, value in attributes.get(name, {}).items():
                setattr(one, key, value)


def write_hdf5(path, variables, coordinates, attributes):
    """Write the same as NetCDF-4 has it: dimension scales, with a place for those without coordinates."""
    with h5py.File(path, "w") as file:
        for name, size in SIZES.items():
            found = coordinates.get(name)
            scale = file.create_dataset(name, data=np.zeros(size, ">f4") if not found else found[1])
            scale.make_scale(name if found else f"{UNNAMED}{size:9}")
        for name, (axes, values) in (coordinates | variables).items():
            if name not in SIZES:
                chunks = tuple(min(3, size) for size in values.shape) or None
                one = file.create_dataset(name, data=values, chunks=chunks)
                for place, axis in enumerate(axes):
                    one.dims[place].attach_scale(file[axis])
            for key, value in attributes.get(name, {}).items():
                file[name].attrs[key] = value


@pytest.fixture(params=["classic", "hdf5"])
def write(request, tmp_path):
    """Write a cube with its axes in some order, beside labels and a list of wavelengths."""
    writer = write_classic if request.param == "classic" else write_hdf5

    def write_cube(axes, *, places=True, further=None, **attributes):
        path = tmp_path / f"{request.param}-{len(list(tmp_path.iterdir()))}.nc"
        centres = np.linspace(0.4, 0.8, 5)
        coordinates = {"wavelength": (("wavelength",), centres)}
        coordinates |= {name: ((name,), PLACES[name]) for name in PLACES if places}
        attributes = {"wavelength": {"units": "um"}} | attributes
        variables = {"refl": (tuple(axes), turned(axes))} | (further or {})
        writer(path, variables, coordinates, attributes)
        return str(path)

    return write_cube


@pytest.mark.parametrize("axes", ORDERS)
@pytest.mark.parametrize("places", [True, False])
def test_any_order_of_axes_is_read(scene, write, axes, places):
    opened = scene(write(axes.split(), places=places))
    assert (opened.grid.height, opened.grid.width) == (7, 8)
    assert opened.grid.transform == ((20, 0, 390, 0, -30, 5015) if places else None)
    np.testing.assert_allclose(opened.bands.wavelength, [400, 500, 600, 700, 800])
    parts = [opened.read(start, min(start + 3, 7))[0] for start in range(0, 7, 3)]
    np.testing.assert_array_equal(np.concatenate(parts), CUBE)
    assert scene(write(axes.split()), variable="refl", bad_bands=["490-610 nm"]).bands.count == 3


@BOTH_ORDERS
def test_rows_from_the_south_are_those_of_arrays_beside_them(
    scene, labels, write, tmp_path, monkeypatch, axes
):
    monkeypatch.setitem(PLACES, "y", PLACES["y"][::-1])
    kinds, kept = CUBE[..., 0] % 3 + 1, CUBE[..., 1] % 2
    path = write(axes.split(), further={"kinds": (("y", "x"), kinds)})
    opened = scene(path)
    assert opened.grid.transform == (20, 0, 390, 0, 30, 4805)
    np.testing.assert_array_equal(opened.read(0, 7)[0], CUBE)
    assert "its first row is the southernmost" in str(describe_scene(opened))

    north_up = {"driver": "GTiff", "transform": Affine(20, 0, 390, 0, -30, 5015)}
    for name, values in (("kinds", kinds), ("kept", kept)):
        np.save(tmp_path / f"{name}.npy", values)
        size = {"height": 7, "width": 8, "count": 1, "dtype": "int16"}
        with rasterio.open(tmp_path / f"{name}.tif", "w", **north_up, **size) as file:
            file.write(values[::-1], 1)
        places = {axis: ((axis,), PLACES[axis]) for axis in PLACES}
        write_classic(tmp_path / f"{name}.nc", {name: (("y", "x"), values)}, places, {})
    for file in ("kinds.npy", "kinds.tif", "kinds.nc"):
        np.testing.assert_array_equal(labels(path, labels=file).read(0, 7), kinds)
    np.testing.assert_array_equal(labels(path, labels_variable="kinds").read(0, 7), kinds)
    for file in ("kept.npy", "kept.tif", "kept.nc"):
        np.testing.assert_array_equal(scene(path, mask=file).read(0, 7)[1], kept)

    # Of a scene that has no place each row belongs to the row of the same number.
    path = write(axes.split(), places=False)
    np.testing.assert_array_equal(labels(path, labels="kinds.nc").read(1, 5), kinds[1:5])
    np.testing.assert_array_equal(scene(path, mask="kept.nc").read(1, 5)[1], kept[1:5])


def test_a_raster_of_more_axes_tells_that_its_last_row_is_read_first(scene, tmp_path):
    path = str(tmp_path / "s.nc")
    with netcdf_file(path, "w") as file:
        for name, size in (("time", 2), *SIZES.items()):
            file.createDimension(name, size)
        for name, values in (("y", PLACES["y"][::-1]), ("x", PLACES["x"])):
            file.createVariable(name, "f8", (name,))[:] = values
        cube = file.createVariable("refl", "i2", ("time", "wavelength", "y", "x"))
        cube[...] = CUBE.transpose(2, 0, 1)
    opened = scene(path)
    np.testing.assert_array_equal(opened.read(0, 7)[0], np.tile(CUBE[::-1], 2))
    assert "s.nc: its first row lies in the south, and is read last" in str(describe_scene(opened))


def test_missing_values_and_the_valid_range_of_what_gdal_reads(scene, tmp_path):
    limits = {"valid_range": np.array([0, 260], "i2")}
    for name, told in (
        ("marks", {"_FillValue": np.int16(7), "missing_value": np.int16(9)}),
        ("range", {"_FillValue": np.int16(-99), **limits}),
        ("greatest", {"valid_max": np.int16(260)}),
        ("zeros", limits),
    ):
        path = str(tmp_path / f"{name}.nc")
        with h5py.File(path, "w") as file:
            for axis, size in (("time", 2), *SIZES.items()):
                file.create_dataset(axis, data=np.arange(size)).make_scale(axis)
            cube = np.stack([CUBE, CUBE - 1]).transpose(0, 3, 1, 2)
            refl = file.create_dataset("refl", data=cube)
            for place, axis in enumerate(("time", "wavelength", "y", "x")):
                refl.dims[place].attach_scale(file[axis])
            refl.attrs.update(told)
        if name == "zeros":
            with pytest.raises(SceneError, match="valid range, 0 to 260, and no _FillValue"):
                scene(path)
            continue
        least = 0 if name == "range" else -1
        wrong = np.isin(cube, [7, 9]) if name == "marks" else (cube < least) | (cube > 260)
        valid = scene(path).read(0, 7)[1][::-1]
        np.testing.assert_array_equal(valid, ~wrong.any(axis=(0, 1)))


def test_a_raster_within_a_file_is_read_by_the_names_of_its_axes(write, monkeypatch):
    monkeypatch.setitem(PLACES, "y", PLACES["y"][::-1])
    path = f'NETCDF:"{write(["wavelength", "y", "x"])}":refl'
    opened = open_scene(SceneOptions(path=path), str)
    np.testing.assert_array_equal(opened.read(0, 7)[0], CUBE)


def test_most_bands_are_counted_along_the_axis_of_bands(scene, write):
    further = {"loss": (("y", "wavelength"), np.ones((7, 5), "i2"))}
    further["flags"] = (("y", "x"), np.ones((7, 8), "i2"))
    path = write(["y", "x", "wavelength"], further=further)
    assert chosen_variable(SceneOptions(path=path), str) == "refl"
    opened = scene(path)
    np.testing.assert_array_equal(opened.read(0, 7)[0], CUBE)
    assert "array refl of" in str(describe_scene(opened))
    assert "rows x columns x bands" in str(describe_scene(opened))


def test_axes_without_coordinates_say_nothing(scene, tmp_path):
    path = tmp_path / "cube.nc"
    with h5py.File(path, "w") as file:
        refl = file.create_dataset("refl", data=CUBE)
        for place, (axis, size) in enumerate(SIZES.items()):
            one = file.create_dataset(axis, data=np.zeros(size, ">f4"))
            one.make_scale(f"{UNNAMED}{size:9}")
            refl.dims[place].attach_scale(one)
    opened = scene(str(path))
    np.testing.assert_array_equal(opened.read(0, 7)[0], CUBE)
    assert opened.bands.wavelength is None
    assert opened.grid.transform is None
    assert not any("place of the pixels" in note for note in opened.notes)


@BOTH_ORDERS
def test_widths_and_good_bands_along_the_bands_are_known(scene, write, axes):
    lists = {
        "fwhm": (("wavelength",), np.full(5, 0.01, "f4")),
        "good_wavelengths": (("wavelength",), np.array([1, 1, 0, 1, 1], "i2")),
    }
    opened = scene(write(axes.split(), further=lists))
    np.testing.assert_allclose(opened.bands.fwhm, [10] * 5, rtol=1e-6)
    assert opened.bands.good == (True, True, False, True, True)
    np.testing.assert_array_equal(opened.read(0, 7)[0], CUBE[..., [0, 1, 3, 4]])


@pytest.mark.parametrize("axes", ["y x wavelength", "wavelength x y"])
def test_packed_numbers_are_values(scene, write, axes):
    packing = {"scale_factor": 0.5, "add_offset": -3.0, "_FillValue": CUBE[2, 3, 1]}
    path = write(axes.split(), refl=packing)
    expected = CUBE * 0.5 - 3
    if "classic" in path:
        with xarray.open_dataset(path, engine="scipy") as given:
            expected = given.refl.transpose("y", "x", "wavelength").values
    values, valid = scene(path).read(0, 7)
    assert not valid[2, 3]
    assert valid.sum() == 55
    np.testing.assert_allclose(values[valid], expected[valid])
    plain = scene(path, scale=1.0).read(0, 7)[0]
    np.testing.assert_array_equal(plain[valid], CUBE[valid])


def test_axes_are_known_by_their_attributes_and_by_the_others(scene, tmp_path):
    path = str(tmp_path / "s.nc")
    with netcdf_file(path, "w") as file:
        for name, size in (("u", 7), ("v", 8), ("w", 5)):
            file.createDimension(name, size)
        for name, letter, places in (("u", "Y", PLACES["y"]), ("v", "X", PLACES["x"])):
            one = file.createVariable(name, "f8", (name,))
            one[:], one.axis = places, letter
        file.createVariable("refl", "i2", ("v", "w", "u"))[...] = CUBE.transpose(1, 2, 0)
    opened = scene(path)
    assert opened.grid.transform == (20, 0, 390, 0, -30, 5015)
    np.testing.assert_array_equal(opened.read(0, 7)[0], CUBE)


def test_a_grid_mapping_of_parameters_places_a_turned_cube(scene, write):
    parameters = {
        "grid_mapping_name": "transverse_mercator", "semi_major_axis": 6378137.0,
        "inverse_flattening": 298.257223563, "longitude_of_central_meridian": 15.0,
        "latitude_of_projection_origin": 0.0, "scale_factor_at_central_meridian": 0.9996,
        "false_easting": 500000.0, "false_northing": 0.0,
    }  # fmt: skip
    crs = {"crs": ((), np.array(0, "i4"))}
    path = write(
        ["y", "x", "wavelength"], further=crs, refl={"grid_mapping": "crs"}, crs=parameters
    )
    opened = scene(path)
    assert 'PARAMETER["central_meridian",15]' in opened.grid.crs_wkt
    assert "coordinate system" not in str(describe_scene(opened))


@BOTH_ORDERS
def test_coordinates_in_kilometres_and_beyond_180_degrees(scene, write, monkeypatch, axes):
    crs = {"crs": ((), np.array(0, "i4"))}
    keys = {"refl": {"grid_mapping": "crs"}, "crs": {"crs_wkt": CRS.from_epsg(32633).to_wkt()}}
    monkeypatch.setitem(PLACES, "y", PLACES["y"] / 1000)
    monkeypatch.setitem(PLACES, "x", PLACES["x"] / 1000)
    km = {"y": {"units": "km"}, "x": {"units": "km"}}
    opened = scene(write(axes.split(), further=crs, **keys, **km))
    assert opened.grid.transform == pytest.approx((20, 0, 390, 0, -30, 5015))
    assert CRS.from_wkt(opened.grid.crs_wkt).linear_units_factor[1] == 1

    monkeypatch.setitem(PLACES, "y", 50 - 0.5 * np.arange(7))
    monkeypatch.setitem(PLACES, "x", 200 + 0.5 * np.arange(8))
    keys = {"refl": {"grid_mapping": "crs"}, "crs": {"crs_wkt": CRS.from_epsg(4326).to_wkt()}}
    east = {"y": {"units": "degrees_north"}, "x": {"units": "degrees_east"}}
    opened = scene(write(axes.split(), further=crs, **keys, **east))
    assert opened.grid.transform == pytest.approx((0.5, 0, -160.25, 0, -0.5, 50.25))


def test_a_damaged_file_is_refused(scene, write, tmp_path):
    content = Path(write(["y", "x", "wavelength"])).read_bytes()
    for share in (0.3, 0.6, 0.9):
        path = tmp_path / "cut.nc"
        path.write_bytes(content[: int(share * len(content))])
        with pytest.raises(SceneError):
            scene(str(path)).read(0, 7)


@BOTH_ORDERS
@pytest.mark.parametrize(
    ("attributes", "missing"),
    [
        ({"_FillValue": 7, "missing_value": 9}, lambda stored: np.isin(stored, [7, 9])),
        ({"missing_value": np.array([7, 9], "i2")}, lambda stored: np.isin(stored, [7, 9])),
        ({"valid_min": 20}, lambda stored: stored < 20),
        ({"valid_max": 260, "valid_min": 20}, lambda stored: (stored < 20) | (stored > 260)),
        ({"valid_range": np.array([3, 260], "i2")}, lambda stored: (stored < 3) | (stored > 260)),
        ({"valid_range": "3, 260"}, lambda stored: (stored < 3) | (stored > 260)),
        (
            {"valid_range": np.array([-2.9, 1.0]), "scale_factor": 0.1, "add_offset": -3.0},
            lambda stored: (stored < 1) | (stored > 40),
        ),
    ],
)
def test_missing_values_and_the_valid_range_are_applied(scene, write, axes, attributes, missing):
    small = {
        key: np.int16(value) if isinstance(value, int) else value
        for key, value in attributes.items()
    }
    opened = scene(write(axes.split(), refl=small))
    np.testing.assert_array_equal(opened.read(0, 7)[1], ~missing(CUBE).any(axis=-1))
    told = "are missing, by the valid range of the array" in str(describe_scene(opened))
    assert told == any(key.startswith("valid") for key in attributes)


@BOTH_ORDERS
def test_numbers_of_another_unit_are_no_wavelengths(scene, write, axes):
    opened = scene(write(axes.split(), wavelength={"units": "cm-1"}))
    assert opened.bands.wavelength is None
    told = "wavelengths are not known: their unit, 'cm-1', is not a length"
    assert told in str(describe_scene(opened))


@BOTH_ORDERS
@pytest.mark.parametrize("kind", ["i1", "i2"])
def test_unsigned_numbers_of_a_signed_type(scene, write, monkeypatch, axes, kind):
    unsigned = np.random.default_rng(1).integers(0, 2 ** (8 * int(kind[1])), CUBE.shape)
    unsigned[2, 3, 1] = 2 ** (8 * int(kind[1])) - 1
    unsigned[4, 4, 4] = 0
    stored = unsigned.astype(kind)
    monkeypatch.setitem(globals(), "CUBE", stored)
    packing = {
        "_Unsigned": "true", "scale_factor": 0.5, "_FillValue": np.array(-1, kind),
        "valid_range": np.array([1, -1], kind),
    }  # fmt: skip
    values, valid = scene(write(axes.split(), refl=packing)).read(0, 7)
    greatest = unsigned.max()
    expected = ((unsigned > 0) & (unsigned < greatest)).all(axis=-1)
    np.testing.assert_array_equal(valid, expected)
    np.testing.assert_allclose(values[valid], unsigned[valid] * 0.5)


def test_what_the_library_fills_arrays_with_is_missing(scene, tmp_path):
    cube = CUBE.astype("f4")
    cube[2, 3, 1] = 9.969209968386869e36
    for name, axes in (("a", "y x wavelength"), ("b", "wavelength y x")):
        with netcdf_file(tmp_path / f"{name}.nc", "w") as file:
            for axis, size in SIZES.items():
                file.createDimension(axis, size)
            order = [[*SIZES].index(axis) for axis in axes.split()]
            file.createVariable("refl", "f4", tuple(axes.split()))[...] = cube.transpose(order)
        assert np.argwhere(~scene(f"{name}.nc").read(0, 7)[1]).tolist() == [[2, 3]]


@pytest.mark.parametrize("axes", ["time wavelength y x", "y x time wavelength"])
def test_an_axis_of_one_entry_is_left_out(scene, write, monkeypatch, axes):
    monkeypatch.setitem(SIZES, "time", 1)
    monkeypatch.setitem(globals(), "CUBE", CUBE[..., np.newaxis])
    opened = scene(write(axes.split()))
    np.testing.assert_array_equal(opened.read(0, 7)[0], CUBE[..., 0])
    assert opened.grid.transform == (20, 0, 390, 0, -30, 5015)
    np.testing.assert_allclose(opened.bands.wavelength, [400, 500, 600, 700, 800])
    assert "time x bands" in str(describe_scene(opened))


def test_a_valid_range_that_is_none_is_refused(scene, write):
    with pytest.raises(SceneError, match=r"valid_range has 1 entries"):
        scene(write(["y", "x", "wavelength"], refl={"valid_range": np.int16(3)}))

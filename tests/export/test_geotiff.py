"""The raster that is read back is the array that was streamed, on the same grid."""

import errno
import itertools
import json
import os
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
import rasterio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rasterio.crs import CRS
from rasterio.errors import NotGeoreferencedWarning

from eigenscape.errors import InputError, OutputError
from eigenscape.export import geotiff
from eigenscape.export.geotiff import write_raster
from eigenscape.export.sidecar import sidecar_path, write_categories
from eigenscape.scenes.labels.legends import read_legend
from eigenscape.scenes.types import Grid, Legend, Ties

UTM = CRS.from_epsg(32618).to_wkt()
NORTH_UP = (5.0, 0.0, 427000.0, 0.0, -5.0, 4173000.0)
LAMBERT = (
    'PROJCS["Custom",GEOGCS["custom",DATUM["custom",'
    'SPHEROID["Bessel 1841",6377397.155,299.1528128],'
    "TOWGS84[577.326,90.129,463.919,5.137,1.474,5.297,2.4232]],"
    'PRIMEM["Greenwich",0],UNIT["degree",0.0174532925199433]],'
    'PROJECTION["Lambert_Conformal_Conic_2SP"],PARAMETER["latitude_of_origin",47.5],'
    'PARAMETER["central_meridian",13.3333],PARAMETER["standard_parallel_1",49],'
    'PARAMETER["standard_parallel_2",46],PARAMETER["false_easting",400000],'
    'PARAMETER["false_northing",400000],UNIT["metre",1]]'
)
SYSTEMS = {
    "utm": UTM,
    "lambert": LAMBERT,
    "esri": CRS.from_user_input("ESRI:102747").to_wkt(version="WKT1_ESRI"),
    # GeoTIFF keys lose these three: the sidecar must carry them.
    "esri-geographic": CRS.from_user_input("ESRI:104047").to_wkt(version="WKT1_ESRI"),
    "compound": CRS.from_user_input("EPSG:7405").to_wkt(version="WKT2_2019"),
    "rotated-pole": CRS.from_proj4(
        "+proj=ob_tran +o_proj=longlat +o_lon_p=0 +o_lat_p=39.25 +lon_0=18 +R=6371229"
    ).to_wkt(version="WKT2_2019"),
}


def _strips(array: np.ndarray, cuts: list[int]):
    edges = [0, *sorted(cuts), array.shape[-2]]
    return ((a, array[..., a:b, :]) for a, b in itertools.pairwise(edges))


@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.parametrize(
    "transform",
    [
        NORTH_UP,
        (5.0, 0.0, 427000.0, 0.0, 5.0, 4173000.0),
        (4.0, 1.1, 1e5 / 3, 1.3, -4.0, 4e6 / 7),
        (1e-5 / 3, 0.0, -75.1, 0.0, -1e-5 / 3, 38.2),
    ],
)
def test_write_raster__keeps_system_and_transform(tmp_path, system, transform):
    path = tmp_path / "a.tif"
    values = np.arange(30 * 20, dtype=np.uint16).reshape(30, 20)
    grid = Grid(30, 20, SYSTEMS[system], transform)
    write_raster(path, grid, [(0, values)], dtype=np.uint16, nodata=0)
    write_categories(path, Legend({1: "one"}))
    with rasterio.open(path) as source:
        assert source.crs == CRS.from_wkt(SYSTEMS[system])
        assert source.transform[:6] == transform
        assert source.nodata == 0
        np.testing.assert_array_equal(source.read(1), values)
        assert read_legend(source, str(path)).names == {1: "one"}


@pytest.mark.parametrize("transform", [None, (1.0, 0.0, 0.0, 0.0, 1.0, 0.0)])
def test_write_raster__no_georeference_no_warning(tmp_path, transform):
    path = tmp_path / "a.tif"
    rows = [(0, np.zeros((3, 4), np.float32))]
    write_raster(path, Grid(3, 4, None, transform), rows, dtype="float32", nodata=np.nan)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotGeoreferencedWarning)
        with rasterio.open(path) as source:
            assert source.crs is None
            assert source.transform.is_identity
            assert np.isnan(source.nodata)


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), layout=st.sampled_from(["tiles", "strips"]))
def test_write_raster__same_bytes_for_any_strips_and_threads(tmp_path, data, layout):
    height = data.draw(st.integers(1, 600))
    width = data.draw(st.integers(1, 40))
    count = data.draw(st.integers(1, 3))
    cuts = data.draw(st.lists(st.integers(0, height), max_size=6))
    values = np.random.default_rng(0).integers(0, 9, (count, height, width)).astype(np.int16)
    grid = Grid(height, width, UTM, NORTH_UP)
    files = []
    for name, parts, threads in (("a", [], 1), ("b", cuts, 3)):
        path = tmp_path / f"{name}.tif"
        write_raster(
            path, grid, _strips(values, parts), count=count, dtype="i2", nodata=-1, layout=layout,
            threads=threads,
        )  # fmt: skip
        files.append(path.read_bytes())
        with rasterio.open(path) as source:
            np.testing.assert_array_equal(source.read(), values)
    assert files[0] == files[1]


def test_write_raster__tiles_are_written_once(tmp_path):
    values = np.random.default_rng(0).integers(0, 2**16, (2, 700, 600)).astype(np.uint16)
    sizes = []
    for cuts in ([], list(range(0, 700, 7))):
        path = tmp_path / "a.tif"
        grid = Grid(700, 600, UTM, NORTH_UP)
        write_raster(path, grid, _strips(values, cuts), count=2, dtype="u2", nodata=None)
        sizes.append(path.stat().st_size)
    with rasterio.open(path) as source:
        assert source.block_shapes == [(256, 256)] * 2
        assert source.compression.value == "DEFLATE"
        assert source.nodata is None
    assert sizes[0] == sizes[1]


@pytest.mark.parametrize("kind", [np.uint8, np.uint16])
def test_write_raster__colors_names_tags(tmp_path, kind):
    path = tmp_path / "a.tif"
    values = np.array([[0, 1], [2, 2]], kind)
    write_raster(
        path,
        Grid(2, 2, UTM, NORTH_UP),
        [(0, values)],
        dtype=kind,
        nodata=0,
        band_names=("class",),
        tags={"RUN": "x-1"},
        band_tags=[{"unit": "none"}],
        legend=Legend({1: "é& <b>", 2: "b"}, {1: (10, 20, 30), 2: (255, 0, 7)}),
    )
    with rasterio.open(path) as source:
        colors = source.colormap(1)
        assert colors[1] == (10, 20, 30, 255)
        assert colors[2] == (255, 0, 7, 255)
        assert source.descriptions == ("class",)
        assert source.tags()["RUN"] == "x-1"
        assert source.tags(1)["unit"] == "none"
        assert source.colorinterp[0].name == "palette"


@pytest.mark.parametrize("shape", [(3000, 1), (1, 3000)])
def test_write_raster__a_line_has_no_overviews(tmp_path, shape):
    values = np.arange(3000, dtype=np.uint16).reshape(shape)
    path = tmp_path / "a.tif"
    write_raster(path, Grid(*shape, UTM, NORTH_UP), [(0, values)], dtype="u2", nodata=None)
    with rasterio.open(path) as source:
        assert source.overviews(1) == []
        np.testing.assert_array_equal(source.read(1), values)


def test_write_raster__overviews_never_invent_classes(tmp_path):
    values = np.where(np.arange(1100) % 4 < 3, 2, 9).astype(np.uint8) * np.ones((700, 1), np.uint8)
    path = tmp_path / "a.tif"
    grid = Grid(700, 1100, UTM, NORTH_UP)
    write_raster(path, grid, [(0, values)], dtype="u1", nodata=0, legend=Legend({}, {2: (1, 2, 3)}))
    with rasterio.open(path) as source:
        assert source.overviews(1) == [2, 4]
        np.testing.assert_array_equal(source.read(1), values)
    with rasterio.open(path, overview_level=1) as source:
        assert set(np.unique(source.read(1))) == {2}
        assert source.profile["tiled"]
    smooth = np.linspace(0, 1, 1100, dtype=np.float32) * np.ones((700, 1), np.float32)
    write_raster(path, grid, [(0, smooth)], dtype="f4", nodata=np.nan)
    with rasterio.open(path, overview_level=0) as source:
        pairs = smooth.reshape(350, 2, 550, 2).mean(axis=(1, 3))
        np.testing.assert_allclose(source.read(1), pairs, atol=1e-6)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], "end at row 0 of 4"),
        ([(0, np.zeros((3, 5), "u1"))], "end at row 3 of 4"),
        ([(1, np.zeros((3, 5), "u1"))], "row 0 is next"),
        ([(0, np.zeros((5, 5), "u1"))], "row 5 of 4"),
        ([(0, np.zeros((4, 6), "u1"))], "width 5"),
        ([(0, np.zeros((2, 4, 5), "u1"))], "1 bands"),
        ([(0, np.zeros(5, "u1"))], "shape"),
        ([(0, np.zeros((4, 5), "f4"))], "float32 for a file of uint8"),
    ],
)
def test_write_raster__wrong_strips(tmp_path, rows, message):
    with pytest.raises(ValueError, match=message):
        write_raster(tmp_path / "a.tif", Grid(4, 5, UTM, NORTH_UP), rows, dtype="u1", nodata=0)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "options",
    [
        {"band_names": ("a", "b")},
        {"legend": Legend({300: "x"})},
        {"legend": Legend({}, {1: (1, 2, 3)}), "dtype": "f4"},
    ],
)
def test_write_raster__options_that_cannot_be_kept(tmp_path, options):
    rows = [(0, np.zeros((4, 5), "u1"))]
    options = {"dtype": "u1", "nodata": 0} | options
    with pytest.raises(ValueError, match=r"band names|colour table"):
        write_raster(tmp_path / "a.tif", Grid(4, 5), rows, **options)


def test_write_raster__source_error_passes_and_leaves_the_old_file(tmp_path):
    path = tmp_path / "a.tif"
    path.write_bytes(b"old")

    def rows():
        yield 0, np.zeros((2, 5), "u1")
        raise FileNotFoundError("scene gone")

    with pytest.raises(FileNotFoundError, match="scene gone"):
        write_raster(path, Grid(4, 5, UTM, NORTH_UP), rows(), dtype="u1", nodata=0)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_write_raster__unwritable_and_bad_system(tmp_path):
    rows = [(0, np.zeros((4, 5), "u1"))]
    with pytest.raises(OutputError, match=r"there is no directory .*missing"):
        write_raster(tmp_path / "missing" / "a.tif", Grid(4, 5), rows, dtype="u1", nodata=0)
    with pytest.raises(InputError, match="gdal_edit"):
        write_raster(tmp_path / "a.tif", Grid(4, 5, "no wkt"), rows, dtype="u1", nodata=0)


def test_write_raster__stale_sidecar_goes(tmp_path):
    path = tmp_path / "a.tif"
    rows = [(0, np.zeros((4, 5), "u1"))]
    write_categories(path, Legend({1: "of the older file"}))
    write_raster(path, Grid(4, 5, UTM, NORTH_UP), rows, dtype="u1", nodata=0)
    assert not sidecar_path(path).exists()


def test_write_raster__full_disk(tmp_path, monkeypatch):
    def full(path: Path, more: int = 0) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(geotiff, "_check_room", full)
    rows = [(0, np.zeros((4, 5), "u1"))]
    with pytest.raises(OutputError, match=r"a\.tif.*No space left.*free some space"):
        write_raster(tmp_path / "a.tif", Grid(4, 5), rows, dtype="u1", nodata=0)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("layout", ["tiles", "strips"])
def test_check_written__finds_a_truncated_file(tmp_path, layout):
    path = tmp_path / "a.tif"
    values = np.random.default_rng(0).integers(0, 255, (900, 300)).astype(np.uint8)
    grid = Grid(900, 300, UTM, NORTH_UP)
    write_raster(path, grid, [(0, values)], dtype="u1", nodata=None, layout=layout)
    geotiff._check_written(path, values[np.newaxis, -10:])
    with pytest.raises(OSError, match="read back"):
        geotiff._check_written(path, values[np.newaxis, -10:] + 1)
    os.truncate(path, path.stat().st_size - 100)
    with pytest.raises(OSError, match="not in the file"):
        geotiff._check_written(path, values[np.newaxis, -10:])


@pytest.mark.mostly_slow(3)
@pytest.mark.parametrize("shape", [(10, 10), (513, 30), (300, 700), (1200, 1100), (1, 3000)])
@pytest.mark.parametrize(("kind", "count"), [("u1", 1), ("f4", 3)])
def test_write_raster__cloud_optimised(tmp_path, shape, kind, count):
    cogeo = pytest.importorskip("rio_cogeo.cogeo")
    path = tmp_path / "a.tif"
    values = np.random.default_rng(0).integers(1, 5, (count, *shape)).astype(kind)
    legend = Legend({1: "a", 4: "b"}, {1: (9, 9, 9)}) if kind == "u1" else None
    grid = Grid(*shape, UTM, NORTH_UP)
    write_raster(path, grid, [(0, values)], count=count, dtype=kind, nodata=0, legend=legend)
    valid, errors, notes = cogeo.cog_validate(path, strict=1 not in shape)
    assert (valid, errors) == (True, [])
    assert not notes or 1 in shape
    with rasterio.open(path) as source:
        np.testing.assert_array_equal(source.read(), values)
        assert source.interleaving.value == ("BAND" if count > 1 else source.interleaving.value)
    assert not list(tmp_path.glob(".*"))


def _tables_of_gdal(path):
    """Return names and colours of the attribute table as GDAL 3.12 or later reads them, by itself."""
    folder = Path(pytest.importorskip("pyogrio").__file__).parents[1] / "pyogrio.libs"
    library = next(iter(folder.glob("libgdal*")), None)
    if library is None:
        pytest.skip("pyogrio has no GDAL of its own here")
    code = f"""
import ctypes, json
gdal = ctypes.CDLL({str(library)!r})
for name in ("GDALOpen", "GDALGetRasterBand", "GDALGetDefaultRAT"):
    getattr(gdal, name).restype = ctypes.c_void_p
gdal.GDALRATGetValueAsString.restype = ctypes.c_char_p
gdal.GDALVersionInfo.restype = ctypes.c_char_p
pointer = ctypes.c_void_p
gdal.GDALAllRegister()
data = gdal.GDALOpen({str(path)!r}.encode(), 0)
table = gdal.GDALGetDefaultRAT(pointer(gdal.GDALGetRasterBand(pointer(data), 1)))
rows = gdal.GDALRATGetRowCount(pointer(table)) if table else 0
print(json.dumps([int(gdal.GDALVersionInfo(b"VERSION_NUM")), [
    [gdal.GDALRATGetValueAsString(pointer(table), row, column).decode() for column in range(5)]
    for row in range(rows)
]]))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    version, rows = json.loads(done.stdout)
    if version < 3120000:
        pytest.skip("GDAL before 3.12 reads attribute tables of sidecars alone")
    return rows


@pytest.mark.parametrize("big", ["IF_SAFER", "YES"])
def test_write_raster__names_are_inside(tmp_path, monkeypatch, big):
    profile = geotiff._profile
    monkeypatch.setattr(geotiff, "_profile", lambda *given: {**profile(*given), "BIGTIFF": big})
    path = tmp_path / "a.tif"
    legend = Legend({1: 'é & <b> "x"', 300: "b"}, {1: (10, 20, 30), 300: (255, 0, 7)})
    values = np.full((700, 600), 300, np.uint16)
    grid = Grid(700, 600, UTM, NORTH_UP)
    write_raster(path, grid, [(0, values)], dtype="u2", nodata=0, legend=legend, tags={"RUN": "x"})
    assert [item.name for item in tmp_path.iterdir()] == ["a.tif"]
    with rasterio.open(path) as source:
        assert source.tags(1)["class_1"] == legend.names[1]
        assert read_legend(source, str(path)) == legend
        assert source.tags()["RUN"] == "x"
        assert source.colormap(1)[300] == (255, 0, 7, 255)
    assert _tables_of_gdal(path) == [
        ["0", "unclassified", "0", "0", "0"],
        ["1", legend.names[1], "10", "20", "30"],
        ["300", "b", "255", "0", "7"],
    ]


_RPC = {
    **dict.fromkeys(["HEIGHT_OFF", "LINE_OFF", "SAMP_OFF"], "30"), "LAT_OFF": "45", "LONG_OFF": "15",
    **dict.fromkeys(["HEIGHT_SCALE", "LINE_SCALE", "SAMP_SCALE", "LAT_SCALE", "LONG_SCALE"], "10"),
    "LINE_NUM_COEFF": "0 0 -1" + " 0" * 17, "SAMP_NUM_COEFF": "0 1" + " 0" * 18,
    "LINE_DEN_COEFF": "1" + " 0" * 19, "SAMP_DEN_COEFF": "1" + " 0" * 19,
}  # fmt: skip


@pytest.mark.parametrize("size", [60, 600])
@pytest.mark.parametrize("layout", ["tiles", "strips"])
def test_write_raster__keeps_control_points_and_coefficients(tmp_path, size, layout):
    points = tuple(
        (row, column, 400000 + 30 * column + 5 * row, 5000000 - 30 * row, 10.0)
        for row in (0, size / 2, size) for column in (0, size)
    )  # fmt: skip
    array, path = np.ones((size, size), np.uint8), tmp_path / "m.tif"
    for ties in (Ties(points, UTM), Ties(rpc=tuple(_RPC.items()))):
        grid = Grid(size, size, ties=ties)
        write_raster(path, grid, [(0, array)], dtype="uint8", nodata=0, layout=layout)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NotGeoreferencedWarning)
            with rasterio.open(path) as source:
                found, crs = source.gcps
                assert tuple((p.row, p.col, p.x, p.y, p.z) for p in found) == ties.points
                assert (crs == CRS.from_wkt(UTM)) is bool(ties.points)
                kept = source.tags(ns="RPC")
        wanted = {key: list(map(float, text.split())) for key, text in ties.rpc}
        assert {key: list(map(float, kept[key].split())) for key in wanted} == wanted

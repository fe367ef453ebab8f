"""Every output format is accepted by who reads it, and holds the same map on the same ground."""

import csv
import json
import re
import sqlite3
import warnings
import xml.etree.ElementTree as ET

import numpy as np
import pytest
import rasterio
from rasterio.errors import NotGeoreferencedWarning
from rasterio.features import rasterize

from eigenscape.base.process.progress import Silent
from eigenscape.export import canvas
from eigenscape.export.formats import gpkg
from eigenscape.export.vectors import polygons
from eigenscape.scenes.labels.legends import read_legend
from eigenscape.scenes.types import Grid
from eigenscape.store.manifest import read_manifest
from eigenscape.store.verification import find_wrong


@pytest.fixture(autouse=True)
def _no_place():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotGeoreferencedWarning)
        yield


@pytest.fixture
def noted(monkeypatch):
    """Return the notes of runs."""
    notes = []
    monkeypatch.setattr(Silent, "note", lambda _, text: notes.append(text))
    return notes


def same_place(source, grid):
    """Whether GDAL puts the corners of a raster where the grid has them, to a hundredth of a pixel."""
    if grid.transform is None:
        return source.crs is None
    corners = np.array([(0, 0, 1), (grid.width, 0, 1), (0, grid.height, 1)]).T
    found, own = (
        np.reshape(each[:6], (2, 3)) @ corners for each in (source.transform, grid.transform)
    )
    assert source.crs == rasterio.crs.CRS.from_wkt(grid.crs_wkt)
    return np.abs(found - own).max() < 0.01 * np.hypot(grid.transform[0], grid.transform[3])


def test_envi__gdal_reads_map_names_colours_and_place(any_world):
    outputs = any_world.export("envi")
    with rasterio.open(outputs["class_map_envi"]) as source:
        assert source.driver == "ENVI"
        np.testing.assert_array_equal(source.read(1), any_world.classes)
        assert source.nodata == 0
        legend = read_legend(source, str(outputs["class_map_envi"]))
        # Commas and braces end what is listed.
        assert legend.names == {1: "water", 2: "forest old & <wet>", 3: 'Straße "A"'}
        assert legend.colors[1] == (0, 0, 255)
        header = outputs["class_map_envi_header"].read_text(encoding="utf-8")
        if "sheared" in str(any_world.run.path):
            assert "map info" not in header
        else:
            assert same_place(source, any_world.grid)
    keys = dict(re.findall(r"^([a-z ]+) = (\{.*?\}|[^\n]*)$", header, re.MULTILINE | re.DOTALL))
    assert header.startswith("ENVI\n")
    assert keys["file type"] == "ENVI Classification"
    count = int(keys["classes"])
    assert count == 4
    assert len(keys["class lookup"].split(",")) == 3 * count
    assert len(keys["class names"].split(",")) == count
    size = int(keys["samples"]) * int(keys["lines"]) * {"1": 1, "12": 2}[keys["data type"]]
    assert outputs["class_map_envi"].stat().st_size == size


def test_envi__numbers_above_255(make_world):
    made = make_world(Grid(40, 30), largest=700)
    with rasterio.open(made.export("envi")["class_map_envi"]) as source:
        assert source.dtypes == ("uint16",)
        np.testing.assert_array_equal(source.read(1), made.classes)


# Feet of US surveys, international ones, and those of Clarke; a header of ENVI has one word for all.
@pytest.mark.parametrize("epsg", [2263, 2222, 2314])
@pytest.mark.parametrize("transform", [None, (10.0, 0.0, 981000.0, 0.0, -10.0, 199000.0)])
def test_envi__feet_are_those_of_the_system(make_world, epsg, transform):
    system = rasterio.crs.CRS.from_epsg(epsg)
    made = make_world(Grid(40, 30, system.to_wkt(), transform))
    with rasterio.open(made.export("envi")["class_map_envi"]) as source:
        unit = system.linear_units_factor[1]
        assert source.crs.linear_units_factor[1] == pytest.approx(unit, rel=1e-12)
        assert transform is None or source.transform[:6] == pytest.approx(transform)


@pytest.mark.parametrize(
    ("axes", "why"),
    [
        ((-30, 0, 0, -30), "the grid is mirrored"),
        ((18, -9, 9, 18), "the grid is mirrored"),
        ((-30, 0, 0, 30), "the grid is turned by half a turn"),
        ((16, 6, 12, -8), "its pixels are not square"),
        ((10, 3, 0, -10), "the axes of the grid are not at a right angle"),
    ],
)
def test_envi__says_why_a_grid_has_no_place_in_its_header(make_world, noted, axes, why):
    a, b, d, e = axes
    system = rasterio.crs.CRS.from_epsg(32633).to_wkt()
    made = make_world(Grid(30, 40, system, (a, b, 5e5, d, e, 5e6)))
    header = made.export("envi")["class_map_envi_header"].read_text(encoding="utf-8")
    assert "map info" not in header
    (note,) = noted
    assert why in note
    assert "GDAL cannot write into a header of ENVI" in note


def test_gpkg__polygons_are_the_map(any_world, monkeypatch):
    # Several strips, and several batches of polygons.
    monkeypatch.setattr(gpkg, "_STRIP_PIXELS", 7 * any_world.grid.width)
    monkeypatch.setattr(gpkg, "_BATCH", 50)
    geopandas = pytest.importorskip("geopandas")
    outputs = any_world.export("gpkg")
    found = geopandas.read_file(outputs["class_polygons"], layer="classes")
    grid = any_world.grid
    own = rasterio.Affine(*(grid.transform or (1, 0, 0, 0, -1, 0)))
    burnt = rasterize(
        zip(found.geometry, found["class"], strict=True), (grid.height, grid.width), transform=own
    )
    np.testing.assert_array_equal(burnt, any_world.classes)
    assert found.geometry.is_valid.all()
    assert found["pixels"].sum() == (any_world.classes > 0).sum()
    for _, one in found.sample(20, random_state=0).iterrows():
        inside = rasterize([one.geometry], burnt.shape, transform=own) > 0
        assert one["pixels"] == inside.sum()
        assert one["confidence"] == pytest.approx(any_world.confidence[inside].mean(), abs=1e-6)
        assert set(any_world.classes[inside]) == {one["class"]}
        assert one["name"] == any_world.names[one["class"]]
    with outputs["class_areas"].open(encoding="utf-8") as stream:
        rows = {int(row["value"]): row for row in csv.DictReader(stream)}
    assert {number: int(row["pixels"]) for number, row in rows.items()} == {
        number: (any_world.classes == number).sum() for number in (1, 2, 3)
    }
    if grid.transform is None:
        assert "area_m2" not in found
        return
    assert found.crs == rasterio.crs.CRS.from_wkt(grid.crs_wkt)
    flat = (
        found.to_crs("EPSG:32633").area if "geographic" in str(any_world.run.path) else found.area
    )
    # The scale of UTM is within 4 parts in 10,000, so lengths of its areas within 8.
    np.testing.assert_allclose(found["area_m2"], flat, rtol=1e-3)


def test_gpkg__qgis_finds_the_style_and_large_areas_are_cut(world, monkeypatch):
    whole = world.export("gpkg")["class_polygons"]
    with sqlite3.connect(whole) as database:
        row = database.execute("select f_table_name, styleQML from layer_styles").fetchone()
        pieces = database.execute("select count(*) from classes").fetchone()[0]
        assert database.execute("pragma integrity_check").fetchone() == ("ok",)
    database.close()
    assert row[0] == "classes"
    labels = [item.get("label") for item in ET.fromstring(row[1]).iter("category")]
    assert labels == list(world.names.values())
    monkeypatch.setattr(polygons, "MOST_CORNERS", 10)
    monkeypatch.setattr(gpkg, "_STRIP_PIXELS", 7 * world.grid.width)
    with sqlite3.connect(world.export("gpkg")["class_polygons"]) as database:
        # GDAL 3.6 warns of 1.4.
        assert database.execute("pragma user_version").fetchone() == (10200,)
        sums = database.execute("select count(*), sum(pixels) from classes").fetchone()
    database.close()
    assert sums[0] > pieces
    assert sums[1] == (world.classes > 0).sum()


def test_zarr__xarray_rioxarray_and_gdal_open_it(any_world):
    xarray = pytest.importorskip("xarray")
    pytest.importorskip("rioxarray")
    path, grid = any_world.export("zarr")["class_map_zarr"], any_world.grid
    with xarray.open_zarr(path, decode_coords="all") as data:
        np.testing.assert_array_equal(data["class"], any_world.classes)
        np.testing.assert_array_equal(data["confidence"], any_world.confidence)
        assert data["class"].dtype == np.uint8
        assert data["class"].attrs["flag_values"] == [0, 1, 2, 3]
        words = data["class"].attrs["flag_meanings"].split()
        assert words == ["unclassified", "water", "forest_old_wet", "Straße_A"]
        if grid.transform is not None:
            assert data["class"].rio.crs == rasterio.crs.CRS.from_wkt(grid.crs_wkt)
            with warnings.catch_warnings():
                # Between rioxarray and affine.
                warnings.simplefilter("ignore", PendingDeprecationWarning)
                found = data["class"].rio.transform()
            np.testing.assert_allclose(found[:6], grid.transform)
            assert "spatial_ref" in data.coords
    with rasterio.open(f'ZARR:"{path}":/class') as source:
        np.testing.assert_array_equal(source.read(1), any_world.classes)
        if grid.transform is not None:
            assert source.crs == rasterio.crs.CRS.from_wkt(grid.crs_wkt)
            if grid.transform[1] == 0:
                assert same_place(source, grid)
    about = json.loads((path / "class" / ".zattrs").read_text())
    assert about.get("spatial:transform") == (list(grid.transform) if grid.transform else None)


@pytest.mark.mostly_slow(2)
def test_stac__is_valid_without_a_network(any_world, monkeypatch):
    pystac = pytest.importorskip("pystac")
    pytest.importorskip("jsonschema")
    from pystac.extensions.classification import ClassificationExtension
    from pystac.extensions.projection import ProjectionExtension

    outputs = any_world.export("stac", "geotiff", "qml", "gpkg", "zarr", "envi")
    table = json.loads(outputs["stac_item"].read_text(encoding="utf-8"))
    item = pystac.Item.from_dict(table)
    # The schemas of STAC itself come with pystac; those of extensions do not.
    core = pystac.Item.from_dict({**table, "stac_extensions": []})
    monkeypatch.setattr("socket.socket.connect", None)
    assert core.validate()
    assert {key: asset.href for key, asset in item.assets.items()} == {
        key: f"./{path.name}" for key, path in outputs.items() if key != "stac_item"
    }
    assert table["properties"]["datetime"] == "2026-01-02T01:04:05Z"
    assert "secret" not in outputs["stac_item"].read_text(encoding="utf-8")
    schemas = {ClassificationExtension.get_schema_uri(), ProjectionExtension.get_schema_uri()}
    assert schemas < {*table["stac_extensions"]}
    assert json.loads((outputs["class_map_zarr"] / ".zgroup").read_text()) == {"zarr_format": 2}
    assert item.assets["class_map_zarr"].media_type == f"{pystac.MediaType.ZARR}; version=2"
    classes = ClassificationExtension.ext(item.assets["class_map"]).classes
    assert [each.value for each in classes] == [0, 1, 2, 3]
    assert all(re.fullmatch("[0-9A-Za-z_-]+", each.name) for each in classes)
    assert classes[1].color_hint == "0000FF"
    projected, grid = ProjectionExtension.ext(item), any_world.grid
    assert projected.shape == [grid.height, grid.width]
    if grid.transform is None:
        assert item.geometry is item.bbox is None
        return
    assert projected.transform == list(grid.transform)
    assert rasterio.crs.CRS.from_string(projected.code) == rasterio.crs.CRS.from_wkt(grid.crs_wkt)
    from shapely.geometry import shape

    outline = shape(item.geometry)
    assert outline.exterior.is_ccw
    middle = np.reshape(grid.transform, (2, 3)) @ [grid.width / 2, grid.height / 2, 1]
    x, y = rasterio.warp.transform(grid.crs_wkt, "OGC:CRS84", *[[part] for part in middle])
    assert np.hypot(outline.centroid.x - x[0], outline.centroid.y - y[0]) < 1e-5


DEGREES = rasterio.crs.CRS.from_epsg(4326).to_wkt()


def around(code, longitude, latitude, pixel):
    """Return a grid whose middle is there."""
    crs = rasterio.crs.CRS.from_epsg(code)
    (x,), (y,) = rasterio.warp.transform(DEGREES, crs, [longitude], [latitude])
    return Grid(30, 40, crs.to_wkt(), (pixel, 0, x - 20 * pixel, 0, -pixel, y + 15 * pixel))


@pytest.mark.parametrize(
    ("grid", "west", "east"),
    [
        (around(32660, 180, 60, 30), 179.989, -179.989),
        (around(32601, 180, 60, 30), 179.989, -179.989),
        (around(3832, 180, -17, 30), 179.995, -179.995),
        # What GDAL does not cut.
        (around(3857, 180, -17, 30), 179.995, -179.995),
        (around(3413, 180, 80, 30), 179.961, -179.961),
        (Grid(30, 40, DEGREES, (0.1, 0, 178, 0, -0.1, 5)), 178, -178),
    ],
)  # fmt: skip
def test_stac__west_is_greater_than_east_across_the_antimeridian(make_world, grid, west, east):
    import shapely

    pystac = pytest.importorskip("pystac")
    table = json.loads(make_world(grid).export("stac")["stac_item"].read_text(encoding="utf-8"))
    assert table["bbox"][::2] == pytest.approx([west, east], abs=1e-3)
    outline = shapely.geometry.shape(table["geometry"])
    assert outline.is_valid
    assert outline.bounds == (-180, table["bbox"][1], 180, table["bbox"][3])
    before, behind = sorted(outline.geoms, key=lambda part: -part.bounds[0])
    assert before.exterior.is_ccw
    assert behind.exterior.is_ccw
    assert (before.bounds[0], behind.bounds[2]) == (table["bbox"][0], table["bbox"][2])
    assert pystac.Item.from_dict({**table, "stac_extensions": []}).validate()


@pytest.mark.parametrize(
    ("grid", "west", "east"),
    [
        (around(3413, 0, 90, 30), -180, 180),
        (around(3031, 0, -90, 30), -180, 180),
        (Grid(18, 36, DEGREES, (10, 0, -180, 0, -10, 90)), -180, 180),
        (Grid(18, 36, DEGREES, (10, 0, 0, 0, -10, 90)), -180, 180),
        (Grid(30, 40, DEGREES, (0.1, 0, 176, 0, -0.1, 5)), 176, 180),
        (Grid(30, 40, DEGREES, (0.1, 0, 185, 0, -0.1, 5)), -175, -171),
    ],
)
def test_stac__box_of_a_pole_of_the_world_and_beside_the_antimeridian(make_world, grid, west, east):
    table = json.loads(make_world(grid).export("stac")["stac_item"].read_text(encoding="utf-8"))
    assert table["geometry"]["type"] == "Polygon"
    assert table["bbox"][::2] == [west, east]


def outlined(made):
    """Return item and outline of a class map."""
    import shapely

    item = made.export("geotiff", "gpkg", "stac")["stac_item"]
    table = json.loads(item.read_text(encoding="utf-8"))
    return table, table["geometry"] and shapely.geometry.shape(table["geometry"])


MARS = (
    'GEOGCS["Mars",DATUM["Mars",SPHEROID["Mars",3396190,169.89]],PRIMEM["Airy-0",0],'
    'UNIT["degree",0.0174532925199433]]'
)


@pytest.mark.parametrize(
    ("system", "transform"),
    [
        ("+proj=eqc +R=1737400 +units=m", (100, 0, 1000, 0, -100, 1000)),
        (MARS, (0.01, 0, 10, 0, -0.01, 20)),
        ('LOCAL_CS["site",UNIT["metre",1]]', (1, 0, 0, 0, -1, 0)),
        # Far outside the zone, beside the disc, and a map of the world that is torn in its corners.
        ("EPSG:32633", (30, 0, 1e9, 0, -30, 1e7)),
        ("+proj=geos +h=35785831 +datum=WGS84", (100, 0, 6e6, 0, -100, 6e6)),
        ("+proj=sinu +R=6371007.181", (1e6, 0, -2e7, 0, -6.6e5, 1e7)),
    ],
)
def test_stac__without_a_place_in_degrees(make_world, noted, system, transform):
    pystac = pytest.importorskip("pystac")
    system = rasterio.crs.CRS.from_user_input(system).to_wkt()
    table, outline = outlined(make_world(Grid(30, 40, system, transform)))
    assert outline is None
    assert "bbox" not in table
    assert noted == ["stac: the outline has no place in longitude and latitude"]
    assert table["properties"]["proj:shape"] == [30, 40]
    assert pystac.Item.from_dict({**table, "stac_extensions": []}).validate()


@pytest.mark.parametrize(
    ("given", "pixel", "outside"),
    [
        # Around both poles, which GDAL turns inside out.
        ("EPSG:6931", (25e3, 25e3), 0),
        ("EPSG:6931", (4.5e5, 6e5), 0),
        ("EPSG:6932", (25e3, 25e3), 0),
        ("EPSG:3413", (25e3, 25e3), 0),
        # A full disc, also across the antimeridian and around a pole, and maps of the world with corners.
        ("+proj=geos +h=35785831 +datum=WGS84", (2.75e5, 3.7e5), 0.01),
        ("+proj=geos +h=35785831 +lon_0=140.7 +datum=WGS84", (2.75e5, 3.7e5), 0.01),
        ("+proj=ortho +lat_0=40 +lon_0=10 +datum=WGS84", (3.2e5, 4.3e5), 0.01),
        ("+proj=moll +datum=WGS84", (9.1e5, 6.1e5), 0.01),
    ],
)  # fmt: skip
def test_stac__outline_has_the_pixels_inside(make_world, noted, rng, given, pixel, outside):
    import shapely
    from pyproj import Transformer

    system, (wide, high) = rasterio.crs.CRS.from_user_input(given).to_wkt(), pixel
    grid = Grid(30, 40, system, (wide, 0, -20 * wide, 0, -high, 15 * high))
    table, outline = outlined(make_world(grid))
    assert noted == []
    assert outline.is_valid
    x, y = rng.uniform(-20 * wide, 20 * wide, 2000), rng.uniform(-15 * high, 15 * high, 2000)
    to_degrees = Transformer.from_crs(system, "OGC:CRS84", always_xy=True).transform
    at = np.stack(to_degrees(x, y))
    at = at[:, np.isfinite(at).all(axis=0)]
    assert shapely.contains_xy(outline, *at).mean() >= 1 - outside
    west, south, east, north = table["bbox"]
    assert south <= at[1].min() + 2
    assert north >= at[1].max() - 2
    if "geos" in given:
        assert (east - west) % 360 == pytest.approx(162.5, abs=0.5)


def test_stac__counts_the_pixels_of_the_map(make_world, rng):
    layers = rng.integers(-1, 300, (2, 50, 60)).astype(np.int32)
    outputs = make_world(Grid(40, 30), layers=layers).export("stac", "geotiff")
    with rasterio.open(outputs["class_map"]) as source:
        pixels = np.bincount(source.read(1).ravel())
    assets = json.loads(outputs["stac_item"].read_text(encoding="utf-8"))["assets"]
    classes = assets["class_map"]["classification:classes"][1:]
    assert [each["count"] for each in classes] == pixels[1:].tolist()
    shares = 100 * pixels[1:] / pixels[1:].sum()
    assert [each["percentage"] for each in classes] == pytest.approx(shares.tolist(), abs=1e-4)


def test_stac__names_eigenvectors_only_where_the_classes_follow_from_them(world):
    def properties(method):
        item = world.export("stac", method=method)["stac_item"]
        return json.loads(item.read_text(encoding="utf-8"))["properties"]

    of_vectors, of_spectra = properties("centroid-angle"), properties("svm")
    assert of_vectors["description"].startswith(
        "Classes of a scene by eigenmaps (method centroid-angle)."
    )
    assert of_vectors["processing:lineage"] == "scene.tif (method centroid-angle, 3 eigenvectors)"
    assert of_spectra["description"].startswith("Classes of a scene (method svm).")
    assert of_spectra["processing:lineage"] == "scene.tif (method svm)"


def test_qml__has_names_and_colours(world):
    root = ET.parse(world.export("qml")["qgis_style"]).getroot()
    entries = [(item.get("value"), item.get("label")) for item in root.iter("paletteEntry")]
    assert entries == [(str(number), name) for number, name in world.names.items()]
    assert next(root.iter("paletteEntry")).get("color") == "#0000ff"
    assert root.find("pipe/rasterrenderer").get("type") == "paletted"


def test_formats__same_bytes_twice(world):
    def written():
        world.export("geotiff", "qml", "envi", "gpkg", "stac", "zarr")
        files = (world.run.path / "outputs").rglob("*")
        return {path: path.read_bytes() for path in files if path.is_file()}

    first, second = written(), written()
    assert first.keys() == second.keys()
    assert [path.name for path in first if first[path] != second[path]] == []


@pytest.mark.parametrize("name", ["geotiff", "envi", "gpkg", "zarr"])
def test_formats__half_a_map_does_not_look_finished(world, monkeypatch, name):
    monkeypatch.setattr(canvas, "STRIP_BYTES", 7 * 4 * world.grid.width)
    strips = canvas.Canvas.strips

    def broken(self, *given, **named):
        for count, strip in enumerate(strips(self, *given, **named)):
            if count == 1:
                raise KeyboardInterrupt
            yield strip

    with monkeypatch.context() as patch:
        patch.setattr(canvas.Canvas, "strips", broken)
        with pytest.raises(KeyboardInterrupt):
            world.export(name)
    assert not any((world.run.path / "outputs").glob("*"))
    left = next((world.run.path / "work").glob("export-*")) / "files"
    assert {path.name for path in left.glob("[!.]*")} <= {"legend.csv"}
    assert "export" not in read_manifest(world.run.path)["stages"]
    assert all(path.exists() for path in world.export(name).values())
    assert not list((world.run.path / "outputs").glob(".*"))


def test_verify__covers_files_in_directories(world):
    path = world.export("zarr", "gpkg")["class_map_zarr"]
    assert find_wrong(world.run.path) == []
    chunk = next(file for file in sorted(path.glob("class/[0-9]*")) if file.is_file())
    content = bytearray(chunk.read_bytes())
    content[-1] ^= 1
    chunk.write_bytes(content)
    assert find_wrong(world.run.path) == [f"{chunk.relative_to(world.run.path)} is damaged"]
    hidden = path / "class" / ".zarray"
    hidden.write_text(hidden.read_text().replace("2048", "2049") + " ")
    assert len(find_wrong(world.run.path)) == 2
    hidden.unlink()
    assert f"{hidden.relative_to(world.run.path)} is missing" in find_wrong(world.run.path)
    chunk.unlink()
    assert f"{chunk.relative_to(world.run.path)} is missing" in find_wrong(world.run.path)
    # Another format: what was written before goes.
    world.export("geotiff")
    assert not path.exists()


@pytest.mark.parametrize(
    ("epsg", "unit"), [(32633, "m"), (2263, "0.304800609601219 m"), (None, None)]
)
def test_zarr__coordinates_have_the_unit_of_their_system(make_world, epsg, unit):
    system = None if epsg is None else rasterio.crs.CRS.from_epsg(epsg).to_wkt()
    grid = Grid(40, 30, system, (10.0, 0.0, 364095.0, 0.0, -10.0, 5809965.0))
    path = make_world(grid).export("zarr")["class_map_zarr"]
    for name in ("x", "y"):
        about = json.loads((path / name / ".zattrs").read_text(encoding="utf-8"))
        assert about.get("units") == unit
        assert about["axis"] == name.upper()

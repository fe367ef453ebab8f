import geopandas
import numpy as np
import pytest
import rasterio

pytestmark = pytest.mark.shared_data


def test_enmap(shared_data, scene, labels):
    folder = shared_data / "enmap-potsdam"
    path = str(folder / "enmap_potsdam_mosaic.tif")
    assert scene(path).bands.count == 215  # without water vapour
    opened = scene(path, drop_wavelengths="none")
    assert opened.bands.count == 218
    assert opened.bands.wavelength[0] == pytest.approx(418.24)
    assert opened.bands.fwhm[0] == pytest.approx(6.99561)
    assert opened.row_step == 25
    values, valid = opened.read(0, 192)
    with rasterio.open(path) as dataset:
        stored = dataset.read()
    good = opened.bands.good_index
    np.testing.assert_array_equal(values[valid], stored[good].transpose(1, 2, 0)[valid])
    np.testing.assert_array_equal(valid, (stored[good] != -32768).all(axis=0))
    assert 0 < valid.sum() <= 18432

    given = labels(path, labels=str(folder / "enmap_potsdam_mosaic_labels.tif")).read(0, 192)
    assert np.bincount(given.ravel())[1:].tolist() == [505, 953, 1694, 2070, 91, 359]


@pytest.mark.parametrize(("field", "classes"), [("level_1", 4), ("level_2", 5)])
def test_enmap_points(shared_data, labels, field, classes):
    folder = shared_data / "enmap-potsdam"
    given = labels(
        str(folder / "enmap_potsdam_mosaic.tif"),
        labels=str(folder / "landcover_potsdam_point.gpkg"),
        labels_field=field,
    )
    assert len(given.legend.names) == classes
    assert 60 < (given.read(0, 192) > 0).sum() <= 120


def test_landsat(shared_data, scene, labels):
    folder = shared_data / "landsat-nc"
    paths = tuple(str(folder / f"lsat7_2000_{band}0.tif") for band in (1, 2, 3, 4, 5, 7))
    opened = scene(paths)
    assert (opened.grid.height, opened.grid.width, opened.bands.count) == (443, 489, 6)
    raster = labels(paths, labels=str(folder / "landsat96_labelled_pixels.tif"))
    found = raster.read(0, 443)
    counts = np.bincount(found.ravel())[1:]
    np.testing.assert_allclose(counts, [427, 65, 609, 290, 939, 433, 109], atol=0)
    parts = [raster.read(start, min(443, start + 100)) for start in range(0, 443, 100)]
    np.testing.assert_array_equal(np.concatenate(parts), found)

    names = {1: "developed", 2: "agriculture", 3: "herbaceous", 4: "shrubland", 5: "forest",
             6: "water", 7: "sediment"}  # fmt: skip
    polygons = labels(paths, labels=str(folder / "landsat96_polygons.shp"))
    assert polygons.legend.names == names
    # The raster of labelled pixels has every pixel that these polygons touch.
    drawn = polygons.read(0, 443)
    assert 2000 < (drawn > 0).sum() < (found > 0).sum()
    np.testing.assert_array_equal(drawn[drawn > 0], found[drawn > 0])
    points = labels(paths, labels=str(folder / "landsat96_points.shp"))
    assert points.legend.names == names
    frame = geopandas.read_file(folder / "landsat96_points.shp").to_crs(opened.grid.crs_wkt)
    a, _, c, _, e, f = opened.grid.transform
    row, column = (frame.geometry.y - f) // e, (frame.geometry.x - c) // a
    inside = (row >= 0) & (row < 443) & (column >= 0) & (column < 489)
    assert inside.sum() > 800
    row, column = row[inside].astype(int), column[inside].astype(int)
    drawn = points.read(0, 443)
    assert (drawn > 0).sum() == len(set(zip(row, column, strict=True)))
    assert (drawn[row, column] == frame.id[inside]).mean() > 0.99  # two may share a pixel


def test_matlab_files(shared_data, scene, labels):
    cube = str(shared_data / "urban-crop" / "hydice_urban_162.mat")
    assert scene(cube).read(10, 12)[0].shape == (2, 100, 162)
    assert (labels(cube, labels_variable="map").read(0, 80) > 0).sum() == 19
    given = labels("indian-pines", labels=str(shared_data / "indian-pines" / "Indian_pines_gt.mat"))
    assert (given.read(0, 145) > 0).sum() == 10249

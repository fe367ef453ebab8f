"""Whole jobs on real scenes: those that packages ship, and those in ../shared/data."""

from pathlib import Path

import numpy as np
import pytest
import rasterio
from rasterio.errors import NotGeoreferencedWarning

import eigenscape

JOBS = Path(__file__).resolve().parents[2] / "jobs"


def run(tmp_path, job, *overrides):
    loaded = eigenscape.load_job(JOBS / job, overrides)
    return eigenscape.run(loaded, run_dir=tmp_path / "runs" / loaded.name)


@pytest.mark.slow
def test_indian_pines__every_pixel_has_a_class(tmp_path):
    pytest.importorskip("tensorly.datasets", reason="the scene comes in the extra `examples`")
    result = run(tmp_path, "indian-pines.toml")
    # The data set has no georeference, so the map has none.
    with (
        pytest.warns(NotGeoreferencedWarning),
        rasterio.open(result.outputs["class_map"]) as source,
    ):
        classes = source.read(1)
    assert classes.shape == (145, 145)
    assert set(np.unique(classes)) == set(range(1, 17))
    assert result.converged
    assert result.neighbors["recall"] > 0.98
    held_out = result.scores["held_out"]
    assert held_out["random"]["overall_accuracy"] > 0.95
    assert held_out["blocked"]["overall_accuracy"] > 0.65
    calibration = result.scores["calibration"]
    assert calibration["after"]["random"]["expected_calibration_error"] < 0.05
    assert calibration["after"]["blocked"]["expected_calibration_error"] < 0.08
    confidence = eigenscape.open_run(result.path)["confidence"].to_numpy()
    assert np.nanmin(confidence) >= 1 / 16


@pytest.mark.shared_data
def test_enmap_potsdam__keeps_the_grid_and_reaches_the_thesis_protocol(tmp_path, shared_data):
    scene = shared_data / "enmap-potsdam" / "enmap_potsdam_mosaic.tif"
    labels = scene.with_name("enmap_potsdam_mosaic_labels.tif")
    result = run(tmp_path, "enmap-potsdam.toml", f"scene.path={scene}", f"scene.labels={labels}")
    with (
        rasterio.open(scene) as source,
        rasterio.open(result.outputs["class_map"]) as class_map,
        rasterio.open(result.outputs["confidence"]) as confidence,
    ):
        for target in (class_map, confidence):
            assert target.crs == source.crs
            assert target.transform == source.transform
            assert target.shape == source.shape
        # Bands 131 to 136 are nodata and marked as bad.
        good = [band for band in source.indexes if source.tags(band)["bbl"] == "1"]
        valid = (source.read(good) != source.nodata).all(axis=0)
        classes = class_map.read(1)
        assert class_map.nodata == 0
        assert np.isfinite(confidence.read(1)[valid]).all()
    assert len(good) == 218
    np.testing.assert_array_equal(classes > 0, valid)
    assert result.scores["training_pixels"]["overall_accuracy"] >= 0.64


@pytest.fixture(scope="module")
def landsat_runs(tmp_path_factory):
    """Where runs lie beside each other, and take over what other labels leave as it is."""
    return tmp_path_factory.mktemp("landsat")


@pytest.mark.mostly_exhaustive(1)
@pytest.mark.shared_data
@pytest.mark.parametrize(
    ("labels", "field"),
    [
        ("landsat96_points.shp", "label"),
        ("landsat96_polygons.shp", "label"),
        ("landsat96_labelled_pixels.tif", None),
    ],
)
def test_landsat_nc__labels_in_another_crs(landsat_runs, shared_data, labels, field):
    folder = shared_data / "landsat-nc"
    paths = [str(folder / f"lsat7_2000_{band}0.tif") for band in (1, 2, 3, 4, 5, 7)]
    table = {"path": paths, "labels": str(folder / labels)} | (
        {"labels_field": field} if field else {}
    )
    job = eigenscape.parse_job({"preset": "halevy-2011", "scene": table}, name="landsat")
    result = eigenscape.run(job, run_dir=landsat_runs / labels)
    with rasterio.open(paths[0]) as source, rasterio.open(result.outputs["class_map"]) as target:
        assert target.crs == source.crs
        assert target.transform == source.transform
        classes = target.read(1)
    valid = np.ones(classes.shape, bool)
    for path in paths:  # the last one has a nodata value of its own
        with rasterio.open(path) as band:
            valid &= band.read(1) != band.nodata
    np.testing.assert_array_equal(classes > 0, valid)
    # Water is nodata in the last band, so its labels lie on no sample in two of the three files.
    assert len(result.scores["per_class"]) in (6, 7)
    assert result.scores["training_pixels"]["overall_accuracy"] > 0.5

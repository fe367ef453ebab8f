import json
import pickle

import numpy as np
import pandas as pd
import pytest
import rasterio
import scipy.sparse as sp
import xarray

import eigenscape
from eigenscape.base.process.progress import Silent
from eigenscape.clusters import Threads
from eigenscape.datasets.made.synthetic import synthesize
from eigenscape.errors import InputError, OutputError
from eigenscape.scenes.ingest.stage import ingest_stage
from eigenscape.store.run import Run
from eigenscape.workflow.runner import StageRunner


def test_open_run__gives_the_exported_map_lazily(tmp_path):
    synthesize(tmp_path / "scene.tif", height=30, width=40, bands=12, classes=4, seed=1)
    table = {
        "scene": {
            "path": "scene.tif", "labels": "scene_labels.tif", "drop_wavelengths": "none",
        },
        "spectrum": {"dimension": 6},
        "output": {"directory": "runs"},
    }  # fmt: skip
    result = eigenscape.run(eigenscape.parse_job(table, name="lazy", base=tmp_path))
    found = eigenscape.open_run(result.path)
    assert found["values"].chunks is not None, "arrays are lazy"
    assert found.sizes == {"sample": 1200, "band": 12, "feature": 12, "neighbor": 12, "mode": 7}
    image = found["class"].set_index(sample=("row", "column")).unstack().values
    with rasterio.open(result.outputs["class_map"]) as source:
        np.testing.assert_array_equal(image, source.read(1))
        assert found.attrs["transform"] == list(source.transform)[:6]
    assert np.all(np.diff(found["wavelength"]) > 0)


def test_open_run__refuses_other_directories(tmp_path):
    with pytest.raises(InputError, match="no run directory"):
        eigenscape.open_run(tmp_path)


def test_open_run__leaves_out_the_values_of_a_sparse_table(tmp_path):
    sp.save_npz(tmp_path / "words.npz", sp.eye_array(30, 12, format="csr"))
    np.save(tmp_path / "y.npy", np.arange(30))
    table = {"scene": {"path": "words.npz", "labels": "y.npy"}}
    run = Run(tmp_path / "run")
    job = eigenscape.parse_job(table, name="sparse", base=tmp_path)
    StageRunner(run, Threads(1), Silent()).run("ingest", "aa", ingest_stage, job)
    found = eigenscape.open_run(tmp_path / "run")
    assert set(found.variables) == {"row", "column", "label"}
    np.testing.assert_array_equal(found["label"], np.arange(30))
    np.testing.assert_array_equal(found["row"], np.arange(30))
    assert not found["column"].any()


def test_rows__of_drawn_samples_are_those_of_the_table(tmp_path):
    rng = np.random.default_rng(4)
    kind = rng.integers(3, size=400)
    values = rng.normal(size=(400, 4)) + 8 * np.eye(3, 4)[kind]
    labels = np.where(rng.random(400) < 0.3, kind + 1, 0)
    np.save(tmp_path / "x.npy", values)
    np.save(tmp_path / "y.npy", labels)
    np.save(tmp_path / "mask.npy", np.arange(400) % 5 > 0)
    keys = {"path": "x.npy", "samples": 200, "seed": 1, "mask": "mask.npy"}
    tables = {
        "features": {"method": "none"}, "spectrum": {"dimension": 4},
        "learn": {"method": "interpolated", "trials": 2, "queries": 6},
    }  # fmt: skip
    job = eigenscape.parse_job(
        {"scene": {**keys, "labels": "y.npy"}, **tables}, name="drawn", base=tmp_path
    )
    run = eigenscape.run(job, run_dir=tmp_path / "run")
    override = ["scene.samples=200", "scene.seed=1", f"scene.mask={tmp_path / 'mask.npy'}"]
    applied = eigenscape.apply(
        run, tmp_path / "x.npy", overrides=override, run_dir=tmp_path / "applied"
    )
    for result in (run, applied):
        opened = eigenscape.open_run(result)
        rows = opened["row"].values
        assert (np.diff(rows) > 0).all()
        assert rows.max() > 300
        origin = opened["origin"].values if "origin" in opened else 0
        np.testing.assert_allclose(opened["values"] + origin, values[rows], rtol=1e-5)
        table = pd.read_csv(result.outputs["classes"])
        np.testing.assert_array_equal(table["row"], rows)
        assert (table["class"] == kind[rows] + 1).mean() > 0.98
        assert not (rows % 5 == 0).any()
    queries = pd.read_csv(run.outputs["queries"])
    assert not labels[queries["row"]].any()
    assert (queries["class"] == kind[queries["row"]] + 1).all()


@pytest.mark.slow
def test_open_maps__are_the_files_of_the_run(tmp_path):
    synthesize(tmp_path / "scene.tif", height=30, width=40, bands=12, classes=4, seed=1)
    table = {
        "preset": "halevy-2011",
        "scene": {"path": "scene.tif", "labels": "scene_labels.tif"},
        "spectrum": {"dimension": 6},
        "output": {"directory": "runs"},
    }
    result = eigenscape.run(eigenscape.parse_job(table, name="maps", base=tmp_path))
    maps = eigenscape.open_maps(result)
    files = (("class", "class_map"), ("confidence", "confidence"), ("eigenvector", "eigenvectors"))
    for name, file in files:
        with rasterio.open(result.outputs[file]) as source:
            image = source.read() if name == "eigenvector" else source.read(1)
            np.testing.assert_array_equal(maps[name].values, image)
            assert rasterio.CRS.from_wkt(maps.spatial_ref.attrs["crs_wkt"]) == source.crs
            assert (float(maps.x[3]), float(maps.y[2])) == pytest.approx(source.xy(2, 3))
    assert hasattr(maps["class"].data, "dask")
    pickled = pickle.loads(pickle.dumps(maps["class"]))
    np.testing.assert_array_equal(pickled.values, maps["class"].values)
    attributes = maps["class"].attrs
    assert len(attributes["flag_meanings"].split()) == len(attributes["flag_values"])


@pytest.mark.mostly_slow(1)
@pytest.mark.parametrize("kind", ["georeferenced", "array", "table"])
def test_open_run_and_maps__to_netcdf_and_back(tmp_path, kind):
    keys = {"preset": "halevy-2011", "spectrum": {"dimension": 3}, "directory": tmp_path}
    if kind == "georeferenced":
        synthesize(tmp_path / "scene.tif", height=20, width=20, bands=6, classes=2, seed=1)
        job = eigenscape.job_for(tmp_path / "scene.tif", tmp_path / "scene_labels.tif", **keys)
    else:
        truth = np.repeat([0, 1, 2], 40).reshape(12, 10)
        cube = np.random.default_rng(0).normal(size=(12, 10, 4)) + 5 * truth[:, :, None]
        names = np.array(["", "Gr\u00fcnland", "tall grass"])[truth]
        if kind == "table":
            cube, names = cube.reshape(-1, 4), names.ravel()
        job = eigenscape.job_for(cube, names, **keys)
    result = eigenscape.run(job)
    opened = [eigenscape.open_run(result)]
    if kind != "table":
        opened.append(eigenscape.open_maps(result))
    for number, dataset in enumerate(opened):
        dataset.to_netcdf(tmp_path / f"{number}.nc")
        with xarray.open_dataset(tmp_path / f"{number}.nc") as found:
            assert found.identical(dataset.compute())
    names = json.loads(opened[0].attrs["class_names"])
    if kind == "georeferenced":
        assert list(names) == ["1", "2"]
        assert opened[0].attrs.keys() >= {"transform", "crs_wkt"}
    else:
        assert names == {"1": "Gr\u00fcnland", "2": "tall grass"}


@pytest.mark.slow
def test_open_run_and_maps__keep_their_run_in_another_directory(tmp_path, monkeypatch):
    synthesize(tmp_path / "scene.tif", height=20, width=20, bands=6, classes=2, seed=1)
    table = {
        "preset": "halevy-2011",
        "scene": {"path": "scene.tif", "labels": "scene_labels.tif"},
        "spectrum": {"dimension": 3},
    }
    eigenscape.run(eigenscape.parse_job(table, base=tmp_path), run_dir=tmp_path / "run")
    monkeypatch.chdir(tmp_path)
    values = eigenscape.open_run("run")["values"].values
    run, maps = eigenscape.open_run("run"), eigenscape.open_maps("run")
    shown = maps["class"].values
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    np.testing.assert_array_equal(run["values"].values, values)
    np.testing.assert_array_equal(eigenscape.open_maps(tmp_path / "run")["class"].values, shown)
    np.testing.assert_array_equal(maps["class"].values, shown)


@pytest.mark.slow
def test_open_run_and_maps__are_refused_once_the_run_is_gone(tmp_path):
    synthesize(tmp_path / "scene.tif", height=20, width=20, bands=6, classes=2, seed=1)
    table = {
        "preset": "halevy-2011",
        "scene": {"path": "scene.tif", "labels": "scene_labels.tif"},
        "spectrum": {"dimension": 3},
    }
    eigenscape.run(eigenscape.parse_job(table, base=tmp_path), run_dir=tmp_path / "run")
    arrays, maps, used = (
        eigenscape.open_run(tmp_path / "run"), eigenscape.open_maps(tmp_path / "run"),
        eigenscape.open_maps(tmp_path / "run"),
    )  # fmt: skip
    used["class"].compute(scheduler="sync")  # what it has opened is kept
    (tmp_path / "run").rename(tmp_path / "moved")
    lazy = [array for array in arrays.variables.values() if array.chunks]
    assert len(lazy) > 12
    for array in (*lazy, *maps.data_vars.values(), *used.data_vars.values()):
        with pytest.raises(InputError, match=r"/run/store\.zarr/.* is gone.*Open it again"):
            array.compute()


@pytest.mark.slow
def test_open_maps__names_of_classes_stay_apart(tmp_path):
    truth = np.repeat([0, 1, 2], 40).reshape(12, 10)
    names = np.array(["tall grass", "tall_grass", "soil"])[truth]
    cube = np.random.default_rng(0).normal(size=(12, 10, 4)) + 5 * truth[:, :, None]
    job = eigenscape.job_for(
        cube, names, directory=tmp_path, preset="halevy-2011", spectrum={"dimension": 3}
    )
    attributes = eigenscape.open_maps(eigenscape.run(job))["class"].attrs
    assert attributes["flag_meanings"] == "soil tall_grass tall_grass_2"


def test_report__refuses_what_is_no_file(tmp_path):
    synthesize(tmp_path / "scene.tif", height=20, width=20, bands=6, classes=2, seed=1)
    table = {"preset": "halevy-2011", "scene": {"path": "scene.tif"}, "spectrum": {"dimension": 3}}
    result = eigenscape.run(eigenscape.parse_job(table, base=tmp_path), run_dir=tmp_path / "run")
    with pytest.raises(OutputError, match=r"is a directory\. Give the file"):
        eigenscape.report(result, tmp_path)
    with pytest.raises(OutputError, match="there is no directory"):
        eigenscape.report(result, tmp_path / "no" / "page.html")


def test_open_maps__of_no_run_and_of_a_table(tmp_path):
    with pytest.raises(InputError, match="no run directory"):
        eigenscape.open_maps(tmp_path)
    np.save(tmp_path / "table.npy", np.random.default_rng(0).normal(size=(80, 4)))
    table = {"preset": "halevy-2011", "scene": {"path": "table.npy"}, "spectrum": {"dimension": 2}}
    result = eigenscape.run(eigenscape.parse_job(table, base=tmp_path), run_dir=tmp_path / "run")
    with pytest.raises(InputError, match="a table has no images"):
        eigenscape.open_maps(result)

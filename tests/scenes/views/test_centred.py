"""Scenes far from 0: what is read, and what of it is kept."""

import numpy as np
import pytest
import rasterio

import eigenscape
from eigenscape.clusters import Threads
from eigenscape.errors import SceneError
from eigenscape.job.jobfile import load_job
from eigenscape.scenes.ingest.stage import ingest_stage
from eigenscape.store.run import Run
from eigenscape.workflow.runner import StageRunner
from harness import Notes


@pytest.fixture
def ingested(tmp_path, write_job):
    """Run ingest on [scene]; return what it noted and a reader of its arrays, None for none."""

    def work(directory="run", **scene):
        job, reporter = load_job(write_job(scene=scene)), Notes()
        run = Run(tmp_path / directory)
        StageRunner(run, Threads(2), reporter).run("ingest", "aa", ingest_stage, job)

        def read(name):
            return run.open(name)[...] if run.array_path(name).exists() else None

        # The first says what the scene is.
        return reporter.notes[1:], read

    return work


@pytest.fixture
def cube():
    return np.random.default_rng(0).normal(size=(30, 20, 4))


@pytest.mark.parametrize("rows", [1, 7, 30])
def test_ingest__centres_bands_far_from_0(ingested, tmp_path, cube, in_strips, rows):
    in_strips(rows)
    far = cube + np.array([0, 1e3, -1e8, 1e12])
    far[3, 4, 2] = np.nan
    far[5] = -9
    np.save(tmp_path / "far.npy", far)
    np.save(tmp_path / "mask.npy", (np.arange(20) > 2) * np.ones((30, 1), np.uint8))
    notes, read = ingested(path="far.npy", nodata=-9, mask="mask.npy", bad_bands=[1])
    kept = np.isfinite(far).all(axis=-1) & (np.arange(30) != 5)[:, None] & (np.arange(20) > 2)
    values, origin = read("samples/values"), read("samples/origin")
    np.testing.assert_array_equal(read("samples/pixel"), np.flatnonzero(kept))
    assert np.abs(values).max() < 10
    np.testing.assert_allclose(values[:, :2] + origin[:2], far[kept][:, 1:3], rtol=3e-10)
    assert notes[0].startswith("band 1 left out")
    assert notes[1:] == ["492 of 600 pixels are valid (82.0%)"]
    assert values.dtype == np.float32


def test_ingest__leaves_ordinary_scenes(ingested, tmp_path, cube):
    for name, array in {
        "near": cube + 5,
        "single": (cube + 1e4).astype(np.float32),
        "whole": (cube * 3 + 20_000).astype(np.uint16),
        "wide": (cube * 3 + 20_000).astype(np.int32),
    }.items():
        np.save(tmp_path / f"{name}.npy", array)
        _, read = ingested(path=f"{name}.npy", directory=name)
        assert read("samples/origin") is None
        np.testing.assert_array_equal(read("samples/values"), array.reshape(-1, 4).astype("f4"))


def test_ingest__rasters_with_offsets_and_in_double(ingested, tmp_path, cube):
    path = tmp_path / "kelvin.tif"
    stored = np.round(cube * 1000).astype(np.int16)
    with rasterio.open(
        path, "w", driver="GTiff", height=30, width=20, count=4, dtype="int16", crs="EPSG:32633",
        transform=rasterio.Affine(2, 0, 0, 0, -2, 0),
    ) as dataset:  # fmt: skip
        dataset.write(np.moveaxis(stored, -1, 0))
        dataset.scales, dataset.offsets = [1e-5] * 4, [273.15] * 4
    _, read = ingested(path=path.name)
    whole = stored.reshape(-1, 4) * 1e-5 + 273.15
    np.testing.assert_allclose(read("samples/values") + read("samples/origin"), whole, rtol=1e-10)
    with rasterio.open(
        tmp_path / "far.tif", "w", driver="GTiff", height=30, width=20, count=4, dtype="float64",
        crs="EPSG:32633", transform=rasterio.Affine(2, 0, 0, 0, -2, 0),
    ) as dataset:  # fmt: skip
        dataset.write(np.moveaxis(cube + 1e8, -1, 0))
    _, read = ingested(path="far.tif", directory="far")
    found = read("samples/values") + read("samples/origin")
    np.testing.assert_allclose(found, (cube + 1e8).reshape(-1, 4), rtol=1e-14)


def test_ingest__says_what_is_lost(ingested, tmp_path, cube):
    np.save(tmp_path / "single.npy", (cube + np.array([0, 1e7, 0, 0])).astype(np.float32))
    notes, _ = ingested(path="single.npy")
    assert len(notes) == 1
    assert "band 2 from 9999997" in notes[0]
    np.save(tmp_path / "double.npy", cube + 1e14)
    notes, _ = ingested(path="double.npy", directory="double")
    assert "type float64" in notes[0]
    np.save(tmp_path / "same.npy", cube * 1e-3 + 1e16)
    with pytest.raises(SceneError, match=r"identical.*1e\+16 lie 2 apart"):
        ingested(path="same.npy", directory="same")


def test_ingest__subset_of_a_table_in_double(ingested, tmp_path, cube):
    table = cube.reshape(600, 1, 4) + 1e8
    np.save(tmp_path / "table.npy", table)
    _, read = ingested(path="table.npy", samples=100, seed=1)
    found = read("samples/values") + read("samples/origin")
    assert np.isin(found.round(3), table.round(3)).all()


@pytest.mark.slow
def test_apply__takes_the_origin_of_the_run(tmp_path, cube):
    """A tile far from 0 by a run far from 0, one by the other, and either by a run near 0."""
    rng = np.random.default_rng(1)
    labels = (np.arange(600) % 3 + 1).reshape(30, 20).astype(np.uint8)
    cube = cube * 0.1 + labels[..., None]
    np.save(tmp_path / "labels.npy", labels)
    wide = cube + 0.0
    wide[0, 0] = 1e9
    names = {"near": cube, "far": cube + 1e9, "wide": wide}
    for name, array in names.items():
        np.save(tmp_path / f"{name}.npy", array)
    tile = rng.permutation(cube.reshape(-1, 4)).reshape(20, 30, 4)
    np.save(tmp_path / "tile.npy", tile)
    np.save(tmp_path / "fartile.npy", tile + 1e9)
    beside = tile + 1e9
    beside[0, 0] = 0
    np.save(tmp_path / "beside.npy", beside)

    def classes(name, scene):
        job = eigenscape.parse_job(
            {
                "scene": {
                    "path": str(tmp_path / f"{name}.npy"),
                    "labels": str(tmp_path / "labels.npy"),
                },
                "neighbors": {"k": 8}, "spectrum": {"dimension": 4},
                "learn": {"method": "poisson", "trials": 1},
                "output": {"directory": str(tmp_path / "runs"), "formats": []},
            },
            base=tmp_path,
        )  # fmt: skip
        run = eigenscape.run(job, executor=Threads(1))
        done = eigenscape.apply(
            run.path, tmp_path / f"{scene}.npy", executor=Threads(1),
            run_dir=tmp_path / f"{name}-{scene}",
        )  # fmt: skip
        return eigenscape.open_run(done.path)["class"].values

    expected = classes("near", "tile")
    assert len(np.unique(expected)) == 3
    np.testing.assert_array_equal(classes("far", "fartile"), expected)
    np.testing.assert_array_equal(classes("far", "beside")[1:], expected[1:])
    # A run that is not centred takes whole samples, though a plain run of the tile would centre it.
    assert (classes("near", "fartile") > 0).all()

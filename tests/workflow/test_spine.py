import json
import shutil

import numpy as np
import pytest
import rasterio

from eigenscape import load_job, plan, run
from eigenscape.base.process.progress import Silent
from eigenscape.clusters import ClusterOptions
from eigenscape.errors import SceneError
from eigenscape.store.run import Run
from eigenscape.workflow.directories import status
from eigenscape.workflow.stages import STAGES, stage_keys

NAMES = [stage.name for stage in STAGES]


def reused(result):
    return {stage["name"] for stage in result.stages if stage["reused"]}


def read(path):
    with rasterio.open(path) as dataset:
        return dataset.read(), dataset.profile


def array(result, name):
    return Run(result.path).open(name)[...]


def same_result(one, other, *, spectra=True):
    classes = [read(result.outputs["class_map"])[0] for result in (one, other)]
    np.testing.assert_array_equal(classes[0], classes[1])
    if spectra:
        np.testing.assert_array_equal(array(one, "spectrum/value"), array(other, "spectrum/value"))


@pytest.fixture
def job(written, write_job):
    """Load the job of the small labelled scene, with some keys changed."""

    def load(name="job", **tables):
        tables = {**tables, "scene": {"labels": "labels.tif", **tables.get("scene", {})}}
        return load_job(write_job(name, **tables))

    return load


# --- what comes out


def test_run__class_map_on_the_grid_of_the_scene(job, finished_run, small, tmp_path):
    result = run(job())
    classes, profile = read(result.outputs["class_map"])
    _, scene = read(tmp_path / "scene.tif")
    for key in ("crs", "transform", "height", "width"):
        assert profile[key] == scene[key]
    # No data stays no data, and every other pixel has one of the classes.
    np.testing.assert_array_equal(classes[0] == 0, small.hole)
    assert set(np.unique(classes[0][~small.hole])) == {1, 2, 3, 4}
    given = small.labels > 0
    assert (classes[0] == small.labels)[given].mean() > 0.95
    assert result.scores["training_pixels"]["overall_accuracy"] == pytest.approx(
        (classes[0] == small.labels)[given].mean()
    )


def test_run__says_what_it_does_to_the_logger_alone(job, caplog, capsys):
    with caplog.at_level("INFO", logger="eigenscape"):
        run(job())
    assert capsys.readouterr() == ("", "")
    said = [record.getMessage() for record in caplog.records if record.name == "eigenscape"]
    for name in NAMES:
        assert any(line.startswith(f"{name}: ") for line in said), name


def test_run__confidence_and_eigenvectors(job, small):
    result = run(job())
    confidence = read(result.outputs["confidence"])[0][0]
    np.testing.assert_array_equal(np.isnan(confidence), small.hole)
    assert confidence[~small.hole].min() >= 0
    assert confidence[~small.hole].max() <= 1
    with rasterio.open(result.outputs["eigenvectors"]) as dataset:
        assert dataset.descriptions == ("eig_001", "eig_002", "eig_003")
        stored = dataset.read()
        values = [float(dataset.tags(band)["eigenvalue"]) for band in (1, 2, 3)]
    np.testing.assert_array_equal(np.isnan(stored).any(axis=0), small.hole)
    # The constant vector is left out of the images, and is the first of the store.
    np.testing.assert_allclose(values, array(result, "spectrum/value")[1:4], rtol=1e-6)
    vectors = array(result, "spectrum/vector")
    np.testing.assert_array_equal(stored[:, ~small.hole].T, vectors[:, 1:4])


def test_run__files_for_people(job, finished_run):
    result = run(job(output={"formats": ["geotiff", "png"]}))
    for name in ("quicklook", "eigenvectors_quicklook"):
        with open(result.outputs[name], "rb") as stream:
            assert stream.read(8) == b"\x89PNG\r\n\x1a\n"
    with open(result.outputs["legend"], encoding="utf-8") as stream:
        assert len(stream.readlines()) == 5
    aux = result.path / "outputs" / "class_map.tif.aux.xml"
    assert aux.read_text(encoding="utf-8").count("<Category>") >= 4
    with rasterio.open(result.outputs["class_map"]) as dataset:
        assert len({dataset.colormap(1)[number] for number in (1, 2, 3, 4)}) == 4


def test_run__eigenpairs_are_those_of_the_graph(job, write_tif, rng):
    """Rebuild the Laplacian from the neighbour lists alone, and solve it with LAPACK."""
    from scipy import sparse

    # One cloud of points: its graph is connected.
    write_tif("scene.tif", rng.normal(size=(30, 40, 3)).astype(np.float32))
    result = run(job(neighbors={"method": "exact"}, graph={"weights": "binary"}))
    index = array(result, "neighbors/index")
    n, k = index.shape
    lists = sparse.csr_array((np.ones(n * k), index.ravel(), np.arange(0, n * k + 1, k)), (n, n))
    graph = lists.maximum(lists.T)
    assert sparse.csgraph.connected_components(graph)[0] == 1
    dense = graph.toarray()
    scale = 1 / np.sqrt(dense.sum(axis=1))
    expected = np.linalg.eigvalsh(np.eye(n) - scale[:, None] * dense * scale)[:9]
    np.testing.assert_allclose(array(result, "spectrum/value"), expected, atol=1e-6)


def test_run__without_labels_learn_is_skipped(written, write_job):
    formats = {"formats": ["geotiff", "png", "report"]}
    result = run(load_job(write_job(output=formats)))
    assert result.scores == {}
    assert set(result.outputs) == {"eigenvectors", "eigenvectors_quicklook", "report"}
    assert result.converged


def test_run__names_and_colours_of_the_labels(job, write_tif, small, tmp_path):
    write_tif("labels.tif", small.labels, nodata=0)
    with rasterio.open(tmp_path / "labels.tif", "r+") as dataset:
        dataset.write_colormap(1, {number: (10 * number, 0, 0, 255) for number in range(5)})
    with rasterio.open(run(job()).outputs["class_map"]) as dataset:
        assert dataset.colormap(1)[3][:3] == (30, 0, 0)


# --- reuse


def test_run__second_time_everything_is_reused(job):
    first, second = run(job()), run(job())
    assert reused(first) == set()
    assert reused(second) == set(NAMES)
    assert second.path == first.path
    assert second.to_json()["scores"] == first.to_json()["scores"]
    assert second.outputs == first.outputs


@pytest.mark.mostly_slow(3)
@pytest.mark.parametrize(
    ("tables", "again"),
    [
        ({"learn": {"train": 0.5}}, {"learn", "export"}),
        ({"output": {"directory": "runs", "eigenvectors": 4}}, {"export"}),
        ({"spectrum": {"dimension": 7}}, {"spectrum", "learn", "export"}),
        ({"graph": {"weights": "binary"}}, {"graph", "spectrum", "learn", "export"}),
        ({"neighbors": {"k": 7}}, set(NAMES) - {"ingest", "features"}),
        ({"features": {"seed": 1}}, set(NAMES) - {"ingest"}),
        ({"scene": {"labels": "other.tif"}}, {"ingest", "learn", "export"}),
        ({"scene": {"bad_bands": [1]}}, set(NAMES)),
        ({"limits": {"threads": 1, "memory": "1GiB"}}, set()),
    ],
)  # fmt: skip
def test_run__only_what_a_change_concerns(job, finished_run, write_tif, small, tables, again):
    write_tif("other.tif", np.where(small.labels == 4, 0, small.labels))
    first = run(job())
    planned = plan(job(**tables))
    assert {name for name, flag in planned.reused.items() if not flag} == again
    second = run(job(**tables))
    assert set(NAMES) - reused(second) == again
    # The first run stays as it was.
    if again:
        assert second.path != first.path
    assert reused(run(job())) == set(NAMES)


def test_run__in_one_directory_replaces_what_changed(job, tmp_path):
    run(job(), run_dir=str(tmp_path / "here"))
    second = run(
        job(learn={"train": 0.5}, output={"formats": ["geotiff"]}), run_dir=tmp_path / "here"
    )
    assert set(NAMES) - reused(second) == {"learn", "export"}
    names = {path.name for path in (tmp_path / "here" / "outputs").iterdir()}
    assert names == {"class_map.tif", "class_map.tif.aux.xml", "confidence.tif", "eigenvectors.tif",
                     "entropy.tif", "legend.csv", "scores.csv", "confusion.csv"}  # fmt: skip
    assert second.scores["held_out"].keys() == {"random", "blocked"}


def test_run__repairs_what_was_deleted(job, finished_run):
    first = run(job())
    before = read(first.outputs["class_map"])[0]
    (first.path / "outputs" / "class_map.tif").unlink()
    shutil.rmtree(first.path / "store.zarr" / "graph")
    second = run(job())
    assert set(NAMES) - reused(second) == {"graph", "export"}
    np.testing.assert_array_equal(read(second.outputs["class_map"])[0], before)


def test_run__copies_the_job(job, finished_run):
    result = run(job())
    copied = load_job(result.path / "job.toml")
    assert stage_keys(copied.model_copy(update={"name": "job"})) == stage_keys(job())
    manifest = json.loads((result.path / "manifest.json").read_text())
    assert manifest["name"] == "job"
    assert manifest["seeds"] == {"features": 0, "learn": 0}
    assert {"numpy", "zarr", "dask"} <= manifest["versions"].keys()
    assert list(manifest["stages"]) == NAMES
    for line in (result.path / "log.jsonl").read_text().splitlines():
        json.loads(line)


def test_stage_keys__name_and_place_do_not_count_but_content_does(job, tmp_path, small, write_tif):
    keys = stage_keys(job())
    other = stage_keys(job("other"))
    assert {name for name in keys if keys[name] != other[name]} == {"export"}
    write_tif("scene.tif", small.cube + 1, hole=small.hole)
    changed = stage_keys(job())
    assert all(keys[name] != changed[name] for name in keys)


def test_stage_keys__labels_keep_the_features(job, small, write_tif):
    keys = stage_keys(job())
    write_tif("labels.tif", small.labels * 2)
    changed = stage_keys(job())
    assert {name for name in keys if keys[name] != changed[name]} == {"ingest", "learn", "export"}


def test_run__that_is_finished_starts_no_worker(job, finished_run):
    done = run(job())
    nobody = ClusterOptions(kind="existing", address="tcp://127.0.0.1:1")
    again = run(job(), on=nobody)
    assert all(stage["reused"] for stage in again.stages)
    assert again.scores == done.scores


def test_run__that_fails_goes_on(job, monkeypatch):
    from dataclasses import replace

    from eigenscape.workflow import spine as workflow

    def fail(context):
        context.map("half", lambda item: item, [1, 2])
        raise RuntimeError("power cut")

    broken = [replace(stage, work=fail) if stage.name == "graph" else stage for stage in STAGES]
    with monkeypatch.context() as patch:
        patch.setattr(workflow, "STAGES", broken)
        with pytest.raises(RuntimeError, match="power cut"):
            run(job())
    path = plan(job()).run
    states = {stage["name"]: stage["state"] for stage in status(workflow.Path(path))["stages"]}
    assert states["neighbors"] == "finished"
    assert states["graph"] == "begun"
    assert states["export"] == "to do"
    assert reused(run(job())) == {"ingest", "features", "neighbors"}


# --- options


@pytest.mark.mostly_slow(1)
@pytest.mark.parametrize(("key", "stage"), [("scene.labels", "ingest"), ("learn.test", "learn")])
def test_run__a_file_that_changes_while_it_is_read(
    written, write_job, write_tif, tmp_path, key, stage
):
    write_tif("test.tif", written.labels * (np.arange(40) % 2).astype(np.uint8), nodata=0)
    path = write_job(scene={"labels": "labels.tif"}, learn={"test": "test.tif"})
    file = {"scene.labels": "labels.tif", "learn.test": "test.tif"}[key]
    kept = (tmp_path / file).read_bytes()

    class Editor(Silent):
        def stage(self, name, text):
            if (name, text) == (stage, "running"):
                write_tif(file, np.roll(written.labels, 7, axis=0), nodata=0)

    with pytest.raises(SceneError, match=f"^{file} changed while the stage {stage} read it"):
        run(load_job(path), run_dir=tmp_path / "run", reporter=Editor())
    (tmp_path / file).write_bytes(kept)
    again = run(load_job(path), run_dir=tmp_path / "run")
    assert stage not in [one["name"] for one in again.stages if one["reused"]]
    fresh = run(load_job(path), run_dir=tmp_path / "elsewhere" / "run")
    np.testing.assert_array_equal(again.class_map, fresh.class_map)
    assert again.scores == fresh.scores


@pytest.mark.parametrize("components", ["connect", "largest", "each"])
def test_run__components(job, write_tif, rng, components):
    # Two clouds so far apart that no list crosses.
    cube = rng.normal(size=(30, 40, 3)).astype(np.float32)
    cube[:10] += 30
    write_tif("scene.tif", cube)
    write_tif("labels.tif", np.repeat(np.arange(3, dtype=np.uint8), 10)[:, None].repeat(40, axis=1))
    result = run(job(graph={"components": components}))
    classes = read(result.outputs["class_map"])[0][0]
    known = np.isfinite(array(result, "spectrum/vector")).all(axis=1).reshape(30, 40)
    zeros = (array(result, "spectrum/value") < 1e-12).sum()
    assert zeros == (2 if components == "each" else 1)
    if components == "largest":
        np.testing.assert_array_equal(known, (np.arange(30) >= 10)[:, None].repeat(40, axis=1))
    else:
        assert known.all()
    np.testing.assert_array_equal(classes > 0, known)


@pytest.mark.mostly_slow(3)
@pytest.mark.parametrize(
    "tables",
    [
        {"features": {"method": "none"}},
        {"features": {"method": "pca", "dimension": 5}},
        {"features": {"dimension": 5, "standardize": True}},
        {"neighbors": {"method": "exact"}},
        pytest.param({"neighbors": {"method": "pynndescent"}}, marks=pytest.mark.slow),
        {"graph": {"weights": "heat"}},
        {"graph": {"laplacian": "unnormalized"}},
        {"graph": {"laplacian": "random-walk"}},
        {"spectrum": {"solver": "lanczos"}},
        {"learn": {"train": 200, "split": "blocked", "trials": 3}},
    ],
    ids=lambda tables: "-".join(map(str, next(iter(tables.values())).values())),
)
def test_run__methods(job, finished_run, small, tables):
    result = run(job(**tables))
    classes = read(result.outputs["class_map"])[0][0]
    given = small.labels > 0
    assert (classes == small.labels)[given].mean() > 0.9
    assert result.converged
    assert result.neighbors["recall"] > 0.9


# --- protocols


@pytest.mark.parametrize(
    ("train", "split", "pixels"),
    [("all", "random", None), (0.3, "random", 0.3), (0.3, "blocked", None), (100, "random", 100)],
)
def test_run__protocol(job, finished_run, small, train, split, pixels):
    scores = run(job(learn={"train": train, "split": split, "trials": 2})).scores
    total = int((small.labels > 0).sum())
    assert scores["protocol"] == "pixels held out (blocked)"
    assert list(scores["held_out"]) == ["blocked", "random"]
    learned = scores["training_pixels"]["samples"]
    if train == "all":
        assert learned == total
    elif pixels is not None:
        assert learned == pytest.approx(pixels if pixels > 1 else pixels * total, abs=4)
    blocked = scores["held_out"]["blocked"]
    assert np.sum(scores["confusion"]) == pytest.approx(
        2 * (total - blocked["training_pixels"]), abs=2
    )
    for name in ("overall_accuracy", "average_accuracy", "kappa"):
        assert 0.3 < scores[name] == blocked[name] <= 1
    assert len(scores["per_class"]) == 4


def test_run__training_pixels_from_a_file(job, finished_run, small, write_tif):
    marks = np.zeros((30, 40), np.uint8)
    marks[:, :20] = 9
    write_tif("marks.tif", marks)
    scores = run(job(learn={"train": "marks.tif"})).scores
    assert scores["training_pixels"]["samples"] == (small.labels[:, :20] > 0).sum()
    assert np.sum(scores["confusion"]) == (small.labels[:, 20:] > 0).sum()
    assert "file" in scores["protocol"]


def test_run__class_without_training_pixels_is_not_in_the_map(job, finished_run, small, write_tif):
    write_tif("marks.tif", (small.labels > 1).astype(np.uint8))
    result = run(job(learn={"train": "marks.tif"}))
    classes = read(result.outputs["class_map"])[0]
    assert set(np.unique(classes)) == {0, 2, 3, 4}
    assert result.scores["per_class"][0] == 0


def test_run__training_file_that_marks_everything(job, finished_run, write_tif):
    write_tif("marks.tif", np.ones((30, 40), np.uint8))
    scores = run(job(learn={"train": "marks.tif"})).scores
    assert scores["overall_accuracy"] is None
    assert scores["training_pixels"]["overall_accuracy"] > 0.9


# --- the same answer


@pytest.fixture
def large(write_tif, write_job, make_scene):
    """Several blocks of samples, and the iterative solver."""
    scene = make_scene(110, 100, 12)
    write_tif("scene.tif", scene.cube, hole=scene.hole)
    write_tif("labels.tif", scene.labels, nodata=0)

    def work(place, on=None, **limits):
        job = load_job(write_job(scene={"labels": "labels.tif"}, limits=limits))
        # Far from each other, so that nothing is taken over.
        return run(job, on=on, run_dir=write_job().parent / place / "run")

    return work


@pytest.mark.slow
def test_run__same_answer_for_threads_and_memory(large):
    first = large("a", threads=1)
    assert first.spectrum["solver"] == "chebyshev"
    for place, limits in {
        "b": {"threads": 2},
        "c": {"threads": 1, "memory": "520MiB"},
        "d": {"threads": 2, "memory": "8GiB"},
    }.items():
        other = large(place, **limits)
        assert reused(other) == set()
        same_result(first, other)
        np.testing.assert_array_equal(
            array(first, "spectrum/vector"), array(other, "spectrum/vector")
        )


@pytest.mark.slow
def test_run__same_answer_on_worker_processes(large):
    first = large("a")
    second = large("b", ClusterOptions(kind="local", workers=2), memory="1GiB")
    assert reused(second) == set()
    same_result(first, second)


@pytest.mark.slow
def test_run__same_answer_on_a_scheduler_that_is_running(large):
    from distributed import LocalCluster

    first = large("a")
    with LocalCluster(
        n_workers=1, threads_per_worker=2, processes=True, host="127.0.0.1",
        dashboard_address="127.0.0.1:0", silence_logs=50,
    ) as cluster:  # fmt: skip
        options = ClusterOptions(kind="existing", address=cluster.scheduler_address)
        second = large("b", options)
    assert reused(second) == set()
    same_result(first, second)


def test_run__job_toml_is_a_job_in_any_directory(written, write_tif, write_job, tmp_path):
    even = np.arange(len(written.labels))[:, np.newaxis] % 2 == 0
    write_tif("even.tif", np.where(even, written.labels, 0), nodata=0)
    write_tif("odd.tif", np.where(even, 0, written.labels), nodata=0)
    path = write_job(
        scene={"labels": "even.tif"},
        learn={"method": "k-nn", "k": 1, "test": "odd.tif"},
        output={"directory": "here"},
    )
    done = run(load_job(path))
    copy = load_job(done.path / "job.toml")
    assert copy.learn.test == str(tmp_path / "odd.tif")
    assert copy.output.directory == str(tmp_path / "here")
    again = run(copy, run_dir=done.path)
    assert all(stage["reused"] for stage in again.stages if stage["name"] != "export")

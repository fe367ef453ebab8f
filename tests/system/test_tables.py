"""Tables through whole jobs: the plan, the same answer as an estimator, a run on another table."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import make_blobs

import eigenscape
from eigenscape.applied.run import apply
from eigenscape.errors import InputError, SceneError
from eigenscape.estimators import EigenfunctionClassifier, LaplacianEigenmaps
from eigenscape.store.run import Run
from eigenscape.workflow.stages import stage_keys

NAMES = np.array(["elm", "oak", "ash"])


@pytest.fixture
def blobs(tmp_path):
    """Write overlapping blobs as table.npy, t.csv and t.parquet, and a tenth of their labels."""

    def write(rows=3000, columns=20):
        X, y = make_blobs(rows, columns, centers=3, cluster_std=5.0, random_state=1)
        X = X.astype(np.float32)
        given = np.where(np.arange(rows) % 10 == 0, y + 1, 0)
        np.save(tmp_path / "table.npy", X)
        np.save(tmp_path / "labels.npy", given)
        frame = pd.DataFrame(X, columns=[f"x{i}" for i in range(columns)])
        frame.insert(1, "tree", np.where(given > 0, NAMES[y], ""))
        frame.to_csv(tmp_path / "t.csv", index=False)
        frame.to_parquet(tmp_path / "t.parquet", index=False)
        return X, given, y

    return write


def array(path, name):
    return np.asarray(Run(path, create=False).open(name)[...])


def load(write_job, **tables):
    job = {"learn": {"method": "eigenfunctions", "eigenvectors": 8, "trials": 2}, **tables}
    job["features"] = {"dimension": 80}
    return eigenscape.load_job(write_job(**job))


@pytest.mark.mostly_exhaustive(1)
@pytest.mark.slow
@pytest.mark.parametrize("rows", [100, 3000])
def test_tables__job_and_estimators_agree(tmp_path, write_job, blobs, rows):
    X, given, y = blobs(rows)
    job = load(write_job, scene={"path": "table.npy", "labels": "labels.npy"})
    run = eigenscape.run(job, run_dir=tmp_path / "npy").path
    options = {"n_neighbors": 8, "laplacian": "normalized", "random_state": 0, "threads": 2}
    maps = LaplacianEigenmaps(8, **options).fit(X)
    vectors = array(run, "spectrum/vector")[:, 1:]
    np.testing.assert_allclose(array(run, "spectrum/value")[1:], maps.eigenvalues_, rtol=1e-6)
    np.testing.assert_allclose(np.abs(vectors), np.abs(maps.embedding_), atol=1e-6)
    classes = array(run, "labels/class")
    fitted = EigenfunctionClassifier(8, **options).fit(X, given - 1)
    np.testing.assert_array_equal(classes, fitted.transduction_ + 1)
    assert (classes == y + 1).mean() > 0.9
    for name in ("t.csv", "t.parquet"):
        formats = {"formats": ["geotiff", "png", "report"]}
        job = load(write_job, scene={"path": name, "labels_field": "tree"}, output=formats)
        result = eigenscape.run(job, run_dir=tmp_path / f"run-{name}")
        numbers = array(result.path, "labels/class")
        # By the alphabet: ash 1, elm 2, oak 3.
        np.testing.assert_array_equal(numbers, np.array([0, 2, 3, 1])[classes])
        legend = pd.read_csv(result.outputs["legend"])
        assert legend.name.tolist() == ["ash", "elm", "oak"]
        table = pd.read_csv(result.outputs["classes"])
        np.testing.assert_array_equal(table["class"], numbers)
        assert set(result.outputs) == {
            "legend", "scores", "confusion", "classes", "embedding", "report",
        }  # fmt: skip


@pytest.mark.slow
def test_tables__plan_and_log_say_what_it_is(tmp_path, write_job, blobs, cli):
    blobs()
    np.save(tmp_path / "plane.npy", np.random.default_rng(0).normal(size=(30, 20)))
    for name, keys, words in (
        ("table.npy", {}, "table of 3,000 samples x 20 features (table.npy)"),
        ("t.csv", {}, "table of 3,000 samples x 20 features (t.csv)"),
        ("plane.npy", {}, "table of 30 samples x 20 features (plane.npy)"),
        ("plane.npy", {"layout": "image"}, "image of 30 rows x 20 columns x 1 band (plane.npy)"),
    ):
        path = write_job(scene={"path": name, **keys})
        assert words in cli("plan", path).stdout
        assert words in json.loads(cli("plan", path, "--json").stdout)["notes"]
    run = eigenscape.run(
        load(write_job, scene={"path": "t.csv", "labels_field": "tree"}), run_dir=tmp_path / "run"
    )
    log = [json.loads(line) for line in (run.path / "log.jsonl").read_text().splitlines()]
    notes = [line["text"] for line in log if line["event"] == "note"]
    assert "table of 3,000 samples x 20 features (t.csv)" in notes


def test_tables__missing_values_are_an_error_of_the_command(tmp_path, write_job, cli):
    (tmp_path / "t.csv").write_text("a,b\n" + "1,2\n" * 50 + "3,\n")
    for command in ("plan", "run"):
        done = cli(command, write_job(scene={"path": "t.csv"}))
        assert done.exit_code == 2
        assert "'b' has no value in row 51" in done.stderr


def test_tables__rows_that_are_not_finite_are_told(tmp_path, write_job, blobs, cli):
    X, *_ = blobs(100)
    X[5:8, 2] = np.nan
    np.save(tmp_path / "table.npy", X)
    keys = {"path": "table.npy", "labels": "labels.npy"}
    job = load(write_job, scene=keys)
    run = eigenscape.run(job, run_dir=tmp_path / "run").path
    assert array(run, "samples/values").shape == (97, 20)
    assert "3 samples are left out" in (run / "log.jsonl").read_text()


def test_tables__spatial_edges_are_refused(write_job, blobs):
    blobs(100)
    job = load(write_job, scene={"path": "t.csv", "labels_field": "tree"}, graph={"spatial": {}})
    with pytest.raises(InputError, match="table of 100 samples"):
        eigenscape.run(job)


def test_tables__keys_follow_layout_and_columns(write_job, blobs):
    blobs(100)

    def keys(**scene):
        found = stage_keys(load(write_job, scene=scene))
        return found["samples"], found["ingest"]

    assert keys(path="table.npy") != keys(path="table.npy", layout="image")
    plain, labelled = keys(path="t.csv"), keys(path="t.csv", labels_field="tree")
    assert plain[0] != labelled[0]
    assert keys(path="t.csv", labels="t.csv", labels_field="tree")[0] == labelled[0]
    assert keys(path="t.csv", columns=["x1"])[0] != plain[0]
    # Other labels of an array leave its samples as they are.
    assert keys(path="table.npy", labels="labels.npy")[0] == keys(path="table.npy")[0]
    assert keys(path="table.npy", labels="t.csv")[0] == keys(path="table.npy")[0]


def test_tables__training_labels_in_a_column(tmp_path, write_job, blobs):
    _, given, y = blobs(300)
    np.save(tmp_path / "labels.npy", y + 1)
    pd.DataFrame({"class": given}).to_csv(tmp_path / "train.csv", index=False)
    np.save(tmp_path / "train.npy", given)
    maps = []
    for train in ("train.csv", "train.npy"):
        job = load(
            write_job, scene={"path": "table.npy", "labels": "labels.npy"}, learn={"train": train}
        )
        maps.append(
            array(eigenscape.run(job, run_dir=tmp_path / f"run-{train}").path, "labels/class")
        )
    np.testing.assert_array_equal(*maps)


@pytest.mark.mostly_slow(1)
@pytest.mark.parametrize("name", ["table.npy", "t.csv", "t.parquet"])
def test_tables__apply_takes_columns_by_name(tmp_path, write_job, blobs, name):
    X, given, y = blobs(600)
    named = name != "table.npy"
    keys = {"labels_field": "tree"} if named else {"labels": "labels.npy"}
    job = load(write_job, scene={"path": name, "bad_bands": [3], **keys})
    run = eigenscape.run(job, run_dir=tmp_path / "run").path
    classes = array(run, "labels/class")
    np.save(tmp_path / "new.npy", X[:200])
    found = apply(run, tmp_path / "new.npy", run_dir=tmp_path / "npy")
    np.testing.assert_array_equal(array(found.path, "labels/class"), classes[:200])
    if not named:
        return
    frame = pd.read_csv(tmp_path / "t.csv")[:200]
    other = frame[frame.columns[::-1]].assign(extra=1.5, tree=NAMES[y[:200]]).drop(columns="x2")
    other.to_csv(tmp_path / "other.csv", index=False)
    found = apply(
        run, tmp_path / "other.csv", labels=tmp_path / "other.csv", run_dir=tmp_path / "csv"
    )
    np.testing.assert_array_equal(array(found.path, "labels/class"), classes[:200])
    # The run learned from every tenth.
    new = given[:200] == 0
    assert found.scores["left_out"] == 20
    assert found.scores["overall_accuracy"] == np.mean(
        np.array([2, 3, 1])[y[:200]][new] == classes[:200][new]
    )
    other.drop(columns="x5").to_csv(tmp_path / "fewer.csv", index=False)
    with pytest.raises(SceneError, match=r"no column 'x5'"):
        apply(run, tmp_path / "fewer.csv")


@pytest.mark.mostly_slow(1)
@pytest.mark.parametrize("method", ["spectral-clustering", "normalized-cut"])
def test_tables__clusters_without_any_label(tmp_path, method):
    """From the plan to a run on another table: nothing asks for labels on the way."""
    X, y = make_blobs(600, 5, centers=3, cluster_std=0.5, random_state=1)
    np.save(tmp_path / "table.npy", X.astype(np.float32))
    np.save(tmp_path / "other.npy", X[:100].astype(np.float32))
    table = {
        "scene": {"path": "table.npy"},
        "spectrum": {"dimension": 4},
        "learn": {"method": method, "clusters": 3},
    }
    job = eigenscape.parse_job(table, name="blobs", base=tmp_path)
    result = eigenscape.run(job, run_dir=tmp_path / "run")
    classes = array(result.path, "labels/class")
    assert sorted(result.outputs) == ["classes", "embedding", "legend", "report"]
    # Blobs far apart: each is a cluster.
    assert len({(int(a), int(b)) for a, b in zip(classes, y, strict=True)}) == 3
    assert result.plot().axes
    other = apply(result, tmp_path / "other.npy", run_dir=tmp_path / "other")
    np.testing.assert_array_equal(array(other.path, "labels/class"), classes[:100])


@pytest.mark.slow
def test_tables__more_than_one_chunk(tmp_path, write_job):
    """What several chunks and several blocks of text become in a run is what the file says."""
    X = np.random.default_rng(0).normal(size=(140_000, 3)).astype(np.float32)
    frame = pd.DataFrame(X, columns=list("abc")).assign(kind=np.where(X[:, 0] > 0, "up", "down"))
    frame.to_csv(tmp_path / "t.csv", index=False)
    frame.to_parquet(tmp_path / "t.parquet", index=False, row_group_size=50_000)
    np.save(tmp_path / "t.npy", X)
    from eigenscape.base.process.progress import Silent
    from eigenscape.clusters import Threads
    from eigenscape.scenes.ingest.stage import ingest_stage
    from eigenscape.workflow.runner import StageRunner

    for name in ("t.npy", "t.csv", "t.parquet"):
        keys = {} if name == "t.npy" else {"labels_field": "kind"}
        job = load(write_job, scene={"path": name, **keys})
        run = Run(tmp_path / f"{name}-run")
        runner = StageRunner(run, Threads(2), Silent())
        summary = runner.run("ingest", "aa", ingest_stage, job).summary
        np.testing.assert_array_equal(np.asarray(run.open("samples/values")[...]), X)
        if keys:
            given = np.asarray(run.open("labels/given")[...])
            np.testing.assert_array_equal(given, np.where(X[:, 0] > 0, 2, 1))
            assert summary["class_names"] == {"1": "down", "2": "up"}

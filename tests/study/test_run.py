import json
import shutil

import numpy as np
import pytest
import tomlkit

from eigenscape import load_job, run
from eigenscape.base.files.tables import read_table
from eigenscape.clusters import ClusterOptions
from eigenscape.errors import ClusterLostError, InputError, OutputError
from eigenscape.study import run as study_run
from eigenscape.study.outcomes import study_directory, study_text
from eigenscape.study.plan import plan_study, study_status
from eigenscape.study.run import run_study

SHARED = ("ingest", "features", "neighbors", "graph", "spectrum")


def computed(result):
    return result.to_json()["computed"]


def main_rows(result):
    return [row for row in result.rows if row.get("main")]


class Heard:
    """Notes what a study tells, and stops it at a variant."""

    def __init__(self, stop_at=None):
        self.lines, self.stop_at = [], stop_at

    def stage(self, name, text):
        self.lines.append(f"{name}: {text}")
        if self.stop_at is not None and name == "study" and text.startswith(self.stop_at):
            raise KeyboardInterrupt

    def begin(self, label, total, done):
        pass

    def advance(self):
        pass

    def end(self):
        pass

    def note(self, text):
        self.lines.append(text)


# --- sharing and going on


def test_run_study__computes_shared_stages_once(finished):
    _, result = finished
    assert len(result.outcomes) == 7
    assert result.failed == ()
    assert computed(result) == {**dict.fromkeys(SHARED, 1), "learn": 7, "export": 7}


def test_run_study__its_job_can_be_planned_from_its_directory(finished):
    job, result = finished
    kept = load_job(result.path / "job.toml")
    planned = plan_study(kept)
    assert len(planned.variants) == 7
    assert kept.study.published == str(job.base / "published.csv")
    assert study_directory(kept, None).parent == result.path.parent


def test_study_text__files_that_variants_name(write_study):
    study = {
        "grid": {"scene.labels": ["labels.npy", "other.npy"]},
        "variants": [{"name": "a", "set": {"learn.test": "labels.npy"}}, {"name": "b"}],
    }
    job = load_job(write_study(study=study))
    found = tomlkit.parse(study_text(job))["study"]
    assert found["grid"]["scene.labels"] == [
        str(job.base / "labels.npy"),
        str(job.base / "other.npy"),
    ]
    assert found["variants"][0]["set"]["learn.test"] == str(job.base / "labels.npy")


def test_run_study__variants_share_arrays_by_hard_links(finished):
    _, result = finished
    files = [
        next((outcome.path / "store.zarr/spectrum/vector/c").rglob("*/0"), None)
        for outcome in result.outcomes
    ]
    inodes = {file.stat().st_ino for file in files if file is not None}
    assert len(inodes) == 1
    assert not any((outcome.path / "outputs/class_map.tif").exists() for outcome in result.outcomes)


def test_run_study__second_time_computes_nothing(finished):
    (job, first), heard = finished, Heard()
    second = run_study(job, reporter=heard)
    assert set(computed(second).values()) == {0}
    assert second.rows == first.rows
    assert heard.lines[0] == "study: 7 of 7 variants finished"
    # Not even the variants' run directories were opened for work.
    assert not any("variant " in line for line in heard.lines)


@pytest.mark.slow
def test_run_study__goes_on_where_it_was_stopped(write_study):
    job = load_job(write_study())
    with pytest.raises(KeyboardInterrupt):
        run_study(job, reporter=Heard(stop_at="variant 4 of 7"))
    path = study_run.study_directory(job, None)
    states = [
        row["state"] for row in read_table(path / "table.csv") if row.get("main", "true") == "true"
    ]
    assert sorted(states) == ["finished"] * 3 + ["to do"] * 4
    assert computed(run_study(job)) == {**dict.fromkeys(SHARED, 0), "learn": 4, "export": 4}


@pytest.fixture
def path(finished, tmp_path):
    """Return the file of the finished study, with the runs, to change."""
    job, result = finished
    folder = result.path.parents[1]
    return shutil.copytree(folder, tmp_path / "copy") / f"{job.name}.toml"


@pytest.mark.slow
def test_run_study__a_longer_list_computes_the_new_values_alone(path):
    first = run_study(load_job(path))
    assert set(computed(first).values()) == {0}
    table = first.outputs["csv"].read_bytes()
    longer = run_study(load_job(path, ["study.grid.learn.train=[12, 40, 60]"]))
    # Two numbers of eigenvectors and two of neighbours; the files of all are in a directory of their own.
    assert computed(longer) == {**dict.fromkeys(SHARED, 0), "learn": 4, "export": 11}
    assert len(longer.outcomes) == 11
    assert longer.path != first.path
    assert first.outputs["csv"].read_bytes() == table
    path.write_text(path.read_text().replace("[12, 40]", "[12, 40, 60]"))
    again = run_study(load_job(path))
    assert again.path == first.path
    assert computed(again) == {**dict.fromkeys(SHARED, 0), "learn": 0, "export": 4}


@pytest.mark.slow
def test_run_study__what_another_study_computed_is_taken_over(path):
    other = shutil.copy(path, path.with_name("other.toml"))
    result = run_study(load_job(other, ["study.grid.learn.train=[25]"]))
    assert {name: computed(result)[name] for name in SHARED} == dict.fromkeys(SHARED, 0)


@pytest.mark.slow
def test_run_study__order_of_the_table_is_that_of_the_file(write_study):
    grid = {"neighbors.k": [4, 6], "learn.train": [12, 40]}
    heard = Heard()
    result = run_study(
        load_job(write_study(study={"grid": grid, "measure": "error"})), reporter=heard
    )
    assert [(r["neighbors.k"], r["learn.train"]) for r in main_rows(result)] == [
        (4, 12), (4, 40), (6, 12), (6, 40),
    ]  # fmt: skip
    assert computed(result)["neighbors"] == computed(result)["spectrum"] == 2
    said = [line for line in heard.lines if "variant " in line]
    assert [line.split(": ")[1].split(",")[0] for line in said] == [
        f"variant {number} of 4" for number in (1, 2, 3, 4)
    ]
    # Every stage ran once by then, so what is left can be told.
    assert "s left" in said[1]
    assert not any("reused" in line or "running" in line for line in heard.lines)


@pytest.mark.slow
def test_run_study__one_cluster_for_all_variants(write_study, monkeypatch):
    opened = []
    connect = study_run.connect
    monkeypatch.setattr(study_run, "connect", lambda *args: opened.append(1) or connect(*args))
    few = ["study.grid.learn.train=[12]", 'study.variants=[{name = "eigenfunctions"}]']
    few += ["study.grid.learn.eigenvectors=[2, 3]"]
    threads = run_study(load_job(write_study(), few))
    result = run_study(load_job(write_study(), few), on=ClusterOptions(kind="local", workers=1))
    assert len(result.outcomes) == 2
    assert opened == [1, 1]
    assert result.failed == ()
    for one, other in zip(main_rows(threads), main_rows(result), strict=True):
        assert one["error"] == pytest.approx(other["error"])
    assert "local cluster" in result.rows[0]["machine"]


# --- what the table says


def test_run_study__same_scores_as_single_runs(finished, tmp_path):
    _, result = finished
    for outcome in (result.outcomes[1], result.outcomes[4]):
        alone = run(outcome.variant.job, run_dir=tmp_path / outcome.path.name)
        split = alone.scores["held_out"]["blocked"]
        (row,) = [row for row in main_rows(result) if row["run"] == outcome.path.name]
        assert row["protocol"] == "blocked"
        assert row["accuracy"] == pytest.approx(100 * split["overall_accuracy"])
        assert row["error"] == pytest.approx(100 - 100 * split["overall_accuracy"])
        spread = 100 * split["overall_accuracy_std"] / np.sqrt(3)
        assert row["error_se"] == row["accuracy_se"] == pytest.approx(spread)
        assert (row["trials"], row["training_pixels"]) == (3, split["training_pixels"])
        assert row["kappa"] == pytest.approx(split["kappa"])
        assert row["recall"] == alone.neighbors["recall"]
        assert row["max_residual"] == pytest.approx(alone.spectrum["max_residual"], abs=1e-6)
        assert row["samples"] == 500


def test_run_study__reused_stages_keep_their_seconds(finished):
    _, result = finished
    assert len({row["seconds_spectrum"] for row in result.rows}) == 1
    for row in result.rows:
        stages = [value for name, value in row.items() if name.startswith("seconds_")]
        assert row["seconds"] == pytest.approx(sum(stages), abs=0.002)
        assert row["machine"]


# --- failures


def test_run_study__a_variant_that_fails_does_not_stop_the_others(write_study):
    grid = {"learn.train": [12, 10_000, 40], "learn.split": ["uniform"]}
    job = load_job(write_study(study={"grid": grid}))
    result, heard = run_study(job), Heard()
    (failed,) = result.failed
    assert failed.variant.values["learn.train"] == 10_000
    assert "labels of 3 classes" in failed.reason
    assert [row["state"] for row in result.rows if row.get("main", True)] == [
        "finished", "failed", "finished",
    ]  # fmt: skip
    assert result.to_json()["failed"] == [
        {"variant": failed.variant.title, "reason": failed.reason}
    ]
    # It alone is tried again.
    again = run_study(job, reporter=heard)
    assert len(again.failed) == 1
    assert [line for line in heard.lines if "variant " in line] == [
        f"study: variant 3 of 3: {failed.variant.title}"
    ]


def test_run_study__a_missing_file_is_refused_before_anything_runs(write_study):
    path = write_study()
    (path.parent / "labels.npy").unlink()
    with pytest.raises(InputError, match=r"labels\.npy"):
        run_study(load_job(path))
    assert not (path.parent / "runs").exists()


# --- the command line


@pytest.mark.slow
def test_cli__runs_plans_and_reports_a_study(write_study, cli):
    path = write_study()
    planned = json.loads(cli("plan", path, "--json").stdout)
    stages = {stage["name"]: stage for stage in planned["stages"]}
    assert len(planned["variants"]) == 7
    assert (stages["spectrum"]["different"], stages["learn"]["different"]) == (1, 7)
    assert stages["spectrum"]["finished"] == 0
    assert not (path.parent / "runs").exists()

    done = cli("run", path)
    assert done.exit_code == 0, done.stderr
    for word in ("labelled pixels", "best k-NN", "/ 53.7", "7 done", "plot.png"):
        assert word in done.stdout
    found = json.loads(cli("run", path, "--json").stdout)
    assert (found["variants"], found["finished"], found["failed"]) == (7, 7, [])
    assert set(found["computed"].values()) == {0}

    directory = path.parent / "runs" / path.stem
    status = json.loads(cli("status", directory, "--json").stdout)
    assert (status["finished"], status["state"]) == (7, "finished")
    assert "7 of 7 variants, finished" in cli("status", directory).stdout
    assert "0 B" in cli("plan", path).stdout


def test_cli__exit_status_of_a_study_with_a_failure(write_study, cli):
    grid = {"learn.train": [12, 10_000], "learn.split": ["uniform"]}
    path = write_study(study={"grid": grid})
    done = cli("run", path, "--run-dir", path.parent / "here")
    assert done.exit_code == 2
    assert "learn.train = 10000, learn.split = uniform failed" in done.stderr
    status = cli("status", path.parent / "here")
    assert "1 of 2 variants, unfinished" in status.stdout
    assert "failed" in status.stdout


def test_load_job__what_set_changes_has_a_directory_of_its_own(tmp_path):
    """The table of the study stays; where it runs, and in how much memory, is no change."""
    path = tmp_path / "sweep.toml"
    path.write_text('[scene]\npath = "swiss-roll"\n[study.grid]\nneighbors.k = [5, 8]\n')

    def directory(*overrides):
        return study_directory(load_job(path, overrides), None).name

    changed = directory("spectrum.dimension=3")
    assert directory() == directory("limits.memory=1GiB") == "sweep"
    assert changed.startswith("sweep-")
    assert changed != directory("spectrum.dimension=4") != directory()
    both = ("spectrum.dimension=3", "graph.weights=binary")
    assert directory(*both) == directory(*both[::-1], "limits.threads=1") != changed


# --- methods that the job leaves open


@pytest.fixture
def open_study(write_study):
    """Return a function that writes a study whose job names no method."""

    def write(**changes):
        path = write_study()
        table = {
            "scene": {"path": "scene.npy", "labels": "labels.npy"},
            "output": {"directory": "runs"},
            "limits": {"threads": 2},
            **changes,
        }
        path.write_text(tomlkit.dumps(table), encoding="utf-8")
        return load_job(path)

    return write


def test_run_study__a_study_that_names_no_method_keeps_the_defaults(open_study):
    job = open_study(study={"grid": {"learn.seed": [1]}})
    first = run_study(job)
    assert [row["state"] for row in first.rows] == ["finished"] * len(first.rows)
    assert [outcome.variant.job.learn.method for outcome in first.outcomes] == [job.learn.method]
    assert set(computed(run_study(job)).values()) == {0}
    assert study_status(first.path)["state"] == "finished"


@pytest.mark.slow
def test_run_study__chosen_methods_are_known_the_second_time(open_study):
    job = open_study(preset="auto", study={"grid": {"learn.seed": [1]}})
    first = run_study(job)
    assert {row["state"] for row in first.rows} == {"finished"}
    assert set(computed(run_study(job)).values()) == {0}
    assert study_status(first.path)["state"] == "finished"


@pytest.mark.parametrize(
    "error", [ClusterLostError("no worker"), OutputError("the disk is full"), OSError(5, "I/O")]
)
def test_run_study__an_error_of_no_variant_ends_the_study(open_study, monkeypatch, error):
    job = open_study(study={"grid": {"learn.seed": [1, 2]}})
    called = []

    def fail(*arguments, **keywords):
        called.append(arguments)
        raise error

    monkeypatch.setattr(study_run, "run", fail)
    with pytest.raises(type(error)):
        run_study(job)
    assert len(called) == 1
    rows = read_table(study_directory(job, None) / "table.csv")
    assert [row["state"] for row in rows] == ["to do", "to do"]


def test_study_status__a_damaged_variant_is_reported_alone(path):
    result = run_study(load_job(path))
    manifest = result.outcomes[0].path / "manifest.json"
    manifest.write_text("{")
    found = study_status(result.path)
    states = [variant["state"] for variant in found["variants"]]
    assert states == ["failed"] + ["finished"] * (len(states) - 1)
    assert "is damaged" in found["variants"][0]["reason"]

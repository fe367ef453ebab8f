"""`status` of what is no run directory: a job, a directory of runs, files of other kinds."""

import json
import shutil

import pytest

from eigenscape.cli.overview import list_runs
from eigenscape.store.manifest import FORMAT, write_manifest
from machines.users import another_user, shared_directory


@pytest.fixture
def job(write_job, write_tif, small):
    write_tif("scene.tif", small.cube)
    return write_job(output={"formats": []}, features={"dimension": 5})


def test_status__of_a_job_is_that_of_its_run(job, cli, tmp_path):
    result = cli("status", job)
    assert result.exit_code == 2
    for word in (
        "this job has not run in its present form",
        "runs/job-",
        f"`eigenscape run {job}` starts it.",
    ):
        assert word in result.stderr
    made = json.loads(cli("run", job, "--json").stdout.splitlines()[-1])["run"]
    found = json.loads(cli("status", job, "--json").stdout)
    assert (found["run"], found["state"]) == (made, "finished")
    assert "finished" in cli("status", job).stdout
    other = cli("status", job, "--set", "neighbors.k=9")
    assert other.exit_code == 2
    assert f"Runs with other options, files or code: {made}." in other.stderr
    # The directory that holds it, with a second one that is damaged and a folder that is no run.
    shutil.copytree(made, tmp_path / "runs" / "copy")
    (tmp_path / "runs" / "copy" / "manifest.json").write_text("{")
    (tmp_path / "runs" / "notes").mkdir()
    lines = cli("status", tmp_path / "runs").stdout.splitlines()
    assert len(lines) == 2
    assert lines[0].startswith(f"{tmp_path / 'runs' / 'copy'}: run, unknown: ")
    assert "is damaged" in lines[0]
    assert lines[1] == f"{made}: run, finished"
    listed = json.loads(cli("status", tmp_path / "runs", "--json").stdout)
    assert [entry["kind"] for entry in listed["runs"]] == ["run", "run"]
    assert list_runs(tmp_path / "runs" / "copy") == []


def test_status__of_a_study_file(write_job, write_tif, small, cli):
    write_tif("scene.tif", small.cube)
    study = write_job("sweep", study={"grid": {"neighbors.k": [4, 5]}})
    result = cli("status", study)
    assert result.exit_code == 2
    assert "runs/sweep does not exist" in result.stderr


@pytest.mark.parametrize("command", ["run", "plan", "status"])
@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("scene.mat", b"MATLAB 5.0 MAT-file\xd0\x00", ["not text in UTF-8", "`eigenscape init "]),
        (
            "scene.tif",
            b"II*\x00\x08\x00\x00",
            ["zero bytes", "scene.tif` writes a job file for it"],
        ),
        ("long.toml", b"#" * (2**24 + 1), ["more bytes than any job"]),
        ("empty.toml", b"", ["scene is missing", "the one required key"]),
        ("half.toml", b"[scene\n", ["not valid TOML", "line 1"]),
    ],
    ids=["mat", "tif", "long", "empty", "half"],
)
def test_commands__refuse_what_is_no_job(tmp_path, cli, command, name, content, words):
    (tmp_path / name).write_bytes(content)
    result = cli(command, tmp_path / name)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert "Traceback" not in result.stderr
    for word in [str(tmp_path / name), *words]:
        assert word in result.stderr


def test_set__suggests_the_table_of_a_key(job, cli):
    result = cli("plan", job, "--set", "dimension=3")
    assert result.exit_code == 2
    assert "Did you mean features.dimension or spectrum.dimension?" in result.stderr
    assert "Did you mean [neighbors]?" in cli("plan", job, "--set", "neigbors.k=3").stderr


def test_commands__suggest_commands_and_flags(cli, job):
    assert "Did you mean 'status'?" in cli("statsu", job).stderr
    assert "--run-dir" in cli("run", job, "--run-dri", "x").stderr


def test_verify__of_a_job_is_that_of_its_run(finished_run, cli, tmp_path):
    path = next((tmp_path / "runs").iterdir())
    done = cli("verify", finished_run)
    assert done.exit_code == 0, done.stderr
    assert f"{path}: whole" in done.stdout
    (path / "outputs" / "confidence.tif").write_bytes(b"damaged")
    assert cli("verify", finished_run).exit_code == 1
    other = cli("verify", finished_run, "--set", "neighbors.k=9")
    assert other.exit_code == 2
    assert "has not run in its present form" in other.stderr


def test_status__lists_directories_of_another_user(cli):
    with shared_directory() as shared:
        (shared / "private").mkdir(mode=0o700)
        run = shared / "run"
        run.mkdir()
        write_manifest(run, {"format": FORMAT, "name": "run", "stages": {}})
        (run / "lock").touch(mode=0o644)
        (shared / ".run-2.0011.discarded").mkdir()
        write_manifest(shared / ".run-2.0011.discarded", {"format": FORMAT, "stages": {}})
        with another_user():
            found = cli("status", shared)
            one = cli("status", run)
            (listed, _) = list_runs(shared)
        assert found.stdout.splitlines() == [
            f"{shared}/private: directory, unknown: cannot be read (Permission denied)",
            f"{run}: run, unfinished: the same `eigenscape run` continues it",
        ]
        assert one.exit_code == 0
        assert listed["kind"] is None
        (run / "manifest.json").chmod(0o600)
        with another_user():
            refused = cli("status", run)
            assert (
                "manifest.json: cannot be read (Permission denied)" in cli("status", shared).stdout
            )
        assert refused.exit_code == 1
        assert "manifest.json: cannot be read (Permission denied). Ask its owner" in refused.stderr

"""Damage to what finished stages have written: named, and made again, and nothing else."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import eigenscape
from eigenscape import load_job, run, verify
from eigenscape.errors import InputError, StoreError
from eigenscape.store.lock import hold
from eigenscape.store.manifest import read_manifest
from eigenscape.workflow.stages import STAGES

NAMES = [stage.name for stage in STAGES]


class Told:
    """Keeps what a run says."""

    def __init__(self):
        self.notes = []

    def stage(self, name, text):
        pass

    def begin(self, label, total, done):
        pass

    def advance(self):
        pass

    def end(self):
        pass

    def note(self, text):
        self.notes.append(text)


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    return tmp_path_factory.mktemp("kept") / "all"


@pytest.fixture
def finished(written, write_job, tmp_path, kept):
    """Return the job of the small labelled scene, and a finished run of its own to damage."""
    path = tmp_path / "runs" / "one"
    if kept.exists():
        shutil.copytree(kept, tmp_path, dirs_exist_ok=True)
    else:
        formats = ["geotiff", "png", "report"]
        job = write_job("job", scene={"labels": "labels.tif"}, output={"formats": formats})
        run(load_job(job), run_dir=path)
        shutil.copytree(tmp_path, kept)
    return load_job(tmp_path / "job.toml"), path


def zero_half(file):
    content = file.read_bytes()
    file.write_bytes(content[: len(content) // 2] + bytes(len(content) - len(content) // 2))


def content_of(path):
    return {
        str(file.relative_to(path)): file.read_bytes()
        for folder in ("store.zarr", "outputs") for file in (path / folder).rglob("*")
        # The report holds times.
        if file.is_file() and file.name != "report.html"
    }  # fmt: skip


def test_verify__a_whole_run(finished):
    _, path = finished
    found = verify(path)
    assert found["whole"]
    assert [stage["name"] for stage in found["stages"]] == NAMES
    held = sum(stage["files"] for stage in found["stages"])
    groups = ["zarr.json", *(f"{name}/zarr.json" for name in ("graph", "spectrum"))]
    assert all((path / "store.zarr" / name).exists() for name in groups)
    assert held > 50
    assert json.loads((path / "manifest.json").read_text())["checksum"]
    with pytest.raises(InputError, match=rf"no run directory.*such as {path.parent}/"):
        verify(path.parent)


@pytest.mark.slow
def test_run__makes_damaged_stages_again_and_nothing_else(finished):
    job, path = finished
    before = content_of(path)

    def missing(file):
        file.unlink()

    def cut(file):
        file.write_bytes(file.read_bytes()[:-7])

    def stray(file):
        shutil.copy(file, file.with_name("77"))

    for stage, name, harm in (
        ("graph", "store.zarr/graph/0/data/c/0", zero_half),
        ("graph", "store.zarr/graph/degree/c/0", cut),
        ("spectrum", "store.zarr/spectrum/value/zarr.json", zero_half),
        ("learn", "store.zarr/labels/class/c/0", missing),
        ("ingest", "store.zarr/samples/pixel/c/0", stray),
        ("export", "outputs/class_map.tif", zero_half),
        ("export", "outputs/legend.csv", missing),
    ):
        harm(path / name)
        found = verify(path)
        assert not found["whole"]
        assert found["again"] == [stage]
        (text,) = next(part["damage"] for part in found["stages"] if part["name"] == stage)
        assert (
            text.startswith(name.replace("/c/0", "/c/")) if harm is stray else text.startswith(name)
        )
        told = Told()
        result = run(job, run_dir=path, reporter=told)
        (note,) = [note for note in told.notes if "computed again" in note]
        assert stage in note
        assert str(path / text.split()[0]) in note
        assert [part["name"] for part in result.stages if not part["reused"]] == [stage]
        assert content_of(path) == before
        assert verify(path)["whole"]


def test_run__mends_groups_and_the_copy_of_the_job(finished):
    job, path = finished
    zero_half(path / "store.zarr" / "zarr.json")
    (path / "store.zarr" / "graph" / "zarr.json").unlink()
    zero_half(path / "job.toml")
    found = verify(path)
    assert (found["whole"], found["again"]) == (False, [])
    assert sorted(text.split()[0] for text in found["other"]) == [
        "job.toml", "store.zarr/graph/zarr.json", "store.zarr/zarr.json",
    ]  # fmt: skip
    assert all(stage["reused"] for stage in run(job, run_dir=path).stages)
    assert verify(path)["whole"]


def test_verify__a_kill_between_a_changed_job_and_the_manifest_is_no_damage(finished, monkeypatch):
    job, path = finished
    changed = job.model_copy(update={"learn": job.learn.model_copy(update={"seed": 5})})

    def killed(file):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("eigenscape.workflow.runner.file_sum", killed)
        with pytest.raises(KeyboardInterrupt):
            run(changed, run_dir=path)
    assert "seed = 5" in (path / "job.toml").read_text(encoding="utf-8")
    assert verify(path)["whole"]
    run(changed, run_dir=path)
    assert verify(path)["whole"]


def test_run__does_not_take_over_what_is_damaged_beside_it(finished, write_job):
    job, path = finished
    other = load_job(write_job("other", scene={"labels": "labels.tif"}, learn={"train": 0.5}))
    zero_half(path / "store.zarr" / "features" / "values" / "c" / "0" / "0")
    second = path.with_name("two")
    result = run(other, run_dir=second)
    again = {stage["name"] for stage in result.stages if not stage["reused"]}
    assert again == {"features", "learn", "export"}
    assert verify(second)["whole"]
    # What is shared is damaged for both, and made again by each.
    zero_half(path / "store.zarr" / "graph" / "0" / "data" / "c" / "0")
    assert verify(second)["again"] == ["graph"]
    run(other, run_dir=second)
    assert verify(second)["whole"]
    assert verify(path)["again"] == ["features", "graph"]
    run(job, run_dir=path)
    assert verify(path)["whole"]


def test_read_manifest__one_that_was_changed_is_refused(finished):
    _, path = finished
    file = path / "manifest.json"
    whole = file.read_bytes()
    content = read_manifest(path)
    refused = 0
    for place in np.linspace(1, len(whole) - 2, 300).astype(int).tolist():
        file.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        try:
            # White space says nothing.
            assert read_manifest(path) == content
        except StoreError:
            refused += 1
    assert refused > 200


def test_apply__refuses_a_damaged_run(finished, tmp_path):
    _, path = finished
    scene = tmp_path / "scene.tif"
    for name, stage in (
        ("store.zarr/learn/model/c/0/0", "learn"), ("store.zarr/neighbors/index/c/0/0", "neighbors"),
    ):  # fmt: skip
        whole = (path / name).read_bytes()
        zero_half(path / name)
        with pytest.raises(StoreError, match=rf"{name} is damaged.* stage {stage} again"):
            eigenscape.apply(path, scene)
        with pytest.raises(StoreError, match=f"{name} is damaged"):
            eigenscape.extend(path, np.zeros((1, 12), np.float32))
        (path / name).write_bytes(whole)
    text = (path / "job.toml").read_text()
    (path / "job.toml").write_text(text.replace('"self-tuning"', '"binary"'))
    with pytest.raises(StoreError, match=r"job\.toml is damaged"):
        eigenscape.apply(path, scene)


def test_run__damage_while_a_stage_is_at_work_is_named(finished, monkeypatch):
    job, path = finished
    changed = job.model_copy(update={"learn": job.learn.model_copy(update={"seed": 5})})

    def broken(context):
        (path / "store.zarr" / "spectrum" / "vector" / "c" / "0" / "0").unlink()
        raise ValueError("cannot reshape")

    monkeypatch.setattr(
        "eigenscape.workflow.spine.STAGES",
        tuple(
            stage if stage.name != "learn" else type(stage)(**{**vars(stage), "work": broken})
            for stage in STAGES
        ),
    )
    with pytest.raises(
        StoreError, match=r"spectrum/vector/c/0/0 is missing, since the stage learn began"
    ):
        run(changed, run_dir=path)


def test_verify__leaves_alone_what_a_process_works_on(finished):
    _, path = finished
    work = path / "work" / "learn-aa"
    work.mkdir(parents=True)
    with hold(path, lambda _: None):
        found = verify(path)
    assert "process" in found["holder"]
    assert found["unfinished"] == []
    assert verify(path)["unfinished"] == [{"name": "learn", "damage": []}]


def test_verify_command__says_what_is_damaged_and_what_a_run_will_do(finished, cli):
    _, path = finished
    assert cli("verify", path).exit_code == 0
    zero_half(path / "outputs" / "confidence.tif")
    result = cli("verify", path)
    assert result.exit_code == 1
    assert "outputs/confidence.tif is damaged" in result.stdout
    assert "The next run computes export again, and nothing else." in result.stdout
    result = cli("verify", path, "--json")
    assert result.exit_code == 1
    assert json.loads(result.stdout)["again"] == ["export"]
    assert cli("verify", path.parent).exit_code == 2


@pytest.mark.exhaustive
@pytest.mark.slow
@pytest.mark.long
def test_damage__a_dozen_at_random():
    bench = Path(__file__).parents[1] / "bench" / "faults" / "damage.py"
    done = subprocess.run(
        [sys.executable, bench, "--damages", "12", "--moments", "12", "--size", "24"],
        capture_output=True, text=True, check=False, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["failures"] == []
    assert found["same"] + found["refused"] == 12

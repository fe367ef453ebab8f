import shutil
from pathlib import Path

import numpy as np
import pytest

from eigenscape.batch.outcomes import SceneOutcome
from eigenscape.batch.sources import Scene, with_name
from eigenscape.batch.table import BatchTable, batch_status, earlier_rows, keep_names
from eigenscape.errors import StoreError
from eigenscape.job.jobfile import parse_job


@pytest.fixture
def outcome(tmp_path):
    """Return a function that gives the outcome of a scene whose file is there."""

    def make(name, folder="one", state="failed", **fields):
        file = tmp_path / folder / f"{name}.npy"
        file.parent.mkdir(exist_ok=True)
        np.save(file, np.zeros(1))
        job = parse_job({"scene": {"path": str(file)}}, name=name, base=tmp_path, source="test")
        return SceneOutcome(Scene(name, job), state=state, **fields)

    return make


def write_outcomes(directory, outcomes, earlier=()):
    BatchTable(directory, outcomes, earlier).write()


def told(directory):
    return [(row["scene"], row["state"]) for row in earlier_rows(directory)]


def test_write_outcomes__rows_of_other_scenes_stay(tmp_path, outcome):
    write_outcomes(tmp_path, [outcome("a"), outcome("b", state="to do")])
    first = earlier_rows(tmp_path)
    write_outcomes(
        tmp_path, [outcome("c"), outcome("a", "two"), outcome("b", state="failed")], first
    )
    # A scene of the same name in another folder is another scene.
    assert sorted(told(tmp_path)) == [("a", "failed")] * 2 + [("b", "failed"), ("c", "failed")]
    folders = {
        Path(row["files"]).parent.name for row in earlier_rows(tmp_path) if row["scene"] == "a"
    }
    assert folders == {"one", "two"}
    rows = earlier_rows(tmp_path)
    write_outcomes(tmp_path, [outcome(name) for name in "abc"], rows)
    assert len(earlier_rows(tmp_path)) == 4


def test_keep_names__a_scene_keeps_its_own_when_others_come_and_go(tmp_path, outcome):
    first, second = outcome("x", "one").scene, outcome("x", "two").scene
    both = [with_name(first, "x-0a1b2c"), with_name(second, "x-3d4e5f")]
    write_outcomes(tmp_path, [SceneOutcome(first, state="failed")])
    kept = keep_names(both, earlier_rows(tmp_path))
    assert [(scene.name, scene.job.name) for scene in kept] == [("x",) * 2, ("x-3d4e5f",) * 2]
    write_outcomes(tmp_path, [SceneOutcome(scene, state="failed") for scene in kept])
    rows = earlier_rows(tmp_path)
    assert [scene.name for scene in keep_names([second], rows)] == ["x-3d4e5f"]
    assert [scene.name for scene in keep_names(both[::-1], rows)] == ["x-3d4e5f", "x"]
    # A name that is given is no stem with something added.
    (named,) = keep_names([with_name(first, "north")], rows)
    assert named.name == "north"


def test_keep_names__the_same_files_with_other_keys_have_names_of_their_own(tmp_path, outcome):
    scene = outcome("x").scene
    twice = [with_name(scene, "x-0a1b2c"), with_name(scene, "x-0a1b2c-2")]
    write_outcomes(tmp_path, [SceneOutcome(one, state="failed") for one in twice])
    assert keep_names(twice, earlier_rows(tmp_path)) == twice
    assert keep_names([Scene("x", None)], [{"scene": "x-0a1b2c", "state": "failed"}])[0].name == "x"


def test_write_outcomes__what_is_gone_leaves_the_table(tmp_path, outcome):
    done = outcome("a", state="done", path=tmp_path / "scenes" / "a-1")
    write_outcomes(tmp_path, [done, outcome("b"), SceneOutcome(Scene("c", None), state="failed")])
    shutil.rmtree(tmp_path / "one")
    rows = earlier_rows(tmp_path)
    write_outcomes(tmp_path, [outcome("c")], rows)
    # The run is still there; of b neither file nor run is; the job of c can be read by now.
    assert told(tmp_path) == [("a", "done"), ("c", "failed")]
    moved = tmp_path / "moved"
    moved.mkdir()
    write_outcomes(moved, [], earlier_rows(tmp_path))
    assert told(moved) == [("c", "failed")]


def test_earlier_rows__of_no_table_and_of_another_one(tmp_path):
    assert earlier_rows(tmp_path) == []
    (tmp_path / "batch.csv").write_text("name,result\na,1\n")
    assert earlier_rows(tmp_path) == []
    with pytest.raises(StoreError, match="not written by this version"):
        batch_status(tmp_path)


def test_batch_status__a_damaged_run_is_reported_alone(tmp_path, outcome):
    directory = tmp_path / "batch"
    damaged, empty = directory / "scenes" / "a-1", directory / "scenes" / "b-1"
    for path in (damaged, empty):
        path.mkdir(parents=True)
    (damaged / "manifest.json").write_text("{")
    write_outcomes(
        directory,
        [outcome("a", state="done", path=damaged), outcome("b", state="done", path=empty)],
    )
    moved = directory.rename(tmp_path / "moved")
    first, second = batch_status(moved)["scenes"]
    assert first["run"] == str(moved / "scenes" / "a-1")
    assert (first["state"], second["state"]) == ("failed", "to do")
    assert "is damaged" in first["reason"]


def test_batch_table__makes_each_row_once(tmp_path, outcome, monkeypatch):
    made = []
    row = SceneOutcome.row
    monkeypatch.setattr(SceneOutcome, "row", lambda self: made.append(self.title) or row(self))
    table = BatchTable(tmp_path, [outcome(name, state="to do") for name in "abc"])
    table.write()
    table.put(1, outcome("b", state="failed"))
    table.write()
    assert made == ["a", "b", "c", "b"]
    assert told(tmp_path) == [("a", "to do"), ("b", "failed"), ("c", "to do")]

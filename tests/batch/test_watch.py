import os
import time
from pathlib import Path

import numpy as np
import pytest

from eigenscape.base.files.tables import read_table
from eigenscape.batch import watch
from eigenscape.batch.outcomes import SceneOutcome
from eigenscape.batch.run import run_batch
from eigenscape.batch.sources import Scene
from eigenscape.batch.table import batch_status
from eigenscape.job.jobfile import parse_job
from harness import Notes


@pytest.fixture
def looks(monkeypatch):
    """Return a function that says what happens before each later look; then the user ends the watch."""

    def script(*actions):
        left = list(actions)

        def sleep(seconds):
            assert seconds == 30
            if not left:
                raise KeyboardInterrupt
            left.pop(0)()

        monkeypatch.setattr(watch, "sleep", sleep)

    return script


@pytest.mark.slow
def test_run_batch__watches_for_scenes_and_leaves_those_that_grow(write_scenes, source_of, looks):
    directory = write_scenes(("a",))
    tiles = directory / "tiles"
    whole = (tiles / "a.npy").read_bytes()
    table = directory / "runs" / "many" / "batch.csv"
    seen = []
    old = time.time() - 60
    os.utime(tiles / "a.npy", (old, old))

    def write(name, size):
        def action():
            (tiles / name).write_bytes(whole[:size])

        return action

    def look():
        seen.append({row["scene"]: row["state"] for row in read_table(table)})

    def rewrite():
        np.save(tiles / "c.npy", np.load(tiles / "a.npy") + 1)
        os.utime(tiles / "c.npy", (old, old))

    def both(*actions):
        return lambda: [action() for action in actions]

    looks(
        both(look, write("b.npy", 3000)),
        both(look, write("b.npy", None), write("c.npy", 100)),
        look,  # neither changed since the last look
        both(look, rewrite),
        both(look, (tiles / "c.npy").unlink),
        look,
    )
    result = run_batch(source_of(directory), watch=30, at_once=1)
    assert seen == [
        {"a": "done"},
        {"a": "done", "b": "to do"},
        {"a": "done", "b": "to do", "c": "to do"},
        {"a": "done", "b": "done", "c": "failed"},
        {"a": "done", "b": "done", "c": "done"},
        {"a": "done", "b": "done", "c": "done"},
    ]
    assert result.exit_status == 0
    assert batch_status(result.path)["state"] == "3 done"
    assert not list((result.path / "failures").iterdir())


def test_run_batch__a_failure_is_not_tried_at_every_look(write_scenes, source_of, looks):
    directory = write_scenes(())
    looks(
        lambda: None,
        lambda: (directory / "tiles" / "x.npy").write_text("none"),
        *[lambda: None] * 3,
    )
    result = run_batch(source_of(directory), watch=30, at_once=1)
    (outcome,) = result.outcomes
    assert outcome.state == "failed"
    assert result.exit_status == 2


def test_run_batch__a_table_may_be_away_while_it_is_written(write_scenes, source_of, looks):
    reporter = Notes()
    directory = write_scenes(())
    table = directory / "scenes.csv"
    table.write_text("scene.path\n")
    seen = []
    looks(
        table.unlink,
        lambda: None,
        lambda: table.write_text("scene.path\nnone.npy\n"),
        lambda: seen.extend(read_table(directory / "runs" / "many" / "batch.csv")),
    )
    run_batch(
        source_of(directory, scenes=None, table=table), watch=30, at_once=1, reporter=reporter
    )
    assert [row["state"] for row in seen] == ["failed"]
    assert " ".join(reporter.notes).count("The watch continues") == 1


def test_run_batch__its_own_results_are_no_scenes(write_scenes, source_of, looks):
    reporter = Notes()
    directory = write_scenes(("a",))
    source = source_of(directory, scenes=str(directory / "**" / "[!l]*.npy"))
    results = directory / "runs" / "many" / "scenes"
    looks(
        lambda: [(path / "outputs" / "map.npy").touch() for path in results.iterdir()],
        lambda: [(path / "outputs" / "other.npy").touch() for path in results.iterdir()],
        lambda: None,
    )
    result = run_batch(source, watch=30, at_once=1, reporter=reporter)
    assert [outcome.scene.name for outcome in result.outcomes] == ["a"]
    (note,) = [note for note in reporter.notes if "left out" in note]
    assert "1 path left out: results of this batch" in note
    assert "name them in a table" in note


def test_newest__a_file_may_be_gone_again(tmp_path, monkeypatch):
    (tmp_path / "scene").mkdir()
    kept, gone = tmp_path / "scene" / "kept.tif", tmp_path / "scene" / "gone.tif"
    kept.touch()
    gone.touch()
    stat = Path.stat

    def stat_once(self, **keywords):
        if self == gone:
            raise FileNotFoundError(self)
        return stat(self, **keywords)

    job = parse_job({"scene": {"path": str(kept.parent)}})
    outcome = SceneOutcome(Scene("a", job))
    monkeypatch.setattr(watch, "scene_paths", lambda *_: (str(kept.parent),))
    monkeypatch.setattr(Path, "stat", stat_once)
    monkeypatch.setattr(Path, "exists", lambda self: True)
    assert watch._newest(outcome) >= stat(kept).st_mtime

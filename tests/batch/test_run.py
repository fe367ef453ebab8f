import multiprocessing
import os
import shutil
import signal
import subprocess
import threading
import time
from pathlib import Path

import numpy as np
import pytest
import rasterio

from eigenscape.base.files.tables import read_table
from eigenscape.batch.run import run_batch
from eigenscape.batch.sources import Source
from eigenscape.batch.table import batch_status
from eigenscape.clusters import ClusterOptions
from eigenscape.errors import BusyError, ClusterError, InputError
from eigenscape.store.run import Run, hold
from forks import Fork

ROOT = Path(__file__).resolve().parents[2]
NOBODY = ClusterOptions(kind="existing", address="tcp://127.0.0.1:1")
"""A cluster that cannot be reached: whoever opens it fails."""


def states(result):
    return {outcome.scene.name: outcome.state for outcome in result.outcomes}


def rows(result):
    return {row["scene"]: row for row in read_table(result.path / "batch.csv")}


def classes(row):
    assert Path(row["class_map"]).stat().st_size > 0
    return Run(Path(row["run"]), create=False).open("labels/class")[...].tolist()


@pytest.fixture(scope="module")
def batch(write_scenes, source_of):
    """Three scenes and two broken files, run one after another."""
    directory = write_scenes()
    (directory / "tiles" / "broken.npy").write_text("not an array")
    whole = (directory / "tiles" / "a.npy").read_bytes()
    (directory / "tiles" / "cut.npy").write_bytes(whole[:2000])
    return directory, run_batch(source_of(directory), at_once=1)


def test_run_batch__one_bad_scene_does_not_stop_the_others(batch):
    directory, result = batch
    assert result.path == directory / "runs" / "many"
    assert result.exit_status == 2
    found = rows(result)
    assert [found[name]["state"] for name in "abc"] == ["done"] * 3
    for name in ("broken", "cut"):
        assert found[name]["state"] == "failed"
        assert f"{name}.npy" in found[name]["reason"]
        trace = (result.path / "failures" / f"{name}.txt").read_text()
        assert "Traceback" in trace
    for name in "abc":
        assert float(found[name]["seconds"]) > 0
        assert float(found[name]["overall_accuracy"]) > 0.6
        assert found[name]["measured_on"] == "pixels held out (blocked)"
        assert set(classes(found[name])) == {1, 2, 3}
    assert batch_status(result.path)["state"] == "3 done, 2 failed"


@pytest.mark.exhaustive
@pytest.mark.shared_data
def test_run_batch__enmap_tiles(tmp_path, shared_data):
    (tmp_path / "tiles").mkdir()
    tiles = sorted((shared_data / "enmap-potsdam" / "tiles").glob("*.tif"))
    one_class = [tile for tile in tiles if tile.stem.endswith("_64_32")]
    tiles = tiles[::6] + one_class
    for tile in tiles:
        (tmp_path / "tiles" / tile.name).symlink_to(tile)
    first = tiles[0].read_bytes()
    (tmp_path / "tiles" / "empty.tif").touch()
    (tmp_path / "tiles" / "cut.tif").write_bytes(first[: len(first) // 2])
    (tmp_path / "tiles" / "text.tif").write_text("Not Found")
    labels = shared_data / "enmap-potsdam" / "enmap_potsdam_mosaic_labels.tif"
    source = Source(
        template=ROOT / "jobs" / "enmap-tiles.toml",
        scenes=str(tmp_path / "tiles" / "*.tif"),
        overrides=(f"scene.labels={labels}", "limits.threads=2"),
    )
    result = run_batch(source, run_dir=tmp_path / "runs")
    found = rows(result)
    for tile in tiles:
        row = found[tile.stem]
        assert row["state"] == "done", row["reason"]
        with rasterio.open(row["class_map"]) as classes, rasterio.open(tile) as scene:
            assert (classes.crs, classes.transform) == (scene.crs, scene.transform)
            assert (classes.shape, classes.read(1).max()) == (scene.shape, 6)
    for broken in ("empty", "cut", "text"):
        assert found[broken]["state"] == "failed"
        assert f"{broken}.tif" in found[broken]["reason"]


@pytest.mark.slow
def test_run_batch__again_does_nothing_and_a_touched_scene_alone(batch, source_of, tmp_path):
    directory = tmp_path / "copy"
    shutil.copytree(batch[0], directory)
    (directory / "runs" / "many" / "batch.csv").unlink()  # it names files of the other directory
    for broken in ("broken", "cut"):
        (directory / "tiles" / f"{broken}.npy").unlink()
    source = source_of(directory)
    again = run_batch(source, on=NOBODY)
    assert states(again) == dict.fromkeys("abc", "skipped")
    assert again.exit_status == 0
    first, second = rows(batch[1]), rows(again)
    for key in ("seconds", "overall_accuracy"):
        assert [second[name][key] for name in "abc"] == [first[name][key] for name in "abc"]
    # Rows of other scenes stay, and those of a batch that saw the same scenes do not come twice.
    alone = run_batch(source_of(directory, scenes=str(directory / "tiles" / "a.npy")), on=NOBODY)
    assert (states(alone), rows(alone)) == ({"a": "skipped"}, second)
    os.utime(directory / "tiles" / "b.npy")
    # What cannot be opened fails before a cluster is asked for.
    (directory / "tiles" / "broken.npy").write_text("still none")
    with pytest.raises(ClusterError):
        run_batch(source, on=NOBODY)
    assert batch_status(again.path)["state"] == "2 skipped, 1 failed, 1 to do"
    (directory / "tiles" / "broken.npy").unlink()
    touched = run_batch(source)
    assert states(touched) == {"a": "skipped", "b": "done", "c": "skipped"}
    assert classes(rows(touched)["b"]) == classes(second["b"])


@pytest.mark.slow
def test_run_batch__a_scene_is_not_computed_again_when_another_one_has_its_stem(
    write_scenes, source_of
):
    directory = write_scenes(("x",))
    source = source_of(directory, scenes=str(directory / "**" / "x.npy"))
    assert states(run_batch(source)) == {"x": "done"}
    (directory / "more").mkdir()
    np.save(directory / "more" / "x.npy", np.load(directory / "tiles" / "x.npy") + 1)
    both = run_batch(source)
    other = next(name for name in states(both) if name != "x")
    assert states(both) == {"x": "skipped", other: "done"}
    assert [row["scene"] for row in read_table(both.path / "batch.csv")] == [other, "x"]
    (directory / "tiles" / "x.npy").unlink()
    assert states(run_batch(source)) == {other: "skipped"}


def test_batch_status__tells_when_a_run_was_deleted(batch, source_of, tmp_path):
    directory = tmp_path / "copy"
    shutil.copytree(batch[0], directory)
    (directory / "runs" / "many" / "batch.csv").unlink()  # it names files of the other directory
    result = run_batch(
        source_of(directory, scenes=str(directory / "tiles" / "[ab].npy")), on=NOBODY
    )
    shutil.rmtree(rows(result)["a"]["run"])
    found = batch_status(result.path)
    assert found["state"] == "1 skipped, 1 to do"
    assert found["holder"] is None


def check_same(batch, result):
    """The same classes and scores as one after another, and the same failure."""
    one, other = rows(batch[1]), rows(result)
    for name in "abc":
        assert classes(one[name]) == classes(other[name])
        assert one[name]["overall_accuracy"] == other[name]["overall_accuracy"]
    assert "cut.npy" in other["cut"]["reason"]
    assert "Traceback" in (result.path / "failures" / "cut.txt").read_text()


@pytest.mark.slow
def test_run_batch__side_by_side_on_a_cluster_comes_to_the_same(batch, source_of):
    directory = batch[0]
    source = source_of(directory)
    on = ClusterOptions(kind="local", workers=1)
    result = run_batch(source, on=on, at_once=2, run_dir=directory / "on-a-cluster")
    assert states(result) == states(batch[1])
    check_same(batch, result)


@pytest.mark.slow
def test_run_batch__side_by_side_in_processes_outlives_one_that_is_killed(batch, source_of):
    directory = batch[0]
    source = source_of(directory)
    target = directory / "in-processes"

    def kill():
        while not (children := multiprocessing.active_children()):
            time.sleep(0.01)
        children[0].kill()

    threading.Thread(target=kill, daemon=True).start()
    result = run_batch(source, at_once=2, run_dir=target)
    assert not multiprocessing.active_children()
    lost = [o for o in result.outcomes if "its process was ended by SIGKILL" in o.reason]
    assert len(lost) == 1
    assert result.count("done") == (2 if lost[0].scene.name != "cut" else 3)
    again = run_batch(source, run_dir=target)
    once_more = [lost[0].scene.name] * (lost[0].scene.name != "cut")
    assert [o.title for o in again.outcomes if o.state == "done"] == once_more
    assert again.count("failed") == 2
    check_same(batch, again)


@pytest.mark.slow
def test_run_batch__a_killed_one_goes_on(write_scenes, source_of):
    directory = write_scenes()
    # What the driver works on itself: a kill leaves the scene where it was.
    command = [
        "-m", "eigenscape", "batch", "--template", directory / "many.toml",
        "--scenes", directory / "tiles" / "*.npy", "--at-once", "1",
    ]  # fmt: skip
    process = Fork(command, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    runs = directory / "runs" / "many" / "scenes"
    until = time.monotonic() + 60
    while not list(runs.glob("b-*/manifest.json")) and time.monotonic() < until:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    (begun,) = runs.glob("b-*")
    before = set(Run(begun, create=False).manifest["stages"])
    assert "export" not in before
    result = run_batch(source_of(directory), at_once=1)
    assert states(result) == {"a": "skipped", "b": "done", "c": "done"}
    assert len(list(runs.iterdir())) == 3


def test_run_batch__two_of_one_directory_do_not_work_at_once(batch, source_of):
    directory, result = batch
    with (
        hold(result.path, lambda _: None),
        pytest.raises(
            BusyError, match=r"many is being worked on by process \d+ on .* another --run-dir"
        ),
    ):
        run_batch(source_of(directory))


def test_run_batch__refuses_a_pattern_without_scenes(write_scenes, source_of):
    directory = write_scenes(())
    with pytest.raises(InputError, match="no scene found"):
        run_batch(source_of(directory), run_dir=directory / "none")
    assert not (directory / "none").exists()


def test_batch__prints_and_ends_with_2_where_a_scene_failed(batch, cli):
    directory, result = batch
    arguments = [
        "--template",
        directory / "many.toml",
        "--scenes",
        directory / "tiles" / "[ab]*.npy",
    ]
    done = cli("batch", *arguments)
    assert done.exit_code == 2
    assert "2 skipped, 1 failed" in done.stdout
    assert "eigenscape: broken failed: " in done.stderr
    # The other scenes of the directory are still in its table.
    shown = cli("status", result.path)
    assert "1 done, 2 skipped, 2 failed" in shown.stdout
    fine = cli("batch", *arguments[:3], directory / "tiles" / "[ab].npy", "--json")
    assert fine.exit_code == 0
    assert '"skipped": 2' in fine.stdout
    # A page about all of them, with links to the reports of those that are done.
    assert cli("report", result.path).stdout.strip() == str(result.path / "report.html")
    page = (result.path / "report.html").read_text(encoding="utf-8")
    assert page.count("<li>") == 5
    assert page.count('href="scenes/') == 3


@pytest.mark.slow
def test_run_batch__a_name_that_is_not_utf_8_fails_alone(write_scenes, source_of):
    directory = write_scenes(("a",))
    for folder in ("one", "two"):
        (directory / "tiles" / folder).mkdir()
        name = os.fsdecode(b"b\xff.npy")
        shutil.copy(directory / "tiles" / "a.npy", directory / "tiles" / folder / name)
    pattern = str(directory / "tiles" / "**" / "*.npy")
    for state in ("done", "skipped"):
        result = run_batch(source_of(directory, scenes=pattern), run_dir=directory / "many")
        states = [outcome.state for outcome in result.outcomes]
        assert sorted(states) == sorted([state, "failed", "failed"])
    assert len(read_table(directory / "many" / "batch.csv")) == 3

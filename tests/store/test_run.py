import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from eigenscape.errors import OutputError, StoreError
from eigenscape.store import manifest
from eigenscape.store import run as store
from eigenscape.store import tree as zarrstore
from eigenscape.store.arrays import open_array
from eigenscape.store.lock import lock_holder
from eigenscape.store.manifest import Record, read_manifest
from eigenscape.store.run import Run

N = 10


def build(run, stage="learn", key="aa", *, value=1, arrays=("labels/class",), files=("map.tif",)):
    """Fill a workspace; return it with its record."""
    workspace = run.workspace(stage, key)
    for name in arrays:
        path = workspace.create_array(name, (N,), np.float32)
        open_array(path)[...] = np.full(N, value, np.float32)
    for name in files:
        workspace.file(name).write_text(str(value))
    (workspace.folder("deep") / "file").write_text("scratch")
    record = Record(key, 1.0, 5, workspace.arrays(), workspace.files(), {"value": value})
    return workspace, record


def commit(run, stage="learn", key="aa", **keys):
    workspace, record = build(run, stage, key, **keys)
    run.commit(stage, workspace, record)
    return run.record(stage)


def files_of(run):
    return sorted(str(path.relative_to(run.path)) for path in run.path.rglob("*") if path.is_file())


# --- commit and recovery


def test_commit__puts_everything_into_place(tmp_path):
    run = Run(tmp_path)
    record = commit(run, value=4)
    assert run.is_finished("learn", "aa")
    assert not run.is_finished("learn", "bb")
    assert not run.is_finished("graph", "aa")
    again = Run(tmp_path)
    assert again.record("learn") == record
    assert again.record("graph") is None
    np.testing.assert_array_equal(again.open("labels/class")[...], 4)
    assert (tmp_path / "outputs" / "map.tif").read_text() == "4"
    assert not (tmp_path / "work").exists()
    assert files_of(run) == [
        "manifest.json",
        "outputs/map.tif",
        "store.zarr/labels/class/c/0",
        "store.zarr/labels/class/zarr.json",
        "store.zarr/labels/zarr.json",
        "store.zarr/zarr.json",
    ]


def test_commit__leaves_out_what_a_killed_writer_began(tmp_path):
    run = Run(tmp_path)
    run.workspace("learn", "aa").file(".map.0a1b.tif").write_text("half")
    record = commit(run)
    assert record.files == ("map.tif",)
    assert [path.name for path in (tmp_path / "outputs").iterdir()] == ["map.tif"]
    assert not (tmp_path / "work").exists()


def test_commit__makes_no_outputs_without_files(tmp_path):
    commit(Run(tmp_path), files=())
    assert not (tmp_path / "outputs").exists()


def test_commit__makes_a_store_that_zarr_opens(tmp_path):
    import zarr

    run = Run(tmp_path)
    commit(run, arrays=("a/b/c", "a/d"))
    group = zarr.open_group(str(tmp_path / "store.zarr"), mode="r")
    np.testing.assert_array_equal(group["a/b/c"][...], 1)
    assert sorted(name for name, _ in group["a"].members()) == ["b", "d"]


def test_commit__replaces_a_stage_and_keeps_the_others(tmp_path):
    run = Run(tmp_path)
    commit(run, "graph", "gg", value=7, arrays=("graph/degree",), files=())
    commit(run, "learn", "aa", arrays=("labels/class", "labels/old"), files=("map.tif", "old.png"))
    commit(run, "learn", "bb", value=2, arrays=("labels/class", "labels/new"), files=("map.tif",))
    run = Run(tmp_path)
    assert not run.is_finished("learn", "aa")
    assert run.is_finished("learn", "bb")
    assert run.is_finished("graph", "gg")
    np.testing.assert_array_equal(run.open("labels/class")[...], 2)
    np.testing.assert_array_equal(run.open("graph/degree")[...], 7)
    assert not run.array_path("labels/old").exists()
    assert [path.name for path in (tmp_path / "outputs").iterdir()] == ["map.tif"]


FIRST = [
    ("sync_tree", 0), ("sync_tree", 1), ("COMMIT", 0), ("group", 0), ("group", 1),
    ("move", 0), ("move", 1), ("move", 2), ("move", 3), ("manifest", 0), ("rmtree", 0),
]  # fmt: skip
SECOND = [
    ("sync_tree", 0), ("sync_tree", 1), ("COMMIT", 0), ("manifest", 0), ("move", 0),
    ("move", 1), ("move", 2), ("move", 3), ("manifest", 1), ("rmtree", 0), ("array", 0),
]  # fmt: skip
STEPS = [(*step, False) for step in FIRST] + [(*step, True) for step in SECOND]


class Killed(BaseException):
    """Stands for the end of the process."""


def die_at(monkeypatch, what, number, *, after):
    """Raise before (or after) the `number`-th call of one step of the commit."""
    calls = iter(range(100))

    def wrap(function, wanted=lambda *_: True):
        def dying(*arguments, **keys):
            dies = wanted(*arguments) and next(calls) == number
            if dies and not after:
                raise Killed
            result = function(*arguments, **keys)
            if dies:
                raise Killed
            return result

        return dying

    names = {"manifest": (manifest, "manifest.json"), "COMMIT": (manifest, "COMMIT")}
    names["group"] = (zarrstore, "zarr.json")
    if what in names:
        module, name = names[what]
        wanted = lambda path, _: path.name == name  # noqa: E731
        monkeypatch.setattr(module, "write_json", wrap(module.write_json, wanted))
    elif what in ("rmtree", "array"):
        parent = {"rmtree": "work", "array": "store.zarr"}[what]
        wanted = lambda path, **_: path.parent.name == parent  # noqa: E731
        monkeypatch.setattr(store.shutil, "rmtree", wrap(store.shutil.rmtree, wanted))
    else:
        monkeypatch.setattr(store, what, wrap(getattr(store, what)))


@pytest.mark.mostly_slow(12)
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize(("what", "number", "replaces"), STEPS)
def test_recover__after_a_crash_at_any_step(tmp_path, what, number, after, replaces):
    run = Run(tmp_path)
    names = {"arrays": ("labels/class", "labels/more"), "files": ("map.tif", "map.png")}
    if replaces:
        commit(run, "learn", "old", value=1, arrays=("labels/class", "old"), files=("map.tif", "o"))
    workspace, record = build(run, "learn", "new", value=2, **names)
    with pytest.MonkeyPatch.context() as patch:
        die_at(patch, what, number, after=after)
        with pytest.raises(Killed):
            run.commit("learn", workspace, record)
    # What looks finished now is whole, and of one attempt.
    run = Run(tmp_path)
    for key, value in (("old", "1"), ("new", "2")):
        if run.is_finished("learn", key):
            assert (tmp_path / "outputs" / "map.tif").read_text() == value
            np.testing.assert_array_equal(run.open("labels/class")[...], int(value))
    decided = (workspace.path / "COMMIT").exists() or run.is_finished("learn", "new")
    with run.lock(lambda _: None):
        if not decided:
            assert not run.is_finished("learn", "new")
            workspace, record = build(run, "learn", "new", value=2, **names)
            run.commit("learn", workspace, record)
    assert run.is_finished("learn", "new")
    np.testing.assert_array_equal(run.open("labels/class")[...], 2)
    undisturbed = Run(tmp_path / "undisturbed")
    commit(undisturbed, "learn", "new", value=2, **names)
    ours = [name for name in files_of(run) if not name.startswith("undisturbed")]
    assert set(ours) - {"lock"} == set(files_of(undisturbed))
    assert not (tmp_path / "work").exists()


def test_recover__half_of_a_workspace_is_never_taken_up_again(tmp_path):
    run = Run(tmp_path)
    old, _ = build(run, "learn", "old")
    old.journal.finish({"x": 1}, {})
    with pytest.MonkeyPatch.context() as patch:
        die_at(patch, "rmtree", 0, after=False)
        with pytest.raises(Killed):
            run.workspace("learn", "new")
    with run.lock(lambda _: None):
        assert not (tmp_path / "work").exists()
        assert run.workspace("learn", "old").finished_blocks() == {}


def test_is_finished__false_without_an_array_or_a_file(tmp_path):
    import shutil

    run = Run(tmp_path)
    commit(run)
    (tmp_path / "outputs" / "map.tif").unlink()
    assert not run.is_finished("learn", "aa")
    commit(run)
    assert run.is_finished("learn", "aa")
    shutil.rmtree(run.array_path("labels/class"))
    assert not run.is_finished("learn", "aa")


# --- sharing


def test_link_from__shares_arrays_and_outlives_the_other(tmp_path):
    import shutil

    one, two = Run(tmp_path / "one"), Run(tmp_path / "two")
    commit(one, "graph", "gg", value=7, arrays=("graph/degree", "graph/x"), files=())
    assert not two.link_from(one, "graph", "hh")
    assert two.link_from(one, "graph", "gg")
    assert two.record("graph") == one.record("graph")
    chunk = "store.zarr/graph/degree/c/0"
    assert (one.path / chunk).stat().st_ino == (two.path / chunk).stat().st_ino
    shutil.rmtree(one.path)
    np.testing.assert_array_equal(two.open("graph/degree")[...], 7)
    assert not (two.path / "work").exists()


def test_link_from__not_what_has_files_is_incomplete_or_replaced(tmp_path, monkeypatch):
    import shutil

    one, two = Run(tmp_path / "one"), Run(tmp_path / "two")
    commit(one, "learn", "aa")
    assert not two.link_from(one, "learn", "aa")
    commit(one, "graph", "gg", arrays=("graph/degree",), files=())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "link", lambda *_, **__: (_ for _ in ()).throw(OSError("no links")))
        assert not two.link_from(one, "graph", "gg")
    copy = shutil.copytree

    def replaced_meanwhile(*arguments, **keys):
        copy(*arguments, **keys)
        commit(Run(one.path), "graph", "hh", value=9, arrays=("graph/degree",), files=())

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store.shutil, "copytree", replaced_meanwhile)
        assert not two.link_from(one, "graph", "gg")
    assert two.record("graph") is None
    shutil.rmtree(one.array_path("graph/degree"))
    assert not two.link_from(one, "graph", "hh")


def test_link_from__replacing_the_source_leaves_the_link(tmp_path):
    one, two = Run(tmp_path / "one"), Run(tmp_path / "two")
    commit(one, "graph", "gg", value=7, arrays=("graph/degree",), files=())
    assert two.link_from(one, "graph", "gg")
    commit(one, "graph", "hh", value=8, arrays=("graph/degree",), files=())
    np.testing.assert_array_equal(two.open("graph/degree")[...], 7)
    np.testing.assert_array_equal(one.open("graph/degree")[...], 8)


# --- manifest and errors


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", r"manifest\.json is damaged .* Delete the run directory"),
        ("", r"manifest\.json is damaged"),
        ("[]", "not the manifest of a run"),
        (
            '{"format": 99, "stages": {}}',
            r"is of format 99.* format 3\. The run is left.*--run-dir",
        ),
    ],
)
def test_run__manifest_that_cannot_be_used(tmp_path, text, words):
    (tmp_path / "manifest.json").write_text(text)
    with pytest.raises(StoreError, match=words):
        Run(tmp_path)


@pytest.mark.parametrize("text", [b"\xff\xfe{}", b'{"format": 3}', b'{"format": 3, "stages": 3}'])
def test_run__manifest_that_is_no_manifest(tmp_path, text):
    (tmp_path / "manifest.json").write_bytes(text)
    with pytest.raises(StoreError, match=r"manifest\.json"):
        Run(tmp_path)


def test_read_manifest__none_yet(tmp_path):
    assert read_manifest(tmp_path) == {"format": 3, "stages": {}}


def test_run__where_a_file_is(tmp_path):
    (tmp_path / "runs").write_text("not a directory")
    for path in (tmp_path / "runs", tmp_path / "runs" / "job-1"):
        with pytest.raises(OutputError, match=r"runs.*cannot be written.*--run-dir"):
            Run(path)


def test_run__leaves_nothing_in_a_new_directory(tmp_path):
    Run(tmp_path / "a" / "b")
    assert list((tmp_path / "a" / "b").iterdir()) == []


# --- lock

HOLD = """
import sys, pathlib
from eigenscape.store.run import Run
with Run(pathlib.Path(sys.argv[1])).lock(print):
    print("held", flush=True)
    sys.stdin.readline()
"""


def hold(path):
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout.readline().strip() == "held"
    return process


def release(process):
    process.communicate("\n", timeout=30)


def test_lock__second_process_waits_and_says_for_whom(tmp_path):
    assert lock_holder(tmp_path) is None
    process = hold(tmp_path)
    said, order = [], []
    assert f"process {process.pid} on " in lock_holder(tmp_path)

    def work():
        with Run(tmp_path).lock(said.append):
            order.append("second")

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(0.5)
    assert order == [], "the lock was not waited for"
    release(process)
    thread.join(30)
    assert order == ["second"]
    assert len(said) == 1
    assert f"{tmp_path.name} is being worked on by process {process.pid} on " in said[0]
    assert "waiting" in said[0]
    assert lock_holder(tmp_path) is None


def test_lock__of_a_killed_process_is_free(tmp_path):
    process = hold(tmp_path)
    process.kill()
    process.communicate()
    said = []
    with Run(tmp_path).lock(said.append):
        pass
    assert said == []


def test_lock__sees_what_the_other_finished(tmp_path):
    run = Run(tmp_path)
    commit(Run(tmp_path))
    assert run.record("learn") is None
    with run.lock(lambda _: None):
        assert run.is_finished("learn", "aa")


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs /proc")
def test_run__where_no_directory_can_be_made():
    with pytest.raises(OutputError, match="/proc/eigenscape"):
        Run(Path("/proc/eigenscape/run"))


def test_run__another_process_may_delete_the_probe(tmp_path, monkeypatch):
    touch = Path.touch

    def touch_and_lose(self, *arguments, **keywords):
        touch(self, *arguments, **keywords)
        self.unlink()

    monkeypatch.setattr(Path, "touch", touch_and_lose)
    run = Run(tmp_path / "run")
    assert run.path.is_dir()
    assert not list(run.path.glob(".probe*"))


def test_recover__another_process_may_delete_the_leftovers(tmp_path, monkeypatch):
    run = Run(tmp_path)
    glob = Path.glob

    def glob_and_lose(self, pattern):
        found = list(glob(self, pattern))
        for path in found:
            path.unlink()
        return found

    (tmp_path / ".probe.tmp-1").touch()
    monkeypatch.setattr(Path, "glob", glob_and_lose)
    run.recover()
    assert not (tmp_path / ".probe.tmp-1").exists()

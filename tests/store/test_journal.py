"""What is noted while a stage works, and what a resumed stage makes of it."""

import numpy as np
import pytest

from eigenscape.base.files import ledger
from eigenscape.base.files.ledger import Recorded
from eigenscape.base.files.mapped import (
    attach_memmap,
    create_memmap,
    note_rows,
    save_array,
    save_raw,
    scratch_arrays,
    write_range,
)
from eigenscape.base.files.whole import remove, write_json
from eigenscape.base.process.progress import Silent
from eigenscape.context import Context
from eigenscape.job.jobfile import Job
from eigenscape.store.arrays import attach_whole, write_rows
from eigenscape.store.journal import Journal
from eigenscape.store.run import Run
from harness import Frail, KilledError

JOB = Job.model_validate({"scene": {"path": "none"}})


def work_in(path, told=None):
    run = Run(path)
    return run.workspace("graph", "aa", (told if told is not None else []).append), run


def context_of(workspace, run):
    return Context(JOB, run, workspace, Frail(), Silent())


def files_in(workspace):
    return {
        path.relative_to(workspace.path).as_posix()
        for path in workspace.path.rglob("*") if path.is_file()
    } - {"journal.jsonl"}  # fmt: skip


def flip(path, place=-1):
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(content)


# --- the ways of writing


def _save(folder, number):
    save_array(folder / f"{number}.npy", np.arange(number + 3))


def _save_raw(folder, number):
    save_raw(folder / f"{number}.raw", np.arange(number + 3))


def _range(folder, number):
    write_range(folder / "shared", 10 * number, np.full((10, 3), number, "f4"))


def _mapped(folder, number):
    mapped = attach_memmap(folder / "shared", (40, 3), "f4", "r+")
    for start in range(10 * number, 10 * number + 10, 5):
        mapped[start : start + 5] = number
        note_rows(mapped, start, start + 5)


def _here_and_there(folder, number):
    attach_memmap(folder / "shared", (40, 3), "f4", "r+")[number::4] = number


def _with_scratch(folder, number):
    with scratch_arrays(folder) as zeros:
        zeros((5, 5), "f4")
        _range(folder, number)


class Counted:
    """A task, and how often it was done."""

    def __init__(self, function, folder):
        self.function, self.folder, self.items = function, folder, []

    def __call__(self, number):
        self.items.append(number)
        self.function(self.folder, number)
        return number


WAYS = [_save, _save_raw, _range, _mapped, _with_scratch]


def begin(path, function, items=range(4)):
    workspace, run = work_in(path)
    folder = workspace.folder("x")
    with workspace.recorded():
        create_memmap(folder / "shared", (40, 3), "f4")
        context_of(workspace, run).map("step", Counted(function, folder), list(items))
    return workspace


def go_on(path, function):
    told = []
    workspace, run = work_in(path, told)
    task = Counted(function, workspace.folder("x"))
    with workspace.recorded():
        create_memmap(task.folder / "shared", (40, 3), "f4")
        context_of(workspace, run).map("step", task, list(range(4)))
    return task.items, told


@pytest.mark.parametrize("function", [*WAYS, _here_and_there])
def test_resume__keeps_what_is_whole(tmp_path, function):
    begin(tmp_path, function)
    assert go_on(tmp_path, function) == ([], [])


@pytest.mark.parametrize("function", WAYS)
def test_resume__goes_on_with_the_blocks_that_are_left(tmp_path, function):
    begin(tmp_path, function, [0, 1])
    assert go_on(tmp_path, function) == ([2, 3], [])


@pytest.mark.parametrize("kind", ["flip", "truncate", "delete"])
@pytest.mark.parametrize("function", [*WAYS, _here_and_there])
def test_resume__throws_damaged_work_away_and_says_so(tmp_path, function, kind):
    workspace = begin(tmp_path, function)
    own = [name for name in files_in(workspace) if name.endswith((".npy", ".raw"))]
    file = workspace.path / max(own, default="scratch/x/shared")
    if kind == "flip":
        flip(file)
    elif kind == "truncate":
        file.write_bytes(file.read_bytes()[:-1])
    else:
        file.unlink()
    items, (told,) = go_on(tmp_path, function)
    assert items == [0, 1, 2, 3]
    assert f"{file} is damaged" in told
    assert "graph" in told


def test_resume__blocks_that_write_here_and_there_count_when_all_are_done(tmp_path):
    def dying(folder, number):
        if number == 2:
            raise KilledError
        _here_and_there(folder, number)

    with pytest.raises(KilledError):
        begin(tmp_path, dying)
    assert go_on(tmp_path, _here_and_there) == ([0, 1, 2, 3], [])


def test_resume__deletes_what_nothing_vouches_for(tmp_path):
    workspace = begin(tmp_path, _save)
    before = files_in(workspace)
    (workspace.folder("x") / "half.npy").write_bytes(b"half")
    workspace.file("map.tif").write_bytes(b"half")
    assert files_in(work_in(tmp_path)[0]) == before - {"scratch/x/shared"}


# --- between tasks


def test_recorded__what_the_driver_writes_is_vouched_for(tmp_path):
    workspace, _ = work_in(tmp_path)
    folder = workspace.folder("x")
    with workspace.recorded():
        write_json(folder / "state.json", {"a": 1})
        write_json(folder / "state.json", {"a": 2})
        array = workspace.create_array("graph/x", (5,), np.float32)
        write_rows(array, 0, np.arange(5))
        mapped = attach_whole(workspace.create_array("graph/y", (5,), np.float32, whole=True))
        mapped[:] = 1
        note_rows(mapped)
        save_array(folder / "spent.npy", np.arange(3))
        remove(folder / "spent.npy", folder / "never")
    again, _ = work_in(tmp_path, told := [])
    assert told == []
    assert files_in(again) == {
        "scratch/x/state.json", "store/graph/x/zarr.json", "store/graph/x/c/0",
        "store/graph/y/zarr.json", "store/graph/y/c/0",
    }  # fmt: skip
    for name in sorted(files_in(again)):
        flip(again.path / name)
        assert Journal(again.path).damage() == [name]
        flip(again.path / name)


@pytest.mark.parametrize("renamed", [False, True])
def test_replacing__a_kill_on_either_side_of_the_rename(tmp_path, renamed):
    workspace, _ = work_in(tmp_path)
    file = workspace.folder("x") / "state"
    with workspace.recorded():
        write_json(file, "old")
        (tmp_path / "new").write_text("new")
        killed = ledger.replacing(file, tmp_path / "new")
        killed.__enter__()
        if renamed:
            (tmp_path / "new").replace(file)
    work_in(tmp_path, told := [])
    assert told == []
    assert ("new" if renamed else "old") in file.read_text()


# --- the journal itself


def test_journal__ends_where_a_line_is_not_whole(tmp_path):
    workspace = begin(tmp_path, _range)
    lines = (workspace.path / "journal.jsonl").read_bytes().splitlines(keepends=True)
    for number in range(1, len(lines)):
        hurt = bytearray(lines[number])
        hurt[len(hurt) // 2] ^= 4
        (workspace.path / "journal.jsonl").write_bytes(
            b"".join([*lines[:number], bytes(hurt), *lines[number + 1 :]])
        )
        assert len(Journal(workspace.path).blocks) == number - 1


def test_journal__of_a_directory_that_was_moved_is_not_gone_on_with(tmp_path):
    stage, _, key = begin(tmp_path / "one", _range).path.name.partition("-")
    (tmp_path / "one").rename(tmp_path / "moved")
    again = Run(tmp_path / "moved").workspace(stage, key)
    assert again.finished_blocks() == {}
    assert not list((again.path / "scratch").rglob("*.npy"))


def test_journal__of_another_stage_is_none_of_this(tmp_path):
    workspace = begin(tmp_path / "one", _range)
    other = Run(tmp_path / "two").workspace("graph", "bb")
    (other.path / "journal.jsonl").write_bytes((workspace.path / "journal.jsonl").read_bytes())
    assert Run(tmp_path / "two").workspace("graph", "bb").finished_blocks() == {}


def test_journal__truncated_to_before_files_were_written_over(tmp_path):
    """As if blocks were not finished that are: their inputs are gone, so nothing can be kept."""
    workspace, run = work_in(tmp_path)
    folder = workspace.folder("x")
    with workspace.recorded():
        create_memmap(folder / "shared", (40, 3), "f4")
        context = context_of(workspace, run)
        context.map("first", Counted(_range, folder), list(range(4)))
        size = (workspace.path / "journal.jsonl").stat().st_size
        remove(folder / "shared")
        create_memmap(folder / "shared", (40, 3), "f4")
        context.map(
            "second",
            lambda n: write_range(folder / "shared", 10 * n, np.full((10, 3), -1, "f4")),
            list(range(4)),
        )
    with (workspace.path / "journal.jsonl").open("r+b") as stream:
        stream.truncate(size)
    again, _ = work_in(tmp_path, told := [])
    assert len(told) == 1
    assert again.finished_blocks() == {}


def test_recorded__notes_travel_with_the_result(tmp_path):
    (tmp_path / "outside").mkdir()
    root = tmp_path / "root"
    root.mkdir()

    def task(number):
        _save(root, number)
        _save(tmp_path / "outside", number)
        return 2 * number

    result, noted = Recorded(task, str(root))(4)
    assert (result, list(noted.sums), noted.open) == (8, ["4.npy"], ())

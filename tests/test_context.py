from itertools import pairwise

import numpy as np
import pytest

from eigenscape.base.blocks import BASE_BYTES, blocks, sample_blocks, task_bytes
from eigenscape.base.files.mapped import attach_memmap, create_memmap
from eigenscape.base.memory import ROW_TILE
from eigenscape.base.process.progress import Silent
from eigenscape.clusters import Threads
from eigenscape.context import Context
from eigenscape.job.jobfile import parse_job
from eigenscape.store.run import Run

GIB = 2**30


class Told(Silent):
    def __init__(self):
        self.said = []

    def begin(self, label, total, done):
        self.said.append((label, total, done))

    def advance(self):
        self.said.append("advance")

    def end(self):
        self.said.append("end")


@pytest.fixture
def context(tmp_path):
    """Make a context as a new process would: what it knows comes from the run directory."""

    def make(threads=1, **limits):
        job = parse_job({"scene": {"path": "x"}, "limits": limits})
        run = Run(tmp_path)
        return Context(job, run, run.workspace("graph", "aa"), Threads(threads), Told())

    return make


def test_blocks__cover_the_range():
    assert blocks(10, 4) == [(0, 4), (4, 8), (8, 10)]
    assert blocks(8, 4) == [(0, 4), (4, 8)]
    assert blocks(3, 4) == [(0, 3)]
    assert blocks(0, 4) == []


@pytest.mark.parametrize("rows", [1, 4096, 50_000, 1_000_000])
@pytest.mark.parametrize("chunk", [1, ROW_TILE, 5 * ROW_TILE])
@pytest.mark.parametrize("budget", [0, 10**6, 10**9])
def test_sample_blocks__hold_whole_chunks_within_the_budget(rows, chunk, budget):
    ranges = sample_blocks(rows, chunk, budget, 100.0)
    assert ranges[0][0] == 0
    assert ranges[-1][1] == rows
    for (_, stop), (start, _) in pairwise(ranges):
        assert stop == start
        # Two tasks never write into one chunk.
        assert start % chunk == 0
    largest = max(stop - start for start, stop in ranges)
    assert largest <= max(budget / 100, chunk, ROW_TILE)


def test_task_bytes__all_tasks_of_a_process_keep_the_promise():
    for tasks in (1, 2, 16):
        assert BASE_BYTES + tasks * task_bytes(2 * GIB, tasks) <= 2 * GIB
    assert task_bytes(2 * GIB, 2) == task_bytes(2 * GIB, 1) // 2
    assert task_bytes(BASE_BYTES // 2, 2) == 0


def test_context__task_bytes_follows_limit_and_threads(context):
    assert context(memory="1GiB").task_bytes == task_bytes(GIB, 1)
    assert context(4, memory="1GiB").task_bytes == task_bytes(GIB, 4)


def test_map__skips_what_an_earlier_attempt_finished(context):
    calls = []

    def work(item):
        calls.append(item)
        if item == (4, 6) and calls.count(item) == 1:
            raise RuntimeError("killed here")
        return {"sum": sum(item)}

    items = [(0, 2), (2, 4), (4, 6), (6, 8)]
    first = context()
    with pytest.raises(RuntimeError, match="killed here"):
        first.map("read", work, items)
    assert first.reporter.said[0] == ("read", 4, 0)
    assert first.reporter.said[-1] == "end"
    done = calls[:-1]
    second = context()
    assert second.map("read", work, items, label="reading") == [{"sum": sum(i)} for i in items]
    assert second.reporter.said[0] == ("reading", 4, len(done))
    assert second.reporter.said.count("advance") == 4 - len(done)
    assert sorted(calls) == sorted([*items, (4, 6)])
    third = context()
    assert third.map("read", work, items) == [{"sum": sum(i)} for i in items]
    assert len(calls) == 5


def test_map__tells_steps_and_items_apart(context):
    here = context(2)
    assert here.map("a", lambda item: item * 2, [1, 2, 3]) == [2, 4, 6]
    assert here.map("b", lambda item: item * 3, [1, 2, 3]) == [3, 6, 9]
    assert here.map("b", lambda item: item, [3, 1, "solver"]) == [9, 3, "solver"]


def test_map__results_do_not_change_with_the_journal(context):
    # What an earlier attempt noted must come back as it was.
    items = [1, 2]
    first = context().map("step", lambda item: {"n": item, "x": [1.5, None]}, items)
    assert context().map("step", lambda item: None, items) == first


def test_map__keeps_no_arrays(context):
    work = lambda item: np.full(2, item)  # noqa: E731
    context().map("sum", work, [1, 2], keep=False)
    again = context()
    assert again.workspace.finished_blocks() == {}
    np.testing.assert_array_equal(again.map("sum", work, [1, 2], keep=False), [[1, 1], [2, 2]])
    assert again.worker_peak > 10 * 2**20


def test_map__of_nothing(context):
    assert context().map("step", lambda item: 1 / 0, []) == []


def test_create_memmap__reserves_and_keeps(tmp_path):
    path = tmp_path / "x"
    create_memmap(path, (100, 3), np.float32)
    assert path.stat().st_size == 1200
    assert path.stat().st_blocks * 512 >= 1200
    attach_memmap(path, (100, 3), np.float32, "r+")[5] = 7
    create_memmap(path, (100, 3), np.float32)
    found = attach_memmap(path, (100, 3), np.float32)
    assert found[5].tolist() == [7, 7, 7]
    assert not found.flags.writeable
    create_memmap(path, (50, 3), np.float32)
    assert path.stat().st_size == 600


def test_create_memmap__empty(tmp_path):
    create_memmap(tmp_path / "x", (0, 3), np.float32)
    assert attach_memmap(tmp_path / "x", (0, 3), np.float32).shape == (0, 3)


def test_map__together_on_one_machine(context, monkeypatch):
    asked = []
    monkeypatch.setattr(
        "eigenscape.context.on_one_machine", lambda e: asked.append(e) or Threads(1)
    )
    made = context()
    assert made.map("step", abs, [-1, -2]) == [1, 2]
    assert asked == []
    assert made.map("other", abs, [-3, -4], together=True) == [3, 4]
    assert asked == [made.executor]

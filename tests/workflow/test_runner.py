"""One stage at a time: what is committed, what is gone on with, and how errors leave the run."""

import errno
import os

import numpy as np
import pytest

from eigenscape.base.files.mapped import save_array
from eigenscape.base.process.progress import Silent
from eigenscape.clusters import Serial, Threads
from eigenscape.errors import OutputError, ScratchError, StoreError
from eigenscape.job.jobfile import Job
from eigenscape.store.arrays import write_rows
from eigenscape.store.run import Run
from eigenscape.workflow.runner import StageRunner
from harness import Frail, KilledError

JOB = Job.model_validate({"scene": {"path": "none"}})


def squares(context):
    """Write the squares of ten numbers, a task for each."""
    folder = context.workspace.folder("parts")

    def work(number):
        save_array(folder / f"{number}.npy", np.array(number**2))
        return number

    done = context.map("square", work, list(range(10)))
    values = np.array([np.load(folder / f"{number}.npy") for number in done])
    write_rows(context.workspace.create_array("a/squares", (10,), np.int64), 0, values)
    return {"sum": int(values.sum())}


@pytest.mark.parametrize("recorded", [True, False])
@pytest.mark.parametrize("executor", [Serial(), Threads(2)])
def test_run__commits_arrays_summary_and_sums(tmp_path, executor, recorded):
    directory = Run(tmp_path, checksums=recorded)
    runner = StageRunner(directory, executor, Silent())
    record = runner.run("graph", "aa", squares, JOB)
    assert (record.key, record.arrays, record.summary) == ("aa", ("a/squares",), {"sum": 285})
    assert record.peak_bytes > 0
    np.testing.assert_array_equal(directory.open("a/squares")[...], np.arange(10) ** 2)
    stored = Run(tmp_path, create=False).record("graph")
    assert bool(stored.sums) is recorded
    assert stored.summary == record.summary
    assert not list(tmp_path.glob("work/*"))


def test_run__goes_on_with_finished_blocks(tmp_path):
    with pytest.raises(KilledError):
        StageRunner(Run(tmp_path), Frail(6), Silent()).run("graph", "aa", squares, JOB)
    assert Run(tmp_path).record("graph") is None
    rest = Frail()
    StageRunner(Run(tmp_path), rest, Silent()).run("graph", "aa", squares, JOB)
    assert [item for _, item in rest.log] == [6, 7, 8, 9]


def test_run__scratch_that_is_damaged_is_deleted(tmp_path):
    def work(context):
        raise ScratchError("scratch holds something else.")

    with pytest.raises(StoreError, match=r"is deleted: the same command computes graph"):
        StageRunner(Run(tmp_path), Serial(), Silent()).run("graph", "aa", work, JOB)
    assert not list(tmp_path.glob("work/graph-*"))


def test_run__a_full_disk_is_explained(tmp_path):
    def work(context):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(OutputError, match="the disk is full"):
        StageRunner(Run(tmp_path), Serial(), Silent()).run("graph", "aa", work, JOB)

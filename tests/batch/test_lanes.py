import pytest

from eigenscape.batch.lanes import MOST_AT_ONCE, Planned, _processes, _tasks
from eigenscape.clusters import Threads
from eigenscape.workflow.footprint import StagePlan
from eigenscape.workflow.plan import Plan


def scenes(count, *, peak=2**28, tasks=1):
    stage = StagePlan("neighbors", tasks, peak, 0, 0)
    return [Planned(None, Plan(1, 1, 1, (stage,)), 2**30)] * count


def executor(width, tasks_per_process=1):
    found = Threads(width)
    found.tasks_per_process = tasks_per_process
    return found


@pytest.mark.parametrize(
    ("todo", "where", "at_once"),
    [
        (scenes(100), executor(2), 2),
        (scenes(3), executor(8), 8),  # too small to be shared by all
        (scenes(3, tasks=400), executor(8), 1),  # few and large: all workers on each
        (scenes(100, tasks=400), executor(8), 8),
        (scenes(100), executor(8, 4), 8),
        (scenes(100), executor(8, 5), 1),  # five of them do not fit into one worker
        (scenes(1000), executor(500), MOST_AT_ONCE),
    ],
)
def test_tasks__keep_the_workers_busy_within_their_memory(todo, where, at_once):
    assert _tasks(todo, where) == at_once


def test_processes__as_many_as_have_room():
    assert _processes(scenes(100, peak=1), 4) == 4
    assert _processes(scenes(3, peak=1), 4) == 3
    assert _processes(scenes(2, peak=1), 4) == 1
    assert _processes(scenes(100, peak=2**60), 4) == 1

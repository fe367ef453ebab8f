import threading
from dataclasses import replace
from pathlib import Path

import pytest

from eigenscape.batch.lanes import (
    MOST_AT_ONCE,
    Planned,
    _processes,
    _run_side_by_side,
    _tasks,
)
from eigenscape.batch.outcomes import SceneOutcome
from eigenscape.batch.sources import Scene
from eigenscape.clusters import ClusterOptions, Threads
from eigenscape.job.jobfile import parse_job
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


def test_run_side_by_side__takes_no_scene_after_it_was_left():
    given = [Scene(name, parse_job({"scene": {"path": "none"}})) for name in "abcd"]
    todo = [
        replace(scenes(1)[0], outcome=SceneOutcome(scene, path=Path(scene.name))) for scene in given
    ]
    begun, may_end = [], threading.Event()

    def lane(scene):
        begun.append(scene.path.name)
        if len(begun) > 1:
            may_end.wait(10)
        return {"state": "done"}

    def hear(outcome, report):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        _run_side_by_side(todo, [lane], ClusterOptions(), 1, 1, hear)
    working = [one for one in threading.enumerate() if "(work)" in one.name]
    may_end.set()
    for thread in working:
        thread.join(10)
    assert len(begun) <= 2

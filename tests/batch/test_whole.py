import os
import signal

import pytest

from eigenscape.batch.outcomes import plan_outcome
from eigenscape.batch.whole import ChildLane, LaneStoppedError, WholeScene, cluster_lane
from eigenscape.clusters import ClusterOptions
from eigenscape.errors import ClusterError, ClusterLostError, TaskMemoryError


@pytest.fixture(scope="module")
def scene(write_scenes, source_of):
    directory = write_scenes(("a",))
    outcome = plan_outcome(
        source_of(directory).find(directory / "batch").scenes[0], directory / "batch"
    )
    return WholeScene(outcome.scene.job, outcome.path, ClusterOptions())


class Broken:
    """An executor whose workers end as they do."""

    width = tasks_per_process = 1

    def __init__(self, error):
        self.error, self.seen = error, []

    def run(self, function, items, on_done):
        self.seen += items
        raise self.error


def test_cluster_lane__tells_a_scene_from_a_cluster(scene):
    broken = Broken(TaskMemoryError("the worker was ended 4 times"))
    report = cluster_lane(broken)(scene)
    assert report["state"] == "failed"
    assert report["reason"] == "the worker was ended 4 times"
    # The second time with half of the memory for each task.
    assert [item.tasks_per_process for item in broken.seen] == [1, 2]
    for error in (ClusterError("no worker"), ClusterLostError("no scheduler")):
        with pytest.raises(type(error), match=str(error)):
            cluster_lane(Broken(error))(scene)
    with pytest.raises(ClusterLostError, match=r"a worker cannot run scenes .ImportError: numba"):
        cluster_lane(Broken(ImportError("numba")))(scene)


def test_child_lane__starts_no_process_after_it_was_stopped(scene, monkeypatch):
    lane, started = ChildLane(), []
    monkeypatch.setattr(lane, "_start", lambda: started.append(True))
    lane.stop()
    with pytest.raises(LaneStoppedError):
        lane(scene)
    assert not started


@pytest.mark.slow
def test_child_lane__ctrl_c_while_the_process_starts(scene):
    lane = ChildLane()
    try:
        lane._start()
        os.kill(lane._process.pid, signal.SIGINT)
        assert lane(scene)["state"] == "done"
        os.kill(lane._process.pid, signal.SIGINT)
        assert lane(scene)["state"] == "done"
    finally:
        lane.stop()
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, ())

"""A small scene and a job to tune on it."""

from contextlib import contextmanager

import numpy as np
import pytest
import tomlkit

from eigenscape import load_job, tune
from eigenscape.tuning import run as tuning
from eigenscape.workflow.choice.candidates import read_ladder
from eigenscape.workflow.choice.search import Search
from eigenscape.workflow.choice.tried import lead
from harness import Counted
from ladders import CLUSTER_RUNGS, QUICK_RUNGS, RUNGS, SCATTERED_RUNGS

JOB = {
    "scene": {"path": "scene.npy", "labels": "labels.npy"},
    "neighbors": {"method": "exact"},
    "spectrum": {"dimension": 8},
    "output": {"directory": "runs", "formats": []},
    "limits": {"threads": 2},
}


@contextmanager
def few_rungs():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tuning, "LADDER", read_ladder(RUNGS))
        patch.setattr(tuning, "GRAPHLESS", read_ladder(QUICK_RUNGS))
        patch.setattr(tuning, "SCATTERED", read_ladder(SCATTERED_RUNGS))
        patch.setattr(tuning, "CLUSTERS", read_ladder(CLUSTER_RUNGS))
        # The scene is easy: all rungs are tried none the less.
        patch.setattr(Search, "unbeatable", False)
        # And so small that no lead holds elsewhere.
        patch.setattr(tuning, "lead", lambda *both, elsewhere: lead(*both))
        yield


@pytest.fixture
def short_ladder():
    with few_rungs():
        yield


@pytest.fixture(scope="session")
def tuned(tmp_path_factory, make_scene):
    """Return the path of the labelled image's job, what came of tuning it and the stages; to be read."""
    path = writer(tmp_path_factory.mktemp("tuned"), make_scene)()
    with few_rungs(), pytest.MonkeyPatch.context() as patch:
        counted = Counted(patch)
        return path, tune(load_job(path), budget=300), counted.stages


@pytest.fixture
def write_tunable(tmp_path, make_scene):
    """Return a function that writes a scene, noisy by default, and a job, and returns the path of the job."""
    return writer(tmp_path, make_scene)


def writer(tmp_path, make_scene):
    def write(name="ground", *, image=True, labelled=True, noise=900.0, **tables):
        scene = make_scene(36, 30, 10, 3, hole=False)
        added = np.random.default_rng(1).normal(0, noise, scene.cube.shape)
        cube = (scene.cube + added).astype(np.float32)
        np.save(tmp_path / "scene.npy", cube if image else cube.reshape(-1, cube.shape[-1]))
        np.save(tmp_path / "labels.npy", scene.labels if image else scene.labels.reshape(-1, 1))
        merged = {key: {**JOB.get(key, {}), **tables.get(key, {})} for key in {**JOB, **tables}}
        if not labelled:
            del merged["scene"]["labels"]
        path = tmp_path / f"{name}.toml"
        path.write_text(tomlkit.dumps(merged), encoding="utf-8")
        return path

    return write

"""A small scene and a job to tune on it."""

import numpy as np
import pytest
import tomlkit

from eigenscape.tuning import run as tuning
from eigenscape.workflow.choice.candidates import read_ladder
from ladders import CLUSTER_RUNGS, RUNGS

JOB = {
    "scene": {"path": "scene.npy", "labels": "labels.npy"},
    "neighbors": {"method": "exact"},
    "spectrum": {"dimension": 8},
    "output": {"directory": "runs"},
    "limits": {"threads": 2},
}


@pytest.fixture
def short_ladder(monkeypatch):
    monkeypatch.setattr(tuning, "LADDER", read_ladder(RUNGS))
    monkeypatch.setattr(tuning, "CLUSTERS", read_ladder(CLUSTER_RUNGS))


@pytest.fixture
def write_tunable(tmp_path, make_scene):
    """Return a function that writes a noisy scene and a job, and returns the path of the job."""

    def write(name="ground", *, image=True, labelled=True, **tables):
        scene = make_scene(36, 30, 10, 3, hole=False)
        noise = np.random.default_rng(1).normal(0, 900, scene.cube.shape)
        cube = (scene.cube + noise).astype(np.float32)
        np.save(tmp_path / "scene.npy", cube if image else cube.reshape(-1, cube.shape[-1]))
        np.save(tmp_path / "labels.npy", scene.labels if image else scene.labels.reshape(-1, 1))
        merged = {key: {**JOB.get(key, {}), **tables.get(key, {})} for key in {**JOB, **tables}}
        if not labelled:
            del merged["scene"]["labels"]
        path = tmp_path / f"{name}.toml"
        path.write_text(tomlkit.dumps(merged), encoding="utf-8")
        return path

    return write

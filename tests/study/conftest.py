"""A small scene, and studies of it that take a second or two."""

import numpy as np
import pytest
import tomlkit

from eigenscape import load_job
from eigenscape.study.run import run_study

JOB = {
    "scene": {"path": "scene.npy", "labels": "labels.npy"},
    "features": {"method": "none"},
    "neighbors": {"method": "exact", "k": 6},
    "spectrum": {"dimension": 10},
    "learn": {"method": "eigenfunctions", "trials": 3},
    "output": {"directory": "runs"},
    "limits": {"threads": 2},
}

STUDY = {
    "title": "Error against labels",
    "source": "A thesis, Table 1",
    "measure": "error",
    "rows": "learn.train",
    "columns": "learn.eigenvectors",
    "where": "learn.eigenvectors < 0.5 * learn.train",
    "published": "published.csv",
    "labels": {"learn.train": "labelled pixels"},
    "grid": {"learn.train": [12, 40], "learn.eigenvectors": [3, 8]},
    "variants": [
        {"name": "eigenfunctions"},
        {
            "name": "best k-NN",
            "set": {"learn.method": "k-nn"},
            "drop": ["learn.eigenvectors"],
            "grid": {"learn.k": [1, 3]},
            "best": ["learn.k"],
        },
    ],
    "plot": {"x": "learn.train", "lines": "learn.eigenvectors", "log": ["x"]},
    "small": {"learn.trials": 2, "study": {"grid": {"learn": {"train": [20]}}}},
}

PUBLISHED = """\
# A thesis, Table 1
variant,learn.train,learn.eigenvectors,error
eigenfunctions,12,3,53.7
eigenfunctions,40,3.0,48.3
eigenfunctions,40,8,12.9
best k-NN,12,,28.1
"""


@pytest.fixture(scope="session")
def write_study(tmp_path_factory, make_scene):
    """Return a function that writes a study with its scene to a fresh directory."""
    scene = make_scene(20, 25, 12, 3, hole=False)

    def write(name="study", *, study=None, **tables):
        directory = tmp_path_factory.mktemp("study")
        # Noise that leaves some pixels to be called wrongly.
        noise = np.random.default_rng(1).normal(0, 1500, scene.cube.shape)
        np.save(directory / "scene.npy", (scene.cube + noise).astype(np.float32))
        np.save(directory / "labels.npy", scene.labels)
        (directory / "published.csv").write_text(PUBLISHED, encoding="utf-8")
        merged = {key: {**JOB.get(key, {}), **tables.get(key, {})} for key in {**JOB, **tables}}
        merged["study"] = STUDY if study is None else study
        path = directory / f"{name}.toml"
        path.write_text(tomlkit.dumps(merged), encoding="utf-8")
        return path

    return write


@pytest.fixture(scope="session")
def finished(write_study):
    """Return the study of the tests, its job and what came of it; for tests that only read."""
    job = load_job(write_study("finished"))
    return job, run_study(job)

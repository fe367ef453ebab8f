"""A small scene, and studies of it that take a second or two."""

from pathlib import Path

import numpy as np
import pytest
import tomlkit

from eigenscape import load_job
from eigenscape.base.files.tables import read_table
from eigenscape.scenes.registry import is_registered, registered
from eigenscape.study.layout import points_of
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


STUDIES = Path(__file__).resolve().parents[2] / "jobs" / "studies"


class Table:
    """The table of a study as its page shows it: means over seeds, the best of several."""

    def __init__(self, job, result):
        self.job, self.result = job, result
        self.points = points_of(job, read_table(result.outputs["csv"]))

    def __call__(self, measure, variant="", **keys):
        """Return the one value in a row of the table: keys without the name of their section."""
        found = [
            point.value(measure)
            for point in self.points
            if point.row.get("variant", "") == variant
            and all(
                point.row.get(name) == str(value)
                for key, value in keys.items()
                for name in point.row if name.endswith(f".{key}")
            )
        ]  # fmt: skip
        assert len(found) == 1, (variant, keys, found)
        return found[0]


@pytest.fixture(scope="module")
def run_small(tmp_path_factory):
    """Return a function that runs the small version of a study: its table and what came of it.

    Studies of a module share their finished stages and a cache.
    """
    parent = tmp_path_factory.mktemp("studies")
    data = STUDIES.parents[2] / "shared" / "data"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(parent / "cache"))
        patch.setenv("EIGENSCAPE_DATA", str(data if data.is_dir() else parent / "data"))

        def run(name, *overrides):
            job = load_job(STUDIES / f"{name}.toml", ["limits.threads=2", *overrides], small=True)
            path = job.scene.path
            if is_registered(path) and not registered(path).installed:
                pytest.skip(f"the data set {path} is not on this machine")
            result = run_study(job, run_dir=parent / "runs" / name)
            assert result.failed == ()
            assert {picture.file for picture in job.study.pictures} <= result.outputs.keys()
            return Table(job, result)

        yield run

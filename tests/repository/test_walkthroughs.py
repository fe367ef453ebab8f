"""The examples of pipeline/README.md, "Adding a method", as they stand there: jobs with them, everywhere."""

import os
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.neighbors import NearestCentroid

import eigenscape
from eigenscape.base import fingerprint
from eigenscape.clusters import ClusterOptions
from eigenscape.errors import InputError, JobError
from eigenscape.job.options import REGISTRIES
from eigenscape.store.arrays import open_array
from eigenscape.workflow.stages import stage_keys

PAGE = Path(__file__).resolve().parents[2] / "pipeline" / "README.md"
SECTION = (
    PAGE.read_text(encoding="utf-8").partition("## Adding a method\n")[2].partition("\n## ")[0]
)
CODE = dict(zip(
    ("toy_features", "toy_neighbors", "toy_learn"),
    re.findall(r"```python\n(.*?)```", SECTION, re.DOTALL), strict=True,
))  # fmt: skip
POINTS = """\
[eigenscape.features]
band-differences = toy_features:BandDifferences
[eigenscape.neighbors]
kd-tree = toy_neighbors:ByTree
[eigenscape.learn]
nearest-centroid = toy_learn:NearestCentroid
"""
TOYS = {
    "features": {"method": "band-differences", "step": 2},
    "neighbors": {"method": "kd-tree", "k": 8},
    "learn": {"method": "nearest-centroid", "sharpness": 3, "trials": 2},
}


@pytest.fixture
def toys(tmp_path, monkeypatch):
    """Put the three modules on the path, as strangers to the package."""
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    for name, text in CODE.items():
        (folder / f"{name}.py").write_text(text)
        monkeypatch.delitem(sys.modules, name, raising=False)
    for registry in REGISTRIES.values():
        monkeypatch.setattr(registry, "_registered", {})
    monkeypatch.syspath_prepend(str(folder))
    yield folder
    for name in CODE:
        sys.modules.pop(name, None)


@pytest.fixture
def imported(toys):
    """Import them, which registers their classes."""
    return [__import__(name) for name in CODE]


@pytest.fixture
def installed(toys):
    """Let an installed package bring them, and say so in its metadata alone."""
    for name in CODE:
        text = (toys / f"{name}.py").read_text()
        (toys / f"{name}.py").write_text(text.replace("@eigenscape.register\n", ""))
    info = toys / "toys-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: toys\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(POINTS)
    return toys


@pytest.fixture
def job(write_tif, small, tmp_path):
    """Return a job of the small scene with all three."""
    write_tif("scene.tif", small.cube, hole=small.hole)
    write_tif("labels.tif", small.labels, nodata=0)

    def parse(**tables):
        scene = {"path": "scene.tif", "labels": "labels.tif"}
        table = {
            "scene": scene, "spectrum": {"dimension": 8}, **TOYS, **tables,
            "output": {"directory": "runs", "formats": []}, "limits": {"threads": 2},
        }  # fmt: skip
        return eigenscape.parse_job(table, base=tmp_path)

    return parse


def array(run, name):
    return np.asarray(open_array(Path(run.path) / "store.zarr" / name)[...])


def check(run, small):
    """Compare what each method wrote with the obvious."""
    values = array(run, "features/values")
    samples = small.cube[~small.hole]
    np.testing.assert_allclose(values, samples[:, 2:] - samples[:, :-2], atol=1e-2)
    np.fill_diagonal(distance := cdist(values, values), np.inf)
    np.testing.assert_allclose(
        array(run, "neighbors/distance"), np.sort(distance)[:, :8], rtol=1e-4
    )
    vectors = array(run, "spectrum/vector").astype(float)
    given = array(run, "labels/given")
    known = given > 0
    peer = NearestCentroid().fit(vectors[known], given[known])
    assert (array(run, "labels/class") == peer.predict(vectors)).mean() > 0.995


@pytest.mark.slow
def test_jobs__with_registered_methods_on_threads_and_in_worker_processes(
    imported, job, small, tmp_path, monkeypatch, toys
):
    planned = eigenscape.plan(job())
    assert planned.dimension == 18
    first = eigenscape.run(job(), run_dir=tmp_path / "threads")
    check(first, small)
    # Workers import the modules when a class of them arrives.
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(toys), os.environ["PYTHONPATH"]])
                       if os.environ.get("PYTHONPATH") else str(toys))  # fmt: skip
    second = eigenscape.run(
        job(), run_dir=tmp_path / "workers", on=ClusterOptions(kind="local", workers=1)
    )
    for name in ("features/values", "neighbors/index", "labels/class", "labels/confidence"):
        np.testing.assert_array_equal(array(first, name), array(second, name))

    # The same scene again, as a new one: by the eigenvectors that its samples get.
    applied = eigenscape.apply(first.path, tmp_path / "scene.tif", run_dir=tmp_path / "applied")
    assert (array(applied, "labels/class") == array(first, "labels/class")).mean() > 0.99


def test_cli__a_package_that_brings_methods(installed, job, tmp_path, cli):
    (tmp_path / "job.toml").write_text(job().to_toml())
    done = cli("plan", tmp_path / "job.toml", "--set", "features.step=3")
    assert done.exit_code == 0, done.output
    assert "no such method" not in done.output
    done = cli("run", tmp_path / "job.toml", "--run-dir", tmp_path / "run")
    assert done.exit_code == 0, done.output
    done = cli("plan", tmp_path / "job.toml", "--set", "learn.method=tikhonov")
    assert done.exit_code == 0, done.output
    done = cli(
        "plan", tmp_path / "job.toml", "--set", "features.method=none", "--set", "features.step=3"
    )
    assert done.exit_code == 2
    assert 'It is read only with features.method = "band-differences"' in done.stderr


def test_classifier__a_class_without_samples(imported):
    method = imported[2].NearestCentroid()
    X = np.array([[0, 0], [1, 0], [9, 9]], np.float32)
    model = method.learn([(X, np.array([0, 0, 2]))], 3)
    scores = method.estimate(X, model)
    np.testing.assert_array_equal(scores.argmax(axis=1), [0, 0, 2])
    assert not scores[:, 1].any()


def test_messages__of_toys(imported, job):
    with pytest.raises(InputError, match=r"features\.step = 20: the scene has 20 good bands"):
        eigenscape.plan(job(features={"method": "band-differences", "step": 20}))
    with pytest.raises(JobError, match=r"learn\.sharpness = 0: input should be greater than 0"):
        job(learn={"method": "nearest-centroid", "sharpness": 0})
    with pytest.raises(JobError, match=r'only with learn\.method = "nearest-centroid"'):
        job(learn={"sharpness": 3})


def test_stage_keys__see_the_code_of_a_class_from_elsewhere(imported, job, monkeypatch, toys):
    # Modules of the same names that another test has imported were others.
    eigenscape.workflow.stages._code.cache_clear()
    before = stage_keys(job())
    digest = fingerprint._file_digest
    for name, first in zip(CODE, ("features", "neighbors", "learn"), strict=True):
        changed = toys / f"{name}.py"
        with monkeypatch.context() as patch:
            patch.setattr(
                fingerprint, "_file_digest",
                lambda path, time, changed=changed: b"x" if path == changed else digest(path, time),
            )  # fmt: skip
            eigenscape.workflow.stages._code.cache_clear()
            after = stage_keys(job())
        order = list(before)
        assert [key for key in order if before[key] != after[key]] == order[order.index(first) :]
    eigenscape.workflow.stages._code.cache_clear()


def test_stage_keys__refuse_a_class_that_was_typed_in(imported, job, monkeypatch):
    monkeypatch.delattr(imported[0], "__file__")
    eigenscape.workflow.stages._code.cache_clear()
    with pytest.raises(JobError, match="BandDifferences is not defined in a file"):
        stage_keys(job())

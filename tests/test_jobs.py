"""The job files that travel with the package can be read, and planned where their data is."""

import tomllib
from pathlib import Path

import pytest

from eigenscape import load_job, plan
from eigenscape.errors import MissingExtraError, SceneError
from eigenscape.scenes.registry import is_registered, registered

ROOT = Path(__file__).resolve().parents[1]
JOBS = sorted((ROOT / "jobs").glob("**/*.toml"))
CLUSTERS = sorted((ROOT / "cluster").glob("**/*.toml"))


def missing(job):
    """Return what a job needs and is not here, or None."""
    paths = [job.scene.path] if isinstance(job.scene.path, str) else list(job.scene.path)
    for path in [*paths, job.scene.labels, job.scene.mask]:
        if path is None or "://" in job.resolve(path):
            continue
        if is_registered(path):
            if not registered(path).installed:
                return f"the data set {path} is not installed"
        elif not Path(job.resolve(path)).exists():
            return f"{job.resolve(path)} is not here"
    return None


def test_jobs__there_are_some():
    assert JOBS


@pytest.mark.parametrize("path", JOBS, ids=lambda path: path.stem)
def test_jobs__can_be_read(path):
    job = load_job(path)
    assert job.name == path.stem
    # A comment on top says what the job is.
    assert path.read_text(encoding="utf-8").startswith("#")


@pytest.mark.parametrize("path", JOBS, ids=lambda path: path.stem)
def test_jobs__can_be_planned(path, tmp_path):
    job = load_job(path, ["output.directory=" + str(tmp_path)])
    if (reason := missing(job)) is not None:
        pytest.skip(reason)
    try:
        planned = plan(job)
    except (SceneError, MissingExtraError) as error:
        pytest.fail(f"{path.name} cannot be planned: {error}")
    planned.check(job.limits.memory_bytes)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("path", CLUSTERS, ids=lambda path: path.stem)
def test_clusters__can_be_read(path):
    from eigenscape.cluster import load_cluster

    assert load_cluster(path).kind == tomllib.loads(path.read_text(encoding="utf-8"))["kind"]

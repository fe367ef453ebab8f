"""The job files that travel with the package can be read, and planned where their data is."""

import tomllib
from pathlib import Path

import pytest

from eigenscape import load_job, plan
from eigenscape.errors import MissingExtraError, SceneError
from eigenscape.scenes.registry import is_registered, registered

ROOT = Path(__file__).resolve().parents[2]
JOBS = sorted((ROOT / "jobs").glob("**/*.toml"))
STUDIES = [path for path in JOBS if path.parent.name == "studies"]
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
    from eigenscape.clusters import load_cluster

    assert load_cluster(path).kind == tomllib.loads(path.read_text(encoding="utf-8"))["kind"]


def test_studies__are_those_of_the_studies_folder():
    assert len(STUDIES) >= 12
    assert {path for path in JOBS if load_job(path).study is not None} == set(STUDIES)


@pytest.mark.parametrize("path", STUDIES, ids=lambda path: path.stem)
def test_studies__published_cells_are_variants(path):
    from eigenscape.base.files.tables import text_of
    from eigenscape.study.expansion import expand
    from eigenscape.study.layout import read_published

    job = load_job(path)
    found = [
        {"variant": variant.name, **{key: text_of(v) for key, v in variant.values.items()}}
        for variant in expand(job)
    ]
    largest = max((*job.study.grid.get("learn.train", (0,)), 0))
    for row in read_published(job):
        keys = {key: row[key] for key in ("variant", *job.study.keys) if key in row}
        # The stand-in for TIMIT has fewer samples than the thesis had labels.
        known = float(keys.get("learn.train", 0)) <= largest
        matched = any(all(cell.get(k) == v for k, v in keys.items()) for cell in found)
        assert matched or (not known and path.stem == "phoneme-table-3-3"), keys


@pytest.mark.parametrize("path", STUDIES, ids=lambda path: path.stem)
def test_studies__have_a_small_version(path):
    from eigenscape.study.expansion import expand

    small = expand(load_job(path, small=True))
    assert 1 <= len(small) <= 20
    assert len(small) <= len(expand(load_job(path)))


@pytest.mark.slow
def test_studies__small_version_runs(tmp_path):
    from eigenscape.study.run import run_study

    job = load_job(ROOT / "jobs/studies/growth-of-time.toml", small=True)
    result = run_study(job, run_dir=tmp_path / "study")
    assert result.failed == ()
    assert {row["samples"] for row in result.rows} == {500, 1000}
    assert result.outputs["plot"].stat().st_size > 10_000

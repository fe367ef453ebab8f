"""Packages that a job needs are looked for before anything is computed."""

import sys

import pytest

from eigenscape.clusters import ClusterOptions
from eigenscape.errors import MissingExtraError
from eigenscape.job.jobfile import load_job, parse_job
from eigenscape.workflow.extras import require_extras

KMEANS = {"learn": {"method": "spectral-clustering", "assign": "k-means"}}


@pytest.mark.parametrize(
    ("tables", "kind", "module", "words"),
    [
        (KMEANS, "threads", "dask_ml", ['learn.assign = "k-means"', "dask-ml", "eigenscape[clusters]"]),
        ({"spectrum": {"solver": "lobpcg"}}, "threads", "pyamg", ["lobpcg", "pyamg", "eigenscape[amg]"]),
        ({}, "slurm", "dask_jobqueue", ["'slurm'", "dask-jobqueue", "eigenscape[hpc]"]),
        ({}, "ssh", "asyncssh", ["'ssh'", "asyncssh", "eigenscape[ssh]"]),
    ],
)  # fmt: skip
def test_require_extras__names_the_extra(monkeypatch, tables, kind, module, words):
    job = parse_job({"scene": {"path": "a.tif"}, **tables})
    on = ClusterOptions(kind=kind, **({"hosts": ("one",)} if kind == "ssh" else {}))
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtraError) as caught:
        require_extras(job, on)
    for word in words:
        assert word in str(caught.value)
    # Another job needs it not.
    require_extras(parse_job({"scene": {"path": "a.tif"}}), ClusterOptions())


@pytest.mark.parametrize("command", ["plan", "run"])
def test_commands__refuse_before_the_first_stage(
    monkeypatch, write_job, write_tif, small, cli, command
):
    write_tif("scene.tif", small.cube)
    job = write_job(**KMEANS)
    monkeypatch.setitem(sys.modules, "dask_ml", None)
    result = cli(command, job)
    assert result.exit_code == 2
    assert "pip install 'eigenscape[clusters]'" in result.stderr
    assert not (job.parent / "runs").exists()
    assert load_job(job).learn.assign == "k-means"

import json

import pytest
import tomlkit


@pytest.fixture
def cluster_file(tmp_path):
    """Return a function that writes a cluster file whose workers have some memory."""

    def write(megabytes):
        path = tmp_path / "cluster.toml"
        table = {"kind": "slurm", "cores": 1, "memory": f"{megabytes}MiB", "walltime": "01:00:00"}
        path.write_text(tomlkit.dumps(table), encoding="utf-8")
        return path

    return write


@pytest.mark.parametrize("study", [False, True])
def test_plan__refuses_what_does_not_fit_a_worker(cli, written, write_job, cluster_file, study):
    tables = {"study": {"grid": {"neighbors.k": [4]}}} if study else {}
    job = write_job(scene={"labels": "labels.tif"}, **tables)
    large = cluster_file(4096)
    peak = json.loads(cli("plan", job, "--on", large, "--json").stdout)["peak_bytes"]
    # Three quarters of the memory are for the task.
    enough = cluster_file(-(-4 * peak // 3) // 2**20 + 1)
    assert cli("plan", job, "--on", enough).exit_code == 0
    done = cli("plan", job, "--on", cluster_file(peak // 2**20 + 1))
    assert done.exit_code == 2
    assert "is projected to need" in done.stderr
    if not study:
        assert "(three quarters of the memory of a worker)" in done.stdout

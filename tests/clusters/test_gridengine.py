"""Runs through a real Grid Engine: what its queue says of jobs, lost workers, a driver."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest
import tomlkit

from eigenscape.clusters import load_cluster
from eigenscape.clusters.registry import find_queue
from eigenscape.job.jobfile import load_job
from eigenscape.store.run import Run
from eigenscape.workflow.spine import run
from waiting import wait_until

pytestmark = pytest.mark.gridengine


def write(tmp_path, **keys):
    """Write sge.toml, for one core and loopback."""
    table = {
        "kind": "sge", "cores": 1, "memory": "1500MiB", "interface": "lo", "queue": "all.q",
        "walltime": "00:10:00", "log_directory": str(tmp_path / "logs"), **keys,
    }  # fmt: skip
    path = tmp_path / "sge.toml"
    path.write_text(tomlkit.dumps(table), encoding="utf-8")
    return path


def read(tmp_path, **keys):
    return load_cluster(write(tmp_path, **keys))


def eigenscape(*arguments):
    return (sys.executable, "-m", "eigenscape", *map(str, arguments))


@pytest.fixture
def submitted(gridengine, tmp_path):
    """Submit a command by the cluster file; the job is cancelled at the end."""
    numbers = []

    def one(*command, **keys):
        options = read(tmp_path, **keys)
        numbers.append(options.submit(options.driver_script(command)))
        return numbers[-1]

    yield one
    for number in numbers:
        find_queue("sge").cancel(number)


def test_job_state__as_its_queue_shows_it(submitted, tmp_path):
    running = submitted("sleep", "60")
    held = submitted("sleep", "60", directives=["-h"])
    wide = submitted("sleep", "60", directives=["-pe smp 9"])
    hungry = submitted("sleep", "60", resources="mem_free=4000G")
    failed = submitted("sleep", "60", directives=["-o /absent/"])
    wait_until(lambda: find_queue("sge").job_state(running) == "running")
    wait_until(lambda: find_queue("sge").job_state(failed) == "failed")
    assert 'can\'t open output file "/absent/"' in find_queue("sge").job_reason(failed)
    for number in (held, wide, hungry):
        assert find_queue("sge").job_state(number) == "waiting"
    wait_until(lambda: "hold" in find_queue("sge").job_reason(held))
    wait_until(lambda: 'PE "smp" because it only offers' in find_queue("sge").job_reason(wide))
    wait_until(
        lambda: "because it offers only hl:mem_free=" in find_queue("sge").job_reason(hungry)
    )
    find_queue("sge").cancel(running)
    wait_until(lambda: find_queue("sge").job_state(running) == "gone")
    assert find_queue("sge").job_state("999999") == "gone"
    assert find_queue("sge").job_reason("999999") == ""


def test_submit__a_job_of_a_queue_that_starts_csh(submitted, tmp_path):
    # There is none here: without -S this job would fail.
    out = tmp_path / "out"
    code = f"import os; open({str(out)!r}, 'w').write(os.environ['GREETING'] + ' $HOME')"
    lines = ["export GREETING='good day'", "[[ -n $GREETING ]] || exit 1"]
    number = submitted(sys.executable, "-c", code, environment=lines)
    wait_until(lambda: find_queue("sge").job_state(number) == "gone")
    assert out.read_text("utf-8") == "good day $HOME"


def test_cluster_check__one_worker(gridengine, tmp_path):
    path = write(tmp_path, jobs=7, resources="mem_free=1G")
    done = gridengine.inside.run(
        *eigenscape("cluster", "check", path, "--run-dir", tmp_path / "r", "--json")
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert (found["kind"], found["threads"]) == ("sge", 1)
    assert list((tmp_path / "r").iterdir()) == []
    wait_until(lambda: gridengine.jobs("rwt") == [])


def test_connect__nobody_else_reaches_scheduler_and_workers(gridengine, tmp_path):
    # Where the jobs are, which is no network of this process.
    code = (
        "import sys; from eigenscape.clusters import connect, load_cluster; "
        "from machines.strangers import check_strangers, http_answers\n"
        "with connect(load_cluster(sys.argv[1]), None, 2**30) as executor:\n"
        "    assert len(check_strangers(executor._client)) == 3\n"
        "    assert http_answers('eigenscape.clusters.workers.process') == ({'127.0.0.1'}, [])\n"
    )
    helpers = str(Path(__file__).resolve().parents[1] / "helpers")
    done = gridengine.inside.run(
        sys.executable, "-c", f"import sys; sys.path.append({helpers!r})\n{code}", write(tmp_path)
    )
    assert done.returncode == 0, done.stderr
    wait_until(lambda: gridengine.jobs("rwt") == [])


def test_cluster_check__a_job_that_its_queue_gives_up(gridengine, tmp_path):
    path = write(tmp_path, directives=["-o /absent/"])
    done = gridengine.inside.run(*eigenscape("cluster", "check", path, "--run-dir", tmp_path / "r"))
    assert done.returncode == 2, done.stderr
    words = " ".join(done.stderr.split())
    assert "cannot run: " in words
    assert 'can\'t open output file "/absent/"' in words
    wait_until(lambda: gridengine.jobs("E") == [])


def test_run__one_of_two_workers_is_deleted(gridengine, write_tif, write_job, make_scene, tmp_path):
    scene = make_scene(72, 64, 12)
    write_tif("scene.tif", scene.cube, hole=scene.hole)
    write_tif("labels.tif", scene.labels, nodata=0)
    file = write_job(scene={"labels": "labels.tif"}, limits={"memory": "1GiB"})
    calm = run(load_job(file), run_dir=tmp_path / "a" / "run").path
    on, there = write(tmp_path, jobs=2), tmp_path / "b" / "run"
    command = eigenscape("run", file, "--on", on, "--run-dir", there)
    hurt = gridengine.inside.popen(*command, stdout=-1, stderr=-1, text=True)
    wait_until(lambda: len(gridengine.jobs()) == 2)
    lost, kept = gridengine.jobs()
    wait_until(lambda: (there / "work").exists())
    gridengine.call("qdel", lost)
    _, said = hurt.communicate(timeout=120)
    assert hurt.returncode == 0, said
    for name in ("spectrum/value", "labels/class", "neighbors/index"):
        np.testing.assert_array_equal(Run(there).open(name)[...], Run(calm).open(name)[...])
    wait_until(lambda: gridengine.jobs("rwt") == [])
    assert lost != kept

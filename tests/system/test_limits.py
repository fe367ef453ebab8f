"""`limits.memory` and `limits.threads` are kept: jobs run as commands under a limit enforced from outside."""

import json
import sys

import numpy as np
import pytest
import tomlkit

import eigenscape.job.sizes
from eigenscape import load_job, plan, run
from eigenscape.base.process.progress import Silent
from eigenscape.clusters.workers import executors
from eigenscape.errors import MemoryLimitError
from eigenscape.workflow.plan import project_again
from eigenscape.workflow.spine import memory_note
from machines.confined import can_make_groups, run_confined

pytestmark = pytest.mark.slow

MIB = 2**20
HOLD = "held = bytearray({} << 20); print(len(held))"
MAP = """
import mmap, tempfile
with tempfile.TemporaryFile(dir={!r}) as file:
    file.truncate(160 << 20)
    pages = mmap.mmap(file.fileno(), 0)
    for start in range(0, len(pages), 4096):
        pages[start] = 1
    print(len(pages))
"""


@pytest.fixture(params=["cgroup", "watcher"])
def way(request):
    if request.param == "cgroup" and not can_make_groups():
        pytest.skip("no control group with a limit of memory can be made here")
    return request.param


def test_run_confined__ends_what_holds_more_than_the_limit(way):
    # The watcher has to see it before it ends.
    code = HOLD.format(200) + "; import time; time.sleep(5)"
    done = run_confined([sys.executable, "-c", code], 96 * MIB, way=way)
    assert (done.killed, done.status, done.way) == (True, -9, way)


def test_run_confined__leaves_mapped_files_to_the_system(way, tmp_path):
    code = f"{HOLD.format(40)}; {MAP.format(str(tmp_path)).strip()}".replace("; import", "\nimport")
    done = run_confined([sys.executable, "-c", code], 96 * MIB, way=way)
    assert (done.killed, done.status) == (False, 0), done.errors
    assert done.output.split() == [str(40 * MIB), str(160 * MIB)]
    assert done.peak < 96 * MIB


@pytest.fixture(scope="module")
def folder(make_scene, tmp_path_factory):
    """Return a folder with two scenes, all pixels labelled: arrays of labels are as large as can be."""
    folder = tmp_path_factory.mktemp("scenes")
    for name, side in (("small", 60), ("scene", 160)):
        made = make_scene(side, side, 30, hole=False, labelled=1.0)
        np.savez(folder / f"{name}.npz", cube=made.cube, truth=made.labels)
    return folder


@pytest.mark.mostly_exhaustive(1)
@pytest.mark.parametrize("method", ["centroid-angle", "tikhonov"])
def test_run__holds_no_more_than_its_limit(folder, method):
    def job(scene):
        table = {
            "scene": {"path": f"{scene}.npz", "variable": "cube", "labels_variable": "truth"},
            "neighbors": {"k": 8},
            "spectrum": {"dimension": 8, "solver": "chebyshev"},
            "learn": {"method": method, "trials": 1},
            "output": {"directory": "runs"},
            "limits": {"memory": f"{limit} B", "threads": 2},
        }
        path = folder / f"{scene}-{method}.toml"
        path.write_text(tomlkit.dumps(table))
        return path

    limit = 272 * MIB
    # Kernels are compiled the first time they are called, which takes memory of its own.
    run(load_job(job("small")))
    path = job("scene")
    done = run_confined([sys.executable, "-m", "eigenscape", "run", str(path), "--json"], limit)
    assert (done.killed, done.status) == (False, 0), done.errors
    planned = {stage.name: stage.peak_bytes for stage in plan(load_job(path)).stages}
    for stage in json.loads(done.output.splitlines()[-1])["stages"]:
        assert stage["peak_bytes"] <= planned[stage["name"]] <= limit, stage


def test_run__has_as_many_threads_as_the_plan_says(written, write_job, monkeypatch):
    # As if each task took 64 MiB more: the limit has room for few of them.
    monkeypatch.setattr(eigenscape.job.sizes, "heap_bytes", lambda limit, tasks: 64 * MIB)
    pools = []

    class Pool(executors.ThreadPoolExecutor):
        def __init__(self, width):
            pools.append(width)
            super().__init__(width)

    monkeypatch.setattr(executors, "ThreadPoolExecutor", Pool)
    limits = {"memory": "400MiB", "threads": 16}
    job = load_job(write_job(scene={"labels": "labels.tif"}, limits=limits))
    planned = plan(job)
    assert planned.threads in (2, 3)
    note = next(note for note in planned.notes if " threads of 16: " in note)
    assert note.startswith(
        f"{planned.threads} threads of 16: limits.memory = 400.0 MiB is too small for more"
    )
    found = run(job)
    assert set(pools) == {planned.threads}
    log = (found.path / "log.jsonl").read_text().splitlines()
    assert [entry for entry in map(json.loads, log) if entry.get("text") == note]
    # Nothing is said where there is room for all.
    monkeypatch.undo()
    assert not any(" of 16: " in text for text in plan(job).notes)


class Heard(Silent):
    def __init__(self):
        self.notes = []

    def note(self, text):
        self.notes.append(text)


def test_run__projects_again_what_a_radius_means(written, write_job):
    near = {"method": "radius", "metric": "angle", "radius": 0.05}
    job, heard = load_job(write_job(neighbors=near)), Heard()
    summary = run(job, reporter=heard).neighbors
    said = [note for note in heard.notes if note.startswith("projected peaks with so many")]
    assert len(said) == 1
    few, many = (project_again(job, 10**6, 20, 2, k).stages[0] for k in (8, 600))
    assert few.name == "graph"
    assert many.disk_bytes > 50 * few.disk_bytes
    assert summary["mean_neighbors"] > 8


def test_foresee__refuses_a_radius_that_is_too_large_with_its_neighbours(write_job):
    near = {"method": "radius", "radius": 1.0}
    job = load_job(write_job(neighbors=near, limits={"memory": "1GiB"}))
    ingested = {"samples": 640_976, "bands": {"good": [True] * 12}}
    with pytest.raises(
        MemoryLimitError, match=r"have 500 neighbours on average.*smaller neighbors\.radius\."
    ):
        memory_note(job, ingested, 2, 500.0)
    assert "spectrum" in memory_note(job, ingested, 2, 10.0)

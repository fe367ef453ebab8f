"""Names of scratch files: none has two contents, for another machine may still know the first."""

import hashlib
from dataclasses import replace

import numpy as np
import pytest

from eigenscape.clusters import ClusterOptions, Threads
from eigenscape.errors import StoreError
from eigenscape.job.jobfile import load_job
from eigenscape.spectrum.iteration.state import State
from eigenscape.workflow.plan import project_plan
from eigenscape.workflow.spine import run
from harness import KilledError

pytestmark = pytest.mark.slow

# What only the process that leads the run reads.
OWN = {"journal.jsonl", "state.json", "COMMIT"}


class Watching(Threads):
    """Threads that look at all files of unfinished stages after each step."""

    def __init__(self, path):
        super().__init__(2)
        self.path, self.known, self.steps = path / "work", {}, 0

    def run(self, function, items, on_done, order=None):
        self.look()
        super().run(function, items, on_done, order)
        self.look()

    def look(self):
        self.steps += 1
        there = {}
        for path in self.path.rglob("*"):
            if path.is_file() and path.name not in OWN:
                content = path.read_bytes()
                # Reserved space is not a content yet.
                zeros = not np.frombuffer(content, np.uint8).any()
                there[str(path)] = None if zeros else hashlib.sha1(content).hexdigest()
        for name, content in self.known.items():
            if content == "deleted":
                assert name not in there, f"{name} was deleted and made again"
            elif content is not None and name in there:
                assert there[name] == content, f"{name} was written again"
        gone = dict.fromkeys(set(self.known) - set(there), "deleted")
        self.known |= there | gone


@pytest.mark.parametrize(
    "tables",
    [
        {"neighbors": {"k": 6, "refine": 3}, "graph": {"spatial": {}}},
        {"neighbors": {"recall": 1.0, "leaf_size": 64}, "learn": {"method": "poisson"}},
        {"neighbors": {"method": "exact"}, "learn": {"smoothing": 1.0}},
        {"spectrum": {"dimension": 20, "tolerance": 1e-9}, "limits": {"memory": "300MiB"}},
        {"spectrum": {"dimension": 20}, "limits": {"layout": "rows"}},
    ],
    ids=["spatial", "trees", "smoothing", "passes", "rows"],
)
def test_run__no_scratch_file_is_written_again_or_comes_back(
    tables, write_tif, write_job, make_scene, tmp_path
):
    scene = make_scene(72, 64, 12)
    write_tif("scene.tif", scene.cube, hole=scene.hole)
    write_tif("labels.tif", scene.labels, nodata=0)
    job = load_job(write_job(**{**tables, "scene": {"labels": "labels.tif"}}))
    watching = Watching(tmp_path / "run")
    run(job, run_dir=tmp_path / "run", executor=watching)
    assert watching.steps > 20


class Weighing(Threads):
    """Threads that weigh the files of each unfinished stage after each step."""

    def __init__(self, path):
        super().__init__(2)
        self.path, self.most = path / "work", {}

    def run(self, function, items, on_done, order=None):
        def done(*result):
            self.weigh()
            on_done(*result)

        super().run(function, items, done, order)
        self.weigh()

    def weigh(self):
        for stage in self.path.iterdir():
            files = [path for path in stage.rglob("*") if path.is_file()]
            name = stage.name.partition("-")[0]
            size = sum(path.stat().st_blocks * 512 for path in files if path.exists())
            self.most[name] = max(self.most.get(name, 0), size)


@pytest.mark.mostly_exhaustive(1)
@pytest.mark.parametrize(
    "learn",
    [{"method": "centroid-angle"}, {"method": "interpolated"}, {"method": "svm", "smoothing": 1.0}],
    ids=lambda learn: learn["method"],
)
def test_run__takes_no_more_disk_than_planned(learn, write_tif, write_job, make_scene, tmp_path):
    scene = make_scene(160, 150, 12)
    write_tif("scene.tif", scene.cube, hole=scene.hole)
    write_tif("labels.tif", scene.labels, nodata=0)
    tables = {"scene": {"labels": "labels.tif"}, "spectrum": {"dimension": 40}, "learn": learn}
    job = load_job(write_job(**tables))
    planned = {stage.name: stage for stage in project_plan(job, ClusterOptions()).stages}
    weighing = Weighing(tmp_path / "run")
    run(job, run_dir=tmp_path / "run", executor=weighing)
    for name, most in weighing.most.items():
        # Each file takes whole pages, which is much where all are small.
        limit = planned[name].disk_bytes + planned[name].scratch_bytes + 2**20
        assert most <= 1.1 * limit, name


class Ending(Threads):
    """Threads that end, as if killed, once the eigensolver has noted where it stands."""

    def run(self, function, items, on_done):
        super().run(function, items, on_done)
        if list(self.path.rglob("operator/state.json")):
            raise KilledError

    def __init__(self, path):
        super().__init__(2)
        self.path = path / "work"


def test_run__eigenvalues_that_are_no_numbers_are_refused_and_their_stage_begins_anew(
    write_tif, write_job, make_scene, tmp_path, monkeypatch
):
    scene = make_scene(72, 64, 12)
    write_tif("scene.tif", scene.cube, hole=scene.hole)
    job, path = load_job(write_job(spectrum={"dimension": 6})), tmp_path / "run"
    with pytest.raises(KilledError):
        run(job, run_dir=path, executor=Ending(path))
    read = State.read

    def stale(file):
        """As a mount gives that another machine has written to, past what checksums see."""
        state = read(file)
        return replace(state, values=(float("nan"),) * len(state.values))

    with monkeypatch.context() as patched:
        patched.setattr(State, "read", stale)
        with pytest.raises(
            StoreError, match=r"not numbers.*cluster check.*spectrum-\w+ is deleted: the"
        ):
            run(job, run_dir=path)
    assert not list(path.rglob("spectrum-*"))
    again = run(job, run_dir=path)
    calm = run(job, run_dir=tmp_path / "calm" / "run")
    assert again.spectrum["values"] == calm.spectrum["values"]

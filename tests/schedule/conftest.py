"""Finished runs without their arrays: what a prune looks at."""

import os

import pytest
import tomlkit

from eigenscape.store.manifest import FORMAT, write_manifest
from eigenscape.workflow.stages import STAGES


@pytest.fixture
def make_run(tmp_path):
    """Return a function that makes a run directory that is finished, or begun."""

    def make(name, key, minute, *, finished=True, parent="runs", scene="/data/s.tif", **manifest):
        path = tmp_path / parent / f"{name}-{key}"
        (path / "outputs").mkdir(parents=True)
        record = {
            "key": key, "seconds": 1.0, "peak_bytes": 1, "arrays": [], "files": [], "summary": {},
            "finished": "2026-11-22T03:00:00+0000",
        }  # fmt: skip
        stages = {stage.name: record for stage in STAGES[: None if finished else 3]}
        (path / "job.toml").write_text(tomlkit.dumps({"scene": {"path": scene}}))
        write_manifest(path, {"format": FORMAT, "name": name, "stages": stages, **manifest})
        os.utime(path / "manifest.json", (1.7e9 + 60 * minute,) * 2)
        return path

    return make


@pytest.fixture
def tiny_job(tmp_path):
    """Return a job file that fails at once: its scene is not there."""
    path = tmp_path / "tiny.toml"
    path.write_text(tomlkit.dumps({"scene": {"path": "none.tif"}, "output": {"directory": "runs"}}))
    return path

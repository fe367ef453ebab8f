"""Further rasters of a scene that was read: opened by what the manifest holds of it."""

import json

import numpy as np
import pytest

from eigenscape.job.jobfile import load_job
from eigenscape.scenes.draws import Subset
from eigenscape.scenes.ingested import IngestedScene
from eigenscape.scenes.types import Grid
from eigenscape.workflow.spine import run


def test_from_summary__reads_marks_of_drawn_rows(tmp_path, rng):
    marks = rng.integers(0, 5, 500).astype(np.uint16)
    np.save(tmp_path / "marks.npy", marks[:, np.newaxis])
    subset = Subset(500, 60, 3)
    summary = {
        "grid": Grid(60, 1).to_json(),
        "subset": {"total": 500, "count": 60, "seed": 3},
        "labelled": {"1": 3},
    }
    scene = IngestedScene.from_summary(
        json.loads(json.dumps(summary)), lambda path: str(tmp_path / path)
    )
    assert (scene.subset, scene.labelled) == (subset, True)
    given = scene.open_marks("marks.npy").read(0, 60).ravel()
    np.testing.assert_array_equal(given, marks[subset.rows])


@pytest.mark.slow
def test_run__training_samples_of_a_subset_need_no_scene(tmp_path, rng, write_job, monkeypatch):
    values = np.repeat(np.eye(4, 6) * 9, 60, axis=0) + rng.standard_normal((240, 6))
    classes = np.repeat(np.arange(1, 5), 60).astype(np.uint16)
    marks = np.where(rng.random(240) < 0.4, classes, 0).astype(np.uint16)
    np.save(tmp_path / "table.npy", values.astype(np.float32))
    for name, labels in (("labels", classes), ("marks", marks)):
        np.save(tmp_path / f"{name}.npy", labels)
    job = load_job(
        write_job(
            scene={"path": "table.npy", "labels": "labels.npy", "samples": 150, "seed": 2},
            features={"method": "none"},
            neighbors={"k": 6, "method": "exact"},
            spectrum={"dimension": 5},
            learn={"train": "marks.npy"},
            graph={"potential": {"kind": "barrier", "labels": "train"}},
            output={"eigenvectors": 0},
        )
    )
    result = run(job, run_dir=tmp_path / "run")
    drawn = Subset(240, 150, 2).rows
    held_out = result.scores["held_out"]["file"]
    assert held_out["training_pixels"] == np.count_nonzero(marks[drawn])
    assert result.spectrum["potential"]["samples"] == np.count_nonzero(marks[drawn])

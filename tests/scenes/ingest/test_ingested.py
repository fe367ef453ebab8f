"""Further rasters of a scene that was read: opened by what the manifest holds of it."""

import json

import numpy as np
import pandas as pd
import pytest

from eigenscape.job.jobfile import load_job
from eigenscape.job.options import SceneOptions
from eigenscape.scenes.ingest.ingested import IngestedScene
from eigenscape.scenes.types import Grid
from eigenscape.scenes.views.draws import Subset
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
        json.loads(json.dumps(summary)),
        SceneOptions(path="table.npy"),
        lambda path: str(tmp_path / path),
    )
    assert (scene.subset, scene.labelled) == (subset, True)
    given = scene.open_marks("marks.npy").read(0, 60).ravel()
    np.testing.assert_array_equal(given, marks[subset.rows])


def test_open_test_labels__reads_the_column_of_the_labels_at_drawn_rows(tmp_path, rng):
    tested = rng.integers(1, 5, 500)
    frame = pd.DataFrame({"crop": tested, "soil": rng.integers(5, 9, 500)})
    frame.to_csv(tmp_path / "tested.csv", index=False)
    np.save(tmp_path / "tested.npy", tested.astype(np.uint16))
    summary = {
        "grid": Grid(60, 1).to_json(),
        "subset": {"total": 500, "count": 60, "seed": 3},
        "labelled": {"1": 3},
        "class_names": {"1": "corn"},
    }
    options = SceneOptions(path="table.npy", labels="labels.csv", labels_field="crop")
    scene = IngestedScene.from_summary(summary, options, lambda path: str(tmp_path / path))
    assert scene.class_names == {1: "corn"}
    # An array has no columns.
    for name in ("tested.csv", "tested.npy"):
        given = scene.open_test_labels(name).read(0, 60).ravel()
        np.testing.assert_array_equal(given, tested[Subset(500, 60, 3).rows])


@pytest.mark.slow
@pytest.mark.parametrize("test", [None, "tested.npy"])
def test_run__training_samples_of_a_subset_need_no_scene(tmp_path, rng, write_job, test):
    values = np.repeat(np.eye(4, 6) * 9, 60, axis=0) + rng.standard_normal((240, 6))
    classes = np.repeat(np.arange(1, 5), 60).astype(np.uint16)
    marks = np.where(rng.random(240) < 0.4, classes, 0).astype(np.uint16)
    np.save(tmp_path / "table.npy", values.astype(np.float32))
    tested = np.where(rng.random(240) < 0.3, classes, 0).astype(np.uint16)
    for name, labels in (("labels", classes), ("marks", marks), ("tested", tested)):
        np.save(tmp_path / f"{name}.npy", labels)
    job = load_job(
        write_job(
            scene={"path": "table.npy", "labels": "labels.npy", "samples": 150, "seed": 2},
            features={"method": "none"},
            neighbors={"k": 6, "method": "exact"},
            spectrum={"dimension": 5},
            learn={"train": "marks.npy"} | ({} if test is None else {"test": test}),
            graph={"potential": {"kind": "barrier", "labels": "train"}},
            output={"eigenvectors": 0},
        )
    )
    result = run(job, run_dir=tmp_path / "run")
    drawn = Subset(240, 150, 2).rows
    learned = np.count_nonzero(
        marks[drawn] if test is None else marks[drawn] * (tested[drawn] == 0)
    )
    held_out = result.scores["held_out"]["file" if test is None else "test"]
    assert held_out["training_pixels"] == learned
    assert result.spectrum["potential"]["samples"] == learned
    if test is not None:
        assert np.sum(held_out["confusion"]) == np.count_nonzero(tested[drawn])

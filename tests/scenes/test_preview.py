"""What a plan says of labels before anything is read of the scene, and what it refuses."""

import json

import numpy as np
import pandas as pd
import pytest

from eigenscape.scenes import preview


@pytest.fixture
def planned(cli, write_job):
    """Plan a job with these tables; the result and its notes."""

    def work(**tables):
        result = cli("plan", write_job(**tables), "--json")
        notes = json.loads(result.stdout)["notes"] if result.exit_code == 0 else []
        return result, notes

    return work


def test_plan__counts_the_labels(written, planned, small):
    _, notes = planned(scene={"labels": "labels.tif"})
    counts = np.bincount(small.labels.ravel())[1:]
    listed = ", ".join(f"{number} ({count})" for number, count in enumerate(counts, start=1))
    assert (
        f"labels: labels.tif; {counts.sum()} pixels of 4 classes, valid or not: {listed}" in notes
    )


def test_plan__counts_a_table(tmp_path, planned, small):
    np.save(tmp_path / "X.npy", small.cube[6:8].reshape(-1, 20))
    kind = np.array(["", "ash", "beech", "cedar", "dogwood"])[small.labels[6:8].ravel()]
    pd.DataFrame({"kind": kind, "plot": 1}).to_csv(tmp_path / "y.csv", index=False)
    keys = {"path": "X.npy", "labels": "y.csv", "labels_field": "kind"}
    _, notes = planned(scene=keys)
    said = next(note for note in notes if note.startswith("labels: "))
    known = sorted(set(kind) - {""})
    assert said.startswith(f"labels: y.csv; {(kind != '').sum()} samples of {len(known)} classes")
    assert f"1 {known[0]} ({(kind == known[0]).sum()})" in said


def test_plan__does_not_count_large_labels(written, planned, monkeypatch):
    monkeypatch.setattr(preview, "MOST_COUNTED", 100)
    _, notes = planned(scene={"labels": "labels.tif"})
    assert "labels: labels.tif; counted when the scene is read" in notes


@pytest.mark.parametrize(
    ("shape", "tables"),
    [
        ((29, 40), {"scene": {"labels": "other.npy"}}),
        ((40, 30), {"scene": {"labels": "labels.tif"}, "learn": {"train": "other.npy"}}),
        (
            (30, 41),
            {"scene": {"labels": "labels.tif"}, "graph": {"potential": {"raster": "other.npy"}}},
        ),
        (
            (31, 40),
            {"scene": {"labels": "labels.tif"}, "graph": {"potential": {"labels": "other.npy"}}},
        ),
    ],
    ids=["labels", "train", "raster", "potential"],
)
def test_plan__refuses_another_size_with_both(written, planned, tmp_path, shape, tables):
    np.save(tmp_path / "other.npy", np.ones(shape, np.uint8))
    result, _ = planned(**tables)
    assert result.exit_code == 2
    assert f"{shape[0]} x {shape[1]}" in result.stderr
    assert "30 x 40" in result.stderr


@pytest.mark.parametrize(
    ("value", "words"),
    [(0, "no pixel of the scene has a label"), (3, "hold one class only"), (1, "0 means no label")],
)
def test_plan__refuses_labels_that_cannot_train(written, planned, tmp_path, value, words):
    np.save(tmp_path / "gt.npy", np.full((30, 40), value, np.uint8))
    result, _ = planned(scene={"labels": "gt.npy"})
    assert result.exit_code == 2
    assert words in result.stderr


def test_plan__names_the_only_class(planned, tmp_path):
    rows = "".join(f"{row},{row % 7},meadow\n" for row in range(40))
    (tmp_path / "table.csv").write_text(f"a,b,kind\n{rows}")
    for learn in ({}, {"method": "svm"}):
        result, _ = planned(scene={"path": "table.csv", "labels_field": "kind"}, learn=learn)
        assert result.exit_code == 2
        assert "one class only: meadow (40 labelled)" in result.stderr

import math

import pytest

from eigenscape.study.rows import score_rows, stage_columns

HELD = {
    "trials": 4, "overall_accuracy": 0.9, "overall_accuracy_std": 0.02, "average_accuracy": 0.8,
    "average_accuracy_std": 0.04, "kappa": 0.7, "kappa_std": 0.1, "per_class": [1.0],
    "confusion": [[1]], "training_pixels": 30,
}  # fmt: skip
ITSELF = {"overall_accuracy": 0.95, "average_accuracy": 0.9, "kappa": 0.8, "samples": 500}


def rows_of(held=("random", "blocked"), **changed):
    scores = {
        "protocol": "pixels held out (blocked)",
        "held_out": {name: {**HELD, **changed} for name in held},
        "training_pixels": ITSELF,
    }
    return score_rows({"learn": {"scores": scores}})


def test_score_rows__held_out_pixels_come_first_and_squares_before_others():
    rows = rows_of()
    assert [(row["protocol"], row["main"]) for row in rows] == [
        ("blocked", True), ("random", False), ("training", False),
    ]  # fmt: skip
    assert (rows[0]["training_accuracy"], rows[0]["training_error"]) == (95, pytest.approx(5))
    assert not any(name.startswith("training_acc") for row in rows[1:] for name in row)
    table = rows_of(["uniform"])
    assert [(row["protocol"], row["main"]) for row in table] == [
        ("uniform", True), ("training", False),
    ]  # fmt: skip
    nothing = rows_of(["file"], overall_accuracy=None)
    assert [row["main"] for row in nothing] == [False, True]


def test_score_rows__percent_and_standard_errors():
    first, *_, training = rows_of()
    assert first["accuracy"] == pytest.approx(90)
    assert first["error"] == pytest.approx(10)
    assert first["error_se"] == first["accuracy_se"] == pytest.approx(2 / math.sqrt(4))
    assert first["average_accuracy_se"] == pytest.approx(2)
    assert (first["kappa"], first["kappa_se"], first["trials"]) == (0.7, 0.05, 4)
    assert first["training_pixels"] == 30
    # Of four draws one has no kappa.
    first, *_ = rows_of(kappa_trials=3)
    assert first["kappa_se"] == pytest.approx(0.1 / math.sqrt(3))
    assert "kappa_trials" not in first
    assert not {"per_class", "confusion"} & first.keys()
    # One measurement says nothing about its spread; its pixels are not the scene's samples.
    assert (training["trials"], training["scored"]) == (1, 500)
    assert not {"accuracy_se", "samples"} & training.keys()


def test_score_rows__clusters():
    scores = {
        "clusters": 5,
        "ncut": 0.3,
        "per_cluster": [],
        "agreement": {"ari": 0.4, "accuracy": 0.6},
    }
    (row,) = score_rows({"learn": {"scores": scores}})
    assert (row["protocol"], row["clusters"], row["ari"], row["ncut"]) == ("clusters", 5, 0.4, 0.3)
    assert (row["accuracy"], row["error"]) == (60, 40)


def test_score_rows__without_labels():
    assert score_rows({"learn": {"skipped": "no labels"}}) == [{"protocol": None, "main": True}]


def test_stage_columns__of_a_run_without_scores():
    columns = stage_columns({"ingest": {"samples": 9}}, {"ingest": 1.25, "graph": 0.5}, 77)
    assert (columns["samples"], columns["seconds"], columns["seconds_graph"]) == (9, 1.75, 0.5)
    assert columns["seconds_learn"] is columns["recall"] is None
    assert columns["peak_bytes"] == 77

"""A finished variant to rows of the table: one for each protocol by which it was scored."""

import math
from collections.abc import Mapping
from typing import Any

from eigenscape.base.shares import lead
from eigenscape.job.measures import STAGE_NAMES

_PERCENT = ("accuracy", "average_accuracy")
_TRAINING = ("accuracy", "average_accuracy", "error")
_NAMES = {"overall_accuracy": "accuracy", "samples": "scored"}
"""Names of the scores, where the table has others: its ``samples`` are those of the scene."""


def score_rows(summaries: Mapping[str, Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the scores of a run, one row for each protocol: held-out pixels first, by squares if any.

    Parameters
    ----------
    summaries
        What the stages reported, by name.

    Returns
    -------
    list of dict
        ``protocol``: how the training samples were drawn, "training" for those learned from,
        "clusters" for methods without labels, None without scores. Accuracies and their standard
        errors (``..._se``) in percent; ``kappa``; ``trials``; whatever else is a number. The first row
        has those of the training pixels beside its own, as ``training_...``.
    """
    scores = summaries.get("learn", {}).get("scores") or {}
    if not scores:
        return [{"protocol": None, "main": True}]
    if "held_out" not in scores:
        agreement = scores.get("agreement") or {}
        return [{"protocol": "clusters", "main": True, **_numbers(scores), **_numbers(agreement)}]
    held_out = scores["held_out"]
    main = lead(held_out) or "training"
    rows = [
        {"protocol": name, "main": name == main, **_numbers(held_out[name])}
        for name in sorted(held_out, key=lambda name: name != main)
    ]
    itself = _numbers({**scores["training_pixels"], "trials": 1})
    if main != "training":
        rows[0].update({f"training_{name}": itself[name] for name in _TRAINING if name in itself})
    return [*rows, {"protocol": "training", "main": main == "training", **itself}]


def stage_columns(
    summaries: Mapping[str, Mapping[str, Any]], seconds: Mapping[str, float], peak_bytes: int
) -> dict[str, Any]:
    """Return what a run's stages measured: sizes, recall, residual, times.

    Parameters
    ----------
    summaries
        What the stages reported, by name.
    seconds
        Of each stage; one that was taken over has those of the run that computed it.
    peak_bytes
        Largest peak of all stages.
    """
    ingest, neighbors = summaries.get("ingest", {}), summaries.get("neighbors", {})
    spectrum = summaries.get("spectrum", {})
    return {
        "samples": ingest.get("samples"),
        "labelled": summaries.get("learn", {}).get("labelled"),
        "recall": neighbors.get("recall"),
        "max_residual": spectrum.get("max_residual"),
        "converged": spectrum.get("converged"),
        "seconds": round(sum(seconds.values()), 3),
        **{f"seconds_{stage}": seconds.get(stage) for stage in STAGE_NAMES},
        "peak_bytes": peak_bytes,
    }


def _numbers(scores: Mapping[str, Any]) -> dict[str, Any]:
    """Return the columns of one protocol: its numbers, means with their standard errors."""
    trials = scores.get("trials") or 1
    columns: dict[str, Any] = {}
    for name, value in scores.items():
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            continue
        if name.endswith("_trials"):
            continue
        stem = name.removesuffix("_std")
        column = _NAMES.get(stem, stem)
        number = 100 * value if column in _PERCENT else value
        if stem == name:
            columns[column] = number
        elif trials > 1:  # of one draw nothing is known about the others
            # Some draws may have no kappa; runs of earlier versions do not count those that have.
            columns[f"{column}_se"] = number / math.sqrt(scores.get(f"{stem}_trials", trials))
    if "accuracy" in columns:
        columns["error"] = 100 - columns["accuracy"]
    if "accuracy_se" in columns:
        columns["error_se"] = columns["accuracy_se"]
    return columns

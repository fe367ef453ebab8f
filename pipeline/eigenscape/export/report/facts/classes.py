"""The sections on single classes: their measures, the confusion matrix, their areas."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from eigenscape.base.shares import INTERVAL
from eigenscape.export.report.source import MapClass, Source

MOST_CLASSES = 60
"""Classes in the confusion matrix, at most: those with the most labels."""

_SHADES = 9


def class_rows(source: Source) -> list[dict[str, Any]]:
    """Return the measures of each class that has labels: producer's, user's accuracy, F1, IoU."""
    scores = source.scores
    if "f1" not in scores:
        return []
    intervals = scores.get("intervals", {})
    rows = []
    for place, one in enumerate(_scored(source)):
        cells = []
        for key in ("per_class", "users_accuracy", "f1", "iou"):
            pairs = intervals.get(key)
            pair = pairs[place] if pairs else None
            value = scores[key][place]
            cells.append({
                "value": value, "text": "\u2013" if value is None else f"{100 * value:.0f}",
                "low": pair[0] if pair else None, "high": pair[1] if pair else None,
            })  # fmt: skip
        rows.append({
            "class": one, "cells": cells, "tested": sum(scores["confusion"][place]),
        })  # fmt: skip
    return rows


def _scored(source: Source) -> list[MapClass]:
    """Return the classes in the order of the scores; those that the legend lacks are grey."""
    known = {one.number: one for one in source.classes}
    return [
        known.get(number, MapClass(number, f"class {number}", (128, 128, 128), 0))
        for number in source.score_classes
    ]


def areas(source: Source) -> dict[str, Any] | None:
    """Return the estimated areas of the classes; None where the job does not ask for them.

    Returns
    -------
    dict
        ``unit``; ``rows``, empty where nothing was estimated: each with its ``class``, the area ``mapped``
        and the ``estimates`` (area, share, producer's and user's accuracy in percent), pairs of a text and
        half of the interval; what the map leaves ``without`` a class; the overall ``accuracy``, such a pair;
        ``skipped``, why areas or intervals are missing.
    """
    found = source.scores.get("areas")
    if found is None:
        return None
    total = sum(found["mapped"])
    # Four digits of the whole scene; pixels and samples are counted.
    digits = max(0, 3 - math.floor(math.log10(total))) if found["unit"] == "km2" and total else 0
    columns = [
        (key, 1, digits) if key == "area" else (key, 100, 1)
        for key in ("area", "proportion", "producers_accuracy", "users_accuracy")
    ]
    rows = [
        {
            "class": one, "mapped": f"{found['mapped'][place]:,.{digits}f}",
            "estimates": [
                _estimate(found[key][place], found[f"{key}_se"][place], factor, decimals)
                for key, factor, decimals in columns
            ],
        }
        for place, one in enumerate(_scored(source))
    ]  # fmt: skip
    return {
        "unit": found["unit"].replace("km2", "km\u00b2"),
        "rows": [] if found["overall_accuracy"] is None else rows,
        "without": f"{found['mapped'][-1]:,.{digits}f}" if found["mapped"][-1] else "",
        "accuracy": _estimate(found["overall_accuracy"], found["overall_accuracy_se"], 100, 1),
        "skipped": found.get("skipped", ""),
    }


def _estimate(
    value: float | None, error: float | None, factor: float, decimals: int
) -> tuple[str, str]:
    """Return an estimate and half of its interval, a dash and nothing for what is not known."""
    if value is None:
        return "\u2013", ""
    half = "" if error is None else f"{INTERVAL * factor * error:,.{decimals}f}"
    return f"{factor * value:,.{decimals}f}", half


def confusion(source: Source) -> dict[str, Any] | None:
    """Return the confusion matrix: ``rows`` of the true classes, ``columns``, ``left_out`` classes."""
    scores = source.scores
    if "confusion" not in scores:
        return None
    counts, numbers = scores["confusion"], source.score_classes
    by_size = sorted(range(len(numbers)), key=lambda place: -sum(counts[place]))
    shown = sorted(by_size[:MOST_CLASSES])
    scored = _scored(source)
    classes = [scored[place] for place in shown]
    without = any(counts[place][-1] for place in shown)
    rows = []
    for place, one in zip(shown, classes, strict=True):
        total = sum(counts[place]) or 1
        wanted = [*shown, *([len(numbers)] * without)]
        cells = []
        for column in wanted:
            share = counts[place][column] / total
            cells.append({
                "count": counts[place][column], "share": _short(share), "right": column == place,
                "shade": 0 if share < 0.005 else 1 + min(_SHADES - 1, int(_SHADES * share)),
            })  # fmt: skip
        rows.append({"class": one, "cells": cells, "total": sum(counts[place])})
    return {
        "rows": rows, "columns": classes, "without": without, "left_out": len(numbers) - len(shown),
        "mistakes": _mistakes(rows, classes),
    }  # fmt: skip


def _short(share: float) -> str:
    if share == 0:
        return ""
    return "\u00b7" if share < 0.005 else f"{100 * share:.0f}"


def _mistakes(
    rows: Sequence[Mapping[str, Any]], columns: Sequence[MapClass]
) -> list[tuple[str, str, str]]:
    """Return the three most frequent mistakes: what the class is, what it was called, in what share."""
    found = [
        (cell["count"] / row["total"], cell["count"], row["class"].name, column.name)
        for row in rows
        for cell, column in zip(row["cells"], columns, strict=False)
        if not cell["right"] and cell["count"]
    ]
    found.sort(key=lambda one: -one[1])
    return [(true, called, f"{100 * share:.0f} %") for share, _, true, called in found[:3]]

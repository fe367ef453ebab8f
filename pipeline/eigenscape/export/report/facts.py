"""Figures and sentences of a report: accuracy and what it means, classes, confusion, stages, choice."""

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from eigenscape.base import shares
from eigenscape.base.memory import format_bytes
from eigenscape.base.shares import INTERVAL, lead, recall_basis, recall_interval, tested_classes
from eigenscape.export.report.source import MapClass, Source

MOST_CLASSES = 60
"""Classes in the confusion matrix, at most: those with the most labels."""

_SHADES = 9

_MEASURES = (
    ("overall_accuracy", "Overall accuracy", "share of all tests whose class is right"),
    ("average_accuracy", "Average accuracy", "mean over classes: small ones count as much as large ones"),
    ("kappa", "Cohen's kappa", "agreement beyond chance: 0 is guessing by class size, 1 is perfect"),
    ("mean_f1", "Mean F1", "balance of missed and wrongly called ones, mean over classes"),
    ("mean_iou", "Mean IoU", "overlap of called and true ones over their union, mean over classes"),
)  # fmt: skip

_STAGES = {
    "ingest": "reads the scene and keeps its valid {what}",
    "features": "makes the vectors that are compared",
    "neighbors": "finds the most similar {what} of every {one}",
    "graph": "links similar {what} with weights",
    "spectrum": "computes the eigenvectors of the graph",
    "learn": "gives every {one} a class, and tests how well",
    "extend": "classifies the {what} by the earlier run",
    "export": "writes maps, tables and this page",
}

_PROTOCOLS = {
    "blocked": (
        "Whole squares held out",
        "tested on squares of the scene without any training {what}",
    ),
    "random": ("Random {what} held out", "tested on {what} scattered among training {what}"),
    "uniform": ("Uniform draw", "tested on the labelled {what} outside the draw"),
    "balanced": ("Balanced draw", "tested on the labelled {what} outside the draw"),
    "file": (
        "Outside the training file",
        "tested on labelled {what} that learn.train does not mark",
    ),
    "test": ("Your test file", "tested on the labels of learn.test, which had no part in training"),
}


percent = partial(shares.percent, missing="\u2013")
"""See `eigenscape.base.shares.percent`; a dash for what was not measured."""


def seconds(value: float) -> str:
    """Return a time in words.

    Examples
    --------
    >>> seconds(3.14), seconds(75), seconds(7300)
    ('3.1 s', '1 min 15 s', '2 h 1 min')
    """
    if value < 60:
        return f"{value:.1f} s"
    whole = round(value)
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def product(source: Source) -> str:
    """Return the word for what a run makes of labels: a map, or of a table a model."""
    return "model" if source.grid.is_table else "map"


def headline(source: Source) -> dict[str, str]:
    """Return the ``figure`` of a run, its ``label``, and its ``meaning`` in a sentence."""
    scores = source.scores
    if not source.classes:
        return {
            "figure": "", "label": "No class map",
            "meaning": "The scene has no labels, so nothing was classified: eigenvectors alone.",
        }  # fmt: skip
    if not scores:
        return {
            "figure": f"{len(source.classes)}", "label": "classes, not tested",
            "meaning": f"There are no labels to compare this {product(source)} with, so its accuracy here "
            "is not known.",
        }  # fmt: skip
    if "clusters" in scores:
        return _cluster_headline(scores, source.grid.things)
    value = scores["overall_accuracy"]
    what = source.grid.things
    meaning = f"None of the {what} was held out, so the accuracy on new ones is not known."
    if source.summary("extend"):
        meaning = _applied_meaning(scores, what)
    elif value is not None:
        where = ""
        if scores["protocol"].endswith("(blocked)"):
            where = ", in squares of the scene without any label learned"
        meaning = (
            f"Of 100 labelled {what} that were not learned from{where}, about {100 * value:.0f} get the "
            "right class"
        )
        interval = scores.get("intervals", {})
        if pair := interval.get("overall_accuracy"):
            low, high = (f"{100 * one:.0f}" for one in pair)
            meaning += f" ({low} to {high} with {100 * interval['level']:.0f} % confidence)"
        tested = tested_classes(scores)
        meaning += f". {f'Only {tested}. ' if tested else ''}{maps_tested(source)}".rstrip()
    return {
        "figure": percent(value),
        "label": f"{'accuracy not measured' if value is None else 'overall accuracy'}: {scores['protocol']}",
        "meaning": meaning,
    }


def _applied_meaning(scores: Mapping[str, Any], what: str) -> str:
    """Return in a sentence what the accuracy of a run on another scene says."""
    value, left_out = scores["overall_accuracy"], scores.get("left_out", 0)
    if value is None:
        return (
            f"All labelled {what} of this scene coincide with {what} that the run was trained on, so the "
            "accuracy on others is not known."
        )
    others = " that the run was not trained on," if left_out else ""
    meaning = (
        f"Of 100 labelled {what} of this scene{others} about {100 * value:.0f} get the right class."
    )
    if left_out:
        meaning += f" {left_out:,} more coincide with its training {what} and are left out."
    if left_out or "own scene" in scores["protocol"]:
        meaning += (
            " If the run has learned from this very scene, that says nothing of other ground."
        )
    return meaning


def maps_tested(source: Source) -> str:
    """Return a sentence on the maps that were scored and their numbers of training labels.

    A map that learns from all labels leaves none to test it: the scores are of other maps then.
    """
    scores, what, made = source.scores, source.grid.things, product(source)
    shown = scores.get("training_pixels", {}).get("samples")
    split = lead(scores.get("held_out", {}))
    if split is None or shown is None:
        return ""
    held, whole = scores["held_out"][split], source.summary("learn").get("labelled")
    if held["trials"] == 1 and split in ("file", "test"):
        return f"The {made} shown, which was tested, learned from {shown:,} other labelled {what}."
    each = (
        f"{held['trials']} test {made}s, each made" if held["trials"] > 1 else f"a test {made} made"
    )
    of_all = f"all {shown:,}" if shown == whole else f"{shown:,}"
    return (
        f"The figures are of {each} from about {held['training_pixels']:,} labelled {what}; the {made} "
        f"shown learned from {of_all}."
    )


def _cluster_headline(scores: Mapping[str, Any], what: str) -> dict[str, str]:
    meaning = f"The {what} were grouped by similarity alone: no label had a part in it."
    if agreed := scores["agreement"]:
        share = 100 * agreed["best_match_accuracy"]
        meaning += (
            f" Compared with the labels afterwards, {share:.0f} of 100 labelled {what} lie in the cluster "
            "that matches their class best."
        )
    return {"figure": str(scores["clusters"]), "label": "clusters", "meaning": meaning}


def accuracy_bars(source: Source) -> list[dict[str, Any]]:
    """Return overall accuracy on training pixels and by each protocol, with the spread of the draws."""
    scores, what = source.scores, source.grid.things
    bars = []
    if itself := scores.get("training_pixels"):
        bars.append({
            "key": "training", "label": f"Training {what}",
            "note": f"the {itself['samples']:,} {what} that the {product(source)} shown learned from",
            "value": itself.get("overall_accuracy"), "spread": None, "learned": "",
        })  # fmt: skip
    held_out = scores.get("held_out", {})
    for split in sorted(
        held_out, key=("random", "uniform", "balanced", "file", "blocked", "test").index
    ):
        held = held_out[split]
        label, note = _PROTOCOLS[split]
        bars.append({
            "key": split, "label": label.format(what=what), "note": note.format(what=what),
            "value": held.get("overall_accuracy"),
            "spread": held.get("overall_accuracy_std"),
            "learned": _learned(split, held, source),
        })  # fmt: skip
    return [bar for bar in bars if bar["value"] is not None]


def _learned(split: str, held: Mapping[str, Any], source: Source) -> str:
    """Return how many maps a protocol tested, and from how much each learned."""
    made, trials = product(source), held["trials"]
    training = f"{held['training_pixels']:,} training {source.grid.things}"
    if split in ("file", "test") and trials == 1:
        return f"the {made} shown, {training}"
    return f"{trials} test {made}s, {training} each" if trials > 1 else f"1 test {made}, {training}"


def explain_bars(bars: Sequence[Mapping[str, Any]], what: str) -> str:
    """Return what the difference of the bars means."""
    values = {bar["key"]: 100 * bar["value"] for bar in bars}
    text = ""
    if {"random", "blocked"} <= values.keys():
        gap = values["random"] - values["blocked"]
        if gap > 2:
            text = (
                f"Random pixels score {gap:.0f} points more than whole squares, because a random test pixel "
                "usually has a training pixel of the same field next to it. Expect the lower figure on "
                "ground that has no labels nearby."
            )
        elif gap < -2:
            text = (
                f"Whole squares score {-gap:.0f} points more than random pixels. This is unusual: the "
                "squares may test fewer classes, or their maps may learn from more labels (see the counts)."
            )
        else:
            text = (
                f"Random pixels and whole squares differ by {abs(gap):.1f} points only: the maps do about "
                "as well away from their training pixels as beside them."
            )
    if "training" in values and len(values) > 1:
        others = [
            key for key in ("blocked", "test", *values) if key in values and key != "training"
        ]
        above = values["training"] - values[others[0]]
        text += (
            f" The {values['training']:.0f} % on training {what} measure how well the map repeats "
            f"its own labels{f', {above:.0f} points above the test' if above >= 0.5 else ''}: never quote "
            "them as accuracy."
        )
    return text.strip()


def measures(source: Source) -> list[dict[str, Any]]:
    """Return the measures of all classes together, with their intervals."""
    scores = source.scores
    if scores.get("overall_accuracy") is None:
        return []
    intervals = scores.get("intervals", {})
    rows = []
    for key, name, meaning in _MEASURES:
        if key in scores:
            share = key != "kappa"
            low, high = intervals.get(key) or (None, None)
            rows.append({
                "name": name, "meaning": meaning, "value": _text(scores[key], share=share),
                "low": _text(low, share=share), "high": _text(high, share=share), "known": low is not None,
            })  # fmt: skip
    return rows


def _text(value: float | None, *, share: bool) -> str:
    if value is None:
        return "\u2013"
    return percent(value) if share else f"{value:.3f}"


def interval_note(scores: Mapping[str, Any]) -> str:
    """Return how the intervals were made, or why there are none."""
    found = scores.get("intervals")
    if not found:
        return ""
    if "skipped" in found:
        return f"No intervals: {found['skipped']}."
    text = (
        f"Intervals hold the true value with {100 * found['level']:.0f} % confidence; they come from drawing "
        f"{found['groups']} {found['resampled'].split(':')[0]} again and again ({found['replicates']} times)."
    )
    if "no_means" in found:
        text += f" Means over the classes have none: {found['no_means']}."
    return text


def calibration_lines(scores: Mapping[str, Any]) -> list[str]:
    """Return how far the confidence is off."""
    after = scores.get("calibration", {}).get("after", {})
    lines = [
        f"Confidence is off by {percent(found['expected_calibration_error'])} on average "
        f"({_PROTOCOLS[split][0].format(what='ones').lower()})."
        for split, found in after.items()
        if found.get("expected_calibration_error") is not None
    ]
    if (own := scores.get("expected_calibration_error")) is not None:
        lines.append(f"Confidence is off by {percent(own)} on average.")
    return lines


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


def cluster_rows(source: Source) -> list[dict[str, Any]]:
    """Return size, cut and best match of each cluster."""
    found = source.scores.get("per_cluster", [])
    known = {one.number: one for one in source.classes}
    total = sum(row["samples"] for row in found) or 1
    return [
        {
            **row, "class": known.get(row["cluster"]), "share": percent(row["samples"] / total),
            "ncut": f"{row['ncut']:.4f}",
        }
        for row in found
    ]  # fmt: skip


def agreement_lines(scores: Mapping[str, Any], what: str) -> list[tuple[str, str, str]]:
    """Return measures of the agreement of clusters with labels: name, value, meaning."""
    agreed = scores.get("agreement")
    if not agreed:
        return []
    return [
        ("Adjusted Rand index", f"{agreed['ari']:.3f}", "0 is chance, 1 the same grouping as the labels"),
        ("Normalised mutual information", f"{agreed['nmi']:.3f}", "0 is unrelated, 1 the same grouping"),
        ("Best match", percent(agreed["best_match_accuracy"]), f"labelled {what} in their class's cluster"),
    ]  # fmt: skip


def neighbor_facts(source: Source) -> dict[str, Any] | None:
    """Return how the neighbours were found, and the share of true ones among them."""
    found = source.summary("neighbors")
    if not found:
        return None
    facts: dict[str, Any] = {"method": found.get("method", ""), "steps": found.get("steps", [])}
    if "recall" in found:
        half = recall_interval(found)
        facts |= {
            "recall": percent(found["recall"]), "half": None if half is None else percent(half),
            "k": found.get("k"), "basis": recall_basis(found, source.grid.things[:-1]),
        }  # fmt: skip
    dimension = found.get("intrinsic_dimension") or {}
    if dimension.get("value") is not None:
        facts["dimension"] = f"{dimension['value']:.1f}"
    return facts


def stage_rows(source: Source) -> list[dict[str, Any]]:
    """Return seconds and memory of each stage, measured and projected."""
    manifest, what = source.run.manifest, source.grid.things
    projected = manifest.get("projected", {})
    records = {name: source.run.record(name) for name in manifest.get("order", [])}
    known = [record for record in records.values() if record is not None]
    longest = max([record.seconds for record in known], default=0) or 1
    sizes = [*(record.peak_bytes for record in known), *projected.values()]
    largest = max(sizes, default=0) or 1
    rows = []
    for name, record in records.items():
        plan = projected.get(name)
        rows.append({
            "name": name, "does": _STAGES.get(name, "").format(what=what, one=what[:-1]),
            "seconds": None if record is None else seconds(record.seconds),
            "long": 0 if record is None else 100 * record.seconds / longest,
            "peak": None if record is None else format_bytes(record.peak_bytes),
            "high": 0 if record is None else 100 * record.peak_bytes / largest,
            "projected": None if plan is None else format_bytes(plan),
            "mark": None if plan is None else 100 * plan / largest,
        })  # fmt: skip
    return rows


def total_seconds(source: Source) -> str:
    """Return the time that the finished stages took together."""
    records = map(source.run.record, source.run.manifest.get("order", []))
    return seconds(sum(record.seconds for record in records if record is not None))


def applied_lines(source: Source) -> list[str]:
    """Return how a run was applied to this scene, and how alike the scenes are."""
    found = source.summary("extend")
    if not found:
        return []
    how = {
        "eigenvectors": "The eigenvectors of an earlier run were extended to this scene and classified.",
        "support-vectors": "A support vector machine that was fitted to the labels of an earlier run "
        "classified this scene.",
        "neighbors": "Each pixel takes the class probabilities of the most similar pixels of an earlier run.",
    }[found["how"]]  # fmt: skip
    lines = [how]
    samples = found["samples"] or 1
    if found["far"]:
        lines.append(
            f"{found['far']:,} pixels ({percent(found['far'] / samples)}) are like none of the earlier run: "
            "their confidence was lowered."
        )
    if found["without_class"]:
        lines.append(f"{found['without_class']:,} pixels got no class.")
    if (shift := found.get("shift")) and shift.get("differs"):
        lines.append(str(shift["message"]))
    return lines


def title_facts(source: Source) -> list[str]:
    """Return what was mapped, in a few words each."""
    ingest = source.summary("ingest")
    grid, bands = source.grid, ingest["bands"]["good"]
    good = sum(bands)
    named = "columns" if grid.is_table else "bands"
    kept = f"{good} {named}" if good == len(bands) else f"{good} of {len(bands)} {named}"
    samples = ingest["samples"]
    if grid.is_table:
        return [f"table of {samples:,} samples", kept]
    valid = "all valid" if samples == grid.size else f"{samples:,} valid"
    return [f"{grid.height:,} \u00d7 {grid.width:,} pixels ({valid})", kept]


def eigenvector_note(source: Source) -> str:
    """Return what the eigenvectors have to do with the map."""
    method = source.summary("learn").get("method")
    if not source.classes:
        return ""
    return {
        "": "",
        "eigenvectors": "The map is made from them.",
        "graph": f"The map is not made from them: {method} reads the graph itself.",
        "features": f"The map is not made from them: {method} reads the spectra alone.",
    }[source.reads]


def choice_lines(source: Source) -> list[str]:
    """Return how the methods were chosen; nothing for a job that names them."""
    found: list[str] = source.run.manifest.get("choice", {}).get("said", [])
    return found

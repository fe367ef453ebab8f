"""The section on accuracy: draws and what their difference means, measures, intervals, calibration."""

from collections.abc import Mapping, Sequence
from typing import Any

from eigenscape.base.shares import lead
from eigenscape.export.report.facts.words import percent, product
from eigenscape.export.report.source import Source

_MEASURES = (
    ("overall_accuracy", "Overall accuracy", "share of all tests whose class is right"),
    ("average_accuracy", "Average accuracy", "mean over classes: small ones count as much as large ones"),
    ("kappa", "Cohen's kappa", "agreement beyond chance: 0 is guessing by class size, 1 is perfect"),
    ("mean_f1", "Mean F1", "balance of missed and wrongly called ones, mean over classes"),
    ("mean_iou", "Mean IoU", "overlap of called and true ones over their union, mean over classes"),
)  # fmt: skip

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


def accuracy(source: Source) -> dict[str, Any]:
    """Return the section on accuracy; without ``bars`` and ``measures`` there is none."""
    bars = accuracy_bars(source)
    return {
        "bars": bars,
        "explanation": explain_bars(bars, source.grid.things),
        "maps_tested": maps_tested(source),
        "measures": measures(source),
        "interval_note": interval_note(source.scores),
        "calibration": calibration_lines(source.scores),
    }


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

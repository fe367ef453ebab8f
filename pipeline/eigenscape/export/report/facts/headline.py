"""The head of a report: what was mapped, the figure of the run, and what it means."""

from collections.abc import Mapping
from typing import Any

from eigenscape.base.shares import counted, listed, tested_classes
from eigenscape.export.report.facts.accuracy import maps_tested
from eigenscape.export.report.facts.words import percent, product
from eigenscape.export.report.source import Source
from eigenscape.export.scenenames import file_name


def head(source: Source) -> dict[str, Any]:
    """Return the head of a report.

    Returns
    -------
    dict
        ``headline``; what was mapped in ``facts`` and ``scene``; lines on how a run was ``applied``, and on
        what was ``read``.
    """
    return {
        "headline": headline(source),
        "facts": title_facts(source),
        "scene": _scene_name(source),
        "applied": applied_lines(source),
        "read": source.summary("ingest").get("told", []),
    }


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


def _cluster_headline(scores: Mapping[str, Any], what: str) -> dict[str, str]:
    meaning = f"The {what} were grouped by similarity alone: no label had a part in it."
    if agreed := scores["agreement"]:
        share = 100 * agreed["best_match_accuracy"]
        meaning += (
            f" Compared with the labels afterwards, {share:.0f} of 100 labelled {what} lie in the cluster "
            "that matches their class best."
        )
    return {"figure": str(scores["clusters"]), "label": "clusters", "meaning": meaning}


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
            f"{counted(found['far'], 'pixel')} ({percent(found['far'] / samples)}) unlike all of the earlier "
            "run: the confidence there was lowered."
        )
    if found["without_class"]:
        lines.append(f"{counted(found['without_class'], 'pixel')} got no class.")
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


def _scene_name(source: Source) -> str:
    names = [str(name) for name in source.summary("ingest").get("files", [])]
    return listed(map(file_name, names), 1)

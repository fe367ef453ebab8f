"""The section on clusters: size, cut and best match of each, agreement with the labels."""

from collections.abc import Mapping
from typing import Any

from eigenscape.export.report.facts.words import percent
from eigenscape.export.report.source import Source


def clusters(source: Source) -> dict[str, Any]:
    """Return the section on clusters; without ``rows`` and ``agreement`` there is none."""
    return {
        "rows": cluster_rows(source),
        "agreement": agreement_lines(source.scores, source.grid.things),
    }


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

"""What a report says of neighbours and eigenvectors."""

from typing import Any

from eigenscape.base.shares import recall_basis, recall_interval
from eigenscape.export.report.facts.words import percent
from eigenscape.export.report.source import Source


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

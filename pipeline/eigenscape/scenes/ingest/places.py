"""Where samples lie on the ground: in the scene's own grid, or on the map of several lines."""

from collections.abc import Mapping
from typing import Any

from eigenscape.scenes.types import Grid


def places_of(summary: Mapping[str, Any]) -> tuple[str, Grid]:
    """Return the array of where samples lie, and the grid that its numbers count.

    Of several lines that is their map: they see the same ground, and their rows lie one below the other in
    the scene.

    Parameters
    ----------
    summary
        Of the ingest stage.

    Returns
    -------
    str
        ``"samples/pixel"`` or ``"samples/place"``: row * columns + column, shape (samples,).
    Grid
        The scene's, or that of the map.
    """
    found = summary.get("map", {})
    if found.get("lines", 1) > 1:
        return "samples/place", Grid.from_json(found["grid"])
    return "samples/pixel", Grid.from_json(summary["grid"])

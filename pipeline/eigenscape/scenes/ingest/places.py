"""Where samples lie: on the ground, in the scene's own grid or on the map of several lines; in a table."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenscape.scenes.types import Grid
from eigenscape.scenes.views.draws import Subset


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


def source_pixels(summary: Mapping[str, Any], pixel: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return where samples lie in what was read: of a drawn table, in all of its rows.

    Parameters
    ----------
    summary
        Of the ingest stage.
    pixel : array of int, shape (samples,)
        ``samples/pixel`` of some samples, which counts the drawn rows alone.
    """
    drawn = summary.get("subset")
    return pixel if drawn is None else Subset(**drawn).rows[pixel]

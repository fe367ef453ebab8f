"""The picture of a table: its samples at their first two eigenmap coordinates, coloured by class."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from eigenscape.export.palette import complete_legend, rgb
from eigenscape.export.pictures.quicklook import save_figure
from eigenscape.scenes.types import Legend

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_POINTS = 20_000
"""Samples that are drawn: more would cover each other."""

_PLAIN = "#0072b2"
_FAINT = "#c4c9ce"
_MOST_NAMES = 30
_INCHES = 5.2


def draw_scatter(
    coordinates: NDArray[np.floating],
    panels: dict[str, NDArray[np.integer] | None],
    legend: Legend,
    *,
    title: str,
    subtitle: str = "",
    kind: type[Figure] | None = None,
) -> Figure:
    """Draw samples in the plane of two eigenvectors, one panel for each set of classes.

    Parameters
    ----------
    coordinates : array, shape (samples, 2)
        Eigenvectors 1 and 2. Samples with NaN are left out.
    panels
        Title of each panel, with class numbers of shape (samples,), 0 = none; None for one colour.
    legend
        Names and colours of the classes.
    title, subtitle
        First and second line.
    kind
        Class of the figure: matplotlib's own by default.
    """
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    known = np.isfinite(coordinates).all(axis=1)
    present = {
        int(number)
        for classes in panels.values()
        if classes is not None
        for number in np.unique(classes[known])
    } - {0}
    legend = complete_legend(legend, present)
    names = sorted(present)[:_MOST_NAMES]
    # Room for the names at the right.
    size = (_INCHES * len(panels) + (2.2 if names else 0.3), _INCHES + 0.5)
    figure = (kind or Figure)(figsize=size, dpi=160, layout="constrained")
    figure.suptitle(f"{title}\n{subtitle}" if subtitle else title, parse_math=False)
    axes = np.ravel(figure.subplots(1, len(panels), sharex=True, sharey=True))
    for one, (label, classes) in zip(axes, panels.items(), strict=True):
        one.set_title(label, size=11)
        one.set_xlabel("eigenvector 1")
        one.set_ylabel("eigenvector 2")
        one.ticklabel_format(style="sci", scilimits=(-2, 3))
        one.set_box_aspect(1)
        colors: str | NDArray[np.floating] = _PLAIN
        if classes is not None:
            table = np.zeros((max(present, default=0) + 1, 3))
            for number in present:
                table[number] = rgb(legend.colors[number])
            none = known & (classes == 0)
            one.scatter(*coordinates[none].T, s=2, c=_FAINT, linewidths=0, rasterized=True)
            shown = known & (classes > 0)
            colors = table[classes[shown]]
        else:
            shown = known
        # Few points are drawn larger: labels of a table can be a handful.
        area = float(np.clip(4000 / max(int(shown.sum()), 1), 2, 30))
        one.scatter(*coordinates[shown].T, s=area, c=colors, linewidths=0, rasterized=True)
    if names:
        marks = [
            Line2D([], [], marker="o", linestyle="", color=rgb(legend.colors[number]))
            for number in names
        ]
        shown_names = [legend.names[number].replace("$", r"\$") for number in names]
        figure.legend(marks, shown_names, loc="outside right center", frameon=False)
    return figure


def write_scatter(path: str | Path, *parts: Any, **more: Any) -> None:
    """Write a PNG of what `draw_scatter` draws.

    Parameters
    ----------
    path
        The PNG file.
    parts, more
        Its parameters.

    Raises
    ------
    OutputError
        The file cannot be written.
    """
    save_figure(draw_scatter(*parts, **more), Path(path))

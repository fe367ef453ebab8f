"""A picture of named samples: all of them in the plane, and blow-ups in which the names are read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from eigenscape.errors import JobError, did_you_mean
from eigenscape.study.pictures.panels import style_plane
from eigenscape.study.pictures.picture import INK, Picture
from eigenscape.workflow.finished.shown import Shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_SIDE, _DPI = 3.6, 160  # Inches; dots an inch.
_DOT, _FRAME = "#0072B2", "#D55E00"
_DOT_SIZE = 6.0  # Pixels.
_MARGIN = 0.12
_OFFSETS = ((1, 0), (1, 1), (0, 1), (1, -1), (0, -1), (-1, 1), (-1, 0), (-1, -1))
_NEAR, _FAR = 4.0, 11.0
"""How far from its dot a name is written, in points: close by, or else with a line to it."""


def draw_words(picture: Picture) -> Figure:
    """Draw all samples of the first variant, and the names of those around each of ``zooms``.

    Raises
    ------
    JobError
        The samples have no names, or there is none of a name.
    """
    from matplotlib.figure import Figure

    options, shown = picture.options, picture.panels[0].shown
    names = _names_of(shown)
    plane = shown.plane(options.coordinates or "eigenvectors")
    centres = [_index_of(shown, names, name) for name in options.zooms]
    count = 1 + len(centres)
    columns = min(count, 2) if count <= 4 else 3
    rows = -(-count // columns)
    figure = Figure(
        figsize=(_SIDE * columns + 0.3, _SIDE * rows + 0.5), dpi=_DPI, layout="constrained"
    )
    axes = figure.subplots(rows, columns, squeeze=False).ravel()
    for one in axes[count:]:
        one.set_visible(False)
    figure.suptitle(picture.title, x=0.01, ha="left", fontsize=11, color=INK)
    what = shown.axis(options.coordinates or "eigenvectors")
    for one in axes[:count]:
        style_plane(one, what)
        one.scatter(plane[:, 0], plane[:, 1], s=9, color=_DOT, linewidths=0)
    axes[0].set_title(f"all {len(names)}", fontsize=9.5, color=INK)
    boxes = [_box(plane, centre, options.zoom_samples) for centre in centres]
    for number, (one, box) in enumerate(zip(axes[1:], boxes, strict=False), 1):
        one.set_title(f"{number}: around “{options.zooms[number - 1]}”", fontsize=9.5, color=INK)
        one.set(xlim=box[0], ylim=box[1])
        _frame(axes[0], box, str(number))
    # Names are placed where nothing is yet, so everything else has to have its place first.
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    for one in axes[1:count]:
        _write(figure, one, plane, names)
    return figure


def _names_of(shown: Shown) -> list[str]:
    names = shown.names()
    if names is not None:
        return names
    raise JobError(
        f'{shown.job.name}: study.pictures: kind = "words" needs samples with names, such as those of '
        'the data set brown. Set kind to "embedding".'
    )


def _index_of(shown: Shown, names: Sequence[str], name: str) -> int:
    if name not in names:
        raise JobError(
            f"{shown.job.name}: study.pictures: zooms = {name!r}: no sample has this name."
            f"{did_you_mean(name, names)}"
        )
    return names.index(name)


def _box(
    plane: NDArray[np.float32], centre: int, count: int
) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return the limits around the samples nearest to one, along both axes."""
    # Nearest as the picture shows it, in shares of its width and height.
    extent = np.ptp(plane, axis=0)
    distance = np.hypot(*((plane - plane[centre]) / extent).T)
    near = plane[np.argsort(distance, kind="stable")[:count]].astype(float)
    low, high = near.min(axis=0), near.max(axis=0)
    room = np.maximum(_MARGIN * (high - low), 1e-3 * extent)
    (left, bottom), (right, top) = low - room, high + room
    return (float(left), float(right)), (float(bottom), float(top))


def _frame(axes: Axes, box: tuple[tuple[float, float], tuple[float, float]], text: str) -> None:
    from matplotlib.patches import Rectangle
    from matplotlib.patheffects import withStroke

    (left, right), (bottom, top) = box
    axes.add_patch(
        Rectangle((left, bottom), right - left, top - bottom, fill=False, edgecolor=_FRAME)
    )
    axes.annotate(
        text, (right, top), (2, 1), textcoords="offset points", color=_FRAME, fontsize=10,
        fontweight="bold", path_effects=[withStroke(linewidth=3, foreground="white")], zorder=4,
    )  # fmt: skip


def _write(figure: Figure, axes: Axes, plane: NDArray[np.float32], names: Sequence[str]) -> None:
    """Write the names that fit beside their dots without covering one another."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.transforms import Bbox

    renderer = FigureCanvasAgg(figure).get_renderer()  # type: ignore[no-untyped-call]
    frame = axes.get_window_extent(renderer)
    places = axes.transData.transform(plane)
    inside = [n for n, place in enumerate(places) if frame.contains(*place)]
    # Neither names nor dots are to be covered.
    half = _DOT_SIZE / 2
    taken: list[Any] = [Bbox([places[n] - half, places[n] + half]) for n in inside]
    for number in inside:
        for reach in (_NEAR, _FAR):
            text = _fit(axes, names[number], plane[number], reach, frame, taken, renderer)
            if text is not None:
                taken.append(text)
                break


def _fit(
    axes: Axes,
    name: str,
    point: NDArray[np.float32],
    reach: float,
    frame: Any,
    taken: Sequence[Any],
    renderer: Any,
) -> Any:
    """Write a name where it covers none; return the box that it takes, None where there is no room."""
    from matplotlib.text import Text

    aligned = {1: "left", 0: "center", -1: "right"}
    upright = {1: "bottom", 0: "center", -1: "top"}
    for right, up in _OFFSETS:
        text = axes.annotate(
            name, (float(point[0]), float(point[1])), (reach * right, reach * up),
            textcoords="offset points", ha=aligned[right], va=upright[up], fontsize=8, color=INK,
            arrowprops={"arrowstyle": "-", "color": "#9aa2aa", "linewidth": 0.6}
            if reach > _NEAR else None,
        )  # fmt: skip
        text.update_positions(renderer)
        box = Text.get_window_extent(text, renderer)  # without its line
        within = frame.contains(box.x0, box.y0) and frame.contains(box.x1, box.y1)
        if within and not any(box.overlaps(other) for other in taken):
            return box
        text.remove()
    return None

"""Panels of samples in the plane."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from eigenscape.export.palette import complete_legend, rgb
from eigenscape.export.pictures.scatter import MOST_POINTS
from eigenscape.job.study import Coordinates
from eigenscape.study.pictures.picture import INK, Panel, Picture
from eigenscape.workflow.finished.shown import Shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_DPI = 160
_WIDEST, _PANEL = 10.5, 3.6  # Inches, as all that follow.
_BAR, _TITLE, _HEAD = 0.9, 0.4, 0.7
_GREY = "#9aa2aa"
_PLAIN, _MARK = "#0072B2", "#D55E00"
_MARKERS = "o^sDvPX*<>ph"
MOST_NAMES, _FEW_NAMES = 30, 8
_INKED, _LEAST, _LARGEST = 9000.0, 3.0, 26.0  # Area of all dots, of one (square points).
_TRAINED = 46.0


def draw_embedding(picture: Picture) -> Figure:
    """Draw the samples of each variant in its plane."""
    from matplotlib.figure import Figure

    cells = picture.cells
    height, width = (1 + max(place[axis] for place in cells) for axis in (0, 1))
    side = min(_PANEL, _WIDEST / width)
    bar = _BAR * (picture.options.color == "along")
    size = (side * width + bar, (side + _TITLE) * height + _HEAD)
    figure = Figure(figsize=size, dpi=_DPI, layout="constrained")
    engine = figure.get_layout_engine()
    assert engine is not None, "asked for above"
    engine.set(h_pad=0.07, w_pad=0.07)  # type: ignore[call-arg]
    axes = figure.subplots(height, width, squeeze=False)
    for one in axes.ravel():
        one.set_visible(False)  # unless a variant stands there
    planes = Planes(figure, picture)
    for (row, column), panel in cells.items():
        planes.draw(axes[row, column], panel)
    planes.finish(picture.title)
    return figure


class Planes:
    """Panels of samples in the plane, in colours and markers that mean the same in each.

    Parameters
    ----------
    figure
        Where they are drawn.
    picture
        What to show.
    """

    def __init__(self, figure: Figure, picture: Picture) -> None:
        self._figure, self._study, self._options = figure, picture.study, picture.options
        self._variants = variants = [panel.shown for panel in picture.panels]
        self._first: NDArray[np.float32] | None = None
        self._scale: Any = None
        self._axes: list[Axes] = []
        self._any_trained = False
        present: set[int] = set()
        if self._options.color in ("label", "class"):
            present = {int(n) for shown in variants for n in np.unique(self._classes(shown))} - {0}
        self._numbers = sorted(present)
        self._legend = complete_legend(variants[0].legend, present)

    def draw(self, axes: Axes, panel: Panel) -> None:
        """Draw the samples of one variant."""
        shown, coordinates = panel.shown, panel.coordinates
        axes.set_visible(True)
        axes.set_title(panel.title, fontsize=9.5, color=INK)
        self._axes.append(axes)
        plane = self._aligned(shown.plane(coordinates), coordinates)
        style_plane(axes, shown.axis(coordinates))
        step = -(-len(plane) // MOST_POINTS)
        kept = np.zeros(len(plane), np.bool_)
        kept[::step] = True
        kept &= np.isfinite(plane).all(axis=1)
        trained = np.zeros(len(plane), np.bool_)
        if self._options.training:
            trained[shown.training()] = True
        large = bool(trained.any())
        self._any_trained |= large
        area = float(np.clip(_INKED / max(int(kept.sum()), 1), _LEAST, _LARGEST))
        area = min(area, 8.0) if large else area
        along = shown.parameter() if self._options.color == "along" else None
        if along is not None:
            x, y = plane[kept].T
            self._scale = axes.scatter(x, y, s=area, c=along[kept], cmap="viridis", linewidths=0)
        else:
            classes = self._classes(shown)
            self._scatter(axes, plane, classes, kept & ~trained, area, edge=False)
            self._scatter(axes, plane, classes, trained, _TRAINED, edge=True)
        marked = shown.marked(self._study.mark)
        _dots(
            axes, plane[marked], s=70, marker="o", facecolor="none", edgecolor=_MARK, linewidths=1.8
        )

    def finish(self, title: str) -> None:
        """Say what the colours mean, once for all panels."""
        from matplotlib.lines import Line2D

        self._figure.suptitle(title, x=0.01, ha="left", fontsize=11, color=INK)
        handles = []
        for number in self._numbers[:MOST_NAMES]:
            handles.append(
                Line2D([], [], linestyle="", markersize=6, markeredgewidth=0,
                       label=self._legend.names[number].replace("$", r"\$"), **self._look(number))
            )  # fmt: skip
        if self._any_trained:
            handles.append(
                Line2D([], [], linestyle="", marker="o", markersize=7, color="white",
                       markeredgecolor=INK, label="large: label given")
            )  # fmt: skip
        if self._study.mark:
            handles.append(
                Line2D([], [], linestyle="", marker="o", markersize=8, color="none",
                       markeredgecolor=_MARK, markeredgewidth=1.8, label="marked")
            )  # fmt: skip
        if handles:
            few = len(handles) <= _FEW_NAMES
            self._figure.legend(
                handles=handles, loc="outside lower center" if few else "outside right upper",
                ncols=len(handles) if few else 1, frameon=False, fontsize=9, handletextpad=0.2,
            )  # fmt: skip
        if self._scale is not None:
            words = self._study.labels.get("along", "place along the manifold")
            bar = self._figure.colorbar(self._scale, ax=self._axes, shrink=0.6, aspect=30)
            bar.set_label(words, color=INK)
            bar.outline.set_visible(False)
            bar.ax.tick_params(labelsize=8)

    def _scatter(
        self,
        axes: Axes,
        plane: NDArray[np.float32],
        classes: NDArray[np.integer],
        kept: NDArray[np.bool_],
        area: float,
        *,
        edge: bool,
    ) -> None:
        style: dict[str, Any] = (
            {"edgecolor": INK, "linewidths": 0.9, "zorder": 3} if edge else {"linewidths": 0}
        )
        none = kept & (classes == 0)
        _dots(axes, plane[none], s=area, color=_GREY if self._numbers else _PLAIN, **style)
        for number in self._numbers:
            of_class = kept & (classes == number)
            _dots(axes, plane[of_class], s=area, **self._look(number), **style)

    def _look(self, number: int) -> dict[str, Any]:
        place = self._numbers.index(number)
        color = rgb(self._legend.colors[number])
        return {"marker": _MARKERS[place % len(_MARKERS)], "color": color}

    def _classes(self, shown: Shown) -> NDArray[np.uint16]:
        kind = {"label": "given", "class": "class"}.get(self._options.color)
        found = shown.labels("given" if kind == "given" else "class") if kind else None
        return np.zeros(shown.samples, np.uint16) if found is None else found

    def _aligned(self, plane: NDArray[np.float32], coordinates: Coordinates) -> NDArray[np.float32]:
        """Turn eigenvectors, as good as their negatives, to the side of the first panel's."""
        if coordinates != "eigenvectors":
            return plane
        if self._first is None or self._first.shape != plane.shape:
            self._first = plane
        signs = np.sign(np.nansum(self._first * plane, axis=0))
        return plane * np.where(signs == 0, 1, signs).astype(np.float32)


def _dots(axes: Axes, points: NDArray[np.float32], **look: Any) -> None:
    x, y = points.T
    axes.scatter(x, y, **look)


def style_plane(axes: Axes, what: str) -> None:
    """Give axes of a plane their names, few ticks and no more frame than needed."""
    from matplotlib.ticker import MaxNLocator

    axes.set_xlabel(f"{what} 1", fontsize=9, color=INK)
    axes.set_ylabel(f"{what} 2", fontsize=9, color=INK)
    axes.set_box_aspect(1)
    axes.margins(0.06)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(MaxNLocator(3, symmetric=False))
    axes.tick_params(labelsize=7.5, colors=INK, length=2.5)
    for spine in ("top", "right"):
        axes.spines[spine].set_visible(False)

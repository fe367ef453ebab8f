"""The picture of a study: lines that can be told apart in colour, in grey and by red-green blind eyes."""

from __future__ import annotations

import itertools
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from eigenscape.base.files.tables import number_of
from eigenscape.base.files.whole import explain_write_errors, written_whole
from eigenscape.job.jobfile import Job
from eigenscape.job.measures import MEASURES
from eigenscape.job.study import PlotOptions, StudyOptions
from eigenscape.study.layout import Point, TextRow, order_of, points_of
from eigenscape.workflow.many.marks import COLORS, MARKERS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_DASHES = ("-", (0, (5, 1.5)), (0, (1, 1)), (0, (5, 1.5, 1, 1.5)))
_THEIRS = (0, (3, 2))
_SHIFT = 0.1  # Between lines over names, which would hide one another.
_INK, _GREY, _FAINT, _DPI = "#1d2329", "#5f6770", "#d9dde1", 160
_SIZE, _PANEL = (7.6, 4.8), 4.4  # Inches: of one panel with its legend, and of each further one.
_LONG_NAME = 34  # Letters.
_LONG_TITLE = (
    44  # Letters of an axis title that fit beside the panel: a longer one has several lines.
)
_MARGIN = 0.06  # Around the points, as a share of the axes: half a marker and the end of a bar.


def draw_plot(path: Path, job: Job, rows: Sequence[TextRow]) -> dict[str, Path]:
    """Draw the picture that ``[study.plot]`` describes; return it, or nothing where there is none.

    Parameters
    ----------
    path
        Where to write the PNG.
    job
        The study.
    rows
        Its table, as texts.

    Raises
    ------
    OutputError
        The file cannot be written.
    """
    study = job.study
    points = points_of(job, rows)
    if study is None or study.plot is None or not points:
        return {}
    from matplotlib.figure import Figure

    # A Figure of its own never needs a display, nor touches the caller's pyplot.
    figure = Figure(dpi=_DPI, layout="constrained")
    _Picture(figure, study, study.plot, points).draw()
    with explain_write_errors(path), written_whole(path) as temporary:
        figure.savefig(temporary, format="png", facecolor="white")
    return {"plot": path}


class _Picture:
    def __init__(
        self, figure: Figure, study: StudyOptions, options: PlotOptions, points: list[Point]
    ) -> None:
        self.study, self.options, self.points = study, options, points
        self.figure = figure
        places = order_of(points, options.x)
        # A variant that does not vary the key is a level beside the others' lines.
        varied = [point for point in points if options.x in point.row] or points
        self.numeric = all(self._number(point) is not None for point in varied)
        self.names = {place: float(number) for number, place in enumerate(places)}
        self.published = False

    def draw(self) -> None:
        panels = self._panels()
        self.figure.set_size_inches(_SIZE[0] + _PANEL * (len(panels) - 1), _SIZE[1])
        row = self.figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
        handles: dict[str, Any] = {}
        for axes, (name, points) in zip(row, panels, strict=True):
            for handle in self._panel(axes, points):
                handles.setdefault(str(handle.get_label()), handle)
            axes.set_title(name, fontsize=9.5, color=_INK)
            axes.set_ylabel(axes.get_ylabel() if axes is row[0] else "")
            if len(panels) > 1:
                axes.tick_params(axis="x", labelsize=8)
        # Over the whole figure: over the axes alone it would run into the legend.
        self.figure.suptitle(self.study.title, x=0.01, ha="left", fontsize=10.5, color=_INK)
        if self.published:
            (open_marker,) = row[0].plot(
                [], [], linestyle=_THEIRS if self.numeric else "none", linewidth=1.0, color=_GREY,
                marker="o", markerfacecolor="white", label="published",
            )  # fmt: skip
            handles["published"] = open_marker
        if len(handles) > 1:
            # Long names beside the axes would leave them little room.
            below = max(map(len, handles)) > _LONG_NAME
            self.figure.legend(
                handles=list(handles.values()),
                # In the middle of the right side, where a long title does not run into it.
                loc="outside lower center" if below else "outside right center",
                ncols=2 if below else 1, frameon=False, fontsize=8.5, handlelength=3.2,
            )  # fmt: skip

    def _panels(self) -> list[tuple[str, list[Point]]]:
        """Return name and points of each panel."""
        name = self.options.panels
        if name is None:
            return [("", self.points)]
        lines = self.options.lines
        varied = [p for p in self.points if lines is None or lines in p.row] or self.points
        shared = [p for p in self.points if p not in varied]
        return [
            (place, [p for p in varied if p.place(name) == place] + shared)
            for place in order_of(varied, name)
        ]

    def _panel(self, axes: Axes, points: list[Point]) -> list[Any]:
        """Draw the lines of a panel; the same line looks the same in all of them."""
        measures = self.options.y or self.study.measure[:1]
        groups = self._groups()
        handles: list[Any] = []
        numbers = itertools.count()
        for measure in measures:
            for name, group in groups:
                words = [name] if len(groups) > 1 else []
                words += [MEASURES[measure].label] if len(measures) > 1 or not words else []
                here = [p for p in group if p in points]
                handles += self._line(axes, measure, here, ", ".join(words), next(numbers))
        title = MEASURES[measures[0]].title if len(measures) == 1 else self._shared(measures)
        self._style(axes, title, "y")
        if self.options.right is not None:
            right = axes.twinx()
            for name, group in groups:
                label = MEASURES[self.options.right].label
                label = f"{name}, {label} (right)" if len(groups) > 1 else f"{label} (right)"
                here = [p for p in group if p in points]
                handles += self._line(
                    right, self.options.right, here, label, next(numbers), right=True
                )
            self._style(right, MEASURES[self.options.right].title, "right")
            right.spines["right"].set_visible(True)
            right.grid(visible=False)
        self._label_x(axes)
        return handles

    def _groups(self) -> list[tuple[str, list[Point]]]:
        if self.options.lines is None:
            return [("", self.points)]
        name = self.options.lines
        label = self.study.labels.get(name, "")
        found = []
        for place in order_of(self.points, name):
            words = f"{place} {label}".strip() if number_of(place) is not None else place
            found.append((words, [p for p in self.points if p.place(name) == place]))
        return found

    def _line(
        self, axes: Axes, measure: str, points: list[Point], label: str, number: int,
        *, right: bool = False,
    ) -> list[Any]:  # fmt: skip
        """Draw ours with error bars and filled markers, theirs dashed with open ones."""
        look: dict[str, Any] = {
            "color": COLORS[number % len(COLORS)],
            "marker": MARKERS[number % len(MARKERS)],
            "markersize": 5.5,
            "linewidth": 1.5,
        }
        levels = [p for p in points if self.numeric and self._number(p) is None]
        points = [p for p in points if p not in levels]
        ours = sorted(
            (self._at(p), value, p.spread(measure) or 0.0)
            for p in points if (value := p.value(measure)) is not None
        )  # fmt: skip
        theirs = sorted(
            (self._at(p), value) for p in points if (value := p.theirs(measure)) is not None
        )
        handles: list[Any] = []
        shift = 0.0 if self.numeric else _SHIFT * number
        if ours:
            x, y, spread = np.array(ours).T
            turn = number // len(COLORS) + right
            style = _DASHES[turn % len(_DASHES)] if self.numeric else "none"
            if self.options.slope and len(x) > 1:
                label += f": ~ {self._axis_word()}$^{{{_exponent(x, y):.2f}}}$"
            # Without a spread there are no bars, and none in the legend.
            if spread.any():
                handles.append(
                    axes.errorbar(
                        x + shift, y, spread, linestyle=style, capsize=2.5, elinewidth=1.0,
                        label=label, **look,
                    )
                )  # fmt: skip
            else:
                handles += axes.plot(x + shift, y, linestyle=style, label=label, **look)
        if theirs:
            x, y = np.array(theirs).T
            look |= {"markerfacecolor": "white", "linewidth": 1.0, "markersize": 6.5}
            axes.plot(x + shift, y, linestyle=_THEIRS if self.numeric else "none", **look)
            self.published = True
        for point in levels:
            value = point.value(measure)
            if value is not None:
                name = ", ".join(dict.fromkeys(filter(None, [point.place("variant"), label])))
                name = name if ours or len(levels) > 1 else label
                handles.append(
                    axes.axhline(
                        value, linestyle=(0, (1, 1.5)), color=_GREY, linewidth=1.5, label=name
                    )
                )
        return handles

    def _number(self, point: Point) -> float | None:
        return number_of(point.row.get(self.options.x))

    def _at(self, point: Point) -> float:
        number = self._number(point)
        return (
            number
            if self.numeric and number is not None
            else self.names[point.place(self.options.x)]
        )

    def _axis_word(self) -> str:
        return "n" if self.options.x in ("samples", "scene.samples") else "x"

    @staticmethod
    def _shared(measures: Sequence[str]) -> str:
        units = {MEASURES[measure].unit for measure in measures}
        first = {MEASURES[measure].label.partition(" ")[0] for measure in measures}
        if len(units) == len(first) == 1:
            return f"{first.pop()} ({units.pop()})"  # "time of graph", "time of spectrum"
        return ", ".join(MEASURES[measure].title for measure in measures)

    def _label_x(self, axes: Axes) -> None:
        from matplotlib.ticker import NullLocator

        axes.set_xlabel(self.study.label(self.options.x), color=_INK)
        if not self.numeric:
            axes.set_xticks(list(self.names.values()), list(self.names))
            axes.margins(x=0.3)
            return
        if "x" in self.options.log:
            axes.set_xscale("log")
        numbers = (self._number(point) for point in self.points)
        ticks = sorted({number for number in numbers if number is not None})
        if len(ticks) <= 10:
            axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
            axes.xaxis.set_minor_locator(NullLocator())

    def _style(self, axes: Axes, title: str, side: str) -> None:
        from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

        axes.set_ylabel(textwrap.fill(title, _LONG_TITLE), color=_INK)
        axes.margins(_MARGIN)
        if side in self.options.log:
            axes.set_yscale("log")
            low, high = axes.get_ylim()
            # Over few decades 1, 10 and 100 are too few to read a value from.
            subs: tuple[float, ...] = (1, 2, 5) if high < 1e3 * low else (1,)
            if high < 30 * low:
                subs = (
                    (1, 2, 3, 5, 7)
                    if high > 5 * low
                    else (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 7, 8, 9)
                )
            axes.yaxis.set_major_locator(LogLocator(subs=subs))
            axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
            axes.yaxis.set_minor_locator(NullLocator())
        elif side == "right":
            # Room above the highest bar, as where the axis begins elsewhere.
            axes.set_ylim(0, axes.dataLim.y1 * (1 + _MARGIN))
        axes.grid(color=_FAINT, linewidth=0.7)
        axes.set_axisbelow(True)
        for spine in ("top", "right"):
            axes.spines[spine].set_visible(False)
        axes.tick_params(colors=_INK)


def _exponent(x: Any, y: Any) -> float:
    """Return b of the power law y = a x^b that fits best, without a minus before zero."""
    return round(float(np.polyfit(np.log(x), np.log(y), 1)[0]), 2) + 0.0

"""The picture of tuning: accuracy of every job that was tried, with its interval, against its seconds."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from eigenscape.base.files.whole import explain_write_errors, written_whole
from eigenscape.workflow.choice.candidates import Candidate
from eigenscape.workflow.choice.tried import Interval, Tried
from eigenscape.workflow.many.marks import COLORS, MARKERS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_GREY, _DPI, _SIZE = "#5f6770", 160, (7.6, 4.8)
_MOST = 100.0
"""Percent. Intervals are symmetric and may reach beyond, where no accuracy is."""

_NARROW = 4
"""Ratio of longest to shortest time below which ticks are evenly spaced."""


def draw_tried(
    path: Path,
    tried: Sequence[Tried],
    chosen: Candidate,
    given: Candidate,
    title: str,
    measured: str,
) -> None:
    """Draw the jobs that were tried, one colour for each rung, the chosen one and the given one in a ring.

    Parameters
    ----------
    path
        Where to write the PNG.
    tried, chosen, given
        See `eigenscape.tuning.report.write_tried`.
    title
        Of the picture.
    measured
        What jobs were compared by.
    """
    figure = tried_figure(tried, chosen, given, title, measured)
    with explain_write_errors(path), written_whole(path) as temporary:
        figure.savefig(temporary, format="png", facecolor="white")


def tried_figure(
    tried: Sequence[Tried], chosen: Candidate, given: Candidate, title: str, measured: str
) -> "Figure":
    """Return the picture of `draw_tried`."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

    figure = Figure(figsize=_SIZE, dpi=_DPI, layout="constrained")
    axes = figure.subplots()
    shown = [one for one in tried if one.accuracy and one.error is None]
    rungs = list(dict.fromkeys(one.rung for one in shown))
    for number, rung in enumerate(rungs):
        own = [one for one in shown if one.rung == rung]
        found = [Interval.of(one.accuracy) for one in own]
        below = [each.half or 0 for each in found]
        above = [min(each.half or 0, _MOST - each.mean) for each in found]
        axes.errorbar(
            [max(one.seconds, 1e-3) for one in own], [each.mean for each in found],
            yerr=[below, above], linestyle="none", elinewidth=0.7, capsize=2, clip_on=False,
            marker=MARKERS[number % len(MARKERS)], color=COLORS[number % len(COLORS)],
            # The given job has a ring, and its own rung.
            markersize=5, label=f"_{rung}" if rung == "as given" else rung,
        )  # fmt: skip
    same = chosen.values == given.values
    rings = [("chosen, as given" if same else "chosen", chosen, "-")]
    if not same:
        rings.append(("as given", given, ":"))
    for name, what, line in rings:
        own = [one for one in shown if one.candidate.values == what.values]
        if own:
            # Rings, explained in the legend: a text beside a marker would cover others.
            axes.scatter(
                max(own[-1].seconds, 1e-3), Interval.of(own[-1].accuracy).mean, s=150,
                facecolors="none", edgecolors="black", linewidths=1.5, linestyle=line, zorder=5,
                label=name, clip_on=False,
            )  # fmt: skip
    axes.set_ylim(top=min(axes.get_ylim()[1], _MOST))
    axes.set_xscale("log")
    # Seconds as such: most pictures span no power of ten.
    seconds = [max(one.seconds, 1e-3) for one in shown] or [1.0]
    narrow = max(seconds) < _NARROW * min(seconds)
    axes.xaxis.set_major_locator(MaxNLocator(6) if narrow else LogLocator(subs=(1, 2, 5)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_xlabel("time of all its stages, s", color=_GREY)
    axes.set_ylabel(f"{measured}, %", color=_GREY)
    axes.set_title(title, loc="left", fontsize=10.5)
    axes.grid(color="#d9dde1", linewidth=0.5)
    axes.set_axisbelow(True)
    if rungs:
        # Beside the axes, where it covers no job.
        axes.legend(
            frameon=False, fontsize=8.5, loc="upper left", bbox_to_anchor=(1, 1), labelspacing=0.7
        )
    return figure

"""The picture of tuning: accuracy of every job that was tried, with its interval, against its seconds."""

from collections.abc import Sequence
from pathlib import Path

from eigenscape.base.files.whole import explain_write_errors, written_whole
from eigenscape.workflow.choice.candidates import Candidate
from eigenscape.workflow.choice.tried import Interval, Tried
from eigenscape.workflow.many.marks import COLORS, MARKERS

_GREY, _DPI, _SIZE = "#5f6770", 160, (7.6, 4.8)


def draw_tried(
    path: Path,
    tried: Sequence[Tried],
    chosen: Candidate,
    given: Candidate,
    title: str,
    measured: str,
) -> None:
    """Draw the jobs that were tried, one colour for each rung, the chosen one and the given one named.

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
    from matplotlib.figure import Figure
    from matplotlib.ticker import LogFormatter

    figure = Figure(figsize=_SIZE, dpi=_DPI, layout="constrained")
    axes = figure.subplots()
    shown = [one for one in tried if one.accuracy and one.error is None]
    rungs = list(dict.fromkeys(one.rung for one in shown))
    for number, rung in enumerate(rungs):
        own = [one for one in shown if one.rung == rung]
        found = [Interval.of(one.accuracy) for one in own]
        axes.errorbar(
            [max(one.seconds, 1e-3) for one in own], [each.mean for each in found],
            yerr=[each.half or 0 for each in found], linestyle="none", elinewidth=0.7, capsize=2,
            marker=MARKERS[number % len(MARKERS)], color=COLORS[number % len(COLORS)],
            markersize=5, label=rung,
        )  # fmt: skip
    for one in shown:
        names = [
            name
            for name, what in (("chosen", chosen), ("as given", given))
            if one.candidate.values == what.values
        ]
        if names:
            # To the left: jobs with more draws, such as these, take the longest.
            axes.annotate(
                ", ".join(names), (max(one.seconds, 1e-3), Interval.of(one.accuracy).mean),
                xytext=(-8, 6), textcoords="offset points", fontsize=9, weight="bold", ha="right",
            )  # fmt: skip
    axes.set_xscale("log")
    # Seconds as such: most pictures span no power of ten.
    axes.xaxis.set_major_formatter(LogFormatter(minor_thresholds=(2, 0.5)))
    axes.xaxis.set_minor_formatter(LogFormatter(minor_thresholds=(2, 0.5)))
    axes.set_xlabel("time of all its stages, s", color=_GREY)
    axes.set_ylabel(f"{measured}, %", color=_GREY)
    axes.set_title(title, loc="left", fontsize=10.5)
    axes.grid(color="#d9dde1", linewidth=0.5)
    axes.set_axisbelow(True)
    if rungs:
        axes.legend(frameon=False, fontsize=8.5)
    with explain_write_errors(path), written_whole(path) as temporary:
        figure.savefig(temporary, format="png", facecolor="white")

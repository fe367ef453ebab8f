"""The accuracy of each class by the variants of a study, as dots."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from eigenscape.errors import JobError
from eigenscape.export.palette import complete_legend
from eigenscape.study.pictures.picture import INK, Picture
from eigenscape.workflow.finished.shown import Shown
from eigenscape.workflow.many.marks import COLORS, MARKERS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_WIDTH, _ROW, _HEAD = 7.6, 0.33, 1.4  # Inches.
_SPREAD = 0.36
_FAINT = "#d9dde1"


def draw_classes(picture: Picture) -> Figure:
    """Draw a row for each class, and in it a dot for each variant.

    Parameters
    ----------
    picture
        Of variants that classify the same classes.

    Raises
    ------
    JobError
        A variant has no accuracy of classes.
    """
    from matplotlib.figure import Figure

    panels = picture.panels
    numbers = class_shares(panels[0].shown)
    names = complete_legend(panels[0].shown.legend, set(numbers)).names
    figure = Figure(figsize=(_WIDTH, _HEAD + _ROW * len(numbers)), dpi=160, layout="constrained")
    axes = figure.subplots()
    rows = np.arange(len(numbers))
    for place, panel in enumerate(panels):
        shares = class_shares(panel.shown)
        # A little apart, so that equal ones do not hide one another.
        shift = _SPREAD * ((place + 0.5) / len(panels) - 0.5)
        values = [100 * shares.get(number, np.nan) for number in numbers]
        axes.plot(
            values, rows + shift, linestyle="none", marker=MARKERS[place % len(MARKERS)],
            markersize=6, color=COLORS[place % len(COLORS)], label=panel.title.replace("\n", ", "),
        )  # fmt: skip
    axes.set_yticks(rows, [names[number].replace("$", r"\$") for number in numbers], fontsize=8.5)
    axes.invert_yaxis()
    axes.set_xlim(-2, 102)
    protocol = panels[0].shown.summary("learn")["scores"]["protocol"]
    axes.set_xlabel(f"accuracy of the class (%): {protocol}", color=INK)
    axes.grid(color=_FAINT, linewidth=0.7)
    axes.set_axisbelow(True)
    for spine in ("top", "right"):
        axes.spines[spine].set_visible(False)
    figure.suptitle(picture.title, x=0.01, ha="left", fontsize=11, color=INK)
    figure.legend(
        loc="outside lower center", ncols=min(3, len(panels)), frameon=False, fontsize=9,
        handletextpad=0.2,
    )  # fmt: skip
    return figure


def class_shares(shown: Shown) -> dict[int, float]:
    """Return the share of each class that was called rightly, under the protocol of the job's scores.

    Raises
    ------
    JobError
        The variant has none: without labels, or in clusters.
    """
    summary = shown.summary("learn")
    shares = (summary.get("scores") or {}).get("per_class")
    if shares is None:
        raise JobError(
            f"{shown.job.name}: a picture of classes needs the accuracy of each, and {shown.run.path} "
            "has none. Show variants that classify labelled samples."
        )
    classes = zip(summary["classes"], shares, strict=True)
    return {number: share for number, share in classes if share is not None}

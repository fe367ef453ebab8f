"""What the plan and the log say of a choice of methods."""

from collections.abc import Mapping, Sequence
from typing import Any

from eigenscape.job.choices import show
from eigenscape.workflow.choice.search import QUICK_PIXELS, Search
from eigenscape.workflow.choice.survey import Survey
from eigenscape.workflow.choice.tried import Interval, Tried, lead

NO_LABELS = "no labels: the methods are the defaults"

NOTHING_TO_TRY = "methods for few labels: nothing is tried"


def describe_plan(
    scene: Survey,
    compared: int,
    tried: Sequence[tuple[str, Mapping[str, Any]]],
    further: int | None,
) -> tuple[str, ...]:
    """Return what will be tried before the first stage.

    Parameters
    ----------
    scene
        What the scene is.
    compared
        Pixels, or samples, by which jobs are compared first.
    tried
        Step and keys of each job.
    further
        Jobs that are compared with them if a part of the scene is not sufficient; None without a part.
    """
    how, things = (
        ("cross-validation", "samples") if scene.table else ("blocked cross-validation", "pixels")
    )
    lines = [
        f"methods are chosen before the first stage, by {how} on "
        f"{compared:,} of {scene.pixels:,} {things}, in steps:",
        *(
            f"  {name}: {', '.join(f'{key} = {show(value)}' for key, value in keys.items())}"
            for name, keys in tried
        ),
    ]
    if further is not None:
        lines.append(
            f"  if this part is not sufficient: up to {further} further methods, on all or more of "
            "the scene"
        )
    return tuple(lines)


def describe_few_labels(scene: Survey) -> str:
    """Return which methods are taken where labels are few."""
    total, classes = sum(scene.labelled.values()), len(scene.labelled)
    return f"methods for few labels ({total} of {classes} classes)"


def describe_choice(search: Search, best: Tried, where: str, tie: str) -> tuple[str, ...]:
    """Return what was chosen, by what margin, and on what.

    Parameters
    ----------
    search, best
        What was tried, and the job that was chosen.
    where
        Part of the scene on which jobs were compared; empty for the whole of a small one.
    tie
        What decided between jobs that are within noise, if anything did.
    """
    others = [one for one in search.tried.values() if one is not best and one.accuracy]
    first = next(iter(search.tried.values()))
    count = sum(one.drawn > 0 for one in search.tried.values())
    lines = [
        f"methods chosen among {count} on {where or 'the scene'}: "
        + ", ".join(f"{key} = {show(value)}" for key, value in best.candidate.values.items()),
    ]
    if others:
        over = ""
        if best is not first and first.accuracy:
            over = f", {lead(best, first)} over {first.candidate.title}"
        half = " with half of the labels to learn from:" if search.job.learn.train == "all" else ""
        second = max(others, key=lambda one: one.mean(one.drawn))
        lines.append(
            f"accuracy there{half} {Interval.of(best.accuracy)}{over}; the next: "
            f"{100 * second.mean(second.drawn):.1f} % ({second.candidate.title})"
        )
        if second.slow and second.mean(second.drawn) > best.mean(best.drawn):
            lines.append(
                f"the next is ahead by no more than {lead(second, best)}, and takes much longer in a scene "
                f"of more than {QUICK_PIXELS:,} pixels"
            )
    return (*lines, tie) if tie else tuple(lines)

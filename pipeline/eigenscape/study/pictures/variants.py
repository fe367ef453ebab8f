"""Pictures of a study's variants, a panel each: planes of samples, class maps, eigenvectors."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eigenscape.base.files.tables import number_of
from eigenscape.base.files.whole import explain_write_errors, written_whole
from eigenscape.job.conditions import parse_condition
from eigenscape.job.jobfile import Job
from eigenscape.job.measures import MEASURES
from eigenscape.job.study import PictureOptions, StudyOptions, VariantOptions
from eigenscape.study.layout import Point, TextRow, order_of, points_of
from eigenscape.study.outcomes import VariantOutcome
from eigenscape.study.pictures.classes import draw_classes
from eigenscape.study.pictures.maps import draw_eigenvectors, draw_maps
from eigenscape.study.pictures.panels import draw_embedding
from eigenscape.study.pictures.picture import Panel, Picture
from eigenscape.study.pictures.words import draw_words
from eigenscape.study.tabulate import format_value
from eigenscape.workflow.finished.shown import Shown

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MOST_COLUMNS = 4
_SYMBOL = 2  # Letters of a label that is a symbol: "N = 5", but "5 neighbours".


PICTURES: Mapping[str, Callable[[Picture], Figure]] = {
    "embedding": draw_embedding,
    "words": draw_words,
    "class-maps": draw_maps,
    "eigenvectors": draw_eigenvectors,
    "classes": draw_classes,
}
"""The kinds of pictures, by the names of `PictureOptions.kind`."""


def draw_pictures(
    directory: Path, job: Job, rows: Sequence[TextRow], outcomes: Sequence[VariantOutcome]
) -> dict[str, Path]:
    """Draw what ``[[study.pictures]]`` describes.

    Parameters
    ----------
    directory
        Where to write the PNGs.
    job
        The study.
    rows
        Its table, as texts.
    outcomes
        Its variants.

    Returns
    -------
    dict
        The files by name; nothing for pictures whose every variant is still to do.

    Raises
    ------
    InputError
        A picture cannot be made of these variants, or a file cannot be written.
    """
    study = job.study
    assert study is not None, "a study"
    if not study.pictures:
        return {}
    points = points_of(job, rows)
    by_name = {outcome.path.name: outcome for outcome in outcomes}
    files = {}
    for options in study.pictures:
        wanted = [point for point in points if _wanted(options, point)]
        if not wanted:
            continue
        cells = {
            place: _panel(study, options, point, by_name[point.row["run"]])
            for place, point in _grid(options, wanted).items()
        }
        figure = PICTURES[options.kind](Picture(study, options, cells))
        path = directory / f"{options.file}.png"
        with explain_write_errors(path), written_whole(path) as temporary:
            figure.savefig(temporary, format="png", facecolor="white")
        files[options.file] = path
    return files


def _wanted(options: PictureOptions, point: Point) -> bool:
    if options.where is None:
        return True

    def value_of(key: str) -> Any:
        text = point.row.get(key, "")
        number = number_of(text)
        return text if number is None else number

    try:
        return parse_condition(options.where).holds(value_of)
    except (TypeError, ZeroDivisionError):
        return False  # a variant that does not vary a key which is compared, or divides by 0


def _grid(options: PictureOptions, points: list[Point]) -> dict[tuple[int, int], Point]:
    """Return which point stands in which row and column of the panels."""
    if options.rows is None and options.columns is None:
        width = min(len(points), _MOST_COLUMNS)
        width = math.ceil(len(points) / math.ceil(len(points) / width))
        return {divmod(number, width): point for number, point in enumerate(points)}
    cells: dict[tuple[int, int], Point] = {}
    rows, columns = (
        order_of(points, key) if key is not None else [""]
        for key in (options.rows, options.columns)
    )
    for point in points:
        row = rows.index(point.place(options.rows)) if options.rows else 0
        column = columns.index(point.place(options.columns)) if options.columns else 0
        cells.setdefault((row, column), point)
    return cells


def _panel(
    study: StudyOptions, options: PictureOptions, point: Point, outcome: VariantOutcome
) -> Panel:
    variant = next((v for v in study.variants if v.name == outcome.variant.name), None)
    own = (variant or VariantOptions.model_construct()).coordinates
    shown = Shown.open(outcome.variant.job, outcome.path)
    return Panel(shown, _title(study, options, point), options.coordinates or own)


def _title(study: StudyOptions, options: PictureOptions, point: Point) -> str:
    keys = [key for key in (options.rows, options.columns) if key is not None]
    words = [_words(study, key, point) for key in keys or ["variant", *study.keys]]
    lines = [", ".join(word for word in dict.fromkeys(words) if word)]
    for name in options.measures:
        measure, value = MEASURES[name], point.value(name)
        if value is not None:
            unit = "%" if measure.unit.startswith("%") else measure.unit
            lines.append(f"{measure.short or measure.label} {format_value(value)} {unit}".rstrip())
    return "\n".join(filter(None, lines))


def _words(study: StudyOptions, key: str, point: Point) -> str:
    place, label = point.place(key), study.label(key)
    if number_of(place) is None:
        return place
    return f"{label} = {place}" if len(label) <= _SYMBOL else f"{place} {label}"

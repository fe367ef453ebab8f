"""The table of a study as documents print it: rows by columns, ours beside theirs."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from eigenscape.base.files.tables import number_of
from eigenscape.job.jobfile import Job
from eigenscape.job.measures import MEASURES
from eigenscape.job.study import StudyOptions
from eigenscape.study.layout import Point, TextRow, order_of, points_of


@dataclass(frozen=True)
class Tabulated:
    """A table to print.

    Attributes
    ----------
    corner, header
        Name of the rows' key; names of the columns.
    lines
        Name and cells of each row.
    caption
        How to read it; how ours compare.
    """

    corner: str
    header: tuple[str, ...]
    lines: tuple[tuple[str, tuple[str, ...]], ...]
    caption: tuple[str, ...]


def tabulate(job: Job, rows: Sequence[TextRow]) -> Tabulated:
    """Lay out a study's table.

    Parameters
    ----------
    job
        The study.
    rows
        Its tidy table, as texts.

    Returns
    -------
    Tabulated
        A cell says the mean, its standard error, and after a slash the published value.
    """
    study = job.study
    assert study is not None, "a study"
    points = points_of(job, rows)
    corner = study.label(study.rows)
    if study.columns is None:
        header = tuple(MEASURES[measure].title for measure in study.measure)
        lines = [
            (_name(study, point), tuple(_cell(point, measure) for measure in study.measure))
            for point in _in_order(points, study.rows)
        ]
    else:
        places = order_of(points, study.columns)
        header, lines = tuple(places), _pivot(study, points, places)
    return Tabulated(corner, header, tuple(lines), tuple(_caption(study, points)))


def _in_order(points: Sequence[Point], key: str) -> list[Point]:
    places = order_of(points, key) if key != "variant" else []
    return sorted(points, key=lambda point: places.index(point.place(key)) if places else 0)


def _pivot(
    study: StudyOptions, points: Sequence[Point], columns: Sequence[str]
) -> list[tuple[str, tuple[str, ...]]]:
    """Return the lines of a table by rows and columns; whatever else varies makes lines of its own."""
    assert study.columns is not None
    places = [(point.place(study.rows), point.place(study.columns)) for point in points]
    alone = len(set(places)) == len(places)
    groups: dict[str, dict[str, Point]] = {}
    for point in _in_order(points, study.rows):
        name = point.place(study.rows) if alone else _name(study, point)
        groups.setdefault(name, {})[point.place(study.columns)] = point
    return [
        (
            name,
            tuple(
                _cell(cells[column], study.measure[0]) if column in cells else ""
                for column in columns
            ),
        )
        for name, cells in groups.items()
    ]


def _name(study: StudyOptions, point: Point) -> str:
    """Return the name of a line: what its row key says, then what else tells it from others."""
    words = [point.place(study.rows)]
    for key in ("variant", *study.keys):
        if key not in (study.rows, study.columns) and (value := point.row.get(key)):
            words.append(value if key == "variant" else f"{study.label(key)} {value}")
    return ", ".join(word for word in dict.fromkeys(words) if word) or "all"


def _cell(point: Point, measure: str) -> str:
    value, spread = point.value(measure), point.spread(measure)
    text = "-" if value is None else format_value(value)
    if value is not None and spread is not None:
        text += f" ± {format_spread(spread)}"
    theirs = point.published.get(measure)
    return text if theirs is None else f"{text} / {theirs}"


def format_value(value: float) -> str:
    """Return a number with as many digits as a table has room for.

    Examples
    --------
    >>> [format_value(value) for value in (54.321, 1234.5, 0.98765, 0.0, 2.5e-6)]
    ['54.3', '1234', '0.988', '0.0', '2.5e-06']
    """
    size = abs(value)
    if 0 < size < 1e-3:
        return f"{value:.1e}"
    return (
        f"{value:.0f}"
        if size >= 1000
        else f"{value:.1f}"
        if size >= 1 or not size
        else f"{value:.3f}"
    )


def format_spread(value: float) -> str:
    """Return a standard error with one or two digits."""
    return f"{value:.1f}" if value >= 0.1 else f"{value:.2g}"


def _caption(study: StudyOptions, points: Sequence[Point]) -> list[str]:
    measure = study.measure[0]
    trials = sorted({int(t) for p in points if (t := number_of(p.row.get("trials"))) is not None})
    words = []
    if any(point.spread(m) is not None for point in points for m in study.measure):
        words.append("mean ± standard error")
    if trials and trials[-1] > 1:
        words.append(
            f"of {' to '.join(str(t) for t in dict.fromkeys((trials[0], trials[-1])))} draws"
        )
    if any(point.theirs(m) is not None for point in points for m in study.measure):
        words.append("/ published")
    if words and words[0] == "/ published":
        words = ["ours / published"]
    if study.columns:
        words = [", ".join(filter(None, [MEASURES[measure].title, " ".join(words)]))]
    lines = [" ".join(words) + "."] if words else []
    if MEASURES[measure].lower_is_better is not None and not study.stand_in:
        names = dict.fromkeys(point.row.get("variant", "") for point in points)
        lines += filter(None, (_comparison(measure, name, points) for name in names))
    return lines


def _comparison(measure: str, variant: str, points: Sequence[Point]) -> str:
    """Say in how many cells a variant is as good as what was published, nothing for very few."""
    pairs = [
        (ours, theirs)
        for point in points
        if point.row.get("variant", "") == variant
        and (ours := point.value(measure)) is not None
        and (theirs := point.theirs(measure)) is not None
    ]
    if len(pairs) < 3:
        return ""
    lower = MEASURES[measure].lower_is_better
    good = sum(ours <= theirs if lower else ours >= theirs for ours, theirs in pairs)
    middle = statistics.median(ours - theirs for ours, theirs in pairs)
    text = (
        f"{variant or 'ours'}: as good as published or better in {good} of {len(pairs)} cells; "
        f"median difference, ours less theirs: {middle:+.2g} {MEASURES[measure].unit}"
    )
    return text.rstrip() + "."

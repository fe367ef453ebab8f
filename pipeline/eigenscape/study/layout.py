"""The tidy table of a study to the points that tables and pictures show, ours beside theirs."""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from eigenscape.base.files.tables import number_of, read_table, text_of
from eigenscape.errors import JobError, did_you_mean
from eigenscape.job.jobfile import Job
from eigenscape.job.measures import MEASURES
from eigenscape.job.study import StudyOptions

TextRow = Mapping[str, str]


@dataclass(frozen=True)
class Point:
    """One variant, or the best of several, under one protocol.

    Attributes
    ----------
    row
        Its row of the table.
    published
        The published row for it, if there is one.
    """

    row: TextRow
    published: TextRow = field(default_factory=dict)

    def place(self, name: str) -> str:
        """Return where it stands along a key: the variant's name where it does not vary the key."""
        return self.row.get(name) or self.row.get("variant", "")

    def value(self, measure: str) -> float | None:
        """Return what was measured."""
        return number_of(self.row.get(measure))

    def spread(self, measure: str) -> float | None:
        """Return its standard error, where it is a mean of several draws."""
        return number_of(self.row.get(f"{measure}_se"))

    def theirs(self, measure: str) -> float | None:
        """Return what was published."""
        return number_of(self.published.get(measure))


def points_of(job: Job, rows: Sequence[TextRow]) -> list[Point]:
    """Return what a study's tables and pictures show, in the order of the file.

    Rows of other protocols are left out, and those that differ in keys of ``average`` alone become
    one; of a variant with ``best``, all but the best value are left out then.

    Raises
    ------
    JobError
        The published values cannot be read, or name a key that the study does not vary.
    """
    study = job.study
    assert study is not None, "a study"
    shown = [row for row in rows if row.get("state") == "finished" and _of_protocol(study, row)]
    best = {variant.name: variant.best for variant in study.variants}
    kept: dict[tuple[str, ...], TextRow] = {}
    for row in _averaged(study, shown):
        name = row.get("variant", "")
        free = [key for key in study.keys if key not in best.get(name, ())]
        place = (name, *(row.get(key, "") for key in free))
        if place not in kept or _is_better(study.measure[0], row, kept[place]):
            kept[place] = row
    published = read_published(job)
    points = [Point(row, _match(row, published, study)) for row in kept.values()]
    return [_with_speedup(study, point, points) for point in points]


def read_published(job: Job) -> list[dict[str, str]]:
    """Return the published values as rows of texts.

    Raises
    ------
    JobError
        The file is not there, or has a column that is no key of the study and no measure.
    """
    study = job.study
    if study is None or study.published is None:
        return []
    path = Path(job.resolve(study.published))
    try:
        rows = read_table(path)
    except (OSError, UnicodeDecodeError) as error:
        raise JobError(
            f"study.published = {study.published!r}: cannot be read ({error}). "
            "Relative paths are relative to the job file."
        ) from None
    known = ["variant", "source", *study.keys, *MEASURES]
    for name in {name for row in rows for name in row} - set(known):
        raise JobError(
            f"{path}: the column {name} is neither a key that the study varies nor a measure."
            f"{did_you_mean(name, known)} Columns: {', '.join(known)}."
        )
    keys = ("variant", *study.keys)
    return [
        {name: _plain(value) if name in keys else value for name, value in row.items()}
        for row in rows
    ]


def order_of(points: Sequence[Point], name: str) -> list[str]:
    """Return the places of some points along a key: numbers in their order, then names in theirs."""
    places = dict.fromkeys(point.place(name) for point in points)
    numbers = {place: number_of(place) for place in places}
    return sorted(places, key=lambda place: (numbers[place] is None, numbers[place] or 0.0))


def _of_protocol(study: StudyOptions, row: TextRow) -> bool:
    if study.protocol is None:
        return row.get("main") == "true"
    return row.get("protocol") == study.protocol


def _averaged(study: StudyOptions, rows: Sequence[TextRow]) -> list[TextRow]:
    if not study.average:
        return list(rows)
    free = ["variant", *(key for key in study.keys if key not in study.average)]
    groups: dict[tuple[str, ...], list[TextRow]] = {}
    for row in rows:
        groups.setdefault(tuple(row.get(key, "") for key in free), []).append(row)
    return [_mean(study, group) for group in groups.values()]


def _mean(study: StudyOptions, rows: Sequence[TextRow]) -> TextRow:
    """Return one row for several: means of the measures, with the standard errors of these."""
    mean = {name: value for name, value in rows[0].items() if name not in study.average}
    for measure in MEASURES:
        values = [number for row in rows if (number := number_of(row.get(measure))) is not None]
        mean.pop(f"{measure}_se", None)
        if values:
            mean[measure] = text_of(statistics.fmean(values))
        if len(values) > 1:
            mean[f"{measure}_se"] = text_of(statistics.stdev(values) / math.sqrt(len(values)))
    return mean | {"trials": str(len(rows))}


def _is_better(measure: str, one: TextRow, other: TextRow) -> bool:
    first, second = number_of(one.get(measure)), number_of(other.get(measure))
    if first is None or second is None:
        return second is None and first is not None
    lower = MEASURES[measure].lower_is_better
    return first < second if lower else first > second


def _match(row: TextRow, published: Sequence[TextRow], study: StudyOptions) -> TextRow:
    """Return the published row whose every key is this row's."""
    keys = ("variant", *study.keys)
    named = {variant.name: variant.published or variant.name for variant in study.variants}
    name = row.get("variant", "")
    sought = {**row, "variant": named.get(name, name)}
    for other in published:
        if all(sought.get(key) == other[key] for key in keys if key in other):
            return other
    return {}


def _with_speedup(study: StudyOptions, point: Point, points: Sequence[Point]) -> Point:
    """Add how many times as fast as the baseline it is, in ours and in theirs."""
    free = [key for key in study.keys if key not in study.average]
    for other in points:
        if other.row.get("variant") != study.baseline:
            continue
        both = [key for key in free if point.row.get(key) and other.row.get(key)]
        if all(point.row[key] == other.row[key] for key in both):
            return Point(_sped(point.row, other.row), _sped(point.published, other.published))
    return point


def _sped(row: TextRow, baseline: TextRow) -> TextRow:
    seconds, base = number_of(row.get("seconds")), number_of(baseline.get("seconds"))
    return row if not seconds or not base else {**row, "speedup": f"{base / seconds:.3g}"}


def _plain(text: str) -> str:
    number = number_of(text)
    return text if number is None else text_of(number)

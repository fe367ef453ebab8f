"""Batches of a scene of any size, from recordings of two smaller ones.

Seconds and bytes of a step are C + D rows where they grew less than the rows, and C rows^p where they grew
more, from its totals at both sizes. Tasks grow with the rows
where they did from one size to the other. Otherwise there are as many as before, until they have the most
rows that the package gives to a task.

A filter by rows is built anew, by the functions of the package that build it in a run: its products take
what they take by columns, and its mail seconds by the byte. Halos grow with a power of the number of parts.
"""

import math
import re
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from recording import Batch, Recording, Task

from eigenscape.base.blocks import task_bytes
from eigenscape.spectrum.iteration.halos import Cut
from eigenscape.spectrum.iteration.layout import Layout
from eigenscape.spectrum.iteration.rowparts import RowParts
from eigenscape.spectrum.kernels.gather import WIDTH

_MOST = 1.2
"""Largest exponent that is believed."""

_LINEAR = 0.9
"""Exponent of the number of tasks from which they are taken to grow with the rows alone."""

_MOST_ROWS = 2**20
"""Most rows of a task: see `eigenscape.base.memory.rows_within`."""

_AS_MANY = ("Filter", "Gram", "Rotate", "_call", "_signs", "fit", "start")
"""Functions with a number of tasks that the rows do not change: groups of columns, folds, or "about 16"."""

_KNOWN = {
    ("neighbors", "routing samples", "route_block"): {"before": 0.0},
    ("neighbors", "recall-#", "_measure"): {"mapped": 0.0},
}
"""Exponents that two sizes do not tell. The driver builds the search tree of a sample, which has its most
(2**18) from a million rows on; what it reads for that grows on. Recall is measured on 1000 lists."""

_BY_PART = ("find_halo", "fill_outbox", "Sums", "Finish", "Image", "Residuals")
"""Functions with a task, or one for each group, of every part of the rows."""

_COSTS = ("seconds", "wall", "read", "written", "mapped", "driver")
_BEFORE = ("before", "before_wall", "before_read", "before_written")

_HALOS = re.compile(r"(\d+) parts of the rows: halos of (\d+) rows, ([\d.]+)%")

Key = tuple[str, str, str]


def key_of(batch: Batch) -> Key:
    """Return what names a step in recordings of all sizes; degrees are left out of its label."""
    function = "Filter" if batch.function == "Steps" else batch.function
    return batch.stage, re.sub(r"\d+", "#", batch.step), function


@dataclass(frozen=True)
class Recordings:
    """Recordings of one job.

    Attributes
    ----------
    small, large
        Of two sizes, the filter by columns.
    parts
        By rows, with some parts and with more, of the size of `small`.
    memory
        ``limits.memory`` of all, in bytes.
    entries
        Entries of the matrix in a row.
    """

    small: Recording
    large: Recording
    parts: tuple[Recording, Recording]
    memory: int
    entries: float

    def batches(self, rows: int, slots: int) -> list[Batch]:
        """Return the batches of a run of `rows` samples, with `slots` tasks at a time."""
        growth = Growth(self)
        found = [growth.batch(batch, self.large.rows, rows) for batch in self.large.batches]
        layout = Layout("auto", slots, task_bytes(self.memory, 1))
        groups = max(len(b.tasks) for b in self.large.batches if b.function == "Filter")
        entries = int(self.entries * rows)
        parts = layout.choose(rows, entries, "float32", groups)
        if not parts:
            return found
        base = self.parts[1]
        times, by_rows = rows / base.rows, list[Batch]()
        by_columns = iter([batch for batch in self.small.batches if batch.function == "Filter"])
        for batch in base.batches:
            if batch.stage == "spectrum" and batch.items:
                by_rows.append(growth.wave(batch, next(by_columns), times, layout))
            elif batch.stage == "spectrum":
                by_rows.append(growth.batch(batch, base.rows, rows, parts / base.width))
        at = [number for number, batch in enumerate(found) if batch.stage == "spectrum"]
        return found[: at[0]] + by_rows + found[at[-1] + 1 :]


class Growth:
    """The growth of every step with the rows."""

    def __init__(self, recordings: Recordings) -> None:
        self._recordings = recordings
        self._rows = recordings.small.rows, recordings.large.rows
        self._before, self._after = _totals(recordings.small), _totals(recordings.large)
        few, many = (max(levels(recording).values(), key=lambda level: level.rows)
                     for recording in recordings.parts)  # fmt: skip
        power = math.log(many.halo / few.halo) / math.log(many.parts / few.parts)
        self._surface = min(max(power, 0.0), 1.0)
        self._levels = levels(recordings.parts[1])

    def power(self, key: Key, name: str) -> float:
        """Return the exponent with which a total of a step has grown; 1 where two sizes do not tell."""
        if name in _KNOWN.get(key, {}):
            return _KNOWN[key][name]
        totals = [found.get(key, {}).get(name, 0.0) for found in (self._before, self._after)]
        if min(totals) <= 0:
            # Steps by rows alone have files for each part.
            return 0.0 if name in ("files", "journal") else 1.0
        power = math.log(totals[1] / totals[0]) / math.log(self._rows[1] / self._rows[0])
        return min(max(power, 0.0), _MOST)

    def times(self, key: Key, name: str, rows: float, wanted: float) -> float:
        """Return how many times a total of `rows` samples one of `wanted` is."""
        power = self.power(key, name)
        if power in (0.0, 1.0) or power > 1 or name in _KNOWN.get(key, {}):
            return (wanted / rows) ** power
        # Less than in proportion: a part that does not grow, and one that does.
        small, large = self._before[key][name], self._after[key][name]
        slope = (large - small) / (self._rows[1] - self._rows[0])
        start = large - slope * self._rows[1]
        return (start + slope * wanted) / (start + slope * rows)

    def batch(self, batch: Batch, rows: int, wanted: int, parts: float = 1.0) -> Batch:
        """Return a batch of `rows` samples as one of `wanted`, with `parts` times as many parts."""
        key, times = key_of(batch), wanted / rows
        grown = replace(
            batch,
            **{
                name: getattr(batch, name) * self.times(key, name, rows, wanted) for name in _BEFORE
            },
            files=round(batch.files * min(self.times(key, "files", rows, wanted), times)),
            journal=round(batch.journal * min(self.times(key, "journal", rows, wanted), times)),
        )
        count = len(batch.tasks)
        if not count:
            return grown
        power = self.power(key, "tasks")
        many = round(count * times ** min(power, 1.0))
        if batch.function in _BY_PART:
            many = round(count * parts)
        elif batch.function in _AS_MANY:
            many = count
        elif power < _LINEAR and count > 1:
            # No more than in proportion: coarse levels have fewer rows.
            many = max(many, min(math.ceil(wanted / _MOST_ROWS), round(count * times)))
        # Evenly from the recorded ones, so that uneven tasks stay uneven.
        chosen = [batch.tasks[number * count // many] for number in range(many)]
        factors = {}
        for name in _COSTS:
            taken = sum(getattr(task, name) for task in chosen)
            whole = sum(getattr(task, name) for task in batch.tasks)
            grown_by = self.times(key, name, rows, wanted)
            factors[name] = whole * grown_by / taken if taken else 0.0
        grown.tasks = [
            replace(task, **{name: getattr(task, name) * by for name, by in factors.items()})
            for task in chosen
        ]
        return grown

    def wave(self, batch: Batch, filtered: Batch, times: float, layout: Layout) -> Batch:
        """Return the steps of a filter by rows, of `times` as many rows.

        Parameters
        ----------
        batch, filtered
            The filter by rows and by columns, as recorded.
        times
            Rows wanted, as a multiple of those recorded.
        layout
            Chooses the number of parts.
        """
        key = key_of(batch)
        last, old, _, groups = map(int, np.max(batch.items, axis=0) + np.array([0, 1, 0, 0]))
        level = self._levels[old]
        rows, size = round(level.rows * times), 4 * WIDTH
        entries = int(self._recordings.entries * rows)
        parts = layout.choose(rows, entries, "float32", groups) or old
        base = self._recordings.small.rows
        products = self.times(key, "seconds", base, base * times)
        degree = max(1, round(last * max(1.0, products / times)))
        # A part keeps its share of foreign rows as long as its own rows are as many.
        halo = level.halo * times * (parts / old / times) ** self._surface
        cut = Cut(tuple(rows * part // parts for part in range(parts + 1)), Path())
        problem: Any = SimpleNamespace(
            operator=SimpleNamespace(rows=rows, entries=entries, dtype="float32")
        )
        made = RowParts(
            problem, _run_nothing, cut, _near(batch, parts), (math.ceil(halo / parts),) * parts,
            np.zeros(0), layout,
        )  # fmt: skip
        at_once, width, every = made._keeping(groups)
        items, order = made._wave(degree, groups, at_once, width)
        # Of each group, step and part: mail, vectors that are kept, and read where no process has them.
        mail, kept = int(halo / parts * size), int(2 * rows / parts * size / every)
        read = mail + (kept if every == 1 else 0)
        moved = sum(task.read + task.written for task in batch.tasks)
        spent = [sum(task.seconds for task in each.tasks) for each in (batch, filtered)]
        byte_s = max(0.0, spent[0] - spent[1]) / moved
        product = spent[1] * products / ((degree + 1) * parts * groups)
        mapped = int(self.times(key, "mapped", base, base * times) * _first_mapped(batch) / parts)
        seconds = product + byte_s * (read + mail + kept)
        tasks = [
            Task(wide * seconds, 0.0, wide * read, wide * (mail + kept), mapped, 0.0, 300)
            for wide in (item[3] - item[2] for item in items)
        ]
        return replace(
            batch, tasks=tasks, items=[list(item) for item in items],
            after=[list(each) for each in order.after], places=list(order.places),
        )  # fmt: skip


@dataclass(frozen=True)
class Level:
    """The parts of the rows of one problem, the graph itself or a coarse one.

    Attributes
    ----------
    parts
        Number of parts.
    halo, rows
        Rows in their halos, and of the problem.
    """

    parts: int
    halo: int
    rows: float


def levels(recording: Recording) -> dict[int, Level]:
    """Return the problems whose rows were cut, by their number of parts, from the notes of the run."""
    found = {}
    for note in recording.notes:
        if match := _HALOS.match(note):
            parts, halo, share = int(match[1]), int(match[2]), float(match[3])
            found[parts] = Level(parts, halo, 100 * halo / share)
    return found


def _run_nothing(*_: Any, **__: Any) -> list[Any]:
    return []


def _totals(recording: Recording) -> dict[Key, dict[str, float]]:
    """Return the totals of every step; of files and tasks the most in a batch."""
    found: dict[Key, dict[str, float]] = {}
    for batch in recording.batches:
        total = found.setdefault(
            key_of(batch), dict.fromkeys((*_COSTS, *_BEFORE, "tasks", "files", "journal"), 0.0)
        )
        for name in _COSTS:
            total[name] += sum(getattr(task, name) for task in batch.tasks)
        for name in _BEFORE:
            total[name] += getattr(batch, name)
        for name, value in (
            ("tasks", len(batch.tasks)), ("files", batch.files), ("journal", batch.journal),
        ):  # fmt: skip
            total[name] = max(total[name], value)
    return found


def _first_mapped(batch: Batch) -> float:
    """Return what the first task of every place maps."""
    first: dict[int, int] = {}
    for place, task in zip(batch.places, batch.tasks, strict=True):
        first.setdefault(place, task.mapped)
    return sum(first.values())


def _near(batch: Batch, parts: int) -> tuple[tuple[int, ...], ...]:
    """Return which parts wait for each other: as many as were recorded, those next to each other."""
    waits = [
        len(after)
        for item, after in zip(batch.items, batch.after, strict=True)
        if item[0] == 1
    ]  # fmt: skip
    count = min(parts, max(1, round(sum(waits) / len(waits))))
    found = []
    for part in range(parts):
        first = min(max(0, part - count // 2), parts - count)
        found.append(tuple(range(first, first + count)))
    return tuple(found)

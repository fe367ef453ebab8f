"""The layout of a filter: groups of columns, or parts of the rows of each group.

Columns are independent of each other, so that a task per group has nothing to wait for; but each maps all
rows, and there are no more tasks than groups. Parts of the rows are as many as there are tasks to run, and
each maps its own rows and its halo; they wait for each other after every step. The result is the same to
the bit, so the choice is one of time and memory alone, and may change from pass to pass.
"""

import math
import os
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from eigenscape.spectrum.iteration.tasks import Problem
from eigenscape.spectrum.kernels import tiles
from eigenscape.spectrum.kernels.gather import WIDTH

_ENTRY_S = 3.7e-9
"""Seconds of an entry of the matrix in a product with a group, on one thread: 40 ms for the 10.9 million of
`tests/bench/performance/spectrum.py`, measured."""

_MORE, _MAIL_POWER = 1.5, 0.42
"""Times that a product by rows takes, mail and vectors that are written included, and by which power of the
number of parts it grows, as halos do. Measured in processor time: 1.3 (640,976 rows, degree 75) to 1.6 (four
times the rows, degree 20) with two parts, 2.3 with 8 and 5.3 with 50 (640,976 rows, degree 67)."""

_TASK_S = 0.015
"""Seconds of a task on a worker process beside its work: 7 ms of the worker and 8 ms of driver and
scheduler, as measured. A task on a thread takes less than 1 ms."""

_GAIN = 0.8
"""Share of the time by columns below which the time by rows must be for rows to be chosen."""

_HALO_SHARE = 0.5
"""Assumed share of the rows in halos; on the Smith scene, the halos of 16 parts are a third."""

_TASKS_AT_ONCE = 2
"""Tasks of each part under way: a worker has one while the other waits for its neighbours."""

_LEAST_S = 0.1
"""Seconds that a task takes at least, if there are groups enough."""


@dataclass(frozen=True)
class Layout:
    """The choice between the two layouts of a filter.

    Attributes
    ----------
    asked
        Layout of the job: "auto", "columns" or "rows".
    slots
        Number of tasks that run at a time.
    budget
        Bytes of anonymous memory that one task may take.
    note
        Called with the halo and the bytes of a step where rows are chosen.
    """

    asked: str = "columns"
    slots: int = 1
    budget: int = 2**30
    note: Callable[[str], None] = lambda text: None

    def parts(self, problem: Problem, groups: int) -> int:
        """Return the number of parts of the rows, 0 for the layout by columns.

        Parameters
        ----------
        problem
            The operator on disk.
        groups
            Number of groups of 32 columns.
        """
        operator = problem.operator
        if operator.ties is not None:
            return 0
        return self.choose(operator.rows, operator.entries, operator.dtype, groups)

    def choose(self, rows: int, entries: int, dtype: str, groups: int) -> int:
        """Return the number of parts of the rows, 0 for the layout by columns, for an operator without ties.

        Parameters
        ----------
        rows, entries, dtype
            Number of rows, number of entries and type of the operator.
        groups
            Number of groups of 32 columns.
        """
        if self.asked == "columns":
            return 0
        size = WIDTH * np.dtype(dtype).itemsize
        held, most = 2 * size * rows * (1 + _HALO_SHARE), len(tiles.tiles(rows))
        parts = min(max(self.slots, math.ceil(held / max(self.budget, 1))), most)
        if self.asked == "rows":
            return min(max(parts, 2), most)
        if self.slots == 1 or parts < 2:
            return 0
        product = _ENTRY_S * entries
        by_columns = -(-groups // self.slots) * product
        _, width = self.under_way(entries, parts, groups)
        turns, more = -(-parts // self.slots), max(_MORE, parts**_MAIL_POWER)
        by_rows = turns * (groups * more * product / parts + -(-groups // width) * _TASK_S)
        mapped = entries * (4 + np.dtype(dtype).itemsize) + 3 * rows * size
        fits = mapped <= os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        return parts if by_rows < _GAIN * by_columns or not fits else 0

    def footprint(self, rows: int, entries: int, dtype: str, groups: int) -> tuple[float, float]:
        """Return the bytes of memory of one of as many tasks as run at a time, and of scratch; see `choose`.

        0 for columns. Halos are taken as half of the rows.
        """
        parts = self.choose(rows, entries, dtype, groups)
        if not parts:
            return 0.0, 0.0
        vector = WIDTH * np.dtype(dtype).itemsize * rows * (1 + _HALO_SHARE)
        at_once, width = self.under_way(entries, parts, groups)
        together = min(groups, at_once * width)
        # Two vectors of each group; on disk twice, with the mail since, and columns numbered anew.
        memory = min(2 * vector * together / self.slots, float(self.budget))
        return memory, 4.0 * entries + 16 * rows + 8 * vector * together

    def under_way(self, entries: int, parts: int, groups: int) -> tuple[int, int]:
        """Return how many tasks of a part are under way, and the groups of each, memory left aside."""
        part = _ENTRY_S * max(entries, 1) / parts
        at_once = min(_TASKS_AT_ONCE, max(1, int(groups * part / _LEAST_S)))
        return at_once, min(-(-groups // at_once), max(1, math.ceil(_LEAST_S / part)))


BY_COLUMNS = Layout()
"""The layout by columns, as a default."""

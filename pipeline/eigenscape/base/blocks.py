"""Ranges of rows: how a table is cut into blocks that fit a budget."""

import math

from eigenscape.base.memory import rows_within

BASE_BYTES = 200 * 2**20
"""Anonymous memory of a process that has loaded every library and its compiled kernels, and has
no sample in memory yet. Measured: see tests/bench/performance/memory.py."""


Block = tuple[int, int]
"""A range of samples or rows: start included, stop not."""


def task_bytes(limit: int, tasks_per_process: int) -> int:
    """Return what one task may take under a memory limit."""
    return max(0, int(0.8 * (limit - BASE_BYTES))) // tasks_per_process


def blocks(rows: int, step: int) -> list[Block]:
    """Cut ``range(rows)`` into ranges of `step` rows; the last may be shorter."""
    return [(start, min(start + step, rows)) for start in range(0, rows, step)]


_MOST_ROWS = 2**18
"""Rows of a block, at most: ten million are work for 40 tasks. On hundreds of cores an eighth of the rows in
each task would leave most of them idle, and on two cores 40 tasks cost less than a second."""


def sample_blocks(rows: int, chunk: int, budget: int, bytes_per_row: float) -> list[Block]:
    """Cut samples into blocks that fit a budget and hold whole chunks of the array written.

    Parameters
    ----------
    rows
        Number of samples.
    chunk
        Rows per chunk of the array that the task writes (1 where it writes none).
    budget
        Bytes that a task may take.
    bytes_per_row
        Bytes that a sample takes in the task, temporaries included.
    """
    # At least a few blocks for each thread, so that the last one does not work alone.
    most = max(chunk, min(_MOST_ROWS, math.ceil(rows / 8)))
    step = rows_within(budget, bytes_per_row, most=most)
    return blocks(rows, max(chunk, step // chunk * chunk))

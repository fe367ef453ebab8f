"""Arrays that labels are spread in: in memory where they fit, mapped from scratch files elsewhere."""

from pathlib import Path

import numpy as np

from eigenscape.arrays import scratch_zeros
from eigenscape.spectrum.gather import WIDTH
from eigenscape.spectrum.operator import Array, StoredOperator
from eigenscape.stage import Context

MOST_ARRAYS = 5
"""Arrays of a group that a method holds at once."""


class Bench:
    """Gives zeros to work on, in memory or mapped from scratch files."""

    def __init__(self, folder: Path, group: int, dtype: str, in_memory: bool) -> None:
        self.folder, self.group, self.dtype, self.in_memory = folder, group, dtype, in_memory
        self.files: list[Path] = []

    def __call__(self, rows: int) -> Array:
        """Return zeros of a group."""
        path = None
        if not self.in_memory:
            path = self.folder / f"work-{self.group}-{len(self.files)}"
            self.files.append(path)
        return scratch_zeros((rows, WIDTH), self.dtype, path)

    def clear(self) -> None:
        """Delete the scratch files."""
        for path in self.files:
            path.unlink(missing_ok=True)


def fits_in(context: Context, operator: StoredOperator) -> bool:
    """Return whether a task may hold the arrays of a group in memory."""
    size = np.dtype(operator.dtype).itemsize
    return MOST_ARRAYS * operator.rows * WIDTH * size <= context.task_bytes

"""Arrays of fields in which labels are spread: in memory if they fit, else mapped from scratch files."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from eigenscape.base.files.mapped import scratch_arrays
from eigenscape.learn.propagate.kernels.conjugate import Allocate
from eigenscape.learn.propagate.sizes import LABEL_ARRAYS
from eigenscape.spectrum.kernels.gather import WIDTH
from eigenscape.spectrum.stored import StoredOperator


@contextmanager
def scratch_fields(folder: Path, dtype: str, *, in_memory: bool) -> Iterator[Allocate]:
    """Yield a function that allocates zeros of a group, in memory or mapped from scratch files."""
    with scratch_arrays(None if in_memory else folder) as zeros:
        yield lambda rows: zeros((rows, WIDTH), dtype)


def fits_in(budget: int, operator: StoredOperator, labelled: int, arrays: float) -> bool:
    """Return whether a task may hold the arrays of a group in memory.

    Parameters
    ----------
    budget
        Bytes that a task may take.
    operator
        Whose rows the arrays have.
    labelled
        Number of labelled samples.
    arrays
        Number of arrays of a group that the method holds at once.
    """
    rows = arrays * operator.rows + LABEL_ARRAYS * labelled
    return rows * WIDTH * np.dtype(operator.dtype).itemsize <= budget

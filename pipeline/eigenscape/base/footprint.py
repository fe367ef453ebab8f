"""What a stage takes: tasks, memory and disk, by the arithmetic of its method."""

import math
from dataclasses import dataclass

_STEP = 64 * 2**20


@dataclass(frozen=True)
class Footprint:
    """Needs of a stage.

    Attributes
    ----------
    tasks
        Number of tasks.
    each, shared, before
        Bytes of anonymous memory that one task takes, that are held beside the tasks, and that are
        taken before them.
    disk, scratch
        Bytes that it adds to the store, and that it needs until it ends.
    most
        Tasks that run at once, at most.
    """

    tasks: int
    each: float = 0
    shared: float = 0
    disk: float = 0
    scratch: float = 0
    before: float = 0
    most: float = math.inf


def enough(size: int) -> str:
    """Return a value of ``limits.memory`` that holds `size` bytes: a multiple of 64 MiB."""
    return f"{-(-size // _STEP) * 64}MiB"

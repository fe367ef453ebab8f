"""Number of cores for the work of one process."""

import os


def usable_cores() -> int:
    """Return how many cores this process may use, which a batch system or a container can make fewer."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1

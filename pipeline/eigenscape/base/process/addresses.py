"""Limit of the address space of this process (``ulimit -v``), which some batch systems set."""

import math
import os
import resource

from eigenscape.base.memory import format_bytes
from eigenscape.base.process.cores import usable_cores
from eigenscape.errors import MemoryLimitError

_LIBRARIES = 512 * 2**20
"""Code and data of the interpreter and the libraries, mapped at the end of a run, beside what grows with
cores and tasks. Measured on two cores: a small run maps 0.94 to 1.03 GiB with two tasks at a time and 1.85
GiB with 16, of which about 230 MiB are anonymous and count for ``limits.memory``."""

_BLAS_THREAD = 80 * 2**20
"""For each thread of BLAS: two copies of OpenBLAS (of NumPy and SciPy) reserve 40 MiB each when loaded."""

_MOST_BLAS_THREADS = 64
"""Of OpenBLAS in wheels."""

_TASK_THREAD = 72 * 2**20
"""For each task: a stack of 8 MiB, and 64 MiB that glibc reserves for a heap."""

_LEAST_MEMORY = 2**28
"""What a run needs of ``limits.memory``, at least; small ones take no more."""


def mapped_bytes(tasks: int) -> int:
    """Return the address space of a process beside what ``limits.memory`` counts.

    Parameters
    ----------
    tasks
        Number of tasks that the process runs at a time.
    """
    return _LIBRARIES + _BLAS_THREAD * _blas_threads() + _TASK_THREAD * tasks


def check_address_space(memory: int = 0, tasks: int = 1) -> str:
    """Refuse a limit of the address space below what any run takes.

    Beyond it, libraries cannot be loaded, threads do not start, and a run may wait for one of them forever.

    Parameters
    ----------
    memory
        ``limits.memory`` in bytes; 0 for a process that runs no tasks.
    tasks
        Number of tasks that the process runs at a time.

    Returns
    -------
    str
        A note that the limit leaves less than ``limits.memory``, or an empty text.

    Raises
    ------
    MemoryLimitError
        The limit is lower.
    """
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    mapped = mapped_bytes(tasks)
    if limit == resource.RLIM_INFINITY or limit >= mapped + memory:
        return ""
    limited = f"the address space of a process is limited to {format_bytes(limit)} (`ulimit -v`)"
    raised = f"`ulimit -v {math.ceil((mapped + memory) / 1024)}` or more"
    least = mapped + min(memory, _LEAST_MEMORY)
    if limit < least:
        raise MemoryLimitError(
            f"{limited}, and a run takes at least {format_bytes(least)} of it, most for libraries and "
            f"threads. Set {raised}; in the job of a queue ask for more memory."
        )
    return (
        f"{limited}, of which libraries and threads take {format_bytes(mapped)}: a run that needs all of "
        f"limits.memory = {format_bytes(memory)} fails. Set {raised}, or limits.memory to "
        f"{(limit - mapped) // 2**20} MiB"
    )


def _blas_threads() -> int:
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
        if (text := os.environ.get(name, "")).isdecimal() and int(text):
            return min(int(text), usable_cores(), _MOST_BLAS_THREADS)
    return min(usable_cores(), _MOST_BLAS_THREADS)

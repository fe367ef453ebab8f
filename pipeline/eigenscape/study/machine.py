"""In words, what a study was computed on: times mean nothing without it."""

import platform
from pathlib import Path

import psutil

from eigenscape.base.memory import format_bytes
from eigenscape.base.process.cores import usable_cores
from eigenscape.clusters import ClusterOptions


def describe_machine(on: ClusterOptions, width: int) -> str:
    """Return processor, cores, memory and where tasks ran; no name of the machine.

    Parameters
    ----------
    on
        The cluster file.
    width
        Tasks that run at a time.
    """
    memory = format_bytes(psutil.virtual_memory().total)
    where = "threads" if on.kind == "threads" else f"{on.kind} cluster"
    return f"{_processor()}, {usable_cores()} cores, {memory}; {width} tasks at a time ({where})"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()

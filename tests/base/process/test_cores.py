"""Cores that a process may use."""

import os
import subprocess
import sys

import pytest

from eigenscape.base.process.cores import usable_cores


def test_usable_cores__are_those_of_the_machine_at_most():
    assert 1 <= usable_cores() <= (os.cpu_count() or 1)


@pytest.mark.skipif(
    not hasattr(os, "sched_setaffinity"), reason="the system binds no process to cores"
)
def test_usable_cores__of_a_process_bound_to_one_core():
    code = (
        "import os; os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])\n"
        "from eigenscape.base.process.cores import usable_cores\n"
        "from eigenscape.clusters.workers.executors import Threads\n"
        "print(usable_cores(), Threads().width)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["1", "1"]

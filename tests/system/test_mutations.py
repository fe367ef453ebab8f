"""Mutated inputs of a few formats: refused in a sentence, or a plausible result.

tests/bench/faults/mutations.py has every format and any number of them.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

SCRIPT = Path(__file__).parents[1] / "bench" / "faults" / "mutations.py"


def run(*arguments):
    done = subprocess.run(
        [sys.executable, str(SCRIPT), *map(str, arguments)],
        capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    return done.returncode, json.loads(done.stdout), done.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="the limits of a trial are those of Linux")
def test_mutations__are_refused_or_give_a_plausible_result():
    cases = [part for name in ("envi", "npz", "zarr2") for part in ("--case", name)]
    status, found, told = run("--number", 30, "--seed", 20261122, *cases)
    assert status == 0, told
    assert found["failures"] == []
    assert found["refused"] + found["plausible"] == found["trials"] == 30
    assert found["refused"] >= 5
    assert found["plausible"] >= 5


@pytest.mark.skipif(sys.platform != "linux", reason="the limits of a trial are those of Linux")
def test_mutations__judges_what_is_wrong(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(SCRIPT.parent)
    import mutations

    def hang():
        while True:
            pass

    def allocate():
        # A collection in the fork may give back some of what the limit was measured with.
        bytearray(2 * mutations.LIMIT)
        return 0

    def die():
        import os

        os.abort()

    def outcome(work, timeout=30.0):
        status, text = mutations.in_child(work, tmp_path / "told", timeout)
        return mutations.judge(status, text, tmp_path, final=True)

    assert outcome(hang, 0.2) == "hang"
    assert outcome(allocate) == "allocation"
    assert outcome(die) == "signal"
    assert outcome(lambda: 1 // 0) == "traceback"
    assert outcome(lambda: 1) == "status"
    assert outcome(lambda: 2) == "traceback"
    assert outcome(lambda: print("eigenscape: no", file=sys.stderr) or 2) == "refused"
    assert outcome(lambda: 0) == "implausible"

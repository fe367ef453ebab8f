"""A run that is killed at each named point, in one stage after the other, and given again.

The points are those of `base.process.namedpoints`; tests/bench/faults/kills.py kills at each of them in each
of its steps, and with many jobs. What it demands of the second command stands there. Workers are killed
at theirs by tests/bench/faults/worker_kills.py, and the run goes on.
"""

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import eigenscape
from eigenscape.base.process.namedpoints import POINTS, reached, watched_by
from eigenscape.workflow.stages import STAGES

pytestmark = [pytest.mark.slow, pytest.mark.long]

SCRIPT = Path(__file__).parents[1] / "bench" / "faults" / "kills.py"
PACKAGE = Path(eigenscape.__file__).parent


def test_run__killed_at_every_named_point_ends_as_if_undisturbed():
    given = [
        "--quick",
        "--whole",
        "--threads",
        "2",
        "--variant",
        "small",
        "--variant",
        "small-linked",
    ]
    done = subprocess.run(
        [sys.executable, str(SCRIPT), *given],
        capture_output=True, text=True, check=False, timeout=600, env=os.environ,
    )  # fmt: skip
    said = [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"')]
    assert said, done.stderr[-2000:]
    *variants, whole = said
    assert whole["failures"] == []
    assert whole["points without a kill"] == []
    assert whole["kills"] >= len(POINTS)
    assert {stage.name for stage in STAGES} <= {*variants[0]["stages"]}
    assert done.returncode == 0


@pytest.mark.exhaustive
def test_run__goes_on_when_workers_are_killed_at_every_point_that_they_pass():
    script = SCRIPT.with_name("worker_kills.py")
    done = subprocess.run(
        [sys.executable, str(script), "--quick", "--variant", "small"],
        capture_output=True, text=True, check=False, timeout=600, env=os.environ,
    )  # fmt: skip
    said = [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"')]
    assert said, done.stderr[-2000:]
    assert said[-1]["failures"] == []
    passed = {"array created", "data written", "file emptied", "file in place", "file reserved"}
    assert {*passed, "file written", "task ends"} <= {*said[-1]["points"]}
    assert said[-1]["kills"] >= len(said[-1]["points"])
    assert done.returncode == 0


def test_points__are_those_of_the_code():
    named = set()
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "reached":
                assert isinstance(node.args[0], ast.Constant), path
                named.add(node.args[0].value)
    assert named == {*POINTS}


def test_watched_by__hears_of_points_in_its_block_alone():
    heard = []
    reached("stage begins", "graph")
    with watched_by(lambda *point: heard.append(point)):
        reached("stage begins", Path("a"))
        reached("step ends")
    reached("stage begins", "learn")
    assert heard == [("stage begins", "a"), ("step ends", "")]

"""A solve that is killed by the system in the midst of its tasks, and goes on."""

import json
import os
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from eigenscape.spectrum.iteration.chebyshev import solve
from eigenscape.spectrum.iteration.tasks import Problem
from eigenscape.spectrum.stored import StoredOperator

SCRIPT = """
import json, os, signal, sys
import threadpoolctl
from eigenscape.spectrum.iteration.chebyshev import solve
from test_resume import Journal, problem_of

threadpoolctl.threadpool_limits(1)
where, kills = json.loads(sys.argv[1])
for directory, step, at in kills:
    child = os.fork()
    if not child:
        solve(problem_of(directory), 20, 1e-9, Journal(directory, step, at), lambda text: None)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL, (step, at)
"""


class Journal:
    """Notes finished tasks in a file, as a run does; dies in the midst of one if it is told to."""

    def __init__(self, directory, step=None, at=0):
        self.file, self.step, self.at = Path(directory) / "journal.json", step, at
        self.done = json.loads(self.file.read_text()) if self.file.exists() else {}
        self.log = []

    def __call__(self, step, function, items, *, label=None, keep=True):
        results = []
        for number, item in enumerate(items):
            name = f"{step}/{item}"
            if not keep or name not in self.done:
                value = function(item)
                if step == self.step and number == self.at:
                    # Its files are written, but nobody noted so.
                    os.kill(os.getpid(), 9)
                self.log.append(name)
                self.done[name] = value if keep else None
                if keep:
                    self.file.write_text(
                        json.dumps({k: v for k, v in self.done.items() if v != []})
                    )
            else:
                value = self.done[name]
            results.append(value)
        return results


def problem_of(directory):
    stored = json.loads((Path(directory) / "problem.json").read_text())
    return Problem(StoredOperator.from_json(stored), None, Path(directory))


KILLS = [
    ("filter-single-0-0-0", 0),
    ("filter-single-0-1-0", 1),
    ("gram", 1),
    ("rotate-single-0-1", 0),
    ("residual-single-0-1", 0),
    ("single", 0),
    ("widen", 1),
    ("filter-0-2-0", 0),
    ("rotate-0-2", 0),
]


@pytest.mark.exhaustive
@pytest.mark.slow
def test_solve__goes_on_after_sigkill_in_the_midst_of_a_pass(make_problem):
    W = nx.adjacency_matrix(nx.grid_2d_graph(50, 60)).astype(np.float64)
    paths = []
    for number in range(len(KILLS) + 1):
        problem = make_problem(W, name=f"solve-{number}")
        (problem.directory / "problem.json").write_text(json.dumps(asdict(problem.operator)))
        paths.append(str(problem.directory))
    whole = Journal(paths[-1])
    with threadpool_limits(1):
        expected = solve(problem_of(paths[-1]), 20, 1e-9, whole, lambda text: None)
        assert expected.converged
        assert expected.passes >= 2
        plan = [(path, step, at) for path, (step, at) in zip(paths, KILLS, strict=False)]
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", SCRIPT, json.dumps([paths[-1], plan])],
            cwd=Path(__file__).parent, capture_output=True, text=True, timeout=240,
            env={**os.environ, "PYTHONPATH": os.pathsep.join([".", *sys.path])},
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        for path, step, _ in plan:
            rest = Journal(path)
            found = solve(problem_of(path), 20, 1e-9, rest, lambda text: None)
            np.testing.assert_array_equal(found.values, expected.values)
            np.testing.assert_array_equal(found.residuals, expected.residuals)
            rows = slice(None)
            np.testing.assert_array_equal(found.vectors.read(rows), expected.vectors.read(rows))
            # It begins where it was: no finished task of an earlier step is done again.
            kept = [name for name in rest.log if not name.startswith("gram")]
            if step != "gram":
                assert kept[0].startswith(step)
            assert kept == [name for name in whole.log if not name.startswith("gram")][-len(kept) :]

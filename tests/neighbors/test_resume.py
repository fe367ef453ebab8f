"""Stages that are killed in each of their steps, and go on."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from harness import Frail, KilledError
from lists import Found, assert_same, check_found, clustered, cut_small, find_lists, words

pytestmark = pytest.mark.usefixtures("small_blocks")

OPTIONS = {
    "bisection": {"k": 5, "leaf_size": 64, "refine": 2},
    "trees": {"k": 5, "leaf_size": 48, "recall": 0.9},
    "exact": {"k": 5, "method": "exact", "metric": "angle"},
    "radius": {"method": "radius", "radius": 0.8},
}
STEPS = {
    "bisection": [
        "_hash_block", "route_block", "search", "gather", "_search", "merge", "_measure", "refine",
        "_write_block",
    ],
    "exact": ["measure", "nearest", "_write_block"],
    "radius": ["within", "_scatter"],
}  # fmt: skip
EVERY = [(method, step) for method, steps in STEPS.items() for step in steps]

NOT_NOTED = {"_search", "measure"}
"""Steps whose results are arrays in memory, and are computed again as long as they are not whole."""


TOGETHER = {"_scatter"}
"""Steps that write here and there in a file, and are noted when all of their tasks are done."""


def features_of(method):
    rng = np.random.default_rng(7)
    if method == "trees":
        return rng.standard_normal((1000, 12)).astype(np.float32)
    which = np.arange(1500)
    which[100:140] = 100
    if method == "exact":
        return words(rng, 1500)[which]
    return clustered(rng, 1500, 6)[which]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """Return features, lists and the tasks of a run that nobody kills."""
    known: dict[str, tuple[object, Found, list[tuple[str, object]]]] = {}

    def run(method):
        if method not in known:
            features, executor = features_of(method), Frail()
            path = tmp_path_factory.mktemp("undisturbed") / "run"
            with pytest.MonkeyPatch.context() as patch:
                cut_small(patch)
                found = find_lists(path, features, executor=executor, **OPTIONS[method])
            check_found(features, found, OPTIONS[method].get("metric", "euclidean"))
            known[method] = features, found, executor.log
        return known[method]

    return run


def noted(log):
    return [task for task in log if task[0] not in NOT_NOTED]


@pytest.mark.mostly_slow(4)
@pytest.mark.parametrize(
    ("method", "step", "last_is_noted"),
    [(*one, False) for one in EVERY] + [("bisection", step, True) for step in ("search", "refine")],
)
def test_neighbors_stage__goes_on_after_a_kill(undisturbed, tmp_path, method, step, last_is_noted):
    features, expected, log = undisturbed(method)
    steps = [name for name, _ in log]
    # In the midst of the step, where it has more than one task.
    tasks = steps.index(step) + (steps.count(step) + 1) // 2
    first, rest = Frail(tasks, noted=last_is_noted), Frail()
    path = tmp_path / "run"
    with pytest.raises(KilledError):
        find_lists(path, features, executor=first, **OPTIONS[method])
    found = find_lists(path, features, executor=rest, **OPTIONS[method])
    assert_same(found, expected)
    assert found.summary == expected.summary
    lost = not last_is_noted and log[tasks - 1][0] not in NOT_NOTED
    begin = steps.index(step) if step in TOGETHER else tasks - lost
    assert noted(rest.log) == noted(log[begin:])
    assert not (path / "work").exists()


@pytest.mark.slow
def test_neighbors_stage__goes_on_in_a_further_tree(undisturbed, tmp_path):
    features, expected, log = undisturbed("trees")
    names = [step["step"] for step in expected.summary["steps"]]
    assert names.count("refining, round 1") > 1
    for tasks in np.linspace(len(log) // 2, len(log) - 2, 3).astype(int).tolist():
        path = tmp_path / str(tasks)
        with pytest.raises(KilledError):
            find_lists(path, features, executor=Frail(tasks), **OPTIONS["trees"])
        found = find_lists(path, features, executor=(rest := Frail()), **OPTIONS["trees"])
        assert_same(found, expected)
        assert found.summary == expected.summary
        assert noted(rest.log) == noted(log[tasks:])


def test_neighbors_stage__goes_on_after_kill_upon_kill(undisturbed, tmp_path):
    features, expected, log = undisturbed("radius")
    path, kills = tmp_path / "run", 0
    while True:
        try:
            found = find_lists(path, features, executor=Frail(7), **OPTIONS["radius"])
            break
        except KilledError:
            kills += 1
    assert kills >= len(log) // 7 - 1
    assert_same(found, expected)


SCRIPT = """
import json, os, sys
from pathlib import Path
import numpy as np
import pytest
from eigenscape.neighbors.kernels import hashes, lists as kernels, routing
from lists import Fatal, clustered, cut_small, find_lists, words

cut_small(pytest.MonkeyPatch())
rng = np.random.default_rng(0)
which = np.arange(1500)
which[:30] = 0
for kind, table in (("dense", clustered(rng, 1500)), ("sparse", words(rng, 1500))):
    for name, options in {
        "trees": {"leaf_size": 100, "overlap": 0, "recall": 0.9},
        "exact": {"method": "exact", "metric": "angle"},
        "radius": {"method": "radius", "radius": 1.0},
    }.items():
        find_lists(Path(sys.argv[1]) / f"{kind}-{name}", table[which], k=8, **options)
loops = [*vars(kernels).values(), *vars(routing).values(), *vars(hashes).values()]
variants = {
    loop.__name__: list(map(str, loop.signatures)) for loop in loops if hasattr(loop, "signatures")
}
ends = []
for path, step, options in json.loads(sys.argv[2]):
    # With all loops loaded; none of its threads is needed on the other side.
    child = os.fork()
    if not child:
        find_lists(Path(path), None, executor=Fatal(step), **options)
        os._exit(0)
    ends.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
print(json.dumps({"variants": variants, "ends": ends}))
"""

FATAL = [one for one in EVERY if one[1] not in ("_search", "_measure", "measure")]


@pytest.fixture(scope="module")
def other_process(undisturbed, tmp_path_factory):
    """Work in a process of its own, whose children end in the midst of every step."""
    path = tmp_path_factory.mktemp("process")
    plan = []
    for method, step in FATAL:
        hurt = path / f"{method}-{step}"
        with pytest.raises(KilledError):
            # Leaves the features there, and nothing else.
            find_lists(hurt, undisturbed(method)[0], executor=Frail(0), **OPTIONS[method])
        plan.append((str(hurt), step, OPTIONS[method]))
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", SCRIPT, str(path), json.dumps(plan)],
        cwd=Path(__file__).parents[1] / "helpers",
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
        capture_output=True, text=True, timeout=240,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return {**json.loads(done.stdout), "paths": [Path(hurt) for hurt, *_ in plan]}


@pytest.mark.exhaustive
@pytest.mark.slow
def test_neighbors_stage__goes_on_after_sigkill_in_each_step(undisturbed, other_process):
    assert other_process["ends"] == [-9] * len(FATAL)
    for (method, step), path in zip(FATAL, other_process["paths"], strict=True):
        features, expected, log = undisturbed(method)
        rest = Frail()
        found = find_lists(path, features, executor=rest, **OPTIONS[method])
        assert_same(found, expected)
        assert found.summary == expected.summary
        # The first task of the step is kept, the second was lost.
        first = [name for name, _ in log].index(step)
        assert noted(rest.log) == noted(log[first + (step not in TOGETHER) :])


@pytest.mark.slow
def test_kernels__are_compiled_once_for_dense_and_once_for_sparse_rows(other_process):
    variants = other_process["variants"]
    for loop in ("push_products", "within_products", "refine_lists", "squared_pairs", "route_rows"):
        assert len(variants[loop]) == 2, variants[loop]
    for loop in ("merge_lists", "mark_fresh", "hash_ties", "_hash_dense", "_hash_sparse"):
        assert len(variants[loop]) == 1, variants[loop]
    assert max(len(types) for types in variants.values()) == 2, variants

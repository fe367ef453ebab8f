"""Every value of every key, on small scenes of many chunks, each against what is slow and obvious.

The cells are those of tests/bench/correctness/matrix.py, which runs them on large scenes too. A chunk holds
256 rows here, so that 576 pixels have several of everything that a scene of millions has several of.
"""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from eigenscape.base.memory import CHUNK_VARIABLE, check_chunk_rows
from eigenscape.errors import InputError

pytestmark = pytest.mark.slow

SCRIPT = Path(__file__).parents[1] / "bench" / "correctness" / "matrix.py"


def only(*names: str) -> list[str]:
    """Return the arguments that choose cells by what their names hold."""
    return [part for name in names for part in ("--only", name)]


PARTS = {
    "samples to graph": [
        "--size", "24x24", *only("base", "scene.", "features.", "neighbors.", "graph.", "limits."),
    ],
    "solver": ["--size", "40x40", *only("spectrum.")],
    "learn and pairs": ["--size", "24x24", *only("learn.", "output.", " x ")],
    "tables and few pixels": [
        "--size", "small-table", "--size", "small-sparse", "--size", "100",
        *only("features.method", "features.spatial=", "neighbors.m", "graph.components", "graph.w"),
        *only("learn.method", "apply"),
        *only("graph.potential.kind", "graph.spatial=", "spatial x sparse"),
    ],
    "workers": [
        "--size", "24x24", "--workers",
        *only("base", "neighbors.method=radius", "spatial x smoothing", "learn.method=poisson-mbo"),
    ],
}  # fmt: skip
"""A process for each: what it tries, and where."""


@pytest.fixture
def matrix():
    """Return the script as a module."""
    spec = importlib.util.spec_from_file_location("matrix", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    sys.modules["matrix"] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules["matrix"]


@pytest.mark.long
@pytest.mark.parametrize("every", [pytest.param(1, marks=pytest.mark.exhaustive), 8])
@pytest.mark.parametrize("part", PARTS)
def test_matrix__every_cell_is_right_or_refused(part, every, tmp_path):
    given = [*PARTS[part], "--quick", "--directory", str(tmp_path), "--every", str(every)]
    done = subprocess.run(
        [sys.executable, str(SCRIPT), *given],
        env=os.environ | {CHUNK_VARIABLE: "256", "OPENBLAS_NUM_THREADS": "1"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    found = [json.loads(line) for line in done.stdout.splitlines()]
    wrong = [
        f"{cell['cell']} on {cell['size']}: {cell['verdict']}: {'; '.join(cell['problems'])}"
        for cell in found
        if cell["verdict"] not in ("equal", "refused")
    ]
    assert not wrong, "\n".join(wrong)
    assert done.returncode == 0, done.stderr
    assert found
    over = [cell["cell"] for cell in found if cell.get("peak", 0) > cell.get("limit", 0)]
    assert not over


def test_matrix__has_every_word_of_every_key(matrix):
    values, names = matrix.all_values(), {cell.name for cell in matrix.cells()}
    assert {"scene.mask", "graph.spatial.weight", "learn.method", "limits.memory"} <= set(values)
    for method in ("centroid-angle", "poisson-mbo", "normalized-cut"):
        assert {f"learn.method={method}", f"smoothing x {method}"} <= names
    assert "neighbors.searcher=pynndescent" in names
    assert "graph.potential.relative=true" in names


def test_matrix__a_key_without_a_cell_is_an_error(matrix, monkeypatch):
    monkeypatch.setattr(matrix, "option_keys", lambda: iter([("more.novel", int)]))
    with pytest.raises(LookupError, match=r"more\.novel has no cell"):
        matrix.all_values()


@pytest.mark.parametrize("text", ["", "abc", "-256", "300", "128", "262144"])
def test_chunk_rows__raises_on_what_is_no_power_of_two(monkeypatch, text):
    monkeypatch.setenv(CHUNK_VARIABLE, text)
    with pytest.raises(InputError, match=f"{CHUNK_VARIABLE} = '{text}': give a power of two"):
        check_chunk_rows()


def test_chunk_rows__is_large_by_default(monkeypatch):
    monkeypatch.delenv(CHUNK_VARIABLE, raising=False)
    assert check_chunk_rows() == 131_072

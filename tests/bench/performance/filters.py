"""Filters of features in space: seconds, memory, and the same bits whatever the limits and the workers.

    python tests/bench/performance/filters.py [--method NAME]... [--size HxW]... [--features D] [--threads N]
                                              [--workers] [--option KEY=VALUE]...

Runs the features stage alone on samples that are features already (smooth fields under noise, a tenth of
the pixels missing), each time in a process of its own, under three limits of memory with chunks of
three sizes. Prints one JSON object per line: seconds of the stage and of its processor, the projected
and the largest anonymous memory in MiB, blocks of the step that filters, and a checksum of the features.
With --workers the stage runs on two worker processes as well.
Exit status 1 if one method has two checksums on one scene, or needs more than is projected. The first
process compiles; it is run once more before it counts.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import tomllib
import zlib
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "helpers"))

from eigenscape.base.blocks import task_bytes
from eigenscape.base.memory import CHUNK_VARIABLE, watch
from eigenscape.clusters import ClusterOptions, connect
from eigenscape.features.method import feature_method
from eigenscape.features.spatial.filtering import filter_blocks
from eigenscape.features.spatial.filters import FILTERS, make_filter
from eigenscape.scenes.types import Grid
from eigenscape.workflow.footprint import Sizes
from harness import Harness

SIZES = ("10x10", "200x200", "400x400", "679x944")
LIMITS = (("400MiB", 2**13), ("2GiB", 2**15), ("8GiB", 2**17))
"""Of memory, and rows of a chunk."""


def make_scene(height: int, width: int, features: int) -> tuple[Any, Any]:
    """Return the features of valid pixels, and these pixels."""
    rng = np.random.default_rng(7)
    row, column = np.mgrid[:height, :width].astype(np.float32)
    cube = rng.standard_normal((height, width, features), np.float32)
    for feature in range(features):
        cube[..., feature] += 10 * np.sin(row / (20 + feature)) * np.cos(column / (30 + feature))
    valid = rng.random((height, width)) < 0.9
    return cube[valid], np.flatnonzero(valid)


def run_cell(cell: dict[str, Any]) -> dict[str, Any]:
    """Run the features stage once in this process; return what it took."""
    height, width = map(int, cell["size"].split("x"))
    tables = {
        "features": {"method": "none", "spatial": {"method": cell["method"], **cell["options"]}},
        "limits": {"memory": cell["memory"]},
    }
    harness = Harness(Path(cell["directory"]), **tables)
    values, pixels = make_scene(height, width, cell["features"])
    samples = len(pixels)
    harness.put("ingest", {"samples/pixel": pixels}, grid=Grid(height, width).to_json())
    harness.put("samples", {"samples/values": values})
    del values, pixels
    job, limit = harness.job, harness.job.limits.memory_bytes
    tasks = cell["threads"]
    budget = task_bytes(limit, tasks)
    columns = feature_method(job).columns(cell["features"])
    sizes = Sizes(job, height * width, cell["features"], columns, tasks, budget, None)
    workers = ClusterOptions(kind="local", workers=2, threads_per_worker=1)
    where = connect(workers, None, limit) if cell["workers"] else nullcontext()
    with where as executor, watch() as peak:
        start, busy = time.perf_counter(), time.process_time()
        harness.run("features", executor, threads=tasks)
        seconds, busy = time.perf_counter() - start, time.process_time() - busy
    assert job.features.spatial is not None
    found = make_filter(job.features.spatial)
    return {
        **{key: cell[key] for key in ("method", "size", "features", "memory", "chunk", "workers")},
        "samples": samples,
        "seconds": round(seconds, 2),
        "cpu": round(busy, 2),
        "projected": sizes.features().peak_bytes >> 20,
        "peak": peak.bytes >> 20,
        "blocks": len(filter_blocks(found, samples, cell["features"], budget)),
        "checksum": f"{zlib.crc32(np.ascontiguousarray(harness['features/values'])):08x}",
    }


def run_apart(cell: dict[str, Any]) -> dict[str, Any]:
    """Run a cell in a process of its own, in a directory that vanishes."""
    with tempfile.TemporaryDirectory() as directory:
        given = json.dumps({**cell, "directory": directory})
        command = [sys.executable, __file__, "--cell", given]
        variables = os.environ | {CHUNK_VARIABLE: str(cell["chunk"])}
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=variables)
    if done.returncode:
        raise SystemExit(done.stderr)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    """Print a line for each cell."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--method", action="append", choices=list(FILTERS))
    parser.add_argument("--size", action="append", help=f"{', '.join(SIZES)} by default")
    parser.add_argument("--features", type=int, default=15)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--workers", action="store_true")
    parser.add_argument("--option", action="append", default=[], help="of [features.spatial]")
    parser.add_argument("--cell", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.cell:
        print(json.dumps(run_cell(json.loads(given.cell))))
        return
    options = tomllib.loads("\n".join(given.option))
    wrong = False
    for method in given.method or FILTERS:
        base = {"method": method, "features": given.features, "options": options}
        small = {**base, "size": "10x10", "memory": "2GiB", "chunk": 2**17, "workers": False}
        run_apart({**small, "threads": 1})
        for size in given.size or SIZES:
            cells = [(*limit, False) for limit in LIMITS]
            cells += [(*LIMITS[-1], True)] * given.workers
            sums = set()
            for memory, chunk, workers in cells:
                cell = {**base, "size": size, "memory": memory, "chunk": chunk, "workers": workers}
                found = run_apart({**cell, "threads": 1 if workers else given.threads})
                print(json.dumps(found), flush=True)
                sums.add(found["checksum"])
                wrong |= not workers and found["peak"] > found["projected"]
            wrong |= len(sums) > 1
    raise SystemExit(wrong)


if __name__ == "__main__":
    main()

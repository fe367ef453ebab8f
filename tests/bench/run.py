"""Benchmarks with a memory: this checkout, alone or paired with another revision, as lines of JSON.

    python tests/bench/run.py [NAME]... [--against REVISION] [--rounds N] [--history FILE]
                             [--folder DIR]

Names are those of `BENCHES`; without one all but "large" run. Every figure is a command of its own with
the thesis' protocol, so that both revisions do the same. With ``--against`` the two take turns, the
other one first and last (A B A, or A B A B A with ``--rounds 2``), each from its own tree of files. Figures
of the same revision in one run are what noise looks like; a difference counts as a change when all
figures of one revision lie on one side of all of the other.

Each command appends a line to the history (``bench.jsonl`` in the folder): date, processor, revision,
bench, seconds, seconds of the processor (which say more on a busy machine), and those of each stage, peak
memory, and a digest of the class map. What is printed last compares the revisions.
"""

import argparse
import hashlib
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parents[2]

SCENES = {"small": (145, 145, 110), "scene": (679, 944, 110), "large": (2500, 4000, 110)}
"""Rows, columns and bands of the synthetic scenes."""

MEMORY = {"large": "4GiB"}
"""Limits of memory that are not the default."""

PAIRS = {"pairs-1e-5": 1e-5, "pairs-1e-8": 1e-8}
"""Residuals to which 56 pairs of the graph of "scene" are sought, alone."""

BENCHES = (*SCENES, *PAIRS)

_SOLVE = """
import json, sys, time
import scipy.sparse
import eigenscape
W = scipy.sparse.load_npz(sys.argv[1])
start = time.perf_counter()
found = eigenscape.eigenpairs(W, 55, tolerance=float(sys.argv[2]), solver="chebyshev", threads=2)
seconds = {"solve": round(time.perf_counter() - start, 2)}
print(json.dumps({"stages": seconds, "max_residual": float(found.residuals.max())}))
"""


@dataclass(frozen=True)
class Figure:
    """What one command took."""

    bench: str
    revision: str
    seconds: float
    cpu_seconds: float
    stages: dict[str, float]
    result: dict[str, Any]
    date: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))
    processor: str = field(default_factory=lambda: _processor())
    load: float = field(default_factory=lambda: round(os.getloadavg()[0], 1))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(BENCHES))
    parser.add_argument("--against", metavar="REVISION", help="pair with it, A B A")
    parser.add_argument("--rounds", type=int, default=1, help="turns of this checkout")
    parser.add_argument("--history", type=Path, help="lines of JSON to append to")
    parser.add_argument("--folder", type=Path, help="keep scenes and graph here, for the next time")
    options = parser.parse_args()
    unknown = set(options.names) - set(BENCHES)
    if unknown:
        parser.error(f"no bench {', '.join(sorted(unknown))}: there are {', '.join(BENCHES)}")
    names = options.names or [name for name in BENCHES if name != "large"]
    with tempfile.TemporaryDirectory() as temporary:
        folder = (options.folder or Path(temporary)).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        history = options.history or folder / "bench.jsonl"
        with _tree(options.against, Path(temporary)) as other:
            if other is not None:
                # Its loops are compiled before anything is timed.
                measure("small", other, "", folder)
            for name in names:
                figures = []
                for tree, revision in _turns(other, options.against, options.rounds):
                    figures.append(measure(name, tree, revision, folder))
                    with history.open("a") as lines:
                        lines.write(json.dumps(asdict(figures[-1])) + "\n")
                    print(json.dumps(asdict(figures[-1])), file=sys.stderr)
                print(json.dumps(compare(figures), indent=1))


def measure(name: str, tree: Path, revision: str, folder: Path) -> Figure:
    """Run a bench once with the package of a tree."""
    scene = "scene" if name in PAIRS else name
    path = make_scene(scene, folder)
    if name in PAIRS:
        graph = make_graph(path, folder)
        arguments = ["-c", _SOLVE, str(graph), str(PAIRS[name])]
        seconds, cpu, output = timed(arguments, tree)
        said = json.loads(output.splitlines()[-1])
        return Figure(name, revision, seconds, cpu, said.pop("stages"), said)
    with tempfile.TemporaryDirectory(dir=folder) as runs:
        job = write_job(path, Path(runs))
        arguments = ["-m", "eigenscape", "run", str(job), "--json", "--run-dir", f"{runs}/run"]
        seconds, cpu, output = timed(arguments, tree)
        said = json.loads(output.splitlines()[-1])
        result = {
            "peak_mib": max(stage["peak_bytes"] for stage in said["stages"]) >> 20,
            "recall": said["neighbors"]["recall"],
            "max_residual": said["spectrum"]["max_residual"],
            "map": hashlib.sha256(Path(runs, "run/outputs/class_map.tif").read_bytes()).hexdigest()[
                :12
            ],
        }
    stages = {stage["name"]: stage["seconds"] for stage in said["stages"]}
    stages["outside"] = round(seconds - sum(stages.values()), 2)
    return Figure(name, revision, seconds, cpu, stages, result)


def compare(figures: list[Figure]) -> dict[str, Any]:
    """Return the figures of each revision side by side, and whether they differ beyond noise."""
    by_revision: dict[str, list[Figure]] = {}
    for figure in figures:
        by_revision.setdefault(figure.revision, []).append(figure)
    compared: dict[str, Any] = {"bench": figures[0].bench}
    for revision, of_it in by_revision.items():
        compared[revision] = {
            "seconds": [figure.seconds for figure in of_it],
            "cpu_seconds": [figure.cpu_seconds for figure in of_it],
        }
    if len(by_revision) == 2:
        one, other = by_revision.values()
        for what in ("seconds", "cpu_seconds"):
            before, after = ([getattr(figure, what) for figure in of_it] for of_it in (one, other))
            apart = max(after) < min(before) or min(after) > max(before)
            compared[f"times_as_fast_by_{what}"] = round(median(before) / median(after), 2)
            compared[f"{what}_beyond_noise"] = apart
    return compared


def make_scene(name: str, folder: Path) -> Path:
    """Write the synthetic scene of a bench once, by this checkout."""
    path = folder / f"{name}.tif"
    if not path.exists():
        rows, columns, bands = map(str, SCENES[name])
        size = ["--height", rows, "--width", columns, "--bands", bands]
        timed(["-m", "eigenscape", "synth", str(path), *size], ROOT)
    return path


def make_graph(scene: Path, folder: Path) -> Path:
    """Write the weights of a scene's graph once, by this checkout."""
    path = folder / "weights.npz"
    if not path.exists():
        with tempfile.TemporaryDirectory(dir=folder) as runs:
            job = write_job(scene, Path(runs))
            until = ["--json", "--run-dir", f"{runs}/run"]
            timed(["-m", "eigenscape", "run", str(job), *until], ROOT)
            text = (
                "import scipy.sparse, sys; from eigenscape.spectrum.weights import check_weights; "
                "scipy.sparse.save_npz(sys.argv[2], check_weights('weights', sys.argv[1]))"
            )
            timed(["-c", text, f"{runs}/run", str(path)], ROOT)
    return path


def write_job(scene: Path, folder: Path) -> Path:
    """Write the thesis' protocol for a scene."""
    job = folder / "job.toml"
    job.write_text(
        f'preset = "halevy-2011"\n[scene]\npath = "{scene}"\n'
        f'labels = "{scene.with_name(scene.stem + "_labels.tif")}"\n'
        f'[limits]\nthreads = 2\nmemory = "{MEMORY.get(scene.stem, "2GiB")}"\n'
    )
    return job


def timed(arguments: list[str], tree: Path) -> tuple[float, float, str]:
    """Run Python with the package of a tree; return wall and processor seconds, and what it printed."""
    environment = {**os.environ, "PYTHONPATH": str(tree / "pipeline")}
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    ended = subprocess.run(
        [sys.executable, *arguments], env=environment, cwd=tree, capture_output=True, text=True
    )
    seconds, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    if ended.returncode:
        raise SystemExit(
            f"{arguments} ended with status {ended.returncode}:\n{ended.stderr[-2000:]}"
        )
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return round(seconds, 1), round(cpu, 1), ended.stdout


@contextmanager
def _tree(revision: str | None, folder: Path) -> Iterator[Path | None]:
    """Check another revision out beside this one, and take it away again."""
    if revision is None:
        yield None
        return
    tree = folder / "tree"
    git = ["git", "-C", str(ROOT), "worktree"]
    subprocess.run(
        [*git, "add", "--detach", "--force", str(tree), revision], check=True, capture_output=True
    )
    try:
        yield tree
    finally:
        subprocess.run([*git, "remove", "--force", str(tree)], check=True)


def _turns(other: Path | None, name: str | None, rounds: int) -> Iterator[tuple[Path, str]]:
    here = _revision()
    if other is None:
        yield from [(ROOT, here)] * rounds
        return
    for _ in range(rounds):
        yield other, str(name)
        yield ROOT, here
    yield other, str(name)


def _revision() -> str:
    git = ["git", "-C", str(ROOT)]
    head = subprocess.run(
        [*git, "rev-parse", "--short", "HEAD"], check=True, capture_output=True, text=True
    )
    changed = subprocess.run(
        [*git, "status", "--porcelain"], check=True, capture_output=True, text=True
    )
    return head.stdout.strip() + ("+" if changed.stdout.strip() else "")


def _processor() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    names = {line.partition(":")[2].strip() for line in lines if line.startswith("model name")}
    return f"{', '.join(sorted(names)) or platform.processor()} x {os.cpu_count()}"


if __name__ == "__main__":
    main()

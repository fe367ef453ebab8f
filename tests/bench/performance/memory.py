"""Is `limits.memory` kept, and does `plan` project what is needed?

    python tests/bench/performance/memory.py [--size HxW]... [--threads N]                  every stage
    python tests/bench/performance/memory.py --methods [METHOD ...] [--limit SIZE]...       every way to learn

Both make synthetic scenes and run each job as a command of its own under a limit that is enforced from
outside (`confined.py`: a control group that kills, or a watcher), equal to ``limits.memory``. Prints
one JSON object per line. The first gives projected and recorded peaks of each stage, in MiB, and what
their ratio is. The second gives a line for every method and limit: the largest projected peak, the
largest anonymous memory seen from outside, whether the limit ended it, its status and its seconds;
jobs with the same limit share the stages before learn. Linux only.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import tomlkit

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "helpers"))

from eigenscape.base.memory import parse_bytes
from eigenscape.job.options import REGISTRIES
from machines.confined import run_confined

SIZES = ("40x50", "100x200", "400x400", "679x944")
LIMITS = ("512MiB", "1GiB", "2GiB")
METHODS = REGISTRIES["learn"].names()
TRIALS = 1
"""Draws of training samples: more of them take longer, but no more memory."""


def measure_stages(directory: Path, given: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Yield projected and recorded peaks of each stage of a job with the defaults."""
    for size in given.size or SIZES:
        scene = make_scene(directory, size, given.bands)
        limits = {"memory": (given.limit or ["2GiB"])[0], "threads": given.threads}
        further = {"preset": given.preset} if given.preset else {}
        for line in run_job(directory / size, scene, limits, {"trials": TRIALS}, further):
            yield {"size": size, **line}


def measure_methods(directory: Path, given: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Yield a line for every method and limit."""
    size = (given.size or ["400x400"])[0]
    scene = make_scene(directory, size, given.bands)
    for limit in given.limit or LIMITS:
        for method in given.methods or METHODS:
            limits = {"memory": limit, "threads": given.threads}
            clusters = method in ("spectral-clustering", "normalized-cut")
            learn = {"method": method, **({"clusters": 4} if clusters else {"trials": TRIALS})}
            *_, last = run_job(directory / f"{size}-{limit}", scene, limits, learn)
            yield {"size": size, "limit": limit, "method": method, **last}


def run_job(
    directory: Path,
    scene: Path,
    limits: dict[str, Any],
    learn: dict[str, Any],
    further: dict[str, Any] | None = None,
) -> Iterator[dict[str, Any]]:
    """Run a job under its limit; yield a line for each stage that ran, and one for the whole."""
    directory.mkdir(exist_ok=True)
    job = directory / f"{learn.get('method', 'job')}.toml"
    labels = str(scene.with_name(f"{scene.stem}_labels.tif"))
    table = {
        **(further or {}),
        "scene": {"path": str(scene), "labels": labels},
        "learn": learn,
        "output": {"directory": "runs"},
        "limits": limits,
    }
    job.write_text(tomlkit.dumps(table))
    plan = json.loads(eigenscape("plan", str(job), "--json"))
    projected = {stage["name"]: stage["peak_bytes"] for stage in plan["stages"]}
    command = [sys.executable, "-m", "eigenscape", "run", str(job), "--json"]
    done = run_confined(command, parse_bytes(limits["memory"]))
    ran = []
    if done.status in (0, 3):
        stages = json.loads(done.output.splitlines()[-1])["stages"]
        ran = [stage for stage in stages if not stage["reused"]]
    for stage in ran:
        yield {"stage": stage["name"], **compare(projected[stage["name"]], stage["peak_bytes"])}
    whole = max([projected[stage["name"]] for stage in ran] or projected.values())
    yield {
        **compare(whole, done.peak),
        "way": done.way,
        "killed": done.killed,
        "status": done.status,
        "seconds": round(done.seconds, 1),
        **({} if done.status in (0, 3) else {"said": done.errors.strip().splitlines()[-1:]}),
    }


def compare(projected: int, peak: int) -> dict[str, float]:
    """Return two peaks in MiB, and their ratio."""
    ratio = round(projected / max(peak, 1), 2)
    return {"projected": projected >> 20, "peak": peak >> 20, "ratio": ratio}


def make_scene(directory: Path, size: str, bands: int) -> Path:
    """Make a synthetic scene, with its labels beside it."""
    height, width = size.split("x")
    scene = directory / f"{size}.tif"
    shape = ("--height", height, "--width", width, "--bands", str(bands))
    eigenscape("synth", str(scene), *shape)
    return scene


def eigenscape(*arguments: str) -> str:
    """Run a command without a limit; return what it prints."""
    command = [sys.executable, "-m", "eigenscape", *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def main() -> None:
    """Print a line for each cell."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--methods", nargs="*", choices=METHODS, help="of learn; all by default")
    parser.add_argument("--limit", action="append", help=f"of memory; {', '.join(LIMITS)}")
    parser.add_argument("--size", action="append", help="of the scene, as 400x400")
    parser.add_argument("--preset", help="of the job; methods are chosen by default")
    parser.add_argument("--bands", type=int, default=110)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--directory", type=Path, help="for scenes and runs; a temporary one")
    given = parser.parse_args()
    wrong = 0
    with tempfile.TemporaryDirectory() as temporary:
        directory = (given.directory or Path(temporary)).resolve()
        directory.mkdir(parents=True, exist_ok=True)
        measure = measure_stages if given.methods is None else measure_methods
        for line in measure(directory, given):
            wrong += bool(line.get("killed") or line.get("status"))
            print(json.dumps(line), flush=True)
    raise SystemExit(wrong > 0)


if __name__ == "__main__":
    main()

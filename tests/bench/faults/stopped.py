"""One of two workers is stopped (SIGSTOP) in the midst of a stage: how long does the run take, same bits?

    python tests/bench/faults/stopped.py [--size 679x944] [--stage spectrum] [--after 25] [--directory DIR]

A synthetic scene is run on two worker processes undisturbed. What was there when the stage began is kept,
and the same run goes on from there once more: some seconds into the stage one of the workers is
stopped and never goes on. It prints one JSON object: seconds of the stages and of both runs from the
beginning of that stage, CPU seconds of all processes, what was said, and which files differ.
"""

import argparse
import json
import logging
import os
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil

sys.path.insert(0, str(Path(__file__).resolve().parent))

from damage import content_of

from eigenscape import parse_job, run
from eigenscape.base.process.namedpoints import watched_by
from eigenscape.clusters import ClusterOptions, connect
from eigenscape.datasets.made.synthetic import synthesize

ON = ClusterOptions(kind="local", workers=2)


def timed_run(job: Any, path: Path, executor: Any, begun: Callable[[str], None]) -> dict[str, Any]:
    """Run a job; return the seconds of the stages that ran, and CPU seconds."""
    before = cpu_seconds()

    def hear(point: str, about: str) -> None:
        if point == "stage begins":
            begun(about)

    with watched_by(hear):
        stages = run(job, on=ON, run_dir=path, executor=executor).stages
    seconds = {stage["name"]: stage["seconds"] for stage in stages if not stage["reused"]}
    return {"stages": seconds, "cpu": round(cpu_seconds() - before, 1)}


def cpu_seconds() -> float:
    """Return the CPU seconds of this process and of those that it has started."""
    own = psutil.Process()
    return sum(sum(part.cpu_times()[:2]) for part in (own, *own.children(recursive=True)))


def main() -> None:
    """Run twice; print what came of it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--size", default="679x944")
    parser.add_argument("--stage", default="spectrum")
    parser.add_argument("--after", type=float, default=25.0, help="seconds into the stage")
    parser.add_argument("--directory", type=Path)
    given = parser.parse_args()
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    height, width = map(int, given.size.split("x"))
    if given.directory is not None:
        given.directory.mkdir(parents=True, exist_ok=True)
    said: list[str] = []
    with (
        tempfile.TemporaryDirectory(dir=given.directory) as name,
        connect(ON, 2, 2**30, say=said.append) as executor,
    ):
        directory = Path(name)
        synthesize(directory / "scene.tif", height=height, width=width, bands=15, classes=8, seed=0)
        tables = {
            "preset": "halevy-2011",
            "scene": {"path": "scene.tif", "labels": "scene_labels.tif"},
            "learn": {"train": 0.1, "trials": 1},
            "output": {"formats": []},
            "limits": {"memory": "1GiB"},
        }
        job, times = parse_job(tables, base=directory, name="scene"), {}

        def keep(stage: str) -> None:
            if stage == given.stage:
                shutil.copytree(directory / "calm" / "run", directory / "stopped" / "run")
                times["calm"] = time.monotonic()

        calm = timed_run(job, directory / "calm" / "run", executor, keep)
        calm["seconds"] = round(time.monotonic() - times["calm"], 1)
        said.clear()
        client: Any = executor._client  # type: ignore[attr-defined]
        worker = min(client.run(os.getpid).values())

        def stop(stage: str) -> None:
            if stage == given.stage:
                times["stopped"] = time.monotonic()
                timer = threading.Timer(given.after, os.kill, (worker, signal.SIGSTOP))
                timer.daemon = True
                timer.start()

        stopped = timed_run(job, directory / "stopped" / "run", executor, stop)
        stopped["seconds"] = round(time.monotonic() - times["stopped"], 1)
        own, other = (content_of(directory / part) for part in ("calm", "stopped"))
        differ = sorted(part for part in own | other if own.get(part) != other.get(part))
    print(json.dumps({"calm": calm, "stopped": stopped, "said": said, "differ": differ}))
    raise SystemExit(bool(differ))


if __name__ == "__main__":
    main()

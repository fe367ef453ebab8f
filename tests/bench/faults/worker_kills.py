"""Worker processes that are killed at every named point that they pass: the run goes on, with the same bits.

    python tests/bench/faults/worker_kills.py [--variant NAME]... [--each N] [--together N] [--workers 2]
                                              [--quick]

The variants are those of tests/bench/faults/kills.py: jobs on small scenes, in small chunks. Each runs once
on worker processes undisturbed, and every point that a worker passes is noted: the stage, the step, the
point and what it is about, numbers left out. Then the job runs again, and at a few of these points
(--together) the worker that comes there, and is the first to (with --each 2 also one that comes there later),
ends itself by SIGKILL. The workers are replaced, and the run must end with what the undisturbed one left,
arrays, files and what the stages say of themselves, with nothing beside it. Only where all workers are
lost and none comes in time the run is started again (`resumed`). With --quick each named point is taken
once, in whichever step.
One line for each variant, one JSON object at the end; `failures` tells what was wrong.
"""

import argparse
import hashlib
import json
import logging
import os
import random
import re
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

os.environ["OPENBLAS_NUM_THREADS"] = "1"
os.environ["EIGENSCAPE_CHUNK_ROWS"] = "256"
sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "helpers"))

from damage import content_of
from distributed import WorkerPlugin
from kills import VARIANTS, Event, Trial, summaries

from eigenscape import load_job, run
from eigenscape.base.process.namedpoints import watched_by
from eigenscape.clusters import ClusterOptions, connect
from eigenscape.errors import ClusterLostError
from eigenscape.store.verification import verify

WORKERS_TRIED = ("base", "spatial", "radius", "clustering", "landmarks", "exact", "components",
                 "connected", "rows", "table", "sparse", "pictures")  # fmt: skip
"""Variants whose tasks differ; the others differ in what one process does."""


class Ends(WorkerPlugin):  # type: ignore[misc]
    """In a worker: notes the points that it passes, and ends it at those that have a token.

    A token is a file for each time that the point is yet to be passed, by whichever worker: who takes the
    last one ends.

    Attributes
    ----------
    folder
        Where the tokens are, and the file that says what the driver is at.
    """

    name = "ends"

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def setup(self, worker: Any) -> None:
        """Listen to the points of this process from now on."""
        self.watch = watched_by(self._passed)
        self.watch.__enter__()

    def teardown(self, worker: Any) -> None:
        """Listen no more."""
        self.watch.__exit__(None, None, None)

    def _passed(self, point: str, about: str) -> None:
        with open(f"{self.folder}/now", encoding="utf-8") as stream:
            stage, step, root = json.load(stream)
        about = step if point == "task ends" else about.removeprefix(root)
        event = (f"{stage}/{step}", point, re.sub(r"[0-9a-f]{10,}|\d+", "#", about))
        with open(f"{self.folder}/passed", "a", encoding="utf-8") as stream:
            stream.write(json.dumps(event) + "\n")
        path = f"{self.folder}/{token(event)}"
        for number in range(9, -1, -1):
            try:
                os.unlink(f"{path}.{number}")
            except FileNotFoundError:
                continue
            if number == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return


def token(event: Event) -> str:
    """Return the name of the files of a point's tokens."""
    return hashlib.sha1(json.dumps(event).encode()).hexdigest()


class WorkerTrial:
    """One variant on the workers of one cluster.

    Parameters
    ----------
    name
        Of the variant.
    directory
        For its scene and its runs.
    folder
        That of `Ends`.
    executor
        The workers.
    on
        What they are.
    """

    def __init__(
        self, name: str, directory: Path, folder: Path, executor: Any, on: ClusterOptions
    ) -> None:
        trial = Trial(name, directory)
        self.job, self.directory = load_job(trial.job), trial.directory
        self.folder, self.executor, self.on = folder, executor, on
        self.path, self.resumed = self.directory / "runs" / "run", 0

    def undisturbed(self) -> list[tuple[Event, int]]:
        """Run the job; return every point that a worker passes, and how often."""
        self._run()
        self.whole = self.path.rename(self.directory / "whole")
        lines = (self.folder / "passed").read_text(encoding="utf-8").splitlines()
        counts = Counter(tuple(json.loads(line)) for line in lines)
        return [((stage, point, about), count) for (stage, point, about), count in counts.items()]

    def killed(self, ends: Sequence[tuple[Event, int]]) -> list[str]:
        """Run the job while workers end at some points; return what is wrong."""
        shutil.rmtree(self.path, ignore_errors=True)
        for event, after in ends:
            for number in range(min(after, 9) + 1):
                (self.folder / f"{token(event)}.{number}").touch()
        try:
            try:
                self._run()
            except ClusterLostError:
                # All at once, and none came back in time: the same command goes on.
                self.resumed += 1
                self._run()
        except Exception as error:
            return [f"{type(error).__name__}: {error}"[:800]]
        finally:
            left = list(self.folder.glob("*.[0-9]"))
            for path in left:
                path.unlink()
        problems = [f"{len(left)} tokens are left: nobody was killed there"] if left else []
        own, other = content_of(self.path), content_of(self.whole)
        if own != other:
            names = sorted(name for name in own | other if own.get(name) != other.get(name))
            problems.append(f"other content: {names[:8]}")
        if summaries(self.path) != summaries(self.whole):
            problems.append("other summaries")
        if not (found := verify(self.path))["whole"]:
            problems.append(f"damaged: {found}"[:500])
        kept = [str(path) for path in self.path.rglob("*") if ".tmp-" in path.name]
        kept += map(str, self.path.glob("work/*"))
        return problems + ([f"left: {kept[:5]}"] if kept else [])

    def _run(self) -> None:
        (self.folder / "passed").write_text("")
        with watched_by(self._note):
            run(self.job, on=self.on, run_dir=self.path, executor=self.executor)

    def _note(self, point: str, about: str) -> None:
        """Tell the workers which stage and which step this is."""
        if point not in ("stage begins", "step begins"):
            return
        if point == "stage begins":
            self._stage = about
        step = about if point == "step begins" else ""
        new = self.folder / "new"
        new.write_text(json.dumps([self._stage, step, str(self.path)]))
        new.replace(self.folder / "now")


def chosen(
    groups: Sequence[tuple[Event, int]], each: int, chance: random.Random
) -> list[tuple[Event, int]]:
    """Return at which points workers end, and how often these are passed before."""
    ends = [(group, 0) for group, _ in groups]
    for _ in range(each - 1):
        ends += [
            (group, chance.randrange(1, min(count, 9))) for group, count in groups if count > 1
        ]
    return ends


def parts(ends: Sequence[tuple[Event, int]], together: int) -> Iterator[list[tuple[Event, int]]]:
    """Yield those of one run each: neighbours, which are of one task, in different ones."""
    runs = -(-len(ends) // together)
    for number in range(runs):
        taken: dict[Event, int] = {}
        for event, after in ends[number::runs]:
            taken[event] = max(after, taken.get(event, 0))
        yield list(taken.items())


@contextmanager
def workers(count: int, folder: Path) -> Iterator[tuple[Any, ClusterOptions]]:
    """Start worker processes with `Ends` in them."""
    on = ClusterOptions(kind="local", workers=count)
    (folder / "now").write_text(json.dumps(["", "", ""]))
    with connect(on, count, 2**30) as executor:
        executor._client.register_plugin(Ends(str(folder)))  # type: ignore[attr-defined]
        yield executor, on


def main() -> None:
    """Kill workers in the variants; print one JSON object for each."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--variant", action="append", choices=[*VARIANTS], default=[])
    parser.add_argument("--each", type=int, default=1, help="kills at each of the points")
    parser.add_argument("--together", type=int, default=6, help="kills in one run, at most")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--quick", action="store_true", help="each named point once")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    room = "/dev/shm" if os.path.isdir("/dev/shm") else None
    known: set[Event] = set()
    failures, kills, points = [], 0, set[str]()
    with tempfile.TemporaryDirectory(dir=room) as directory:
        folder = Path(directory, "ends")
        folder.mkdir()
        with workers(given.workers, folder) as (executor, on):
            for name in given.variant or WORKERS_TRIED:
                begin = time.monotonic()
                trial = WorkerTrial(name, Path(directory), folder, executor, on)
                found = trial.undisturbed()
                groups = [(group, count) for group, count in found if group not in known]
                known.update(group for group, _ in groups)
                if given.quick:
                    groups = [*{group[1]: (group, count) for group, count in groups}.values()]
                ends = chosen(groups, given.each, random.Random(given.seed))
                wrong = []
                for part in parts(ends, given.together):
                    print(f"{name}: {[*part]}", file=sys.stderr, flush=True)
                    if problems := trial.killed(part):
                        wrong.append({"variant": name, "at": part, "problems": problems})
                        print(json.dumps(wrong[-1]), file=sys.stderr, flush=True)
                failures += wrong
                kills += len(ends)
                points |= {group[1] for group, _ in groups}
                shutil.rmtree(trial.directory)
                said = {
                    "variant": name, "groups": len(groups), "kills": len(ends),
                    "failures": len(wrong), "resumed": trial.resumed,
                    "points": sorted({group[1] for group, _ in groups}),
                    "seconds": round(time.monotonic() - begin, 1),
                }  # fmt: skip
                print(json.dumps(said), flush=True)
    print(json.dumps({"kills": kills, "failures": failures, "points": sorted(points)}))
    raise SystemExit(len(failures) > 0)


if __name__ == "__main__":
    main()

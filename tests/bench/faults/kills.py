"""Runs that are killed at every named point of every stage: each must end as if nobody had killed it.

    python tests/bench/faults/kills.py [--variant NAME]... [--only TEXT]... [--each N] [--all] [--whole]
                                       [--quick] [--share M/N]

A variant is a job on a small scene, in small chunks. It is run once undisturbed, and every point that it
passes (`base.process.namedpoints`) is noted: the stage, the point, and what it is about (a step, a file),
numbers left out. For each of them that no earlier variant has passed (or for all, with --all) the same
command is given where its stage is about to begin, and killed by SIGKILL at one of the times that it
comes there (--each 2: at the first and the last, and so on); then it is given again.

What was whole before stays: no stage and no block that was noted as finished is computed again, and
`eigenscape verify` finds no damage, before and after. What the second command leaves is what the
undisturbed one left, bit for bit: arrays, files, and what the stages say of themselves. That is looked
at when the stage of the kill is committed and the next one begins; with --whole at the end of the run.
With --quick each named point is taken once, in whichever stage, on a smaller scene.
One line for each variant, one JSON object at the end; `failures` tells what was wrong.

Every command is a fork of this process, which has loaded everything.
"""

import argparse
import gc
import json
import os
import re
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

os.environ["OPENBLAS_NUM_THREADS"] = "1"
os.environ["EIGENSCAPE_CHUNK_ROWS"] = "256"
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "helpers"))

from damage import command, content_of, in_child

from eigenscape.base.process.namedpoints import POINTS, watched_by
from eigenscape.job.jobfile import parse_job
from eigenscape.store.journal import Journal
from eigenscape.store.manifest import read_manifest
from eigenscape.store.verification import verify
from inputs import scenery

BASE: dict[str, Any] = {
    "scene.path": "scene.tif",
    "scene.labels": "labels.tif",
    "features.dimension": 6,
    "neighbors.k": 8,
    "neighbors.leaf_size": 100,
    "spectrum.dimension": 8,
    "spectrum.solver": "chebyshev",
    "learn.train": 0.3,
    "learn.trials": 2,
    "output.formats": ["geotiff"],
    "output.eigenvectors": 2,
    "limits.threads": 1,
    "limits.memory": "1GiB",
}


@dataclass(frozen=True)
class Variant:
    """A job, and what is there before it.

    Attributes
    ----------
    keys
        What it has other than the job of all variants; None for a key that it does not set.
    size
        Scene, of those in tests/helpers/inputs/scenery.py.
    before
        Keys of the job that has run in the same directory before; None for none.
    beside
        The same for a run beside it, whose finished stages it takes over.
    applied
        The run of the job is finished, and the command applies it to its own scene.
    """

    keys: dict[str, Any] = field(default_factory=dict)
    size: str = "40x40"
    before: dict[str, Any] | None = None
    beside: dict[str, Any] | None = None
    applied: bool = False


TABLE = {"scene.path": "table.npy", "scene.labels": "labels.npy"}
SPARSE = {"scene.path": "words.npz", "scene.labels": "labels.npy"}
NO_TRAINING = {"learn.train": None, "learn.trials": None}
VARIANTS: dict[str, Variant] = {
    "base": Variant(),
    "spatial": Variant({
        "graph.spatial": {}, "learn.method": "poisson", "learn.smoothing": 2.0, "learn.queries": 3,
    }),
    "radius": Variant({
        "neighbors.method": "radius", "neighbors.radius": "$many", "features.method": "none",
        "features.dimension": None, "graph.components": "largest", "learn.method": "eigenfunctions",
    }),
    "potential": Variant({
        "graph.potential": {"labels": "all", "kind": "identification"}, "learn.method": "tikhonov",
        "features.method": "mnf",
    }),
    "barrier": Variant({
        "graph.potential": {"pixels": [[1, 2], [3, 4]]}, "learn.method": "interpolated",
        "learn.prior": "uniform", "graph.laplacian": "random-walk",
    }),
    "clustering": Variant({"learn.method": "spectral-clustering", **NO_TRAINING}),
    "cuts": Variant({"learn.method": "normalized-cut", "learn.clusters": 4, **NO_TRAINING}),
    "landmarks": Variant({
        "neighbors.method": "landmarks", "neighbors.landmarks": 300, "neighbors.leaf_size": None,
    }),
    "exact": Variant({
        "neighbors.method": "exact", "features.method": "pca", "features.standardize": True,
        "spectrum.solver": "shift-invert", "learn.method": "k-nn",
    }),
    "components": Variant({
        "neighbors.k": 2, "graph.components": "each", "spectrum.solver": "lobpcg",
        "learn.method": "geodesic-nn",
    }),
    "connected": Variant({
        "neighbors.k": 2, "neighbors.recall": 0.95, "spectrum.solver": "lanczos",
        "learn.method": "poisson-mbo", "graph.weights": "heat",
    }),
    "precise": Variant({"spectrum.tolerance": 1e-8, "spectrum.dimension": 20, "learn.train": "all"}),
    "rows": Variant({"limits.layout": "rows", "spectrum.dimension": 12}),
    "table": Variant({**TABLE, "learn.method": "poisson"}, "small-table"),
    "sparse": Variant(
        {**SPARSE, "features.method": "none", "features.dimension": None, "neighbors.metric": "angle"},
        "small-sparse",
    ),
    "pictures": Variant({"output.formats": ["geotiff", "png"]}),
    "replaced": Variant({"neighbors.k": 9}, before={"neighbors.k": 8}),
    "linked": Variant({"learn.train": 0.2}, beside={}),
    "small": Variant({"neighbors.leaf_size": 48, "learn.method": "poisson"}, "24x24"),
    "small-linked": Variant({"learn.train": 0.2}, "24x24", beside={}),
    "applied": Variant({}, applied=True),
    "applied-radius": Variant({
        "neighbors.method": "radius", "neighbors.radius": "$few", "features.method": "none",
        "features.dimension": None, "learn.method": "interpolated",
    }, applied=True),
    "applied-sparse": Variant({**SPARSE, "learn.method": "eigenfunctions"}, "small-sparse", applied=True),
}  # fmt: skip

Event = tuple[str, str, str]
"""Stage, point, and what the point is about."""


class FarEnough(BaseException):
    """What is to be looked at has happened."""


class Watch:
    """Notes the points that a command passes, and kills it at one of them.

    Parameters
    ----------
    root
        Directory below which files are named.
    end
        Group and number, from 0, of the event at which the process ends.
    keep
        Where to copy the directory to when a stage begins.
    until
        Stage whose beginning is far enough; "" for none.
    """

    def __init__(
        self,
        root: Path,
        end: tuple[Event, int] | None = None,
        keep: Path | None = None,
        until: str = "",
    ) -> None:
        self.root, self.events, self.keep, self.until = str(root), list[Event](), keep, until
        self._left = {} if end is None else {end[0]: end[1]}
        self._stage, self._step = "", ""

    def __call__(self, point: str, about: str) -> None:
        if point == "stage begins":
            self._stage, self._step = about, ""
            if about == self.until:
                raise FarEnough
            if self.keep is not None:
                shutil.copytree(self.root, self.keep / about / "run")
        if point == "step begins":
            self._step = about
        if point == "task ends":
            about = self._step
        event = (self._stage, point, about.removeprefix(self.root))
        group = group_of(event)
        if group in self._left:
            if not self._left[group]:
                os.kill(os.getpid(), signal.SIGKILL)
            self._left[group] -= 1
        self.events.append(event)
        if point == "stage committed":
            self._stage = ""


def group_of(event: Event) -> Event:
    """Return an event without the numbers and keys in its names."""
    stage, point, about = event
    return stage, point, re.sub(r"[0-9a-f]{10,}|\d+", "#", about)


class Trial:
    """One variant: what it comes to undisturbed, and after a kill at each point."""

    def __init__(self, name: str, directory: Path, *, threads: int = 1) -> None:
        self.variant, self.directory = VARIANTS[name], directory / name
        self.told = directory / "told"
        scene = scenery.make(self.variant.size, self.directory)
        self.threads = threads
        self.job = self._write_job("job", self.variant.keys, scene)
        # What is there before the command: copied before each.
        self.given = self.directory / "given"
        self.given.mkdir()
        self.path = self.directory / "runs" / "run"
        if self.variant.before is not None:
            old = self._write_job("job", self.variant.keys | self.variant.before, scene, "old")
            self._must("run", old, "--run-dir", self.given / "run")
        if self.variant.beside is not None:
            old = self._write_job("job", self.variant.keys | self.variant.beside, scene, "old")
            self._must("run", old, "--run-dir", self.given / "beside")
        self.command: tuple[object, ...] = ("run", self.job, "--run-dir", self.path)
        if self.variant.applied:
            self._must("run", self.job, "--run-dir", self.directory / "trained")
            other = self.directory / str(self.variant.keys.get("scene.path", "scene.tif"))
            given = ("--scene", other, "--run-dir", self.path)
            self.command = ("apply", self.directory / "trained", *given)

    def _write_job(
        self, name: str, keys: dict[str, Any], scene: scenery.Scene, folder: str = "."
    ) -> Path:
        tables: dict[str, Any] = {}
        given = {**BASE, **keys, "limits.threads": self.threads}
        for key, value in given.items():
            if value is not None:
                section, _, last = key.partition(".")
                value = scene.radii.get(value, value) if isinstance(value, str) else value
                tables.setdefault(section, {})[last] = value
        for key in ("path", "labels"):
            tables["scene"][key] = str(self.directory / tables["scene"][key])
        path = self.directory / folder / f"{name}.toml"
        path.parent.mkdir(exist_ok=True)
        path.write_text(parse_job(tables, name=name).to_toml())
        return path

    def _must(self, *arguments: object) -> None:
        status, told = in_child(lambda: command(*arguments), self.told)
        assert status == 0, told

    def undisturbed(self) -> list[tuple[Event, int]]:
        """Run the variant; return every group of points with the number of times it comes there."""
        self._renew()
        status, told, events = self._watched(keep=self.directory / "stages")
        assert status == 0, told
        self.whole = self.directory / "whole"
        self.path.rename(self.whole)
        self.stages = [about for _, point, about in events if point == "stage begins"]
        counts: dict[Event, int] = {}
        for event in events:
            counts[group_of(event)] = counts.get(group_of(event), 0) + 1
        return list(counts.items())

    def killed(self, group: Event, number: int, *, whole: bool = False) -> list[str]:
        """Kill the command at a point, give it again; return what is wrong.

        Parameters
        ----------
        group, number
            The point, and which time it is reached.
        whole
            Let the second command go to its end, not only to the beginning of the next stage.
        """
        following = ["", *self.stages, ""][["", *self.stages].index(group[0]) + 1]
        until = "" if whole else following
        expected = self.directory / "stages" / until / "run" if until else self.whole
        self._renew(group[0])
        status, told, _ = self._watched((group, number))
        if status != -signal.SIGKILL:
            return [f"not killed: status {status}: {told[-600:]}"]
        problems = []
        before = self._finished()
        blocks = {work.name.partition("-")[0]: set(Journal(work).blocks) for work in self._works()}
        if (self.path / "manifest.json").exists() and not verify(self.path)["whole"]:
            problems.append(f"damaged after the kill: {verify(self.path)}"[:500])
        status, told, events = self._watched(until=until)
        if status != 0:
            return [*problems, f"status {status}: {told[-1500:]}"]
        if "damaged" in told or "Traceback" in told:
            problems.append(told[-600:])
        again = {about for _, point, about in events if point == "stage begins"} & before
        twice = {
            (stage, about) for stage, point, about in events
            if point == "block returned" and about in blocks.get(stage, ())
        }  # fmt: skip
        problems += [f"computed again: {sorted(again or twice)[:5]}"] if again or twice else []
        own, other = content_of(self.path), content_of(expected)
        if own != other:
            names = sorted(name for name in own | other if own.get(name) != other.get(name))
            problems.append(f"other content: {names[:8]}")
        if summaries(self.path) != summaries(expected):
            problems.append("other summaries")
        if not (found := verify(self.path))["whole"]:
            problems.append(f"damaged: {found}"[:500])
        left = [str(path) for path in self.path.rglob("*") if ".tmp-" in path.name]
        works = [sorted(path.glob("work/*")) for path in (self.path, expected)]
        if left or len(works[0]) != len(works[1]):
            problems.append(f"left: {left or works[0]}")
        return problems

    def _renew(self, stage: str = "") -> None:
        """Put what was there before the command into place, or when one of its stages began."""
        shutil.rmtree(self.path.parent, ignore_errors=True)
        shutil.copytree(self.given, self.path.parent)
        if stage:
            shutil.rmtree(self.path, ignore_errors=True)
            shutil.copytree(self.directory / "stages" / stage / "run", self.path)

    def _watched(
        self, end: tuple[Event, int] | None = None, keep: Path | None = None, until: str = ""
    ) -> tuple[int, str, list[Event]]:
        """Give the command; return its status, what it said, and the points that it passed."""
        noted = self.directory / "events.json"
        noted.unlink(missing_ok=True)

        def work() -> int:
            watch, status = Watch(self.path, end, keep, until), 0
            with watched_by(watch), suppress(FarEnough):
                status = command(*self.command)
            noted.write_text(json.dumps(watch.events))
            return status

        status, told = in_child(work, self.told)
        events = json.loads(noted.read_text()) if noted.exists() else []
        return status, told, [(stage, point, about) for stage, point, about in events]

    def _works(self) -> Iterator[Path]:
        """Yield the workspaces that the next command takes up."""
        for work in self.path.glob("work/*-*"):
            if not work.name.endswith(".discarded") and not (work / "COMMIT").exists():
                yield work

    def _finished(self) -> set[str]:
        """Return the stages whose results are to stay."""
        wanted = {name: entry["key"] for name, entry in read_manifest(self.whole)["stages"].items()}
        entries = read_manifest(self.path)["stages"]
        there = {name for name, entry in entries.items() if entry["key"] == wanted[name]}
        commits = self.path.glob("work/*/COMMIT")
        return there | {file.parent.name.partition("-")[0] for file in commits}


def summaries(path: Path) -> dict[str, Any]:
    """Return what the stages say of themselves, and the sums of their files."""
    stages = read_manifest(path)["stages"]
    return {name: (entry["summary"], entry["sums"]) for name, entry in stages.items()}


def chosen(groups: list[tuple[Event, int]], each: int) -> Iterator[tuple[Event, int]]:
    """Yield at which events to kill: of every group the first, the last, and some between."""
    for group, count in groups:
        numbers = {round(part * (count - 1) / max(1, each - 1)) for part in range(each)}
        yield from ((group, number) for number in sorted(numbers))


def spread(groups: list[tuple[Event, int]]) -> Iterator[tuple[Event, int]]:
    """Yield one event for each named point, in the stage that had the fewest so far."""
    had: dict[str, int] = {}
    for point in POINTS:
        here = [(group, count) for group, count in groups if group[1] == point]
        stage = min((group[0] for group, _ in here), key=lambda name: had.get(name, 0), default="")
        of_stage = [(group, count) for group, count in here if group[0] == stage]
        if of_stage:
            group, count = of_stage[len(of_stage) // 2]
            had[stage] = had.get(stage, 0) + 1
            yield group, count // 2


@contextmanager
def warm(name: str, directory: Path) -> Iterator[None]:
    """Load what the commands need into this process, by giving one: that of a variant."""
    trial = Trial(name, directory / "warm")
    command("run", trial.job, "--run-dir", trial.path)
    # What is loaded by now stays: every stage looks through what may be freed.
    gc.collect()
    gc.freeze()
    yield


def try_variant(
    name: str,
    directory: Path,
    choose: Callable[[list[tuple[Event, int]]], Any],
    threads: int,
    *,
    whole: bool,
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Kill a variant at the chosen points; return counts, and what was wrong."""
    begin, failures = time.monotonic(), []
    trial = Trial(name, directory, threads=threads)
    groups = trial.undisturbed()
    kills_of = choose(groups)
    for done, (group, number) in enumerate(kills_of):
        print(f"{name} {done}/{len(kills_of)}", file=sys.stderr, flush=True)
        if problems := trial.killed(group, number, whole=whole):
            failures.append({"variant": name, "at": [*group, number], "problems": problems})
            print(json.dumps(failures[-1]), file=sys.stderr, flush=True)
    shutil.rmtree(trial.directory)
    said = {
        "variant": name, "groups": len(groups), "kills": len(kills_of), "failures": len(failures),
        "points": sorted({group[1] for group, _ in kills_of}),
        "stages": list(dict.fromkeys(group[0] for group, _ in kills_of)),
        "seconds": round(time.monotonic() - begin, 1),
    }  # fmt: skip
    print(json.dumps(said), flush=True)
    return said, failures


def main() -> None:
    """Kill the variants; print one JSON object for each."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--variant", action="append", choices=[*VARIANTS], default=[])
    parser.add_argument("--only", action="append", default=[], help="stage, point or step has it")
    parser.add_argument("--each", type=int, default=2, help="kills at each of the points")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--all", action="store_true", help="what earlier variants had, too")
    parser.add_argument("--whole", action="store_true", help="every second command to its end")
    parser.add_argument("--quick", action="store_true", help="each point once")
    parser.add_argument("--share", default="1/1", help="M/N: the M-th of N kills, and so on")
    given = parser.parse_args()
    part, parts = map(int, given.share.split("/"))
    known: set[Event] = set()

    def choose(groups: list[tuple[Event, int]]) -> Any:
        new = [
            (group, count) for group, count in groups
            if (given.all or group not in known)
            and (not given.only or any(text in " ".join(group) for text in given.only))
        ]  # fmt: skip
        known.update(group for group, _ in groups)
        if given.quick:
            return list(spread(new))
        return list(chosen(new, given.each))[part - 1 :: parts]

    # In memory where there is room: commits wait for the disk.
    room = "/dev/shm" if os.path.isdir("/dev/shm") else None
    failures, points, kills = [], set[str](), 0
    names = given.variant or [*VARIANTS]
    with tempfile.TemporaryDirectory(dir=room) as directory, warm(names[0], Path(directory)):
        for name in names:
            said, wrong = try_variant(
                name, Path(directory), choose, given.threads, whole=given.whole
            )
            failures += wrong
            points |= {*said["points"]}
            kills += said["kills"]
    left = sorted({*POINTS} - points)
    print(json.dumps({"kills": kills, "failures": failures, "points without a kill": left}))
    raise SystemExit(len(failures) > 0)


if __name__ == "__main__":
    main()

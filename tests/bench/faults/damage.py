"""Random damage to run directories: each must end in the same map, or be refused in a sentence.

    python tests/bench/faults/damage.py [--damages 200] [--seed 0] [--method poisson]

A small scene is run once, in small blocks, and its run directory is copied at many moments: after
blocks of every stage, in the midst of every commit, between the stages, and at the end. Each damage takes
one of the copies and one of its files (flips a bit, sets a part to zeros, truncates, deletes, or puts the
file of another run or another file in its place), gives the same command again in a process of its own,
and compares everything with the run that nobody touched, bit for bit. It prints one JSON object;
`failures` tells what was wrong, or ended with a traceback.
"""

import argparse
import json
import os
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ["OPENBLAS_NUM_THREADS"] = "1"

KINDS = ("flip", "zero", "truncate", "delete", "swap")
AREAS = ("store.zarr", "work", "outputs", "")
JOB = """\
[scene]
path = "{scene}.tif"
labels = "{scene}_labels.tif"
[neighbors]
k = 8
leaf_size = 64
{spatial}
[spectrum]
dimension = 30
solver = "chebyshev"
tolerance = 1e-7
[learn]
method = "{method}"
train = 0.3
trials = 2
[output]
formats = ["geotiff"]
[limits]
threads = 1
"""
SMALL = {
    "base.memory.ROW_TILE": 128,
    "store.arrays.ROW_TILE": 256,
    "store.arrays._CHUNK_ROWS": 256,
    "neighbors.kernels.partition.LEAST_PART": 400,
    "neighbors.search.bisection.MOST_RANKS": 256,
    "graph.stage._BLOCK_ENTRIES": 2**12,
    "spectrum.iteration.subspace.DENSE_ROWS": 100,
    "spectrum.iteration.solvers.DENSE_ROWS": 100,
}
"""Sizes in which a small scene has several chunks, blocks and parts, and coarse levels."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--damages", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--method", default="poisson")
    parser.add_argument("--spatial", action="store_true", help="with edges between pixels")
    parser.add_argument("--size", type=int, default=44, help="pixels along each side")
    parser.add_argument("--moments", type=int, default=60)
    arguments = parser.parse_args()
    make_small()
    # In memory where there is room: commits wait for the disk.
    room = "/dev/shm" if os.path.isdir("/dev/shm") else None
    with tempfile.TemporaryDirectory(dir=room) as directory:
        found = Trial(Path(directory), arguments).run()
    print(json.dumps(found, indent=1))


def make_small() -> None:
    """Load everything that a run needs, once, and let it work in small blocks."""
    import importlib

    import eigenscape.cli.app
    import eigenscape.workflow.spine  # noqa: F401

    for name, value in SMALL.items():
        module, _, constant = name.rpartition(".")
        setattr(importlib.import_module(f"eigenscape.{module}"), constant, value)


class Trial:
    """One scene, copies of its run, and what becomes of them."""

    def __init__(self, directory: Path, arguments: Any) -> None:
        self.directory, self.arguments = directory, arguments
        self.random = random.Random(arguments.seed)
        self.job = directory / "scene.toml"
        self.spatial = "[graph.spatial]" if arguments.spatial else ""

    def run(self) -> dict[str, Any]:
        """Damage, run, compare; return the counts."""
        begin = time.monotonic()
        for number, scene in enumerate(("scene", "other")):
            self._write_scene(scene, number)
        moments = self.directory / "moments"
        # Every trial is where the run was: what an unfinished stage has done does not move.
        path = self._keep_moments("scene", moments)
        whole = path.rename(self.directory / "whole")
        self._keep_moments("other", self.directory / "others")
        # The same number from every stage: most blocks belong to few of them.
        chosen = self._choose(sorted(moments.iterdir()))
        counts: Counter[str] = Counter()
        areas: dict[str, Counter[str]] = {area or "run": Counter() for area in AREAS}
        failures = []
        for number in range(self.arguments.damages):
            moment = chosen[number % len(chosen)]
            what, outcome, told = self._try(number, moment, whole)
            print(number, outcome, *what.values(), file=sys.stderr, flush=True)
            counts[outcome] += 1
            areas[what["area"]][outcome] += 1
            if outcome not in ("same", "refused"):
                failures.append({**what, "outcome": outcome, "told": told[-1500:]})
        return {
            "damages": self.arguments.damages,
            "seed": self.arguments.seed,
            "method": self.arguments.method,
            "moments": len(chosen),
            **{name: counts[name] for name in ("same", "refused", "wrong", "traceback", "missed")},
            "by_area": areas,
            "seconds": round(time.monotonic() - begin, 1),
            "failures": failures,
        }

    def _write_scene(self, name: str, seed: int) -> None:
        from eigenscape.datasets.made.synthetic import synthesize

        path = self.directory / f"{name}.tif"
        size = self.arguments.size
        synthesize(path, height=size, width=size, bands=12, classes=5, seed=seed)
        text = JOB.format(scene=name, method=self.arguments.method, spatial=self.spatial)
        (self.directory / f"{name}.toml").write_text(text)

    def _keep_moments(self, name: str, moments: Path) -> Path:
        """Run a scene, and copy its directory whenever something has happened to it."""
        path = self.directory / name / "run"

        def work() -> int:
            import eigenscape
            from eigenscape.store import run as store

            moments.mkdir()
            stage = ["begin"]
            count = iter(range(10**6))

            def keep(what: str) -> None:
                if path.exists():
                    target = moments / f"{next(count):05d}-{stage[0]}-{what}" / "run"
                    shutil.copytree(path, target)

            class Watching:
                def stage(self, name: str, text: str) -> None:
                    stage[0] = name
                    keep("between")

                def begin(self, label: str, total: int, done: int) -> None:
                    keep("step")

                def advance(self) -> None:
                    keep("block")

                def end(self) -> None:
                    pass

                def note(self, text: str) -> None:
                    pass

            move = store.move

            def keeping_move(source: Path, target: Path) -> None:
                keep("commit")
                move(source, target)

            store.move = keeping_move
            job = eigenscape.load_job(self.directory / f"{name}.toml")
            eigenscape.run(job, run_dir=path, reporter=Watching())
            stage[0] = "finished"
            keep("all")
            return 0

        status, told = in_child(work, self.directory / "told")
        assert status == 0, told
        return path

    def _choose(self, moments: list[Path]) -> list[Path]:
        """Return moments of every kind, as many of each as there are."""
        kinds: dict[str, list[Path]] = {}
        for moment in moments:
            kinds.setdefault(moment.name[6:], []).append(moment)
        chosen = []
        while kinds and len(chosen) < self.arguments.moments:
            for kind in list(kinds):
                chosen.append(kinds[kind].pop(self.random.randrange(len(kinds[kind]))))
                if not kinds[kind]:
                    del kinds[kind]
        self.random.shuffle(chosen)
        return chosen

    def _try(self, number: int, moment: Path, whole: Path) -> tuple[dict[str, str], str, str]:
        path = self.directory / "scene" / "run"
        shutil.copytree(moment / "run", path)
        files = [file for file in sorted(path.rglob("*")) if file.is_file()]
        by_area: dict[str, list[Path]] = {}
        for file in files:
            area = file.relative_to(path).parts[0]
            by_area.setdefault(area if area in AREAS else "run", []).append(file)
        area = self.random.choice(sorted(by_area))
        file = self.random.choice(by_area[area])
        kind = self.random.choice(KINDS)
        others = sorted((self.directory / "others").iterdir())
        damage(file, kind, self.random, path, others)
        what = {
            "number": str(number), "moment": moment.name, "area": area, "kind": kind,
            "file": str(file.relative_to(path)),
        }  # fmt: skip
        changed = not same_bytes(file, moment / "run" / file.relative_to(path))
        checked, _ = in_child(lambda: command("verify", path), self.directory / "told")
        status, told = in_child(
            lambda: command("run", self.job, "--run-dir", path, "--json"), self.directory / "told"
        )
        outcome = judge(status, told, path, whole)
        committed = area in ("store.zarr", "outputs") or file.name in ("manifest.json", "job.toml")
        if (
            outcome == "same"
            and changed
            and committed
            and checked == 0
            and "commit" not in moment.name
        ):
            outcome, told = "missed", "eigenscape verify found nothing"
        if (
            outcome == "same"
            and in_child(lambda: command("verify", path), self.directory / "told")[0]
        ):
            outcome, told = "wrong", "eigenscape verify finds damage after the run"
        shutil.rmtree(path)
        return what, outcome, told


def damage(file: Path, kind: str, chance: random.Random, run: Path, others: list[Path]) -> None:
    """Damage one file of a run directory; `others` are the moments of another run."""
    content = bytearray(file.read_bytes())
    if kind == "delete" or not content:
        file.unlink()
        return
    if kind == "flip":
        content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
    elif kind == "zero":
        first = chance.randrange(len(content))
        stop = chance.randint(first + 1, len(content))
        content[first:stop] = bytes(stop - first)
    elif kind == "truncate":
        del content[chance.randrange(len(content)) :]
    else:
        name = file.relative_to(run)
        twins = [moment / "run" / name for moment in others if (moment / "run" / name).exists()]
        if not twins:
            # Keys differ between runs: the same file of the same stage.
            twins = [
                twin for moment in others for twin in (moment / "run").rglob(file.name)
                if twin.is_file()
            ]  # fmt: skip
        rest = [other for other in sorted(run.rglob("*")) if other.is_file() and other != file]
        content = bytearray(chance.choice(twins or rest).read_bytes())
    # In place: an array that is shared by links is damaged for both.
    with file.open("r+b") as stream:
        stream.write(content)
        stream.truncate()


def judge(status: int, told: str, path: Path, whole: Path) -> str:
    """Return what became of a run: "same", "refused", "wrong" or "traceback"."""
    if "Traceback" in told or status < 0:
        return "traceback"
    if status:
        return "refused" if "eigenscape: " in told else "traceback"
    return "same" if content_of(path) == content_of(whole) else "wrong"


def content_of(path: Path) -> dict[str, bytes]:
    """Return every committed file but the report, which says how long the run took."""
    return {
        str(file.relative_to(path)): file.read_bytes()
        for folder in ("store.zarr", "outputs") for file in sorted((path / folder).rglob("*"))
        if file.is_file() and file.name != "report.html"
    }  # fmt: skip


def same_bytes(one: Path, other: Path) -> bool:
    return one.exists() and one.read_bytes() == other.read_bytes()


def command(*arguments: object) -> int:
    """Give a command as in a shell; return its exit status."""
    from eigenscape.cli.app import main as eigenscape_main

    sys.argv = ["eigenscape", *map(str, arguments)]
    try:
        eigenscape_main()
    except SystemExit as end:
        return int(end.code or 0)
    return 0


def in_child(work: Callable[[], int], told: Path) -> tuple[int, str]:
    """Work in a child process; return its exit status, negative for a signal, and what it said.

    A fork of this process, which has loaded everything and has started no thread.
    """
    sys.stdout.flush()
    child = os.fork()
    if not child:
        status = 99
        try:
            descriptor = os.open(told, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(descriptor, 1)
            os.dup2(descriptor, 2)
            status = work()
        except BaseException:
            import traceback

            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status), told.read_text(errors="replace")


if __name__ == "__main__":
    main()

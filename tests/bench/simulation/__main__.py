"""A simulated cluster: seconds of a run on 2, 8 and 50 workers, predicted from recordings on one core.

    python tests/bench/simulation FOLDER record [NAME]...
    python tests/bench/simulation FOLDER costs
    python tests/bench/simulation FOLDER measure [--layout LAYOUT] [--rounds N]
    python tests/bench/simulation FOLDER check
    python tests/bench/simulation FOLDER curves

``record`` runs the job of the bench (preset "halevy-2011", k = 15, 56 pairs) on synthetic scenes, a task at a
time, and writes what each took into FOLDER; ``costs`` measures what a task on a worker process takes beside
its work; ``measure`` runs the job on two worker processes of this machine. ``check`` holds the prediction
against what was measured, and ``curves`` predicts clusters and scenes that are not here. Both print
Markdown tables. See pipeline/docs/performance/scaling.md.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from calibration import Costs, measure_costs
from growth import Recordings
from measuring import Measured, measure
from model import Cluster, moved, stage_seconds
from recording import Batch, Recording, record

import eigenscape
from eigenscape.base.memory import parse_bytes

SCENES = {"20k": (145, 145), "160k": (400, 400), "640k": (679, 944), "2560k": (1600, 1600)}
"""Rows and columns of the synthetic scenes, all of 110 bands."""

MEMORY = "2GiB"
"""``limits.memory`` of the recordings."""

WORKER_MEMORY = "16GiB"
"""``limits.memory`` from which the filter of other clusters is laid out."""

NEIGHBORS = 15

LINK, FILES = 1.25e9, 5e9
"""Assumed bytes a second: of a worker's network (10 Gbit/s), and of a file system that all share."""

ROWS, WORKERS = (10**7, 10**8, 10**9), (2, 8, 50)


@dataclass(frozen=True)
class Take:
    """One recording: scene, width, and layout of the filter."""

    scene: str
    width: int = 2
    layout: str = "columns"


TAKES = {
    "cold": Take("20k"),
    "warm": Take("20k"),
    "small": Take("640k"),
    "large": Take("2560k"),
    "parts-2": Take("640k", 2, "rows"),
    "parts-8": Take("640k", 8, "rows"),
    "parts-50": Take("640k", 50, "rows"),
}
"""The recordings. "cold" loads and compiles everything, and "warm" follows it in the same process."""


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    verbs = parser.add_subparsers(dest="verb", required=True)
    verbs.add_parser("record").add_argument("names", nargs="*", help=", ".join(TAKES))
    verbs.add_parser("costs")
    measuring = verbs.add_parser("measure")
    measuring.add_argument("--layout", default="columns")
    measuring.add_argument("--rounds", type=int, default=1)
    verbs.add_parser("check")
    verbs.add_parser("curves")
    given = parser.parse_args()
    folder = given.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    match given.verb:
        case "record":
            for name in given.names or TAKES:
                make(folder, name)
        case "costs":
            (folder / "costs.json").write_text(json.dumps(asdict(measure_costs())))
        case "measure":
            for _ in range(given.rounds):
                measure_once(folder, given.layout)
        case "check":
            print("\n".join(check(folder)))
        case "curves":
            print("\n".join(curves(folder)))


def make(folder: Path, name: str) -> None:
    """Write a recording, if it is not there."""
    take, path = TAKES[name], folder / f"{name}.json"
    if path.exists():
        return
    if name == "warm":
        # It follows "cold" in the same process.
        (folder / "cold.json").unlink(missing_ok=True)
        make(folder, "cold")
    directory = folder / f"run-{name}"
    shutil.rmtree(directory, ignore_errors=True)
    made = record(job_of(folder, take), directory, take.width)
    shutil.rmtree(directory)
    made.save(path)


def job_of(folder: Path, take: Take) -> eigenscape.Job:
    """Return the job of the bench for a scene, which is made if it is not there."""
    scene = folder / f"{take.scene}.tif"
    if not scene.exists():
        height, width = map(str, SCENES[take.scene])
        size = ["--height", height, "--width", width, "--bands", "110"]
        subprocess.run([sys.executable, "-m", "eigenscape", "synth", str(scene), *size], check=True)
    tables = {
        "preset": "halevy-2011",
        "scene": {"path": str(scene), "labels": str(folder / f"{take.scene}_labels.tif")},
        "neighbors": {"k": NEIGHBORS},
        "limits": {"memory": MEMORY, "layout": take.layout},
    }
    return eigenscape.parse_job(tables, name="simulated")


def measure_once(folder: Path, layout: str) -> None:
    """Measure a run on two worker processes, and append it to what was measured."""
    directory = folder / f"run-measured-{os.getpid()}"
    shutil.rmtree(directory, ignore_errors=True)
    stages = measure(job_of(folder, replace(TAKES["small"], layout=layout)), directory, 2)
    shutil.rmtree(directory)
    line = {"layout": layout, "load": os.getloadavg()[0], "stages": list(map(asdict, stages))}
    with (folder / "measured.jsonl").open("a") as lines:
        lines.write(json.dumps(line) + "\n")


def here(folder: Path) -> Cluster:
    """Return the two worker processes of `measure`, on this machine."""
    costs = costs_of(folder)
    return Cluster(
        2, driver_s=costs.driver_s, worker_s=costs.worker_s, delay=costs.delay, one_machine=True,
        cores=len(os.sched_getaffinity(0)) - costs.idle, loads=loads(folder),
    )  # fmt: skip


def loads(folder: Path) -> dict[str, float]:
    """Return what a process takes in each stage to import and to load compiled functions."""
    cold, warm = (processor_seconds(load(folder, name).batches) for name in ("cold", "warm"))
    return {stage: max(0.0, cold[stage] - warm[stage]) for stage in cold}


def processor_seconds(batches: Iterable[Batch]) -> dict[str, float]:
    """Return the seconds of the processor of every stage, of driver and tasks."""
    found: dict[str, float] = {}
    for batch in batches:
        tasks = sum(task.seconds + task.driver for task in batch.tasks)
        found[batch.stage] = found.get(batch.stage, 0.0) + batch.before + tasks
    return found


def load(folder: Path, name: str) -> Recording:
    """Return a recording."""
    return Recording.load(folder / f"{name}.json")


def check(folder: Path) -> Iterable[str]:
    """Yield a table for each layout: predicted and measured seconds of every stage."""
    lines = (folder / "measured.jsonl").read_text().splitlines()
    measured = list(map(json.loads, lines))
    cluster, costs = here(folder), costs_of(folder)
    for layout, name in (("columns", "small"), ("rows", "parts-2")):
        runs = [
            [Measured(**stage) for stage in line["stages"]]
            for line in measured
            if line["layout"] == layout
        ]
        if not runs:
            continue
        recording = load(folder, name)
        predicted = stage_seconds(recording.batches, cluster)
        processor = processor_seconds(recording.batches)
        # Workers load nothing in a stage without tasks.
        loading = {batch.stage: cluster.workers for batch in recording.batches if batch.tasks}
        for batch in recording.batches:
            processor[batch.stage] += len(batch.tasks) * (cluster.driver_s + cluster.worker_s)
        # The least disturbed run.
        best = min(runs, key=lambda run: sum(stage.waited for stage in run))
        rows = [
            (
                each.stage, predicted[each.stage].whole, each.undisturbed, each.seconds,
                processor[each.stage]
                + (1 + loading.get(each.stage, 0)) * cluster.loads.get(each.stage, 0.0)
                + costs.idle * each.seconds,
                each.processor,
            )
            for each in best
        ]  # fmt: skip
        rows.append(("all", *(sum(row[number] for row in rows) for number in range(1, 6))))
        yield f"{recording.rows:,} samples, two worker processes, filter by {layout}:"
        yield from table(
            "stage", "predicted", "undisturbed", "error", "clock",
            "processor, predicted", "measured", "error",
        )  # fmt: skip
        for stage, seconds, undisturbed, clock, own, used in rows:
            yield (
                f"| {stage} | {seconds:.1f} | {undisturbed:.1f} | {seconds / undisturbed - 1:+.0%} "
                f"| {clock:.1f} | {own:.1f} | {used:.1f} | {own / used - 1:+.0%} |"
            )
        yield ""


def costs_of(folder: Path) -> Costs:
    """Return what ``costs`` has measured."""
    return Costs(**json.loads((folder / "costs.json").read_text()))


def curves(folder: Path) -> Iterable[str]:
    """Yield the predicted hours of clusters that are not here, and what grows with the rows."""
    costs = costs_of(folder)
    recordings = Recordings(
        load(folder, "small"), load(folder, "large"),
        (load(folder, "parts-8"), load(folder, "parts-50")),
        parse_bytes(WORKER_MEMORY), 1.5 * NEIGHBORS,
    )  # fmt: skip
    predicted, batches = {}, {}
    for rows in ROWS:
        for workers in WORKERS:
            cluster = Cluster(
                workers, driver_s=costs.driver_s, worker_s=costs.worker_s, delay=costs.delay,
                link=LINK, files=FILES, loads=loads(folder),
            )  # fmt: skip
            batches[rows] = recordings.batches(rows, workers)
            predicted[rows, workers] = stage_seconds(batches[rows], cluster)
    for rows in ROWS:
        yield f"{rows:,} rows, seconds on so many workers (of these: the driver; one machine):"
        yield from table("stage", *map(str, WORKERS))
        for stage in predicted[rows, WORKERS[0]]:
            found = [predicted[rows, workers][stage] for workers in WORKERS]
            cells = [
                f"{each.whole:,.0f} ({each.driver:,.0f}; {each.pinned:,.0f})" for each in found
            ]
            yield f"| {stage} | {' | '.join(cells)} |"
        whole = [
            sum(each.whole for each in predicted[rows, workers].values()) for workers in WORKERS
        ]
        yield f"| all | {' | '.join(f'{each:,.0f}' for each in whole)} |"
        yield ""
    for rows in ROWS[1:]:
        yield f"The longest steps of {rows:,} rows on {WORKERS[-1]} workers:"
        yield from slowest(batches[rows], cluster)
        yield ""


def slowest(batches: Sequence[Batch], cluster: Cluster, count: int = 25) -> Iterable[str]:
    """Yield the steps that take longest."""
    found: dict[tuple[str, str, str], list[float]] = {}
    for batch in batches:
        entry = found.setdefault((batch.stage, batch.step, batch.function), [0.0] * 5)
        stage = stage_seconds([batch], replace(cluster, loads={}))[batch.stage]
        entry[0] += stage.whole
        entry[1] += stage.driver
        entry[2] = len(batch.tasks)
        entry[3] = max(entry[3], batch.files)
        entry[4] += sum(map(moved, batch.tasks))
    yield from table(
        "stage", "step and function", "seconds", "driver before", "tasks", "files", "GB moved"
    )
    longest = sorted(found.items(), key=lambda item: -item[1][0])
    for (stage, step, function), (whole, driver, tasks, files, moving) in longest[:count]:
        named = f"{step}, `{function}`" if function else "after its last task"
        yield (
            f"| {stage} | {named} | {whole:,.0f} | {driver:,.0f} | {tasks:,.0f} | {files:,.0f} "
            f"| {moving / 1e9:,.0f} |"
        )


def table(*names: Any) -> Iterable[str]:
    """Yield the head of a table."""
    yield f"| {' | '.join(names)} |"
    yield "|" + "---|" * len(names)


if __name__ == "__main__":
    main()

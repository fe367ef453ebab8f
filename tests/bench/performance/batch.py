"""How busy a batch of small scenes keeps its workers: Dask's performance report and a picture of it.

    python tests/bench/performance/batch.py [--tiles 100] [--workers 2] [--out DIRECTORY]

It cuts a synthetic scene into tiles of 64 x 64 pixels, runs them by one template over workers of one
core each, and prints one JSON object. `idle` is the share of the wall time of the whole call, from
the first look at the tiles to the last row of the table, in which a worker has no task.
"""

import argparse
import json
import math
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import rasterio
from rasterio.windows import Window

SIDE = 64
TEMPLATE = """\
[scene]
path = ""
labels = "{labels}"
[neighbors]
k = 12
[spectrum]
dimension = 20
[learn]
method = "spectral-clustering"
clusters = 6
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tiles", type=int, default=100)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path())
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as directory:
        cut_tiles(Path(directory), arguments.tiles)
        found, stream = measure(Path(directory), arguments.workers, arguments.out)
    draw(stream, found, arguments.out / "timeline.png")
    print(json.dumps(found, indent=1))


def cut_tiles(directory: Path, tiles: int) -> None:
    """Write tiles of a synthetic scene, their labels and their template."""
    across = math.isqrt(tiles - 1) + 1
    scene = directory / "scene.tif"
    command = [sys.executable, "-m", "eigenscape", "synth", str(scene)]
    size = str(SIDE * across)
    subprocess.run([*command, "--height", size, "--width", size], check=True, capture_output=True)
    (directory / "tiles").mkdir()
    with rasterio.open(scene) as whole:
        for number in range(tiles):
            row, column = divmod(number, across)
            window = Window(SIDE * column, SIDE * row, SIDE, SIDE)
            profile = {**whole.profile, "width": SIDE, "height": SIDE, "tiled": False}
            profile["transform"] = whole.window_transform(window)
            path = directory / "tiles" / f"tile-{row:02d}-{column:02d}.tif"
            with rasterio.open(path, "w", **profile) as tile:
                tile.write(whole.read(window=window))
                for band in range(1, whole.count + 1):
                    tile.update_tags(band, **whole.tags(band))
    text = TEMPLATE.format(labels=directory / "scene_labels.tif")
    (directory / "tiles.toml").write_text(text, encoding="utf-8")


def measure(directory: Path, workers: int, out: Path) -> tuple[dict[str, float], list]:
    """Run the batch; return what came of it and the tasks: worker, start and stop in seconds."""
    from distributed import Client, LocalCluster, performance_report

    from eigenscape.batch.run import run_batch
    from eigenscape.batch.sources import Source
    from eigenscape.clusters import ClusterOptions

    source = Source(template=directory / "tiles.toml", scenes=str(directory / "tiles" / "*.tif"))
    with (
        LocalCluster(
            n_workers=workers, threads_per_worker=1, host="127.0.0.1",
            dashboard_address="127.0.0.1:0", memory_limit="4GiB",
        ) as cluster,
        Client(cluster) as client,
    ):  # fmt: skip
        client.get_task_stream()  # starts recording
        address = ClusterOptions(kind="existing", address=cluster.scheduler_address)
        with performance_report(filename=str(out / "timeline.html")):
            begin = time.time()
            result = run_batch(source, on=address, run_dir=directory / "runs")
            wall = time.time() - begin
        tasks = [
            (task["worker"], part["start"] - begin, part["stop"] - begin)
            for task in client.get_task_stream(start=begin)
            for part in task["startstops"]
            if part["action"] == "compute" and part["stop"] < begin + wall
        ]
    busy = sum(stop - start for _, start, stop in tasks)
    return {
        "tiles": len(result.outcomes),
        "done": sum(outcome.state == "done" for outcome in result.outcomes),
        "workers": workers,
        "seconds": round(wall, 1),
        "idle": round(1 - busy / (workers * wall), 3),
    }, tasks


def draw(tasks: list, found: dict[str, float], path: Path) -> None:
    """Draw a row of bars for each worker: a bar is a tile."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 1.2 + 0.5 * found["workers"]), layout="constrained")
    axes = figure.subplots()
    names = sorted({worker for worker, *_ in tasks})
    for row, name in enumerate(names):
        bars = [(start, stop - start) for worker, start, stop in tasks if worker == name]
        axes.broken_barh(sorted(bars), (row - 0.4, 0.8), facecolor="#4477aa", edgecolor="white")
    axes.set_yticks(range(len(names)), [f"worker {row + 1}" for row in range(len(names))])
    axes.set_xlim(0, found["seconds"])
    axes.set_xlabel("time (s)")
    axes.set_title(
        f"{found['tiles']} tiles on {found['workers']} workers: a bar is a tile; "
        f"workers idle {100 * found['idle']:.1f} % of {found['seconds']:.0f} s"
    )
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(left=False)
    figure.savefig(path, dpi=120)


if __name__ == "__main__":
    main()

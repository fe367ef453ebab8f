"""Does what export holds stay the same however large the map is?

    python tests/bench/performance/bigmap.py [--format NAME]... [--size HxW]... [--confidence]
                                             [--directory DIR]

The arrays of a made run, which are computed where they are read, go through the writers of `output.formats`,
each format and size in a process of its own: fields of 23 x 31 pixels in four classes and none, with
confidence where it is asked for. Prints one JSON object per line: pixels, MiB of anonymous memory before
and at most, seconds, MiB of files. `cloud_optimised` is what rio-cogeo says of each GeoTIFF. By default
32,000 x 128,000, a class map of 4 GB. The files are deleted. Linux only.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

FORMATS = ("geotiff", "envi", "zarr", "png", "report", "stac", "qml", "gpkg")
CLASSES, BANDS, VECTORS, FIELD = 4, 6, 4, (23, 31)
CHUNK = 2**18
TIME = "2026-01-02T03:04:05+0000"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--format", action="append", choices=FORMATS)
    parser.add_argument("--size", action="append", help="HxW; 32000x128000 by default")
    parser.add_argument("--confidence", action="store_true", help="4 bytes more of each pixel")
    parser.add_argument("--directory", type=Path, help="where the files are written meanwhile")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.here:
        height, width = map(int, given.size[0].split("x"))
        print(json.dumps(measure(given.format[0], height, width, given)))
        return 0
    for size in given.size or ["32000x128000"]:
        for name in given.format or FORMATS:
            more = ["--confidence"] * given.confidence
            more += ["--directory", str(given.directory)] if given.directory else []
            one = [sys.executable, __file__, "--here", "--format", name, "--size", size, *more]
            done = subprocess.run(one, capture_output=True, text=True)
            print(done.stdout.strip() or done.stderr[-2000:], flush=True)
            if done.returncode:
                return 1
    return 0


def measure(name: str, height: int, width: int, given: Any) -> dict[str, Any]:
    """Write one format; return what it held and how long it took."""
    from eigenscape.base.formats import FORMATS as REGISTRY
    from eigenscape.base.memory import anonymous_bytes, bound_heaps
    from eigenscape.export.canvas import Canvas
    from eigenscape.export.format import Product
    from eigenscape.export.sidecar import write_legend_csv
    from eigenscape.scenes.types import Legend

    # As the command does.
    bound_heaps(2**31, 2)
    with tempfile.TemporaryDirectory(dir=given.directory, prefix="bigmap-") as directory:
        run = MadeRun(Path(directory), height, width, confidence=given.confidence)
        context = run.context()
        colors = {number: (60 * number, 40, 255 - 60 * number) for number in range(1, CLASSES + 1)}
        legend = Legend({number: f"class {number}" for number in colors}, colors)
        counts = dict.fromkeys(colors, height * width // (CLASSES + 1))
        write_legend_csv(context.workspace.file("legend.csv"), legend, counts)
        canvas = Canvas(context, run.grid)
        product = Product(context, canvas, legend, counts, outputs={"legend": "legend.csv"})
        before = peak = anonymous_bytes()
        ended = threading.Event()

        def watch() -> None:
            nonlocal peak
            while not ended.wait(0.01):
                peak = max(peak, anonymous_bytes())

        watcher = threading.Thread(target=watch)
        watcher.start()
        begin = time.monotonic()
        try:
            REGISTRY.find(name)().write(product)
        finally:
            seconds = time.monotonic() - begin
            ended.set()
            watcher.join()
        files = [path for path in run.files.rglob("*") if path.is_file()]
        found = {
            "format": name,
            "size": f"{height} x {width}",
            "pixels": height * width,
            "before_mib": round(before / 2**20),
            "peak_mib": round(peak / 2**20),
            "seconds": round(seconds, 1),
            "files_mib": round(sum(path.stat().st_size for path in files) / 2**20, 1),
        }
        if name == "geotiff":
            from rio_cogeo.cogeo import cog_validate

            maps = [path for path in files if path.suffix == ".tif"]
            found["cloud_optimised"] = {
                path.name: cog_validate(path, strict=True, quiet=True)[0] for path in maps
            }
        return found


class Made:
    """An array of samples that is computed where it is read; every pixel is a sample."""

    def __init__(self, work: Any, count: int, dtype: type, columns: int = 0) -> None:
        self.work, self.dtype = work, np.dtype(dtype)
        self.shape = (count, columns) if columns else (count,)
        self.chunks = (CHUNK, columns) if columns else (CHUNK,)

    def __getitem__(self, where: slice) -> np.ndarray:
        first, last, _ = where.indices(self.shape[0])
        found = self.work(first, last)
        assert found.shape[1:] == self.shape[1:]
        return found.astype(self.dtype, copy=False)


class MadeRun:
    """A run directory whose arrays are made."""

    def __init__(self, path: Path, height: int, width: int, *, confidence: bool) -> None:
        from rasterio.crs import CRS

        from eigenscape.scenes.types import Grid

        self.path, self.files = path, path / "files"
        self.files.mkdir()
        self.height, self.width = height, width
        place = (10.0, 0.0, 300_000.0, 0.0, -10.0, 5_000_000.0)
        self.grid = Grid(height, width, CRS.from_epsg(32633).to_wkt(), place)
        self.manifest = {"name": "bigmap", "order": ["ingest", "learn"], "stages": {"learn": {}}}
        summaries = {
            "ingest": {
                "grid": self.grid.to_json(),
                "bands": {"good": [True] * BANDS, "wavelength": None},
                "samples": height * width,
                "files": ["made.tif"],
            },
            "spectrum": {"null_vectors": 1, "values": list(range(VECTORS))},
            "learn": {"classes": list(range(1, CLASSES + 1)), "scores": {}},
        }
        self._records = {
            name: SimpleNamespace(summary=summary, seconds=1.0, peak_bytes=0, finished=TIME)
            for name, summary in summaries.items()
        }
        count = height * width
        self._arrays = {
            "samples/pixel": Made(np.arange, count, np.int64),
            "samples/row_start": np.arange(height + 1) * width,
            "samples/values": Made(self._values, count, np.float32, BANDS),
            "labels/class": Made(self._classes, count, np.uint16),
            "spectrum/value": np.arange(float(VECTORS)),
            "spectrum/vector": Made(self._vectors, count, np.float32, VECTORS),
        }
        if confidence:
            self._arrays["labels/confidence"] = Made(self._shares, count, np.float32)
        for name in self._arrays:
            (path / name).mkdir(parents=True)
            (path / name / "zarr.json").touch()

    def context(self) -> Any:
        from eigenscape.base.process.progress import Silent

        scene = SimpleNamespace(path="made.tif")
        job = SimpleNamespace(
            name="bigmap", scene=scene, learn=SimpleNamespace(method="made"),
            spectrum=SimpleNamespace(dimension=VECTORS),
        )  # fmt: skip
        workspace = SimpleNamespace(path=self.path, file=self.file, folder=self.folder)
        return SimpleNamespace(
            run=self, workspace=workspace, job=job, reporter=Silent(), open=self.open
        )

    def open(self, name: str) -> Any:
        return self._arrays[name]

    def record(self, stage: str) -> Any:
        return self._records.get(stage)

    def array_path(self, name: str) -> Path:
        return self.path / name

    def file(self, name: str) -> Path:
        return self.files / name

    def folder(self, name: str) -> Path:
        path = self.path / "scratch" / name
        path.mkdir(parents=True, exist_ok=True)
        return path

    def _fields(self, first: int, last: int) -> np.ndarray:
        """Return a number below 11 for each of some samples, one for each field."""
        top, bottom = first // self.width, -(-last // self.width)
        rows = (np.arange(top, bottom) // FIELD[0] * 7919 % 11).astype(np.uint8)
        columns = (np.arange(self.width) // FIELD[1] * 104_729 % 11).astype(np.uint8)
        found = (rows[:, None] + columns) % np.uint8(11)
        return found.ravel()[first - top * self.width : last - top * self.width]

    def _classes(self, first: int, last: int) -> np.ndarray:
        table = np.arange(11, dtype=np.uint16) % (CLASSES + 1)
        return table[self._fields(first, last)]

    def _shares(self, first: int, last: int) -> np.ndarray:
        table = (np.arange(11, dtype=np.float32) + 1) / 11
        return table[self._fields(first, last)]

    def _values(self, first: int, last: int) -> np.ndarray:
        table = np.add.outer(np.arange(11, dtype=np.float32), np.arange(BANDS))
        return table[self._fields(first, last)].astype(np.float32)

    def _vectors(self, first: int, last: int) -> np.ndarray:
        table = np.multiply.outer(np.arange(11) - 5, np.arange(1, VECTORS + 1)).astype(np.float32)
        return table[self._fields(first, last)]


if __name__ == "__main__":
    sys.exit(main())

"""Runs of which only the export stage is run, whose earlier stages are given."""

import numpy as np
import pytest
import rasterio

from eigenscape.base.process.progress import Silent
from eigenscape.clusters import Threads
from eigenscape.export.stage import export_stage
from eigenscape.job.jobfile import Job
from eigenscape.scenes.types import Grid
from eigenscape.store.arrays import open_array
from eigenscape.store.manifest import Record
from eigenscape.store.run import Run
from eigenscape.workflow.runner import StageRunner

NAMES = {1: "water", 2: "forest, {old} & <wet>", 3: 'Straße "A"'}
UTM = rasterio.crs.CRS.from_epsg(32633).to_wkt()
NORTH_UP = (10.0, 0.0, 364095.0, 0.0, -10.0, 5809965.0)
GRIDS = {
    "north-up": Grid(40, 30, UTM, NORTH_UP),
    "rotated": Grid(40, 30, UTM, (8.0, 6.0, 364095.0, 6.0, -8.0, 5809965.0)),
    "south-up": Grid(40, 30, UTM, (10.0, 0.0, 364095.0, 0.0, 10.0, 5809965.0)),
    "sheared": Grid(40, 30, UTM, (10.0, 3.0, 364095.0, 0.0, -10.0, 5809965.0)),
    "geographic": Grid(
        40, 30, rasterio.crs.CRS.from_epsg(4326).to_wkt(), (1e-4, 0.0, 13.0, 0.0, -1e-4, 52.4)
    ),
    "nowhere": Grid(40, 30),
}


class World:
    """A class map on a grid: `export` writes it, `classes` and `confidence` are what it should be.

    `layers` are the samples that the cells of a map show, of each line, where the grid is that of a sensor.
    """

    def __init__(self, path, grid, *, largest=3, blocks=2, layers=()):
        self.grid, rng = grid, np.random.default_rng(0)
        shape = (grid.height // blocks, grid.width // blocks)
        self.classes = (
            rng.integers(0, 4, shape).repeat(blocks, 0).repeat(blocks, 1).astype(np.uint16)
        )
        self.classes[self.classes == 3] = largest
        self.names = {**NAMES, largest: NAMES[3]}
        if largest != 3:
            del self.names[3]
        self.valid = rng.random(self.classes.shape) < 0.95
        self.classes[~self.valid] = 0
        share = rng.random(self.classes.shape).astype(np.float32)
        self.confidence = np.where(self.valid, share, np.nan).astype(np.float32)
        pixel = np.flatnonzero(self.valid)
        starts = np.concatenate([[0], np.cumsum(self.valid.sum(axis=1))])
        self.run = Run(path)
        shown = {f"map/sample/{line}": layer for line, layer in enumerate(layers)}
        about = {"grid": Grid(*layers[0].shape).to_json(), "lines": len(layers)} if shown else None
        self._put(
            "ingest", {"samples/pixel": pixel, "samples/row_start": starts, **shown},
            {
                "map": about,
                "grid": grid.to_json(), "bands": {"good": [True], "wavelength": None},
                "class_names": {str(number): name for number, name in self.names.items()},
                "class_colors": {"1": [0, 0, 255]},
            },
        )  # fmt: skip
        vectors = rng.normal(size=(len(pixel), 4)).astype(np.float32)
        spectrum = {"spectrum/vector": vectors, "spectrum/value": np.arange(4.0)}
        self._put("spectrum", spectrum, {"null_vectors": 1})
        arrays = {
            "labels/class": self.classes.ravel()[pixel],
            "labels/confidence": self.confidence.ravel()[pixel],
        }
        self._put("learn", arrays, {"classes": sorted(self.names), "scores": {}})

    def _put(self, name, arrays, summary):
        workspace = self.run.workspace(name, "aa")
        for array, values in arrays.items():
            whole = array.startswith("map/")
            path = workspace.create_array(array, values.shape, values.dtype, whole=whole)
            open_array(path)[...] = values
        time = "2026-01-02T03:04:05+0200"
        record = Record("aa", 0, 0, workspace.arrays(), (), summary, time)
        self.run.commit(name, workspace, record)

    def export(self, *formats, method="centroid-angle", **output):
        tables = {
            "spectrum": {"dimension": 3},
            "learn": {"method": method},
            "output": {"formats": formats, **output},
            "name": "world",
        }
        job = Job.model_validate({"scene": {"path": "/secret/place/scene.tif"}, **tables})
        record = StageRunner(self.run, Threads(1), Silent()).run("export", "aa", export_stage, job)
        outputs = record.summary["outputs"]
        assert set(outputs.values()) == {
            name for name in record.files if not name.endswith(".aux.xml")
        }
        return {name: self.run.path / "outputs" / file for name, file in outputs.items()}


@pytest.fixture(params=GRIDS)
def any_world(request, tmp_path):
    """Return a class map on each kind of grid."""
    return World(tmp_path / request.param, GRIDS[request.param])


@pytest.fixture
def world(tmp_path):
    """Return a class map that is north up."""
    return World(tmp_path / "world", GRIDS["north-up"])


@pytest.fixture
def make_world(tmp_path):
    """Return what makes a class map on a grid."""
    return lambda grid, **options: World(tmp_path / "made", grid, **options)

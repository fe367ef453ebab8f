from types import SimpleNamespace

import numpy as np
import pytest

from eigenscape.base.blocks import blocks
from eigenscape.features.spatial.filters import make_filter
from eigenscape.features.spatial.unfiltered import Unfiltered
from eigenscape.job.options import FilterOptions
from eigenscape.scenes.types import Grid
from harness import Harness


class Serial:
    """Stands for a stage's context: tasks one after the other."""

    def map(self, step, function, items, **_):
        return [function(item) for item in items]


@pytest.fixture
def filter_cube(tmp_path_factory):
    """Filter the valid pixels of an image (rows, columns, features); NaN elsewhere."""

    def run(cube, valid=None, *, step=None, unit=1.0, **options):
        valid = np.ones(cube.shape[:2], bool) if valid is None else valid
        pixels = np.flatnonzero(valid)
        folder = tmp_path_factory.mktemp("unfiltered")
        unfiltered = Unfiltered(folder, len(pixels), cube.shape[2], *cube.shape[:2])
        unfiltered.create()
        unfiltered.write(0, cube[valid].astype(np.float32), pixels)
        found = make_filter(FilterOptions(**options))
        found.prepare(Serial(), unfiltered)
        ranges = blocks(len(pixels), step or len(pixels))
        parts = [found.filter_block(unfiltered, unit, block) for block in ranges]
        assert len(found.sources(cube.shape[2])) == parts[0].shape[1]
        filtered = np.full((*cube.shape[:2], parts[0].shape[1]), np.nan, np.float32)
        filtered[valid] = np.concatenate(parts)
        return filtered

    return run


@pytest.fixture
def cube(rng):
    """Two fields with a border between them, under noise, in four features."""
    truth = np.where(np.arange(37) < 15, 0.0, 6.0)[:, None] * [1, -0.5, 0.3, 0]
    return (truth + rng.standard_normal((23, 37, 4))).astype(np.float32)


@pytest.fixture
def valid(rng):
    """Most pixels, in some rows none, in others one."""
    valid = rng.random((23, 37)) < 0.8
    valid[4:9] = False
    valid[6, 20] = True
    return valid


@pytest.fixture
def extract_pixels(tmp_path):
    """Run the features stage on the valid pixels of a cube; return its arrays and its summary."""

    def run(cube, valid, *, memory="2GiB", threads=2, executor=None, name="run", **options):
        harness = Harness(tmp_path / name, features=options, limits={"memory": memory})
        if harness.run_directory.record("samples") is None:
            grid = Grid(height=cube.shape[0], width=cube.shape[1])
            harness.put("ingest", {}, grid=grid.to_json())
            arrays = {"values": cube[valid].astype(np.float32), "pixel": np.flatnonzero(valid)}
            harness.put("samples", {f"samples/{key}": value for key, value in arrays.items()})
        summary = harness.run("features", executor, threads=threads)
        names = ("values", "unfiltered")
        arrays = {name: harness[f"features/{name}"] for name in names}
        return SimpleNamespace(summary=summary, harness=harness, **arrays)

    return run

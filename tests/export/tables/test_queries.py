import csv

import numpy as np
import pytest
import rasterio

from eigenscape.base.process.progress import Silent
from eigenscape.clusters import Threads
from eigenscape.context import Context
from eigenscape.export.tables.queries import write_queries
from eigenscape.job.jobfile import Job
from eigenscape.scenes.types import Grid, Legend
from eigenscape.store.arrays import open_array
from eigenscape.store.manifest import Record
from eigenscape.store.run import Run

ROTATED = (10.0, 2.0, 364095.0, 2.0, -10.0, 5809965.0)


@pytest.mark.parametrize("transform", [ROTATED, None])
def test_write_queries__order_place_and_classes(tmp_path, transform):
    run, pixel = Run(tmp_path), np.array([1, 4, 5, 9, 11])
    run.commit("ingest", run.workspace("ingest", "aa"), Record("aa", 0, 0, (), (), {}))
    arrays = {
        "samples/pixel": pixel,
        "labels/class": np.array([1, 2, 2, 1, 7], np.uint16),
        "labels/query": np.array([4, 0]),
        "labels/confidence": np.array([0.5, 0.9, 0.9, 0.9, 0.25], np.float32),
        "labels/query_runner_up": np.array([2, 0], np.uint16),
    }
    workspace = run.workspace("learn", "aa")
    for name, values in arrays.items():
        open_array(workspace.create_array(name, values.shape, values.dtype))[...] = values
    run.commit("learn", workspace, Record("aa", 0, 0, workspace.arrays(), (), {}))
    job = Job.model_validate({"scene": {"path": "x"}})
    context = Context(job, run, run.workspace("export", "aa"), Threads(1), Silent())
    grid = Grid(3, 4, None, transform)
    write_queries(context, grid, Legend({2: "forest, old", 7: "water"}), "queries.csv")
    with context.workspace.file("queries.csv").open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [row["order"] for row in rows] == ["1", "2"]
    assert [(row["row"], row["column"]) for row in rows] == [("2", "3"), ("0", "1")]
    assert [(row["class"], row["name"]) for row in rows] == [("7", "water"), ("1", "")]
    assert [row["probability"] for row in rows] == ["0.2500", "0.5000"]
    assert [(row["second"], row["second_name"]) for row in rows] == [("2", "forest, old"), ("", "")]
    for row in rows:
        if transform is None:
            assert row["x"] == row["y"] == ""
        else:
            centre = rasterio.Affine(*transform) @ (int(row["column"]) + 0.5, int(row["row"]) + 0.5)
            np.testing.assert_allclose([float(row["x"]), float(row["y"])], centre)

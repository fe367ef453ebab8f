"""Samples of known classes to learn from."""

import numpy as np

from eigenscape.scenes.types import Grid
from harness import Harness

GRID = Grid(30, 20)


def groups(rng, classes, rows=60, columns=6):
    """Return overlapping groups of rows, and the class of each."""
    of = rng.integers(0, classes, rows * classes)
    of[:classes] = np.arange(classes)
    centres = 1.5 * rng.standard_normal((classes, columns))
    return (centres[of] + rng.standard_normal((len(of), columns))).astype(np.float32), of


def learn_stripes(tmp_path, rng, method):
    """Return a function that runs the stage on features of three classes in stripes, and these."""
    classes = (np.arange(GRID.size) // 7) % 3
    features = (0.6 * rng.standard_normal((GRID.size, 5))).astype(np.float32)
    features[np.arange(GRID.size), classes] += 1
    features *= np.array([1, 10, 100, 1, 1], np.float32)
    given = np.where(rng.random(GRID.size) < 0.4, 10 * (classes + 1), 0).astype(np.uint16)

    def run(name="run", grid=GRID, labels=given, **options):
        harness = Harness(tmp_path / name, learn={"method": method, "trials": 2, **options})
        arrays = {"samples/pixel": np.arange(GRID.size), "labels/given": labels}
        harness.put("ingest", arrays, grid=grid.to_json(), labelled=int((labels > 0).sum()))
        harness.put("features", {"features/values": features})
        return harness, harness.run("learn")

    run.classes, run.features, run.given = classes, features, given
    return run

"""Scenes of a few hundred pixels, and the job that holds for all of them."""

import numpy as np
import pytest
import tomlkit

from eigenscape.batch.sources import Source

JOB = {
    "scene": {"labels": "labels.npy"},
    "features": {"method": "none"},
    "neighbors": {"method": "exact", "k": 6},
    "spectrum": {"dimension": 6},
    "learn": {"trials": 1},
    "output": {"directory": "runs", "formats": ["geotiff", "report"], "eigenvectors": 0},
    "limits": {"threads": 2},
}


@pytest.fixture(scope="session")
def write_scenes(tmp_path_factory, make_scene):
    """Return a function that writes some scenes, their labels and their template."""
    scene = make_scene(16, 20, 8, 3, hole=False)

    def write(names=("a", "b", "c")):
        directory = tmp_path_factory.mktemp("batch")
        (directory / "tiles").mkdir()
        for number, name in enumerate(names):
            np.save(directory / "tiles" / f"{name}.npy", scene.cube + number)
        np.save(directory / "labels.npy", scene.labels)
        (directory / "many.toml").write_text(tomlkit.dumps(JOB))
        return directory

    return write


@pytest.fixture(scope="session")
def source_of():
    """Return a function that gives the source of the scenes in a directory."""

    def source(directory, **keys):
        keys = {"scenes": str(directory / "tiles" / "*.npy"), **keys}
        return Source(template=directory / "many.toml", **keys)

    return source

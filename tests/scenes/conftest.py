"""Small generated files and openers that the tests of scenes share."""

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rasterio
from rasterio.transform import Affine

from eigenscape.base.blocks import blocks
from eigenscape.job.options import SceneOptions
from eigenscape.scenes.labels.sources import open_labels
from eigenscape.scenes.open import open_scene

UTM = "EPSG:32633"
NORTH_UP = Affine(30, 0, 364095, 0, -30, 5809965)


@pytest.fixture
def cube() -> np.ndarray:
    """Bands x rows x columns, as rasterio writes them; no two values alike."""
    return np.random.default_rng(0).permutation(5 * 20 * 13).reshape(5, 20, 13).astype("int16")


@pytest.fixture
def write(tmp_path) -> Callable[..., str]:
    """Write an array (bands x rows x columns, or rows x columns) as a raster."""

    def write_raster(name: str, array: np.ndarray, **profile: Any) -> str:
        array = array if array.ndim == 3 else array[np.newaxis]
        after = profile.pop("after", lambda dataset: None)
        profile = {"driver": "GTiff", "crs": UTM, "transform": NORTH_UP, **profile}
        profile = {key: value for key, value in profile.items() if value is not None}
        count, height, width = array.shape
        path = tmp_path / name
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with rasterio.open(
                path, "w", count=count, height=height, width=width, dtype=array.dtype, **profile
            ) as dataset:
                dataset.write(array)
                after(dataset)
        return str(path)

    return write_raster


@pytest.fixture
def resolve(tmp_path) -> Callable[[str], str]:
    """Turn a path of a job in tmp_path into an absolute one."""
    return lambda path: path if "://" in path else str(tmp_path / Path(path))


@pytest.fixture
def scene(resolve):
    """Open a scene from the keys of [scene]."""
    return lambda path, **keys: open_scene(SceneOptions(path=path, **keys), resolve)


@pytest.fixture
def labels(resolve):
    """Open the labels of a scene from the keys of [scene]."""

    def opener(path, **keys):
        options = SceneOptions(path=path, **keys)
        return open_labels(options, open_scene(options, resolve), resolve)

    return opener


@pytest.fixture
def in_strips(monkeypatch):
    """Return a function that has scenes read in strips of so many rows."""
    from eigenscape.scenes.ingest import stage as ingest
    from eigenscape.scenes.ingest.storage import Strips

    def cut(rows, kept=0):
        def strips(scene, budget):
            strips = blocks(scene.grid.height, rows)
            return Strips(rows, (tuple(strips),) if kept else tuple((one,) for one in strips), kept)

        monkeypatch.setattr(ingest, "strips_of", strips)

    return cut

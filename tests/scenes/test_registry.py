import subprocess
import sys

import numpy as np
import pytest

from eigenscape.errors import SceneError
from eigenscape.scenes.registry import registered, registered_names

pytest.importorskip("tensorly")


def test_indian_pines(scene, labels):
    entry = registered("indian-pines")
    assert entry.installed
    opened = scene("indian-pines")
    assert (opened.grid.height, opened.grid.width, opened.bands.count) == entry.shape
    assert opened.bands.wavelength is None
    values, valid = opened.read(100, 145)
    assert valid.all()
    assert values.min() > 900
    given = labels("indian-pines")
    counts = np.bincount(given.read(0, 145).ravel())
    assert counts[1:].tolist() == [
        46, 1428, 830, 237, 483, 730, 28, 478, 20, 972, 2455, 593, 205, 1265, 386, 93,
    ]  # fmt: skip
    assert given.legend.names[16] == "Stone-Steel-Towers"
    assert len(set(given.legend.colors.values())) == 16


def test_names():
    assert registered_names() == ("indian-pines",)
    with pytest.raises(SceneError, match="Did you mean indian-pines"):
        registered("indian_pines")


def test_opening_imports_no_heavy_package():
    heavy = "rasterio geopandas h5py zarr scipy tensorly pandas"
    code = (
        "import sys; import eigenscape.scenes.open, eigenscape.scenes.registry as r;"
        "r.registered('indian-pines').locate();"
        f"print([m for m in {heavy.split()} if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"

import numpy as np
import pytest
import rasterio

import eigenscape
from eigenscape.errors import InputError
from eigenscape.scenes.synthetic import synthesize


def test_open_run__gives_the_exported_map_lazily(tmp_path):
    synthesize(tmp_path / "scene.tif", height=30, width=40, bands=12, classes=4, seed=1)
    table = {
        "scene": {"path": "scene.tif", "labels": "scene_labels.tif"},
        "spectrum": {"dimension": 6},
        "output": {"directory": "runs"},
    }
    result = eigenscape.run(eigenscape.parse_job(table, name="lazy", base=tmp_path))
    found = eigenscape.open_run(result.path)
    assert found["values"].chunks is not None, "arrays are lazy"
    assert found.sizes == {"sample": 1200, "band": 12, "feature": 12, "neighbor": 12, "mode": 7}
    image = found["class"].set_index(sample=("row", "column")).unstack().values
    with rasterio.open(result.outputs["class_map"]) as source:
        np.testing.assert_array_equal(image, source.read(1))
        assert found.attrs["transform"] == list(source.transform)[:6]
    assert np.all(np.diff(found["wavelength"]) > 0)


def test_open_run__refuses_other_directories(tmp_path):
    with pytest.raises(InputError, match="no run directory"):
        eigenscape.open_run(tmp_path)

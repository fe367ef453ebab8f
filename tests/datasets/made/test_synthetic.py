"""The synthetic scene: its files, its independence of blocks, its difficulty, its memory."""

import gc
from pathlib import Path

import numpy as np
import pytest
import rasterio

from eigenscape.base.memory import anonymous_bytes, watch
from eigenscape.datasets.made.landcover import Land
from eigenscape.datasets.made.synthetic import synthesize
from eigenscape.errors import InputError, OutputError
from eigenscape.scenes.labels.legends import read_legend

SMALL = {"height": 90, "width": 70, "bands": 12, "classes": 6, "seed": 3}


def _read(path):
    with rasterio.open(path) as source:
        return source.read()


def test_synthesize__files_and_metadata(tmp_path):
    path = tmp_path / "s.tif"
    seen = []
    synthesize(path, **SMALL, progress=lambda done, total: seen.append((done, total)))
    assert sorted(item.name for item in tmp_path.iterdir()) == [
        "s.tif",
        "s_labels.tif",
        "s_labels.tif.aux.xml",
    ]
    with rasterio.open(path) as scene, rasterio.open(tmp_path / "s_labels.tif") as labels:
        assert scene.shape == labels.shape == (90, 70)
        assert scene.count == 12
        assert scene.dtypes[0] == "uint16"
        assert scene.crs == labels.crs
        assert scene.crs.to_epsg() == 32618
        assert scene.transform == labels.transform
        assert scene.res == (5.0, 5.0)
        assert set(scene.scales) == {1e-4}
        waves = [float(scene.tags(band)["wavelength"]) for band in scene.indexes]
        np.testing.assert_allclose(waves, np.linspace(400, 2500, 12), atol=0.01)
        assert scene.tags(1)["wavelength_units"] == "Nanometers"
        assert float(scene.tags(1)["fwhm"]) > 0
        assert labels.nodata == 0
        legend = read_legend(labels, str(tmp_path / "s_labels.tif"))
        assert list(legend.names) == [1, 2, 3, 4, 5, 6]
        assert labels.colormap(1)[3][:3] == legend.colors[3]
    assert seen[-1] == (180, 180)
    assert seen == sorted(seen)


@pytest.mark.parametrize("rows", [1, 7, 58, 59, 200])
def test_synthesize__same_files_for_any_block(tmp_path, rows):
    for name, step in (("a", None), ("b", rows)):
        (tmp_path / name).mkdir()
        synthesize(tmp_path / name / "s.tif", **SMALL, rows_per_block=step)
    for name in ("s.tif", "s_labels.tif"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_synthesize__seeds_differ(tmp_path):
    synthesize(tmp_path / "a.tif", **SMALL)
    synthesize(tmp_path / "b.tif", **SMALL | {"seed": 2**63 - 1})
    assert (_read(tmp_path / "a.tif") != _read(tmp_path / "b.tif")).mean() > 0.9


@pytest.mark.mostly_slow(1)
@pytest.mark.parametrize("seed", [0, 1])
def test_synthesize__is_neither_easy_nor_hopeless(tmp_path, seed):
    synthesize(tmp_path / "s.tif", height=330, width=470, bands=60, classes=22, seed=seed)
    values = _read(tmp_path / "s.tif").reshape(60, -1).T.astype(np.float32)
    labels = _read(tmp_path / "s_labels.tif").ravel()
    given = labels > 0
    assert 0.25 < 1 - given.mean() < 0.45
    classes = np.unique(labels[given])
    assert len(classes) == 22
    means = np.stack([values[labels == number].mean(axis=0) for number in classes])
    means /= np.linalg.norm(means, axis=1, keepdims=True)
    accuracy = (classes[(values[given] @ means.T).argmax(axis=1)] == labels[given]).mean()
    assert 0.6 < accuracy < 0.88


def test_land__creek_and_roads_are_long_and_thin():
    cover = Land.make(679, 944, 22, 0).cover(0, 679)
    for number in (1, 2):
        inside = cover.main == number
        assert 0.005 < inside.mean() < 0.1
        # Most of its rows and columns are crossed, by few pixels of each.
        assert inside.any(axis=1).mean() > 0.7
        assert np.median(inside.sum(axis=1)[inside.any(axis=1)]) < 80


@pytest.mark.exhaustive
@pytest.mark.slow
def test_synthesize__memory_does_not_grow_with_the_height(tmp_path):
    peaks = []
    for height in (1000, 8000):
        gc.collect()
        before = anonymous_bytes()
        with watch() as peak:
            synthesize(tmp_path / "s.tif", height=height, width=300, bands=20, classes=5, seed=0)
        peaks.append(peak.bytes - before)
    # 8000 rows are 96 MB: without a bound the second would show it.
    assert peaks[1] < 80e6


@pytest.mark.parametrize(
    "sizes",
    [
        {"height": 1, "width": 1, "bands": 1, "classes": 2},
        {"height": 1, "width": 5000, "bands": 2, "classes": 3},
        {"height": 3000, "width": 1, "bands": 1, "classes": 4},
        {"height": 60, "width": 60, "bands": 3, "classes": 1000},
    ],
)
def test_synthesize__extreme_sizes(tmp_path, sizes):
    synthesize(tmp_path / "s.tif", **sizes, seed=0)
    scene, labels = _read(tmp_path / "s.tif"), _read(tmp_path / "s_labels.tif")
    assert scene.shape == (sizes["bands"], sizes["height"], sizes["width"])
    assert labels.max() <= sizes["classes"]
    assert labels.dtype == (np.uint16 if sizes["classes"] > 255 else np.uint8)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"height": 0}, "height = 0.*1 to"),
        ({"width": -3}, "width = -3"),
        ({"bands": 0}, "bands = 0"),
        ({"classes": 1}, "classes = 1.*2 to 1000"),
        ({"classes": 1001}, "classes = 1001"),
        ({"seed": -1}, "seed = -1"),
        ({"rows_per_block": 0}, "rows_per_block = 0"),
    ],
)
def test_synthesize__impossible_values(tmp_path, change, message):
    with pytest.raises(InputError, match=message):
        synthesize(tmp_path / "s.tif", **SMALL | change)
    assert list(tmp_path.iterdir()) == []


def test_synthesize__bad_paths(tmp_path):
    with pytest.raises(InputError, match=r"\.tif"):
        synthesize(tmp_path / "s.png", **SMALL)
    with pytest.raises(OutputError, match=r"there is no directory .*missing\. Make it"):
        synthesize(tmp_path / "missing" / "s.tif", **SMALL)


def test_synthesize__killed_run_leaves_no_scene(tmp_path):
    path = tmp_path / "s.tif"
    synthesize(path, **SMALL)

    def stop(done, total):
        if done > 100:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        synthesize(path, **SMALL | {"seed": 4}, rows_per_block=5, progress=stop)
    assert not path.exists()
    assert not [item for item in tmp_path.iterdir() if item.name.startswith(".")]


@pytest.mark.parametrize("name", ["s.tif", "s_labels.tif"])
def test_synthesize__replaces_no_file_of_the_user(tmp_path, write_tif, name):
    mine = write_tif(tmp_path / name, np.ones((1, 4, 4), np.uint8))
    before = Path(mine).read_bytes()
    with pytest.raises(OutputError, match=rf"{name}: already exists and is no synthetic scene"):
        synthesize(tmp_path / "s.tif", **SMALL)
    assert [file.name for file in tmp_path.iterdir()] == [name]
    assert Path(mine).read_bytes() == before
    Path(mine).write_text("not a raster", encoding="utf-8")
    with pytest.raises(OutputError, match="already exists"):
        synthesize(tmp_path / "s.tif", **SMALL)


def test_synthesize__replaces_its_own_files(tmp_path):
    for seed in (1, 2):
        synthesize(tmp_path / "s.tif", **SMALL | {"seed": seed})
    with rasterio.open(tmp_path / "s.tif") as scene:
        assert scene.tags()["DESCRIPTION"].endswith("seed 2")
    # What a run that was stopped leaves.
    (tmp_path / "s.tif").unlink()
    synthesize(tmp_path / "s.tif", **SMALL)

"""The picture is a picture, for any shape, any number of classes and any names."""

import numpy as np
import pytest
from matplotlib.image import imread

from eigenscape.errors import OutputError
from eigenscape.export.pictures.quicklook import (
    choose_rgb_bands,
    paint_classes,
    stretch_rgb,
    write_quicklook,
)
from eigenscape.scenes.types import Legend


def _scene(height, width, classes):
    y, x = np.mgrid[:height, :width]
    rgb = np.stack([x % 256, y % 256, (x + y) % 256], axis=-1).astype(np.uint8)
    return rgb, ((x + 3 * y) % (classes + 1)).astype(np.uint16)


@pytest.mark.mostly_exhaustive(9)
@pytest.mark.mostly_slow(6)
@pytest.mark.parametrize("shape", [(40, 40), (400, 30), (30, 400), (1, 1), (1, 900), (900, 1)])
@pytest.mark.parametrize("classes", [0, 3, 100])
def test_write_quicklook__any_shape(tmp_path, shape, classes):
    rgb, labels = _scene(*shape, classes)
    path = tmp_path / "a.png"
    write_quicklook(
        path, scene_rgb=rgb, class_map=labels, legend=Legend(), title="t", given_labels=labels
    )
    height, width = imread(path).shape[:2]
    assert 200 < height < 3000
    assert 200 < width < 6000


def test_write_quicklook__same_bytes_and_its_colors(tmp_path):
    rgb, labels = _scene(50, 60, 2)
    legend = Legend({1: "a"}, {1: (12, 200, 34), 2: (200, 13, 140)})
    pictures = []
    for name in ("a.png", "b.png"):
        write_quicklook(
            tmp_path / name, scene_rgb=rgb, class_map=labels, legend=legend, title="t", subtitle="s"
        )
        pictures.append((tmp_path / name).read_bytes())
    assert pictures[0] == pictures[1]
    pixels = np.rint(imread(tmp_path / "a.png")[..., :3] * 255).astype(int).reshape(-1, 3)
    for color in [*legend.colors.values(), (236, 236, 236)]:
        assert (pixels == color).all(axis=1).sum() > 200


def test_write_quicklook__hostile_names(tmp_path):
    rgb, labels = _scene(30, 30, 4)
    names = {1: r"$\nofunction$ & $x", 2: "水田" * 40, 3: "a\nb\tc", 4: "<b>" * 30}
    write_quicklook(
        tmp_path / "a.png",
        scene_rgb=rgb,
        class_map=labels,
        legend=Legend(names),
        title=r"$\bad{ 水",
        subtitle="$",
        counts={1: 10**12, 2: 1},
    )
    with pytest.raises(OutputError, match="missing"):
        write_quicklook(
            tmp_path / "missing" / "a.png",
            scene_rgb=rgb,
            class_map=labels,
            legend=Legend(),
            title="t",
        )


def test_paint_classes():
    painted = paint_classes(np.array([[0, 65535]], np.uint16), Legend({}, {65535: (1, 2, 3)}))
    assert painted.tolist() == [[[236, 236, 236], [1, 2, 3]]]


def test_stretch_rgb__percentiles_per_band():
    values = np.linspace(0, 1, 10_201).reshape(101, 101, 1) * [1.0, 1000.0, 1e-3]
    values[0, 0] = np.nan
    valid = np.ones((101, 101), bool)
    valid[0, 1] = False
    picture = stretch_rgb(values, valid)
    assert picture[0, :2].tolist() == [[236] * 3] * 2
    assert picture[50, 50].tolist() == [128, 128, 128] or np.ptp(picture[50, 50]) == 0
    assert picture[-1, -1].tolist() == [255] * 3
    share = (picture[valid][1:, 0] == 255).mean()
    assert 0.015 < share < 0.03


def test_stretch_rgb__constant_and_empty():
    assert (stretch_rgb(np.ones((2, 2, 3)), np.ones((2, 2), bool)) == 128).all()
    assert (stretch_rgb(np.ones((2, 2, 3)), np.zeros((2, 2), bool)) == 236).all()


@pytest.mark.parametrize(
    ("wavelength", "count", "expected"),
    [
        (np.linspace(400, 2500, 211), 211, (25, 15, 7)),
        (np.linspace(2500, 400, 211), 211, (185, 195, 203)),
        (np.array([np.nan, 470, 550, 650]), 4, (3, 2, 1)),
        (np.linspace(1000, 2500, 100), 100, (20, 10, 5)),
        (np.full(50, np.nan), 50, (10, 5, 2)),
        (None, 1, (0, 0, 0)),
        (None, 2, (1, 1, 0)),
        (np.linspace(1000, 2500, 3), 3, (2, 1, 0)),
        # Without wavelengths the order of pictures: red, green, blue, and near infrared.
        (None, 3, (0, 1, 2)),
        (None, 4, (0, 1, 2)),
        (None, 5, (4, 2, 0)),
    ],
)
def test_choose_rgb_bands(wavelength, count, expected):
    assert choose_rgb_bands({"good": [True] * count, "wavelength": wavelength}) == expected


def test_choose_rgb_bands__those_that_the_file_names():
    bands = {"good": [True] * 6, "wavelength": None, "colors": (5, 1, 0)}
    assert choose_rgb_bands(bands) == (5, 1, 0)
    # Numbers of the good bands alone; a colour whose band is left out is not shown.
    assert choose_rgb_bands({**bands, "good": [True, True, False, True, True, True]}) == (4, 1, 0)
    assert choose_rgb_bands({**bands, "good": [False, True, True, True]}) == (0, 1, 2)
    # Wavelengths say more than the colours that a writer gives any four bands.
    centres = [470.0, 550.0, 650.0, 850.0, 900.0, 950.0]
    assert choose_rgb_bands({**bands, "wavelength": centres}) == (2, 1, 0)

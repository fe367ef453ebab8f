"""Scenes on known ground come back on it: rotated, south-up, in sensor geometry, several lines as one.

Four marks of three by three pixels lie at known places. The centre of each in the class map is to be within
half a pixel of its place.
"""

import numpy as np
import pytest
import rasterio

import eigenscape
from eigenscape.store.run import Run
from inputs import sensors
from inputs.sensors import (
    PIXEL,
    Line,
    cells,
    ground,
    places,
    spectra,
    write_envi,
    write_glt,
    write_igm,
)

MARK = 5
LINE = Line(height=50, width=36)
PIXELS = ((8, 7), (12, 29), (40, 10), (37, 28))
"""Row and column of the middle of each mark."""

KEYS = {
    "neighbors": {"k": 8, "method": "exact"},
    "spectrum": {"dimension": 8},
    "learn": {"method": "k-nn", "k": 1, "trials": 1},
    "limits": {"threads": 2},
    "output": {"eigenvectors": 2},
}


def marked(classes):
    """Return classes with the marks in them."""
    for row, column in PIXELS:
        classes[row - 1 : row + 2, column - 1 : column + 2] = MARK
    return classes


def cube_of(classes, rng):
    return spectra(np.minimum(classes, 4), rng, 0.004) + 0.5 * (classes == MARK)[..., None]


def run_on(tmp_path, east, north, classes, rng, **scene):
    """Run a job whose labels are some pixels of each class, as points on the map."""
    inner = sensors.inner(east, north) & (classes < MARK)
    chosen = rng.permutation(np.flatnonzero(inner))[:160]
    middle = [row * classes.shape[1] + column for row, column in PIXELS]
    chosen = np.concatenate([chosen, middle])
    table = np.column_stack([part.ravel()[chosen] for part in (east, north, classes)])
    np.savetxt(
        tmp_path / "points.csv", table, delimiter=",", header="x,y,class", comments="", fmt="%.3f"
    )
    job = {"scene": {"labels": "points.csv", **scene}, **KEYS}
    return eigenscape.run(eigenscape.parse_job(job, base=tmp_path), run_dir=tmp_path / "run")


def check_marks(result, at, half=0.5):
    """Hold the place of each mark in the class map against where it is."""
    with rasterio.open(result.outputs["class_map"]) as dataset:
        classes, transform = dataset.read(1), dataset.transform
        assert dataset.crs.to_epsg() == 32633
    row, column = np.nonzero(classes == MARK)
    east, north = places(transform, column + 0.5, row + 0.5)
    for true_east, true_north in at:
        near = np.hypot(east - true_east, north - true_north) < 4 * PIXEL
        assert 5 <= near.sum() <= 16
        assert abs(east[near].mean() - true_east) <= half * PIXEL
        assert abs(north[near].mean() - true_north) <= half * PIXEL
    return classes, transform


@pytest.mark.mostly_slow(1)
@pytest.mark.parametrize("kind", ["rotated", "south-up"])
def test_ground__of_a_scene_on_a_grid_of_its_own(tmp_path, rng, kind):
    turn = np.radians(30 if kind == "rotated" else 0)
    up = 1 if kind == "south-up" else -1
    transform = rasterio.Affine(
        PIXEL * np.cos(turn), -up * PIXEL * np.sin(turn), 5e5,
        -PIXEL * np.sin(turn) * -up, up * PIXEL * np.cos(turn), 5.8e6,
    )  # fmt: skip
    row, column = np.mgrid[:50, :36] + 0.5
    east, north = places(transform, column, row)
    classes = marked(ground(east, north))
    with rasterio.open(
        tmp_path / "scene.tif", "w", driver="GTiff", height=50, width=36, count=sensors.BANDS,
        dtype="float32", crs=sensors.CRS, transform=transform,
    ) as dataset:  # fmt: skip
        dataset.write(np.moveaxis(cube_of(classes, rng), -1, 0))
    result = run_on(tmp_path, east, north, classes, rng, path="scene.tif")
    found, kept = check_marks(result, [(east[at], north[at]) for at in PIXELS])
    assert kept == transform
    assert (found == classes).mean() > 0.97


@pytest.mark.mostly_slow(1)
@pytest.mark.parametrize("kind", ["igm", "glt", "turned-glt"])
def test_ground__of_a_scene_in_sensor_geometry(tmp_path, rng, kind):
    east, north = LINE.places
    classes = marked(ground(east, north))
    write_envi(tmp_path / "line_rfl", cube_of(classes, rng))
    if kind == "igm":
        write_igm(tmp_path / "line_igm", LINE)
    else:
        write_glt(tmp_path / "line_glt.tif", LINE, heading=35.0 * (kind != "glt"))
    geometry = {} if kind == "igm" else {"geometry": "line_glt.tif"}
    result = run_on(tmp_path, east, north, classes, rng, path="line_rfl", **geometry)
    found, transform = check_marks(result, [(east[at], north[at]) for at in PIXELS])
    # Neighbours and classes are the sensor's own pixels: no cell of the map is one twice.
    assert Run(result.path, create=False).open("samples/values").shape[0] == 50 * 36
    column, row = (np.floor(part).astype(int) for part in cells(transform, east, north))
    assert (found[row, column] == classes).mean() > 0.93
    for name in ("confidence", "entropy", "eigenvectors"):
        with rasterio.open(result.outputs[name]) as dataset:
            assert dataset.transform == transform
            np.testing.assert_array_equal(np.isfinite(dataset.read(1)), found > 0)
    if kind == "igm":
        _check_applied(tmp_path, rng, result.path)


def _check_applied(tmp_path, rng, run):
    """Apply the run to another line, whose map a table makes."""
    other = Line(height=40, width=30, heading=-12, east=501_000, north=5_799_000)
    east, north = other.places
    classes = marked(ground(east, north))
    write_envi(tmp_path / "other", cube_of(classes, rng))
    write_glt(tmp_path / "table.tif", other)
    applied = eigenscape.apply(
        run, tmp_path / "other", run_dir=tmp_path / "applied",
        overrides=[f"scene.geometry={tmp_path / 'table.tif'}", "limits.threads=2"],
    )  # fmt: skip
    check_marks(applied, [(east[PIXELS[0]], north[PIXELS[0]])])


@pytest.mark.slow
def test_ground__of_two_lines_as_one(tmp_path, rng):
    other = Line(height=44, width=30, heading=10, east=500_060, north=5_799_900)
    names, values = [], []
    for number, line in enumerate((LINE, other)):
        east, north = line.places
        classes = ground(east, north)
        if not number:
            marked(classes)
        # The second line is noisy: where both see the ground, the first is surer.
        cube = cube_of(classes, rng) + number * rng.normal(0, 0.03, (*classes.shape, 1))
        values.append((east, north, classes))
        write_envi(tmp_path / f"line{number}", cube.astype(np.float32))
        write_igm(tmp_path / f"line{number}_igm", line)
        names.append(f"line{number}")
    result = run_on(tmp_path, *values[0], rng, path=names)
    run = Run(result.path, create=False)
    grid = run.record("ingest").summary["map"]["grid"]
    with rasterio.open(result.outputs["class_map"]) as dataset:
        found, transform = dataset.read(1), dataset.transform
    with rasterio.open(result.outputs["confidence"]) as dataset:
        sure = dataset.read(1)
    assert found.shape == (grid["height"], grid["width"])
    # The most confident sample of each cell is shown.
    layers = [np.asarray(run.open(f"map/sample/{number}")[...]) for number in (0, 1)]
    confidence = np.asarray(run.open("labels/confidence")[...])
    shares = [np.where(layer >= 0, confidence[layer], -1) for layer in layers]
    both = (layers[0] >= 0) & (layers[1] >= 0)
    assert 100 < both.sum() < 0.7 * found.size
    there = (layers[0] >= 0) | (layers[1] >= 0)
    np.testing.assert_array_equal(np.isfinite(sure), there)
    np.testing.assert_array_equal(sure[there], np.maximum(*shares)[there])
    called = np.asarray(run.open("labels/class")[...])
    chosen = np.where(shares[1] > shares[0], layers[1], layers[0])
    np.testing.assert_array_equal(found[there], called[chosen[there]])
    # One legend for both: where only the second line is, classes are right too.
    east, north, classes = values[1]
    column, row = (np.floor(part).astype(int) for part in cells(transform, east, north))
    alone = ~both[row, column] & sensors.inner(east, north)
    assert alone.sum() > 100
    assert (found[row, column] == classes)[alone].mean() > 0.9


def test_ground__that_two_lines_see_is_in_one_square(tmp_path, write_tif, rng):
    """Classes without any rule: who has learned the same ground from the other line would know them."""
    values = rng.normal(size=(30, 40, sensors.BANDS)).astype(np.float32)
    for name in ("first.tif", "second.tif"):
        write_tif(name, values)
    write_tif("labels.tif", rng.integers(1, 5, (30, 40)).astype(np.uint8))
    scene = {"path": ["first.tif", "second.tif"], "labels": "labels.tif"}
    learn = {"method": "k-nn", "k": 1, "train": 0.5, "trials": 2}
    job = eigenscape.parse_job({**KEYS, "scene": scene, "learn": learn}, base=tmp_path)
    scores = eigenscape.run(job, run_dir=tmp_path / "run").scores["held_out"]
    assert scores["random"]["overall_accuracy"] > 0.5
    assert scores["blocked"]["overall_accuracy"] < 0.35

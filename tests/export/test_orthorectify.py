import numpy as np
import pytest

from eigenscape.base.process.progress import Silent
from eigenscape.clusters import Threads
from eigenscape.context import Context
from eigenscape.export import canvas, orthorectify
from eigenscape.export.canvas import Canvas
from eigenscape.scenes.types import Grid
from harness import Harness

SENSOR = Grid(9, 8)
MAP = Grid(31, 23, None, (2.0, 0.5, 100.0, 0.5, -2.0, 900.0))


@pytest.fixture
def run_of(tmp_path, rng, monkeypatch):
    """Return a function that makes a canvas of a run with lines, and says what each line's cells show."""
    monkeypatch.setattr(canvas, "STRIP_BYTES", 5000)
    monkeypatch.setattr(canvas, "QUICKLOOK_PIXELS", 9)

    def make(lines, *, classes=True):
        layers = rng.integers(-1, 60, (lines, MAP.height, MAP.width)).astype(np.int32)
        layers[:, :4] = -1
        arrays = {f"map/sample/{number}": layer for number, layer in enumerate(layers)}
        whole = list(arrays)
        arrays |= {"samples/row_start": np.arange(10) * 8, "samples/pixel": np.arange(60)}
        harness = Harness(tmp_path / f"{lines}-{classes}")
        about = {"grid": MAP.to_json(), "lines": lines}
        harness.put("ingest", arrays, whole=whole, grid=SENSOR.to_json(), map=about)
        values = {"spectrum/vector": rng.random((60, 5)).astype(np.float32)}
        if classes:
            values["labels/class"] = rng.integers(1, 9, 60).astype(np.uint16)
            values["labels/confidence"] = rng.random(60).astype(np.float32)
        harness.put("learn", values)
        run = harness.run_directory
        context = Context(harness.job, run, run.workspace("export", "aa"), Threads(1), Silent())
        return Canvas(context, SENSOR), layers, values

    return make


def shown(layers, sure):
    """Return the sample of each cell: of several the surest, of equal ones the first."""
    shares = np.where(layers >= 0, sure[layers], -1)
    return np.take_along_axis(layers, shares.argmax(axis=0)[None], 0)[0]


def joined(strips, axis=0):
    return np.concatenate([strip for _, strip in strips], axis=axis)


@pytest.mark.parametrize("lines", [1, 3])
def test_canvas__strips_of_the_map(run_of, lines):
    drawn, layers, values = run_of(lines)
    sample = shown(layers, values["labels/confidence"])
    assert drawn.grid == MAP
    strips = list(drawn.strips("labels/class", 0, label=""))
    assert len(strips) > 3
    assert [start for start, _ in strips] == sorted({start for start, _ in strips})
    expected = np.where(sample >= 0, values["labels/class"][sample], 0)
    np.testing.assert_array_equal(joined(strips), expected)
    vectors = joined(drawn.strips("spectrum/vector", np.nan, slice(1, 4), label=""), axis=1)
    expected = np.where(
        (sample >= 0)[..., None], values["spectrum/vector"][sample][..., 1:4], np.nan
    )
    np.testing.assert_array_equal(vectors, np.moveaxis(expected, -1, 0))
    confidence = joined(drawn.strips("labels/confidence", np.nan, label=""))
    expected = np.where(sample >= 0, values["labels/confidence"][sample], np.nan)
    np.testing.assert_array_equal(confidence, expected)


def test_canvas__thumbnails_of_the_map(run_of):
    drawn, layers, values = run_of(2)
    sample = shown(layers, values["labels/confidence"])[::4, ::4]
    picture, valid = drawn.thumbnail("labels/class")
    np.testing.assert_array_equal(valid, sample >= 0)
    np.testing.assert_array_equal(picture, np.where(valid, values["labels/class"][sample], 0))
    colors, _ = drawn.thumbnail("spectrum/vector", (4, 0, 2))
    expected = values["spectrum/vector"][sample][..., [4, 0, 2]]
    np.testing.assert_array_equal(colors, np.where(valid[..., None], expected, 0))


def test_canvas__an_array_is_read_once_for_all_strips(run_of, monkeypatch):
    drawn, _, _ = run_of(2)
    copied = []
    create = orthorectify.create_memmap
    monkeypatch.setattr(
        orthorectify,
        "create_memmap",
        lambda path, *more: (copied.append(path.name), create(path, *more)),
    )
    for _ in range(2):
        assert len(list(drawn.strips("labels/class", 0, label=""))) > 3
        assert len(list(drawn.strips("spectrum/vector", 0, slice(1, 4), label=""))) > 3
        drawn.thumbnail("spectrum/vector", (4, 0, 2))
    assert sorted(copied) == [
        "labels-class", "labels-confidence", "spectrum-vector-4-0-2-", "spectrum-vector-slice-1-4-None-",
    ]  # fmt: skip


def test_canvas__without_classes_the_first_line_is_shown(run_of):
    drawn, layers, values = run_of(2, classes=False)
    sample = np.where(layers[0] >= 0, layers[0], layers[1])
    first = joined(drawn.strips("spectrum/vector", -1, slice(0, 1), label=""), axis=1)[0]
    expected = np.where(sample >= 0, values["spectrum/vector"][sample, 0], -1)
    np.testing.assert_array_equal(first, expected)


def test_cells_of__the_first_cell_that_shows_a_sample(run_of):
    drawn, layers, _ = run_of(2)
    wanted = np.array([40, 3, 59, 12])
    found = drawn._map.cells_of(wanted)
    flat = layers[0].ravel()
    assert found.tolist() == [int(np.flatnonzero(flat == sample)[0]) for sample in wanted]

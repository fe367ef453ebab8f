import csv

import matplotlib.image
import numpy as np
import pytest

from eigenscape.base.process.progress import Silent
from eigenscape.clusters import Threads
from eigenscape.export.pictures import scatter
from eigenscape.export.stage import export_stage
from eigenscape.export.tables import samples as tables
from eigenscape.job.jobfile import Job
from eigenscape.learn.decide.kernels.scores import accuracy
from eigenscape.scenes.types import Grid
from eigenscape.store.arrays import open_array
from eigenscape.store.manifest import Record
from eigenscape.store.run import Run
from eigenscape.workflow.runner import StageRunner

SAMPLES = 500


@pytest.fixture
def export(tmp_path, rng):
    """Run the export stage on a table, with classes or without."""
    directory = Run(tmp_path)

    def put(name, arrays, summary):
        workspace = directory.workspace(name, "aa")
        for array, values in arrays.items():
            open_array(workspace.create_array(array, values.shape, values.dtype))[...] = values
        directory.commit(name, workspace, Record("aa", 0, 0, workspace.arrays(), (), summary))

    def run(*, learned=True, nulls=1, **output):
        classes = rng.integers(1, 4, SAMPLES).astype(np.uint16)
        values = rng.standard_normal((SAMPLES, 4)).astype(np.float32)
        given = np.where(rng.random(SAMPLES) < 0.1, classes, 0).astype(np.uint16)
        put(
            "ingest",
            {
                "samples/pixel": np.arange(SAMPLES),
                "samples/row_start": np.arange(SAMPLES + 1),
                "samples/values": values,
                "labels/given": given,
            },
            {
                "grid": Grid(SAMPLES, 1).to_json(),
                "bands": {"good": [True] * 4, "wavelength": None},
                "class_names": {"1": "aa, short", "2": "iy"},
                "class_colors": {},
                "labelled": {str(number): int((given == number).sum()) for number in (1, 2, 3)},
            },
        )
        spectrum = {"spectrum/vector": values, "spectrum/value": np.arange(4.0)}
        put("spectrum", spectrum, {"null_vectors": nulls})
        shares = {"overall_accuracy": 0.9}
        confusion = 10 * np.eye(3, 4, dtype=np.int64)
        scores = {
            "protocol": "pixels held out (random)", **accuracy(confusion),
            "confusion": confusion.tolist(), "training_pixels": shares, "held_out": {"random": shares},
        }  # fmt: skip
        arrays = {"labels/class": classes, "labels/confidence": rng.random(SAMPLES, np.float32)}
        summary = {"classes": [1, 2, 3], "scores": scores}
        put("learn", arrays if learned else {}, summary if learned else {"skipped": "no labels"})
        job = Job.model_validate(
            {
                "scene": {"path": "x"},
                "spectrum": {"dimension": 3},
                "output": {"formats": ["geotiff", "png"], **output},
                "name": "words",
            }
        )
        runner = StageRunner(directory, Threads(1), Silent())
        outputs = runner.run("export", "aa", export_stage, job).summary["outputs"]
        files = {name: directory.path / "outputs" / file for name, file in outputs.items()}
        return files, classes, values

    return run


def test_export_stage__of_a_table_writes_its_classes(export, monkeypatch):
    monkeypatch.setattr(tables, "_CSV_ROWS", 64)
    files, classes, _ = export()
    assert sorted(files) == ["classes", "confusion", "embedding", "legend", "scores"]
    with files["classes"].open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [int(row["row"]) for row in rows] == list(range(SAMPLES))
    np.testing.assert_array_equal([int(row["class"]) for row in rows], classes)
    names = {1: "aa, short", 2: "iy", 3: "class 3"}
    assert [row["name"] for row in rows] == [names[number] for number in classes]
    assert 0.4 < np.mean([float(row["confidence"]) for row in rows]) < 0.6


@pytest.mark.parametrize(("nulls", "columns"), [(1, [1, 2]), (0, [1, 2]), (3, [2, 3])])
def test_write_embedding__shows_the_first_vectors_that_are_not_constant(
    export, monkeypatch, nulls, columns
):
    monkeypatch.setattr(tables, "MOST_POINTS", 90)
    monkeypatch.setattr("eigenscape.store.arrays._CHUNK_ROWS", 64)
    shown = {}
    monkeypatch.setattr(
        tables, "write_scatter",
        lambda path, points, panels, legend, **_: (
            path.touch(), shown.update(points=points, panels=panels)
        ),
    )  # fmt: skip
    _, classes, values = export(nulls=nulls)
    np.testing.assert_array_equal(shown["points"], values[::6, columns])
    np.testing.assert_array_equal(shown["panels"]["Classes"], classes[::6])


def test_export_stage__of_a_table_without_labels_is_a_picture(export):
    files, _, _ = export(learned=False)
    assert list(files) == ["embedding"]
    picture = matplotlib.image.imread(files["embedding"])
    assert picture.shape[0] > 500
    # Points in the one colour, on white.
    assert (np.abs(picture[..., :3] - [0, 114 / 255, 178 / 255]).max(axis=-1) < 0.02).any()


@pytest.mark.parametrize("learned", [True, False])
def test_export_stage__of_a_table_leaves_nothing_outside_the_picture(export, learned):
    picture = matplotlib.image.imread(export(learned=learned)[0]["embedding"])[..., :3]
    inked = picture.min(axis=2) < 0.9
    for edge in (inked[:4], inked[-4:], inked[:, :4], inked[:, -4:]):
        assert not edge.any()
    # The name of the vertical axis stands left of its numbers, and these left of the panel.
    frame = np.flatnonzero(inked.mean(axis=0) > 0.5)[0]
    columns = inked[:, :frame].any(axis=0)
    assert columns.sum() > 20


def test_export_stage__of_a_table_writes_what_is_asked(export):
    assert export(formats=[])[0].keys() == {"legend", "scores", "confusion"}
    assert export(formats=["geotiff"])[0].keys() == {"legend", "scores", "confusion", "classes"}


def test_write_scatter__colours_points_by_class(tmp_path, rng):
    points = rng.standard_normal((300, 2))
    points[0] = np.nan
    classes = rng.integers(0, 3, 300)
    legend = scatter.Legend({1: "cost in $", 2: "b"}, {1: (255, 0, 0), 2: (0, 0, 255)})
    path = tmp_path / "a.png"
    scatter.write_scatter(path, points, {"Classes": classes}, legend, title="t", subtitle="s")
    picture = matplotlib.image.imread(path)[..., :3]
    for color in ([1, 0, 0], [0, 0, 1]):
        assert (np.abs(picture - color).max(axis=-1) < 0.02).sum() > 100

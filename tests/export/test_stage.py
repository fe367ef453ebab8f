import csv

import numpy as np
import pytest
import rasterio
from matplotlib.image import imread

from eigenscape.base.process.progress import Silent
from eigenscape.clusters import Threads
from eigenscape.context import Context
from eigenscape.errors import JobError
from eigenscape.export import canvas
from eigenscape.export.formats import png
from eigenscape.export.stage import describe_scores, export_stage
from eigenscape.job.jobfile import Job
from eigenscape.learn.decide.kernels.scores import accuracy
from eigenscape.scenes.types import Grid
from eigenscape.store.arrays import open_array
from eigenscape.store.manifest import Record
from eigenscape.store.run import Run
from eigenscape.workflow.runner import StageRunner

HEIGHT, WIDTH, MODES, NULL = 50, 30, 5, 2
WKT = rasterio.crs.CRS.from_epsg(32633).to_wkt()
ROTATED = (10.0, 2.0, 364095.0, 2.0, -10.0, 5809965.0)


class World:
    """A run whose earlier stages are given; `export` runs the last one."""

    def __init__(self, path, rng, *, labelled=True, numbers=(1, 2, 3), grid=None):
        self.run = Run(path)
        valid = rng.random(HEIGHT * WIDTH) < 0.7
        valid[3 * WIDTH : 5 * WIDTH] = False
        self.valid = valid.reshape(HEIGHT, WIDTH)
        self.pixel = np.flatnonzero(valid)
        n = len(self.pixel)
        self.classes = rng.choice(numbers, n).astype(np.uint16)
        self.confidence = rng.random(n).astype(np.float32)
        self.vectors = rng.normal(size=(n, NULL + MODES)).astype(np.float32)
        self.values = np.arange(NULL + MODES) / 10
        starts = np.concatenate([[0], np.cumsum(self.valid.sum(axis=1))])
        ingest = {
            "grid": (grid or Grid(HEIGHT, WIDTH, WKT, ROTATED)).to_json(),
            "bands": {"good": [True, False, True, True], "wavelength": [450, 500, 550, 650]},
            "class_names": {"1": "water", "2": "forest, old"},
            "class_colors": {"1": [0, 0, 255]},
        }
        bands = {
            "samples/pixel": self.pixel,
            "samples/row_start": starts,
            "samples/values": rng.normal(size=(n, 3)).astype(np.float32),
            "labels/given": np.where(rng.random(n) < 0.5, self.classes, 0).astype(np.uint16),
        }
        self.put("ingest", bands, ingest)
        spectrum = {"spectrum/vector": self.vectors, "spectrum/value": self.values}
        self.put("spectrum", spectrum, {"null_vectors": NULL})
        if labelled:
            shares = {"overall_accuracy": 0.9}
            confusion = 10 * np.eye(len(numbers), len(numbers) + 1, dtype=np.int64)
            scores = {
                "protocol": "pixels held out (random)", **accuracy(confusion),
                "confusion": confusion.tolist(), "training_pixels": shares,
                "held_out": {"random": {"overall_accuracy": None}},
            }  # fmt: skip
            arrays = {"labels/class": self.classes, "labels/confidence": self.confidence}
            self.put("learn", arrays, {"classes": list(map(int, numbers)), "scores": scores})
        else:
            self.put("learn", {}, {"skipped": "no labels"})

    def put(self, name, arrays, summary):
        workspace = self.run.workspace(name, "aa")
        for array, values in arrays.items():
            open_array(workspace.create_array(array, values.shape, values.dtype))[...] = values
        self.run.commit(name, workspace, Record("aa", 0, 0, workspace.arrays(), (), summary))

    def export(self, **output):
        tables = {
            "spectrum": {"dimension": MODES},
            "output": {"formats": ["geotiff", "png"], **output},
            "name": "world",
        }
        job = Job.model_validate({"scene": {"path": "x"}, **tables})
        runner = StageRunner(self.run, Threads(1), Silent())
        record = runner.run("export", "aa", export_stage, job)
        outputs = record.summary["outputs"]
        assert sorted(set(outputs.values())) == sorted(
            name for name in record.files if not name.endswith(".aux.xml")
        )
        return {name: self.run.path / "outputs" / file for name, file in outputs.items()}

    def image(self, values, fill):
        image = np.full(HEIGHT * WIDTH, fill, values.dtype)
        image[self.pixel] = values
        return image.reshape(HEIGHT, WIDTH)


def read(path):
    with rasterio.open(path) as dataset:
        return dataset.read(), dataset.profile, dataset


def test_export_stage__samples_return_to_their_pixels(tmp_path, rng, monkeypatch):
    monkeypatch.setattr(canvas, "STRIP_BYTES", 1000)
    world = World(tmp_path, rng)
    outputs = world.export(eigenvectors=3)
    classes, profile, _ = read(outputs["class_map"])
    np.testing.assert_array_equal(classes[0], world.image(world.classes, 0))
    assert (profile["dtype"], profile["nodata"]) == ("uint8", 0)
    assert profile["crs"].to_epsg() == 32633
    assert tuple(profile["transform"])[:6] == ROTATED
    confidence, profile, _ = read(outputs["confidence"])
    np.testing.assert_array_equal(confidence[0], world.image(world.confidence, np.nan))
    assert np.isnan(profile["nodata"])
    with rasterio.open(outputs["eigenvectors"]) as dataset:
        assert dataset.descriptions == ("eig_001", "eig_002", "eig_003")
        assert float(dataset.tags(2)["eigenvalue"]) == pytest.approx(world.values[NULL + 1])
        for band in (1, 2, 3):
            # The null vectors are left out.
            expected = world.image(world.vectors[:, NULL + band - 1], np.nan)
            np.testing.assert_array_equal(dataset.read(band), expected)


def test_export_stage__legend_and_categories(tmp_path, rng):
    world = World(tmp_path, rng)
    outputs = world.export()
    with open(outputs["legend"], newline="", encoding="utf-8") as stream:
        rows = list(csv.reader(stream))[1:]
    counts = np.bincount(world.classes)
    assert [row[0] for row in rows] == ["1", "2", "3"]
    assert [row[1] for row in rows[:2]] == ["water", "forest, old"]
    for row in rows:
        assert str(counts[int(row[0])]) in row
    with rasterio.open(outputs["class_map"]) as dataset:
        colors = dataset.colormap(1)
    assert colors[1][:3] == (0, 0, 255)
    assert len({colors[number][:3] for number in (1, 2, 3)}) == 3
    sidecar = outputs["class_map"].with_name("class_map.tif.aux.xml").read_text(encoding="utf-8")
    assert "<Category>forest, old</Category>" in sidecar


def test_export_stage__colours_of_the_job(tmp_path, rng):
    given = {"Water": [1, 2, 3], "3": "#0A0B0C", "class 3": "#040506", "nothing": "#000000"}
    world = World(tmp_path, rng)
    outputs = world.export(colors=given)
    with rasterio.open(outputs["class_map"]) as dataset:
        colors = dataset.colormap(1)
    assert colors[1][:3] == (1, 2, 3)
    assert colors[3][:3] == (4, 5, 6)
    with pytest.raises(JobError, match=r"'blue' is not a colour: give \"#005ce6\" or"):
        world.export(colors={"water": "blue"})


def test_export_stage__class_numbers_above_255(tmp_path, rng):
    world = World(tmp_path, rng, numbers=(1, 300, 65535))
    classes, profile, _ = read(world.export()["class_map"])
    assert profile["dtype"] == "uint16"
    np.testing.assert_array_equal(classes[0], world.image(world.classes, 0))


def test_export_stage__without_a_crs(tmp_path, rng):
    world = World(tmp_path, rng, grid=Grid(HEIGHT, WIDTH))
    with pytest.warns(rasterio.errors.NotGeoreferencedWarning):
        _, profile, _ = read(world.export()["class_map"])
    assert profile["crs"] is None


def test_export_stage__without_labels_only_eigenvectors(tmp_path, rng):
    outputs = World(tmp_path, rng, labelled=False).export()
    assert set(outputs) == {"eigenvectors", "eigenvectors_quicklook"}
    assert read(outputs["eigenvectors"])[0].shape == (MODES, HEIGHT, WIDTH)


TABLES = ("legend", "scores", "confusion")


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ({"formats": ["geotiff"]}, {"class_map", "confidence", "eigenvectors", *TABLES}),
        ({"formats": ["png"]}, {"quicklook", "eigenvectors_quicklook", *TABLES}),
        ({"formats": ["geotiff"], "eigenvectors": 0}, {"class_map", "confidence", *TABLES}),
        ({"formats": []}, {*TABLES}),
    ],
)
def test_export_stage__formats(tmp_path, rng, output, expected):
    assert set(World(tmp_path, rng).export(**output)) == expected


def test_export_stage__same_bytes_twice(tmp_path, rng):
    world = World(tmp_path, rng)
    first = {name: path.read_bytes() for name, path in world.export().items()}
    assert {name: path.read_bytes() for name, path in world.export().items()} == first


def test_export_stage__samples_without_coordinates(tmp_path, rng):
    world = World(tmp_path, rng)
    world.vectors[:100] = np.nan
    world.classes[:100] = 0
    spectrum = {"spectrum/vector": world.vectors, "spectrum/value": world.values}
    world.put("spectrum", spectrum, {"null_vectors": NULL})
    outputs = world.export()
    assert np.isnan(read(outputs["eigenvectors"])[0]).sum() > MODES * 100
    assert outputs["eigenvectors_quicklook"].stat().st_size > 100


def test_eigenvectors_quicklook__has_a_title_above_its_pixels(tmp_path, rng):
    world = World(tmp_path, rng)
    outputs = world.export()
    picture = imread(outputs["eigenvectors_quicklook"])[..., :3]
    height, width = HEIGHT, WIDTH
    scale = 800 // max(height, width)
    above = picture.shape[0] - scale * height
    # A margin above and below, and two lines of words: dark on white, without colour.
    assert above > 140
    title = picture[50 : above - 60]
    assert title.min() < 0.5
    assert np.ptp(title, axis=-1).max() < 0.2
    assert picture.shape[1] >= scale * width


def test_thumbnail__takes_every_few_pixels(tmp_path, rng, monkeypatch):
    monkeypatch.setattr(canvas, "QUICKLOOK_PIXELS", 20)
    monkeypatch.setattr(canvas, "STRIP_BYTES", 1000)
    world = World(tmp_path, rng)
    job = Job.model_validate({"scene": {"path": "x"}})
    context = Context(job, world.run, world.run.workspace("export", "aa"), Threads(1), Silent())
    drawn = canvas.Canvas(context, Grid(HEIGHT, WIDTH))
    picture, valid = drawn.thumbnail("labels/class")
    np.testing.assert_array_equal(valid, world.valid[::3, ::3])
    np.testing.assert_array_equal(picture, world.image(world.classes, 0)[::3, ::3])
    colors, _ = drawn.thumbnail("spectrum/vector", (4, 2))
    for place, column in enumerate((4, 2)):
        expected = world.image(world.vectors[:, column], 0)[::3, ::3]
        np.testing.assert_array_equal(colors[..., place], expected)
    # So few rows that nothing between them is read.
    step, read = HEIGHT - 1, []
    assert step * WIDTH >= context.open("labels/class").chunks[0]
    samples = drawn.samples
    drawn.samples = lambda array, *rows: read.append(rows) or samples(array, *rows)
    picture, valid = drawn.thumbnail("labels/class", step=step)
    assert read == [(0, 1), (step, HEIGHT)]
    np.testing.assert_array_equal(valid, world.valid[::step, ::step])
    np.testing.assert_array_equal(picture, world.image(world.classes, 0)[::step, ::step])


def clusters_of(world, agreement):
    """Give the classes of a world as clusters."""
    scores = {
        "clusters": 3, "method": "normalized-cut", "ncut": 0.25, "agreement": agreement,
    }  # fmt: skip
    arrays = {"labels/class": world.classes, "labels/confidence": world.confidence}
    names = {str(number): f"cluster {number}" for number in (1, 2, 3)}
    world.put("learn", arrays, {"classes": [1, 2, 3], "names": names, "scores": scores})


def pictures(monkeypatch):
    """Return what the quick-look is made of."""
    made = []
    draw = png.write_quicklook
    monkeypatch.setattr(
        png, "write_quicklook", lambda path, **parts: made.append(parts) or draw(path, **parts)
    )
    return made


def test_export_stage__clusters_of_a_scene_without_labels(tmp_path, rng, monkeypatch):
    world = World(tmp_path, rng)
    clusters_of(world, None)
    (tmp_path / "store.zarr" / "labels" / "given").rename(tmp_path / "gone")
    made = pictures(monkeypatch)
    outputs = world.export()
    with open(outputs["legend"], newline="", encoding="utf-8") as stream:
        rows = list(csv.reader(stream))[1:]
    # Neither the names nor the colours of classes.
    assert [row[1] for row in rows] == ["cluster 1", "cluster 2", "cluster 3"]
    with rasterio.open(outputs["class_map"]) as dataset:
        colors = [dataset.colormap(1)[number][:3] for number in (1, 2, 3)]
    assert colors == [(0, 114, 178), (230, 159, 0), (0, 158, 115)]
    assert made[0]["given_labels"] is None
    assert made[0]["subtitle"] == "3 clusters (normalized-cut), Ncut 0.25"


def test_export_stage__labels_in_the_colours_of_their_clusters(tmp_path, rng, monkeypatch):
    world = World(tmp_path, rng)
    agreement = {
        "ari": 0.5, "nmi": 0.6, "best_match_accuracy": 0.7, "classes": [1, 2, 3],
        "matches": [3, None, 1],
    }  # fmt: skip
    clusters_of(world, agreement)
    made = pictures(monkeypatch)
    world.export()
    given = np.asarray(world.run.open("labels/given")[...])
    painted = np.array([0, 3, 4, 1], np.uint16)[given]
    np.testing.assert_array_equal(made[0]["given_labels"], world.image(painted, 0))
    legend = made[0]["legend"]
    assert legend.names[4] == "classes without a cluster"
    assert legend.names[3] == "cluster 3"
    assert "ARI 0.500, NMI 0.600, best match 70.0 %" in made[0]["subtitle"]


def test_describe_scores__says_what_was_measured_on_what():
    shares = {"overall_accuracy": 0.987}
    text = describe_scores({"training_pixels": shares, "held_out": {"blocked": shares}}, "pixels")
    assert text == "accuracy on held-out pixels: blocked split 98.7 %; on training pixels 98.7 %"
    nothing = {"overall_accuracy": None}
    text = describe_scores({"training_pixels": nothing, "held_out": {"file": nothing}}, "samples")
    assert "not measured" in text

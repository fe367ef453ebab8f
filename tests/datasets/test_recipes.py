"""Every registered set as a job sees it: values, classes, names."""

import gzip
import io
import json
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse
from scipy.io import savemat

from eigenscape import datasets
from eigenscape.datasets import load
from eigenscape.datasets.catalog import DATA_SETS
from eigenscape.errors import SceneError
from eigenscape.job.options import SceneOptions
from eigenscape.scenes.labels.sources import open_labels
from eigenscape.scenes.open import open_scene
from eigenscape.scenes.registry import registered

MADE = [name for name, item in DATA_SETS.items() if item.samples is not None]


def opened(path, **keys):
    options = SceneOptions(path=path, **keys)
    scene = open_scene(options, str)
    return scene, open_labels(options, scene, str)


def whole(scene):
    values, valid = scene.read(0, scene.grid.height)
    assert valid.all()
    return values.reshape(scene.grid.size, -1) if isinstance(values, np.ndarray) else values


@pytest.fixture
def put(data_home):
    """Put a file into the data directory; return its path."""

    def make(name, content=b""):
        path = data_home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        return path

    return make


@pytest.mark.parametrize("name", MADE)
def test_made__is_what_the_function_draws(data_home, name):
    scene, labels = opened(name, samples=60, seed=5)
    points, known = getattr(datasets, name.replace("-", "_"))(60, 5)
    np.testing.assert_array_equal(whole(scene), points.astype(np.float32))
    classes = DATA_SETS[name].classes
    if classes:
        assert labels.legend.names == dict(enumerate(classes, start=1))
        np.testing.assert_array_equal(labels.read(0, 60)[:, 0], known)
    else:
        assert labels is None


@pytest.mark.parametrize("name", ["swiss-roll", "plane-curve"])
def test_made__has_a_size_and_a_seed_by_default(data_home, name):
    scene, _ = opened(name)
    rows, columns = DATA_SETS[name].shape
    assert (scene.grid.height, scene.grid.width, scene.bands.count) == (rows, 1, columns)
    np.testing.assert_array_equal(whole(scene), whole(opened(name, samples=rows, seed=0)[0]))


def write_mnist(put, digits=(5, 0, 4, 1)):
    stream = io.BytesIO()
    images = np.arange(len(digits) * 6, dtype=np.uint8).reshape(-1, 2, 3)
    np.savez(stream, x_train=images, y_train=np.array(digits, np.uint8), x_test=images[:1])
    put("mnist/mnist.npz", stream.getvalue())
    return images


def test_mnist__rows_are_images_and_classes_digits(put):
    images = write_mnist(put)
    scene, labels = opened("mnist")
    np.testing.assert_array_equal(whole(scene), images.reshape(4, 6))
    given = labels.read(0, 4)[:, 0]
    assert [labels.legend.names[number] for number in given.tolist()] == ["5", "0", "4", "1"]
    assert given.min() > 0


def test_mnist__other_arrays_are_refused(put):
    stream = io.BytesIO()
    np.savez(stream, x_train=np.zeros((3, 4)), y_train=np.zeros(3))
    put("mnist/mnist.npz", stream.getvalue())
    with pytest.raises(SceneError, match=r"x_train of shape \(3, 4\)"):
        opened("mnist")


@pytest.mark.parametrize("ending", ["npz", "data"])
def test_phoneme__both_forms(put, ending):
    values, names = np.array([[1.5, 2.0], [0.25, -3.0], [4.0, 5.0]]), ["sh", "aa", "sh"]
    if ending == "npz":
        stream = io.BytesIO()
        np.savez(stream, X=values, g=np.array(names), speaker=np.array(["a", "b", "c"]))
        content = stream.getvalue()
    else:
        rows = [
            f"{number},{','.join(map(str, row))},{name},train.dr1.m{number}.sa1"
            for number, (row, name) in enumerate(zip(values, names, strict=True), start=1)
        ]
        content = "\n".join(["row.names,x.1,x.2,g,speaker", *rows]).encode()
    put(f"phoneme/phoneme.{ending}", content)
    scene, labels = opened("phoneme")
    np.testing.assert_array_equal(whole(scene), values)
    np.testing.assert_array_equal(labels.read(0, 3)[:, 0], [2, 1, 2])


POSTINGS = [
    ("train", "sci.space", 10, "Subject: x\n\nrocket rocket orbit"),
    ("train", "rec.autos", 9, "Subject: rocket\n\nengine wheel \xe9"),
    ("test", "rec.autos", 100, "Subject: y\n\nthe and of"),
    ("train", "rec.autos", 71, "Subject: z\n\nengine orbit"),
]


@pytest.fixture(params=["archive", "lines"])
def postings(request, put):
    """Put the postings into the data directory in one of the two forms."""
    if request.param == "lines":
        keys = ("split", "label", "id", "text")
        lines = "\n".join(
            json.dumps(dict(zip(keys, map(str, item), strict=True))) for item in POSTINGS
        )
        return put("20newsgroups/20news_bydate.jsonl.gz", gzip.compress(lines.encode()))
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as archive:
        for split, group, number, text in POSTINGS:
            member = tarfile.TarInfo(f"20news-bydate-{split}/{group}/{number}")
            member.size = len(text.encode("latin-1"))
            archive.addfile(member, io.BytesIO(text.encode("latin-1")))
    return put("20newsgroups/20news-bydate.tar.gz", stream.getvalue())


def test_newsgroups__both_forms_give_the_same(postings, data_home):
    scene, labels = opened("20newsgroups")
    folder = Path(registered("20newsgroups").locate().paths[0]).parent
    words = (folder / "columns.txt").read_text(encoding="utf-8").split()
    assert words == ["engine", "orbit", "rocket", "wheel"]
    # By split, group and number; a posting of stop words only is left out.
    assert load("20newsgroups").names == ["rec.autos/9", "rec.autos/71", "sci.space/10"]
    np.testing.assert_array_equal(labels.read(0, 3)[:, 0], [1, 1, 2])
    values = whole(scene)
    assert scipy.sparse.issparse(values)
    expected = [[1 / 2, 0, 0, 1 / 2], [1 / 2, 1 / 2, 0, 0], [0, 1 / 3, 2 / 3, 0]]
    np.testing.assert_allclose(values.toarray(), expected, rtol=1e-6)


def test_brown__words_of_the_tagged_texts(put):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("brown/README", "not/a text/b")
        archive.writestr("brown/cats.txt", "ca01 news")
        archive.writestr("brown/ca01", "\n\tThe/at and/or/cc cat/nn ./.\n\n\nthe/at cat/nn\n")
        archive.writestr("brown/cr09", "1/2/cd the/at cat/nn\n")
    put("brown/brown.zip", stream.getvalue())
    scene, labels = opened("brown")
    assert labels is None
    assert load("brown").names == ["cat", "the", "and/or"]
    before = whole(scene)[:, :3]
    np.testing.assert_array_equal(before, [[0, 2, 1], [0, 0, 0], [0, 1, 0]])


def test_urban_like__is_a_scene_with_labels(put, monkeypatch, rng):
    shape = (6, 5)
    monkeypatch.setattr("eigenscape.datasets.recipes.URBAN_SHAPE", shape)
    shares, spectra = rng.dirichlet([0.1] * 6, 30).T, rng.uniform(0.1, 0.5, (8, 6))
    stream = io.BytesIO()
    savemat(stream, {"A": shares, "M": spectra})
    put("urban-abundances/end6_groundTruth.mat", stream.getvalue())
    scene, labels = opened("urban-like", seed=3)
    cube, classes = datasets.urban_like(shares, spectra, shape, 3)
    np.testing.assert_array_equal(scene.read(0, 6)[0], cube)
    np.testing.assert_array_equal(labels.read(0, 6), classes)
    assert labels.legend.names[1] == "Asphalt road"


def test_samples__draws_from_a_registered_table(put):
    images = write_mnist(put, digits=np.arange(200) % 10)
    scene, labels = opened("mnist", samples=30, seed=1)
    values = whole(scene)
    assert values.shape == (30, 6)
    rows = scene.subset.rows
    np.testing.assert_array_equal(values, images.reshape(200, 6)[rows])
    np.testing.assert_array_equal(labels.read(0, 30)[:, 0], rows % 10 + 1)


def test_seed__means_nothing_to_a_file(put):
    write_mnist(put)
    with pytest.raises(SceneError, match=r"scene.seed = 1: .* is not made with a seed"):
        opened("mnist", seed=1)


def test_load__names_follow_the_draw(postings):
    everything, two = load("20newsgroups"), load("20newsgroups", samples=2, seed=4)
    assert everything.classes[1] == "alt.atheism"
    rows = [everything.names.index(name) for name in two.names]
    assert len(rows) == 2
    assert (abs(two.values - everything.values[rows])).max() == 0
    np.testing.assert_array_equal(two.labels, everything.labels[rows])


def test_load__of_an_image_its_valid_pixels(data_home, small):
    folder = data_home / "urban"
    folder.mkdir(parents=True)
    cube = small.cube.copy()
    cube[small.hole] = np.nan
    np.save(folder / "urban.npy", cube)
    np.save(folder / "urban_labels.npy", small.labels)
    table = load("urban")
    np.testing.assert_array_equal(table.values, small.cube[~small.hole])
    np.testing.assert_array_equal(table.labels, small.labels[~small.hole])
    assert table.names is None


def test_load__of_what_is_made(data_home):
    table = load("swiss-roll", samples=30, seed=2)
    np.testing.assert_array_equal(table.values, datasets.swiss_roll(30, 2)[0].astype(np.float32))
    assert table.labels is None
    assert table.classes == {}

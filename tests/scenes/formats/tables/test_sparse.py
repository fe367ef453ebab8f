"""Sparse tables: the same samples as the dense matrix, and clear words about files that are none."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from scipy.io import savemat

from eigenscape.base.process.progress import Silent
from eigenscape.clusters import Threads
from eigenscape.errors import SceneError
from eigenscape.job.jobfile import load_job
from eigenscape.job.options import SceneOptions
from eigenscape.scenes.formats.tables.sparse import SparseScene
from eigenscape.scenes.ingest.stage import ingest_stage
from eigenscape.scenes.open import open_scene
from eigenscape.store.arrays import open_memmap
from eigenscape.store.rows import Rows
from eigenscape.store.run import Run
from eigenscape.workflow.runner import StageRunner

ROWS, COLUMNS = 90, 17


@pytest.fixture
def dense(rng):
    """Word counts with an empty row and an empty column."""
    table = rng.integers(1, 9, (ROWS, COLUMNS)) * (rng.random((ROWS, COLUMNS)) < 0.2)
    table[4], table[:, 6] = 0, 0
    return table.astype(np.int64)


@pytest.fixture
def save(tmp_path):
    """Save a dense or sparse matrix as scipy.sparse.save_npz does."""

    def write(matrix, kind="csr", name="words.npz"):
        sparse = matrix if sp.issparse(matrix) else sp.coo_array(matrix).asformat(kind)
        sp.save_npz(tmp_path / name, sparse)
        return tmp_path / name

    return write


@pytest.fixture
def ingested(tmp_path, write_job):
    """Run ingest on words.npz; return its summary, the table and a reader of the other arrays."""

    def work(directory="run", reporter=None, **scene):
        job = load_job(write_job(scene={"path": "words.npz", **scene}))
        run = Run(tmp_path / directory)
        runner = StageRunner(run, Threads(2), reporter or Silent())
        summary = runner.run("ingest", "aa", ingest_stage, job).summary
        table = Rows(str(run.array_path("samples/values")))
        return summary, table, lambda name: run.open(name)[...]

    return work


def alter(path, **parts):
    """Write a file again with other parts; None leaves one out."""
    with np.load(path) as archive:
        known = {**dict(archive), **parts}
    np.savez(path, **{name: part for name, part in known.items() if part is not None})


def assert_canonical(table):
    """No zero is stored, and columns ascend within a row, so that none stands twice."""
    folder = table.path
    data, indices, starts = (
        open_memmap(f"{folder}/{name}") for name in ("data", "indices", "indptr")
    )
    assert (data.dtype, indices.dtype, starts.dtype) == (np.float32, np.int32, np.int64)
    assert (data != 0).all()
    step = np.diff(indices)
    borders = starts[1:-1]
    step[borders[(borders > 0) & (borders < len(indices))] - 1] = 1
    assert (step > 0).all()


@pytest.mark.parametrize("kind", ["csr", "csc", "coo"])
@pytest.mark.parametrize("array", [True, False])
def test_ingest_stage__equals_the_dense_matrix(ingested, save, dense, kind, array):
    save(sp.coo_array(dense).asformat(kind) if array else sp.coo_matrix(dense).asformat(kind))
    summary, table, read = ingested()
    assert table.sparse
    assert table.shape == (ROWS, COLUMNS)
    assert table.stored == np.count_nonzero(dense)
    np.testing.assert_array_equal(table.read(0, ROWS).toarray(), dense)
    np.testing.assert_array_equal(table.read(3, 11).toarray(), dense[3:11])
    assert_canonical(table)
    np.testing.assert_array_equal(read("samples/pixel"), np.arange(ROWS))
    np.testing.assert_array_equal(read("samples/row_start"), np.arange(ROWS + 1))
    assert summary["samples"] == ROWS
    assert summary["grid"] == {
        "height": ROWS, "width": 1, "crs_wkt": None, "transform": None,
    }  # fmt: skip
    assert summary["bands"]["good"] == (True,) * COLUMNS


@given(
    entries=st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3), st.integers(-3, 3))),
    start=st.integers(0, 4),
    count=st.integers(1, 5),
    kind=st.sampled_from(["coo", "csr", "csc"]),
)
def test_read__sums_duplicates_and_drops_zeros(tmp_path_factory, entries, start, count, kind):
    row, column, data = np.array([*entries, (0, 0, 0)], np.int32).T
    table = sp.coo_array((data, (row, column)), shape=(5, 4))
    path = tmp_path_factory.mktemp("table") / "words.npz"
    if kind == "coo":
        sp.save_npz(path, table)
    else:
        major, minor = (row, column) if kind == "csr" else (column, row)
        order = np.argsort(major, kind="stable")
        starts = np.searchsorted(major[order], np.arange((5 if kind == "csr" else 4) + 1))
        np.savez(
            path, format=kind.encode(), shape=(5, 4), data=data[order], indices=minor[order],
            indptr=starts,
        )  # fmt: skip
    stop = min(5, start + count)
    scene = open_scene(SceneOptions(path=str(path)), str)
    values, valid = pickle.loads(pickle.dumps(scene)).read(start, stop)
    np.testing.assert_array_equal(values.toarray(), table.toarray()[start:stop])
    assert valid.all()
    assert valid.shape == (stop - start, 1)
    assert values.nnz == np.count_nonzero(table.toarray()[start:stop])
    assert values.dtype == np.float32


def test_read__duplicates_of_bytes_do_not_wrap(scene, save):
    row, column = np.zeros((2, 3), np.int32)
    save(sp.coo_array((np.full(3, 100, np.uint8), (row, column)), shape=(2, 2)))
    assert scene("words.npz").read(0, 2)[0].toarray()[0, 0] == 300


@pytest.mark.parametrize("index", [np.int64, np.uint32, np.uint64, np.uint8])
def test_read__any_type_of_index_and_value(scene, save, dense, index):
    path = save(dense)
    with np.load(path) as archive:
        parts = {name: archive[name].astype(index) for name in ("indices", "indptr")}
    if index == np.uint8:
        del parts["indptr"]  # it counts to more than 255
    for kind in (np.bool_, np.float16, np.uint8):
        alter(path, **parts, data=sp.csr_array(dense).data.astype(kind))
        opened = scene("words.npz")
        expected = dense.astype(kind).astype(np.float32)
        np.testing.assert_array_equal(opened.read(0, ROWS)[0].toarray(), expected)


def test_read__coordinates_in_one_array(scene, save, dense):
    path = save(dense, "coo")
    alter(path, coords=np.array(np.nonzero(dense)), row=None, col=None)
    np.testing.assert_array_equal(scene("words.npz").read(0, ROWS)[0].toarray(), dense)


def test_open_scene__reads_headers_only(scene, save, dense):
    path = save(dense, "coo")
    opened = scene("words.npz")
    assert isinstance(opened, SparseScene)
    assert (opened.entries, opened.row_step) == (np.count_nonzero(dense), ROWS)
    assert opened.files == (str(path),)
    alter(path, row=np.zeros(3, int))
    assert isinstance(scene("words.npz"), SparseScene)


@pytest.mark.parametrize("rows", [1, 7, 89])
def test_ingest_stage__same_table_for_any_strip(ingested, save, dense, in_strips, rows):
    table = dense.astype(float)
    table[10:12, 3], table[20, 0] = np.nan, np.inf
    save(table)
    expected = ingested()
    in_strips(rows)
    found = ingested(directory="other")
    assert found[0] == expected[0]
    for one, other in ((expected[1].read(0, 87), found[1].read(0, 87)),):
        np.testing.assert_array_equal(one.toarray(), other.toarray())
    for name in ("samples/pixel", "samples/row_start"):
        np.testing.assert_array_equal(found[2](name), expected[2](name))


def test_ingest_stage__bad_bands_and_scale(ingested, save, dense):
    save(dense)
    summary, table, _ = ingested(bad_bands=[2, "5-7"], scale=0.5)
    good = [column for column in range(COLUMNS) if column not in (1, 4, 5, 6)]
    np.testing.assert_array_equal(table.read(0, ROWS).toarray(), dense[:, good] * 0.5)
    assert_canonical(table)
    assert sum(summary["bands"]["good"]) == len(good)
    with pytest.raises(SceneError, match="numbered 1 to 17"):
        ingested(bad_bands=[18], directory="other")
    with pytest.raises(SceneError, match="all 17 bands are bad"):
        ingested(bad_bands=["1-17"], directory="other")


@pytest.mark.parametrize("kind", ["csr", "csc"])
def test_ingest_stage__rows_that_are_not_finite_are_left_out(ingested, save, dense, kind):
    table = dense.astype(float)
    table[3, 2], table[5, 0], table[-1, 16], table[8, 1] = np.nan, np.inf, -np.inf, 1e300
    save(table, kind)
    labels = np.arange(ROWS) % 3 + 1
    np.save(save(table).with_name("labels.npy"), labels)
    summary, found, read = ingested(labels="labels.npy")
    kept = np.setdiff1d(np.arange(ROWS), [3, 5, 8, ROWS - 1])
    np.testing.assert_array_equal(read("samples/pixel"), kept)
    np.testing.assert_array_equal(found.read(0, len(kept)).toarray(), dense[kept])
    np.testing.assert_array_equal(read("labels/given"), labels[kept])
    assert summary["labels_on_invalid"] == 4
    # In a column that is left out they do no harm.
    assert ingested(bad_bands=[1, 2, 3, 17], directory="other")[0]["samples"] == ROWS


def test_ingest_stage__nothing_valid(ingested, save, dense):
    table = dense.astype(float)
    table[:, 2] = np.nan
    save(table)
    with pytest.raises(SceneError, match=r"words\.npz: no pixel is valid"):
        ingested()


@pytest.mark.parametrize("row", [[0, 0, 0], [2, 0, 5]])
def test_ingest_stage__identical_rows(ingested, save, row):
    save(np.array([row] * 20))
    with pytest.raises(SceneError, match=r"words\.npz: all valid pixels are identical"):
        ingested()


def test_ingest_stage__rows_that_differ_in_zeros_alone_are_not_identical(ingested, save):
    save(np.array([[2, 0]] * 20 + [[2, 3], [0, 3]]))
    assert ingested()[0]["samples"] == 22


def write_labels(path, labels):
    if path.suffix == ".npy":
        np.save(path, labels)
    elif path.suffix == ".npz":
        np.savez(path, y=labels, other=np.ones(7))
    elif path.name.startswith("73"):
        import h5py

        with h5py.File(path, "w", userblock_size=512) as file:
            file["y"] = np.atleast_2d(labels.T)
    else:
        savemat(path, {"y": labels})


@pytest.mark.parametrize("name", ["y.npy", "y.npz", "y.mat", "73.mat"])
@pytest.mark.parametrize("shape", [(ROWS,), (ROWS, 1), (1, ROWS)])
def test_labels__are_a_list_or_a_column(ingested, save, dense, name, shape):
    labels = np.arange(ROWS).astype(float) % 4
    write_labels(save(dense).with_name(name), labels.reshape(shape))
    summary, _, read = ingested(labels=name)
    np.testing.assert_array_equal(read("labels/given"), labels)
    assert summary["labelled"] == {
        str(number): int((labels == number).sum()) for number in (1, 2, 3)
    }


def test_labels__in_the_file_of_the_table(ingested, save, dense):
    alter(save(dense), y=np.arange(ROWS) % 2 + 1)
    _, _, read = ingested(labels_variable="y")
    np.testing.assert_array_equal(read("labels/given"), np.arange(ROWS) % 2 + 1)


@pytest.mark.parametrize("shape", [(ROWS - 1,), (ROWS, 2), (ROWS + 1, 1), (2, ROWS // 2), ()])
def test_labels__of_another_size(labels, save, dense, shape):
    np.save(save(dense).with_name("y.npy"), np.ones(shape, int))
    with pytest.raises(
        SceneError, match=r"y\.npy: labels has the size .*, and the scene is a table of 90"
    ):
        labels("words.npz", labels="y.npy")


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("variable", "data", r"scene\.variable = 'data': .*one sparse matrix.*Leave the key out"),
        ("nodata", 0, r"scene\.nodata = 0\.0: .*is 0, and NaN marks.*Leave the key out"),
        ("mask", "mask.npy", r"scene\.mask = 'mask\.npy': .*select its rows.*Leave the key out"),
    ],
)
def test_open_scene__refuses_keys_without_meaning(scene, save, dense, key, value, words):
    np.save(save(dense).with_name("mask.npy"), np.ones((ROWS, 1)))
    with pytest.raises(SceneError, match=words):
        scene("words.npz", **{key: value})


@pytest.mark.parametrize("kind", ["bsr", "dia"])
def test_open_scene__other_formats_are_named_with_their_cure(scene, save, kind):
    save(np.eye(6), kind)
    with pytest.raises(SceneError, match=rf"of the format '{kind}'; csr, csc, coo .*tocsr\(\)"):
        scene("words.npz")


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ({"format": None}, r"lacks format.*save_npz"),
        ({"format": None, "shape": None}, r"lacks format and shape"),
        ({"format": np.array(b"\xff\xfe")}, r"of the format"),
        ({"format": np.array([1, 2])}, r"truncated or damaged"),
        ({"shape": np.array([90])}, r"has the shape \(90,\)"),
        ({"shape": np.array([90, 0])}, r"has the shape \(90, 0\)"),
        ({"shape": np.array([90, -4])}, r"has the shape \(90, -4\)"),
        ({"shape": np.array([90, 2**40])}, r"16777216 columns at most"),
        ({"shape": np.array(["x", "y"])}, r"truncated or damaged"),
        ({"data": np.ones(3, complex)}, r"of type complex128.*float32"),
        ({"data": np.array(["a", "b"])}, r"of type <U1"),
    ],
)
def test_open_scene__headers_that_make_no_table(scene, save, dense, parts, words):
    alter(save(dense), **parts)
    with pytest.raises(SceneError, match=words) as caught:
        scene("words.npz")
    assert "words.npz" in str(caught.value)


@pytest.mark.parametrize(
    ("kind", "name"), [("csr", "indptr"), ("csc", "indptr"), ("coo", "row"), ("coo", "col")]
)
@pytest.mark.parametrize(
    "spoil",
    [
        lambda part: part[:-1],
        lambda part: part + 100,
        lambda part: part - 5,
        lambda part: np.roll(part, 1) - 1,
        lambda part: part.astype(float),
        lambda part: part[:, None],
        lambda part: None,
    ],
    ids=["short", "large", "negative", "rolled", "fractional", "square", "gone"],
)
def test_read__parts_that_contradict_each_other(scene, save, dense, kind, name, spoil):
    dense[0, 0] = 1
    path = save(dense, kind)
    with np.load(path) as archive:
        part = spoil(archive[name])
    alter(path, **{name: part})
    with pytest.raises(SceneError, match=r"words\.npz: cannot be read: .*damaged"):
        scene("words.npz").read(0, ROWS)


@pytest.mark.parametrize("value", [COLUMNS, -1, 2**31])
def test_read__columns_outside_the_table(scene, save, dense, value):
    path = save(dense)
    columns = sp.csr_array(dense).indices.astype(np.int64)
    columns[5] = value
    alter(path, indices=columns)
    with pytest.raises(SceneError, match=r"words\.npz: cannot be read: .*damaged"):
        scene("words.npz").read(0, ROWS)


@pytest.mark.parametrize("share", [0.02, 0.5, 0.97])
def test_truncated_file(scene, save, dense, share):
    path = save(dense)
    path.write_bytes(path.read_bytes()[: int(path.stat().st_size * share)])
    with pytest.raises(SceneError, match=r"words\.npz: cannot be read: the file is truncated"):
        scene("words.npz").read(0, ROWS)


def test_flipped_bytes(scene, save, dense):
    path = save(dense)
    content = bytearray(path.read_bytes())
    place = content.index(b"data.npy") + 60
    content[place : place + 8] = bytes(byte ^ 255 for byte in content[place : place + 8])
    path.write_bytes(content)
    with pytest.raises(SceneError, match=r"words\.npz"):
        scene("words.npz").read(0, ROWS)


def test_file_that_vanishes_between_open_and_read(scene, save, dense):
    path = save(dense)
    opened = scene("words.npz")
    path.unlink()
    with pytest.raises(SceneError, match=r"words\.npz"):
        opened.read(0, 3)


def test_open_scene__arrays_that_are_not_sparse_stay_arrays(scene, tmp_path):
    cube = np.arange(60.0).reshape(5, 4, 3)
    np.savez(tmp_path / "cube.npz", data=cube, shape=np.array(cube.shape), format=np.array("bsq"))
    np.testing.assert_array_equal(scene("cube.npz").read(0, 5)[0], cube)
    np.savez(tmp_path / "lists.npz", data=np.ones(4), shape=np.array([2, 2]))
    with pytest.raises(SceneError, match="none that could be a cube"):
        scene("lists.npz")

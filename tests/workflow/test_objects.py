"""A cube in memory to a class map: the same as by files."""

import importlib.util
import json
import subprocess
import sys

import dask.array
import dask.dataframe
import geopandas
import numpy as np
import pandas
import pyarrow
import pytest
import rasterio
import rioxarray
import scipy.sparse
import xarray

import eigenscape
from eigenscape.datasets.made.synthetic import synthesize
from eigenscape.errors import InputError, JobError, SceneError

KEYS = {
    "preset": "halevy-2011",
    "spectrum": {"dimension": 5},
    "neighbors": {"k": 6},
    "limits": {"threads": 1},
}
CRS = rasterio.CRS.from_epsg(32633).to_wkt()


@pytest.fixture
def cube():
    """Return a georeferenced cube of two classes, and its labels."""
    rng = np.random.default_rng(0)
    truth = np.repeat([1, 2], 150).reshape(15, 20)
    values = rng.normal(size=(15, 20, 6)) + 4 * truth[:, :, None]
    given = np.where(rng.random(truth.shape) < 0.3, truth, 0)
    places = {
        "y": 5000.0 - 30 * np.arange(15),
        "x": 400.0 + 30 * np.arange(20),
        "spatial_ref": ((), 0, {"crs_wkt": CRS}),
    }
    cube = xarray.DataArray(values.astype(np.float32), dims=("y", "x", "band"), coords=places)
    return cube, xarray.DataArray(given.astype(np.uint8), dims=("y", "x"), coords=places)


def test_job_for__runs_a_cube_with_its_place(tmp_path, cube):
    job = eigenscape.job_for(*cube, directory=tmp_path, **KEYS)
    result = eigenscape.run(job)
    assert result.scores["overall_accuracy"] > 0.9
    with rasterio.open(result.outputs["class_map"]) as source:
        assert source.crs == rasterio.CRS.from_wkt(CRS)
        assert source.transform == rasterio.Affine(30, 0, 385, 0, -30, 5015)
    # The same objects are the same job, also lazily.
    again = eigenscape.job_for(cube[0].chunk({"y": 4}), cube[1], directory=tmp_path, **KEYS)
    assert eigenscape.plan(again).reused["learn"]


@pytest.mark.slow
def test_job_for__labels_from_a_frame(tmp_path, cube):
    scene, labels = cube
    row, column = np.nonzero(labels.values)
    frame = geopandas.GeoDataFrame(
        {"kind": np.array(["", "grass", "soil"])[labels.values[row, column]]},
        geometry=geopandas.points_from_xy(labels.x.values[column], labels.y.values[row]),
        crs=32633,
    )
    job = eigenscape.job_for(
        scene, frame, directory=tmp_path, scene={"labels_field": "kind"}, **KEYS
    )
    result = eigenscape.run(job)
    names = json.loads(eigenscape.open_run(result).attrs["class_names"])
    assert sorted(names.values()) == ["grass", "soil"]


@pytest.mark.mostly_slow(1)
@pytest.mark.parametrize(
    "points",
    [
        lambda labels, row, column: {"row": row, "column": column},
        lambda labels, row, column: {"X": labels.x.values[column], "Y": labels.y.values[row]},
    ],
    ids=["pixels", "coordinates"],
)
@pytest.mark.parametrize("index", [False, True])
def test_job_for__labels_from_points_of_a_data_frame(tmp_path, cube, points, index):
    scene, labels = cube
    row, column = np.nonzero(labels.values)
    frame = pandas.DataFrame(
        {**points(labels, row, column), "kind": NAMES[labels.values[row, column]]}
    )
    if index:
        frame = frame.set_index([*frame.columns[:2]])
    job = eigenscape.job_for(scene, frame, directory=tmp_path, **KEYS)
    result = eigenscape.run(job)
    dataset = eigenscape.open_run(result)
    names = json.loads(dataset.attrs["class_names"])
    given = dataset["label"].values.ravel()
    assert [names[str(number)] if number else "" for number in given] == [
        *NAMES[labels.values.ravel()]
    ]
    assert job == eigenscape.job_for(scene, frame, directory=tmp_path, **KEYS)


NAMES = np.array(["", "soil", "grass"])
"""Of the classes 0, 1 and 2; not in the order of the alphabet."""


@pytest.mark.parametrize(
    "kind",
    [
        lambda names: names,
        lambda names: names.astype("S"),
        lambda names: np.char.add(names, " "),
        lambda names: np.where(names == "", None, names.astype(object)),
        lambda names: [["grass" if one == "grass" else one for one in row] for row in names.tolist()],
        lambda names: xarray.DataArray(names, dims=("y", "x")),
        lambda names: dask.array.from_array(names, chunks=4),
    ],
    ids=["text", "bytes", "spaces", "None", "lists", "xarray", "dask"],
)  # fmt: skip
def test_job_for__labels_that_are_names(tmp_path, cube, kind):
    scene, labels = cube
    job = eigenscape.job_for(scene.values, kind(NAMES[labels.values]), directory=tmp_path)
    assert job.scene.classes == {1: "grass", 2: "soil"}
    with rasterio.open(job.scene.labels) as source:
        np.testing.assert_array_equal(source.read(1), np.array([0, 2, 1])[labels.values])


@pytest.mark.slow
def test_job_for__a_table_with_a_series_of_names(tmp_path, cube):
    scene, labels = cube
    names = pandas.Series(NAMES[labels.values.ravel()]).replace("", np.nan)
    for series in (names, names.astype("category"), names.astype("string")):
        job = eigenscape.job_for(scene.values.reshape(-1, 6), series, directory=tmp_path, **KEYS)
        assert job.scene.classes == {1: "grass", 2: "soil"}
        numbers = np.load(job.scene.labels)
        np.testing.assert_array_equal(numbers, np.array([0, 2, 1])[labels.values.ravel()])
    assert eigenscape.run(job).scores["overall_accuracy"] > 0.9


@pytest.mark.slow
def test_apply__compares_names_of_labels_in_memory(tmp_path, cube):
    scene, labels = cube
    job = eigenscape.job_for(scene, NAMES[labels.values], directory=tmp_path, **KEYS)
    # Soil alone, which is number 2 there.
    soil = np.where(labels.values == 1, "soil", "")
    applied = eigenscape.apply(eigenscape.run(job), scene + 0.01, labels=soil)
    assert applied.scores["overall_accuracy"] > 0.9
    assert set(np.unique(eigenscape.open_run(applied)["label"])) == {0, 2}
    # No name of the run: not its class 1, whatever the alphabet says.
    moor = np.where(labels.values == 2, "moor", "")
    applied = eigenscape.apply(eigenscape.run(job), scene + 0.01, labels=moor)
    assert applied.scores["unknown_classes"] == [3]
    assert applied.scores["overall_accuracy"] == 0


@pytest.mark.slow
def test_apply__takes_a_scene_of_equal_pixels(tmp_path, cube):
    trained = eigenscape.run(eigenscape.job_for(*cube, directory=tmp_path, **KEYS))
    for number, size in ((0, 4), (1, 1)):
        uniform = np.full((size, size, 6), 8.0, np.float32)
        applied = eigenscape.apply(trained, uniform, run_dir=tmp_path / f"applied{number}")
        assert (applied.class_map.values == 2).all()


def test_job_for__a_masked_table(tmp_path):
    table = np.ma.array(
        np.arange(12).reshape(6, 2), mask=np.arange(12).reshape(6, 2) == 5, dtype="int16"
    )
    path = eigenscape.job_for(table, directory=tmp_path).scene.path
    expected = np.arange(12.0).reshape(6, 2)
    expected[2, 1] = np.nan
    np.testing.assert_array_equal(np.load(path), expected)


def test_job_for__a_table_and_paths(tmp_path, cube):
    scene, labels = cube
    samples, classes = scene.values.reshape(-1, 6), labels.values.ravel()
    job = eigenscape.job_for(samples, classes, directory=tmp_path, **KEYS)
    assert eigenscape.plan(job).samples == 300
    job = eigenscape.job_for("scene.tif", "labels.gpkg", name="line", learn={"method": "tikhonov"})
    assert (job.scene.path, job.scene.labels, job.name) == ("scene.tif", "labels.gpkg", "line")
    job = eigenscape.job_for(["b1.tif", "b2.tif"])
    assert list(job.scene.path) == ["b1.tif", "b2.tif"]


def test_run__takes_tables_and_paths(tmp_path, cube, monkeypatch):
    job = eigenscape.job_for(*cube, directory=tmp_path, **KEYS)
    tables = {"scene": {"path": job.scene.path, "labels": job.scene.labels}, **KEYS}
    monkeypatch.chdir(tmp_path)
    first = eigenscape.run(tables, run_dir="first")
    (tmp_path / "job.toml").write_text((first.path / "job.toml").read_text())
    assert eigenscape.plan(tmp_path / "job.toml").samples == 300
    assert eigenscape.plan(str(tmp_path / "job.toml"), run_dir="first").reused["export"]
    with pytest.raises(JobError, match=r"a job of type ndarray: give a Job.*job_for"):
        eigenscape.run(cube[0].values)


def test_open_run__has_the_place_of_each_sample(tmp_path, cube):
    result = eigenscape.run(eigenscape.job_for(*cube, directory=tmp_path, **KEYS))
    arrays = eigenscape.open_run(result)
    image = arrays["class"].set_index(sample=("y", "x")).unstack()
    assert image.shape == (15, 20)
    np.testing.assert_allclose(np.sort(image.x), cube[0].x)
    np.testing.assert_allclose(np.sort(image.y), np.sort(cube[0].y))
    assert arrays.spatial_ref.attrs["crs_wkt"] == rasterio.CRS.from_wkt(CRS).to_wkt()
    assert arrays.spatial_ref.attrs["GeoTransform"].split()[0] == "385.0"


CUBE = np.zeros((4, 4, 3), np.float32)
LAZY = dask.array.ones((6, 2), chunks=3)
UNKNOWN = LAZY[LAZY[:, 0] > 0]
SCENE = {"scene": {"path": "scene.tif"}}


def test_tables__of_python(tmp_path):
    tables = {
        "scene": {"path": [tmp_path / "a.tif"], "labels": tmp_path / "b.tif", "bad_bands": np.array([1, 2])},
        "neighbors": {"k": np.int64(4)},
        "output": {"directory": tmp_path},
    }  # fmt: skip
    job = eigenscape.parse_job(tables)
    assert list(job.scene.path) == [str(tmp_path / "a.tif")]
    assert (job.scene.labels, job.output.directory) == (str(tmp_path / "b.tif"), str(tmp_path))
    assert (list(job.scene.bad_bands), job.neighbors.k) == ([1, 2], 4)


@pytest.mark.parametrize(
    ("work", "message"),
    [
        (lambda: eigenscape.run({"scene": CUBE}), "scene holds a ndarray.*job_for"),
        (
            lambda: eigenscape.run({"scene": {"path": xarray.DataArray(CUBE)}}),
            "holds a DataArray; give the path of a file. For data in memory, use eigenscape.job_for",
        ),
        (lambda: eigenscape.plan(CUBE), "a job of type ndarray"),
        (lambda: eigenscape.load_job({}), "a job file of type dict: give the path"),
        (lambda: eigenscape.parse_job("a.toml"), "tables of type str.*eigenscape.load_job"),
        (lambda: eigenscape.job_for(CUBE, scene="a"), "scene of type str: give keys of the table"),
        (
            lambda: eigenscape.job_for("a.tif", scene={"path": "b.tif"}),
            r"scene.path is given twice: as 'b.tif', and by the scene",
        ),
        (
            lambda: eigenscape.job_for("a.tif", ["oak", 3, None]),
            r"names of classes \(str\) are mixed with values of type int. Give names alone",
        ),
        (lambda: eigenscape.job_for(CUBE, name="../up"), r"name = '../up': .*a text without slashes"),
        (lambda: eigenscape.job_for(CUBE, name="a" * 300), "name: has 300 bytes.*150 at most"),
        (lambda: eigenscape.job_for(UNKNOWN), r"unknown length.*compute_chunk_sizes\(\)"),
        (lambda: eigenscape.run_study(SCENE), r"is not a study, because it has no table \[study\]"),
        (lambda: eigenscape.tune(SCENE, budget="a"), "budget = 'a': expected a time above 0"),
        (lambda: eigenscape.classify_new(3, CUBE), "a run of type int: give a run directory"),
        (lambda: eigenscape.extend(3, CUBE[0]), "a run of type int: give a run directory"),
    ],
)  # fmt: skip
def test_functions__refuse_what_they_cannot_take_in_words(work, message):
    with pytest.raises(InputError, match=message):
        work()


@pytest.mark.slow
def test_run__starts_no_server_unasked(tmp_path):
    code = f"""
import sys, numpy, psutil, eigenscape
rng = numpy.random.default_rng(0)
truth = numpy.repeat([1, 2], 150)
job = eigenscape.job_for(
    rng.normal(size=(300, 5)) + 4 * truth[:, None], truth, directory={str(tmp_path)!r},
    preset="halevy-2011", spectrum={{"dimension": 3}}, output={{"formats": []}},
)
eigenscape.plan(job)
eigenscape.run(job)
eigenscape.LaplacianEigenmaps().fit(rng.normal(size=(200, 5)))
assert "distributed" not in sys.modules
here = psutil.Process()
assert not [one for one in here.net_connections() if one.status == psutil.CONN_LISTEN]
assert not here.children()
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Use .@. matmul:PendingDeprecationWarning")
def test_job_for__a_scene_opened_by_rioxarray_is_that_of_its_path(tmp_path):
    synthesize(tmp_path / "scene.tif", height=20, width=20, bands=6, classes=2, seed=1)
    with rioxarray.open_rasterio(tmp_path / "scene.tif") as opened:
        assert opened.attrs["scale_factor"] == 1e-4
        cube = opened.load()
    found = []
    for number, scene in enumerate((cube, tmp_path / "scene.tif")):
        job = eigenscape.job_for(scene, directory=tmp_path, **KEYS)
        result = eigenscape.run(job, run_dir=tmp_path / f"run{number}")
        found.append(eigenscape.open_run(result)["values"].values)
    np.testing.assert_array_equal(*found)


def tables(count=300):
    rng = np.random.default_rng(2)
    kind = rng.integers(3, size=count)
    values = rng.normal(size=(count, 5)) + 6 * np.eye(3, 5)[kind]
    frame = pandas.DataFrame(values, columns=list("abcde"))
    return frame.assign(species=np.array(["elm", "fir", "oak"])[kind]), kind + 1


@pytest.mark.parametrize("parquet", [True, False])
def test_frames__columns_are_known_by_name(tmp_path, monkeypatch, parquet):
    if not parquet:
        found = importlib.util.find_spec
        monkeypatch.setattr(
            "importlib.util.find_spec", lambda name: None if name == "pyarrow" else found(name)
        )
    frame, kind = tables()
    learn = {"method": "interpolated", "trials": 2}
    job = eigenscape.job_for(
        frame, directory=tmp_path, scene={"labels_field": "species"}, features={"method": "none"},
        learn=learn, spectrum={"dimension": 4},
    )  # fmt: skip
    assert job.scene.path.endswith(".parquet" if parquet else ".csv")
    trained = eigenscape.run(job)
    other = frame[["species", "c", "a", "e", "b", "d"]].convert_dtypes()
    applied = eigenscape.apply(trained, other, run_dir=tmp_path / "applied")
    assert (np.asarray(applied.class_map) == kind).mean() > 0.98
    # Columns without names are known by their places.
    plain = pandas.DataFrame(frame[list("abcde")].to_numpy())
    again = eigenscape.run(
        eigenscape.job_for(
            plain, kind, directory=tmp_path, features={"method": "none"}, learn=learn
        )
    )
    assert (np.asarray(again.class_map) == kind).mean() > 0.98


def test_frames__columns_of_other_packages_are_known_by_name(tmp_path):
    frame, kind = tables()
    features, turned = frame[list("abcde")], frame[list("edcba")]
    made = [pyarrow.Table.from_pandas]
    if importlib.util.find_spec("polars") is not None:
        made.append(importlib.import_module("polars").from_pandas)
    for number, make in enumerate(made):
        labels = pyarrow.array(np.where(np.arange(len(kind)) % 4, None, frame.species))
        job = eigenscape.job_for(
            make(features), labels, directory=tmp_path, features={"method": "none"},
            learn={"method": "interpolated", "trials": 2}, spectrum={"dimension": 4},
        )  # fmt: skip
        trained = eigenscape.run(job, run_dir=tmp_path / f"run{number}")
        applied = eigenscape.apply(trained, make(turned), run_dir=tmp_path / f"applied{number}")
        assert (np.asarray(applied.class_map) == kind).mean() > 0.98
        expected = eigenscape.extend(trained, features.to_numpy())
        np.testing.assert_array_equal(eigenscape.extend(trained, make(turned)), expected)
        found, _ = eigenscape.classify_new(trained, make(turned))
        assert (found == kind).mean() > 0.98
    for refused, what in ((eigenscape.extend, "samples"), (eigenscape.apply, "scene")):
        with pytest.raises(InputError, match=f"{what}: a data frame of dask.*compute"):
            refused(trained, dask.dataframe.from_pandas(turned, npartitions=2))


@pytest.mark.parametrize("kind", ["csr", "coo", "sample", "named", "lazy"])
def test_job_for__other_tables(tmp_path, kind):
    frame, truth = tables()
    values = frame[list("abcde")].to_numpy().clip(0)
    named = {"feature": list("abcde")} if kind == "named" else {}
    table = xarray.DataArray(values, coords=named, dims=("sample", "feature"))
    labels = xarray.DataArray(np.where(np.arange(300) % 4, 0, truth), dims="sample")
    if kind in ("csr", "coo"):
        table = getattr(scipy.sparse, f"{kind}_array")(values)
    job = eigenscape.job_for(
        table.chunk({"sample": 90}) if kind == "lazy" else table, labels, directory=tmp_path,
        features={"method": "none"}, learn={"method": "interpolated", "trials": 2},
        spectrum={"dimension": 4},
    )  # fmt: skip
    ending = {"csr": ".npz", "coo": ".npz", "named": ".parquet"}.get(kind, ".npy")
    assert job.scene.path.endswith(ending)
    result = eigenscape.run(job)
    assert (np.asarray(result.class_map) == truth).mean() > 0.95
    turned = frame[list("edcba")].clip(lower=0) if kind == "named" else table
    applied = eigenscape.apply(result, turned, run_dir=tmp_path / "applied")
    assert (np.asarray(applied.class_map) == truth).mean() > 0.95


def test_frames__what_is_no_table_of_numbers_is_refused(tmp_path):
    frame, _ = tables(20)
    twice = frame.set_axis(["a", "b", "c", "d", "a", "species"], axis=1)
    with pytest.raises(SceneError, match="several columns are called 'a'"):
        eigenscape.job_for(twice, directory=tmp_path)
    with pytest.raises(SceneError, match=r"scene: an array of type object and shape \(20, 6\)"):
        eigenscape.job_for(frame.to_numpy(), directory=tmp_path)
    with pytest.raises(SceneError, match="scene: a sparse array of type complex128"):
        eigenscape.job_for(scipy.sparse.eye_array(20, dtype=complex), directory=tmp_path)
    image = xarray.DataArray(np.ones((20, 6)), dims=("sample", "line"))
    assert eigenscape.job_for(image, directory=tmp_path).scene.path.endswith(".tif")


@pytest.mark.parametrize("mark", ["-1", "0", "None", "NA"])
def test_labels__texts_that_mean_none(tmp_path, mark):
    frame, _ = tables(30)
    hidden = np.arange(30) % 3 == 0
    labels = np.where(hidden, mark, frame.species)
    with pytest.warns(UserWarning, match=rf"labels: {mark} in the array means no label \(10 of 30"):
        job = eigenscape.job_for(frame[list("abcde")], labels, directory=tmp_path)
    assert [*job.scene.classes.values()] == sorted({*frame.species})
    np.testing.assert_array_equal(np.load(job.scene.labels) == 0, hidden)


def test_labels__numbers_beside_missing_ones(tmp_path):
    frame, kind = tables(30)
    labels = pandas.Series(kind, dtype="Int64").mask(np.arange(30) % 3 == 0)
    job = eigenscape.job_for(frame[list("abcde")], labels, directory=tmp_path)
    written = np.load(job.scene.labels)
    np.testing.assert_array_equal(written, np.where(np.arange(30) % 3 == 0, np.nan, kind))

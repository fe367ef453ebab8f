"""A result in Python: lazy maps in their place, lists as a matrix, the picture, the page."""

import dataclasses
import os
import pickle
import webbrowser
from pathlib import Path

import dask
import matplotlib.image
import numpy as np
import pytest
import rasterio
import rioxarray  # noqa: F401  (the accessor .rio)
import xarray
from sklearn.neighbors import kneighbors_graph

import eigenscape
from eigenscape.errors import InputError

KEYS = {
    "preset": "halevy-2011",
    "spectrum": {"dimension": 5},
    "neighbors": {"k": 6, "method": "exact"},
    "features": {"method": "none"},
    "limits": {"threads": 1},
}


@pytest.fixture(scope="module")
def cube():
    rng = np.random.default_rng(0)
    truth = np.repeat([1, 2], 150).reshape(15, 20)
    values = (rng.normal(size=(15, 20, 6)) + 4 * truth[:, :, None]).astype(np.float32)
    places = {"y": 5000.0 - 30 * np.arange(15), "x": 400.0 + 30 * np.arange(20)}
    scene = xarray.DataArray(values, dims=("y", "x", "band"), coords=places).rio.write_crs(32633)
    return scene, np.where(rng.random(truth.shape) < 0.3, truth, 0)


@pytest.mark.slow
def test_result__prints_in_a_line(result):
    text = str(result)
    assert text == repr(result)
    assert len(text) < 300
    accuracy = f"overall accuracy {100 * result.scores['overall_accuracy']:.1f} %"
    assert text.startswith(
        f"Result('{result.path.name}', {accuracy}: {result.scores['protocol']}, "
    )
    assert text.endswith(f"'{result.path}')")
    bare = dataclasses.replace(result, scores={})
    assert "accuracy not measured" in repr(bare)
    assert "3 clusters" in repr(dataclasses.replace(result, scores={"clusters": 3}))


@pytest.fixture(scope="module")
def result(cube, tmp_path_factory):
    job = eigenscape.job_for(*cube, directory=tmp_path_factory.mktemp("runs"), **KEYS)
    return eigenscape.run(job)


@pytest.mark.filterwarnings("ignore:Use .@. matmul:PendingDeprecationWarning")
def test_result__maps_are_lazy_and_in_their_place(result, cube, tmp_path):
    for name, dims in (
        ("class_map", ("y", "x")), ("confidence", ("y", "x")), ("eigenvectors", ("mode", "y", "x")),
    ):  # fmt: skip
        found = getattr(result, name)
        assert found.dims == dims
        assert dask.is_dask_collection(found)
        assert found.rio.crs == rasterio.CRS.from_epsg(32633)
        assert found.rio.transform() == rasterio.Affine(30, 0, 385, 0, -30, 5015)
        np.testing.assert_array_equal(found.y, cube[0].y)
    assert result.class_map.attrs["flag_meanings"] == "class_1 class_2"
    assert (np.diff(result.eigenvectors.eigenvalue) >= 0).all()
    assert len(result.eigenvectors) == 5
    result.class_map.rio.to_raster(tmp_path / "map.tif")
    with (
        rasterio.open(tmp_path / "map.tif") as ours,
        rasterio.open(result.outputs["class_map"]) as theirs,
    ):
        assert (ours.crs, ours.transform) == (theirs.crs, theirs.transform)
        np.testing.assert_array_equal(ours.read(1), theirs.read(1))


def test_result__neighbors_as_a_matrix(result, cube):
    found = result.neighbors.to_csr()
    expected = kneighbors_graph(cube[0].values.reshape(300, 6), 6, mode="distance")
    np.testing.assert_allclose(found.toarray(), expected.toarray(), atol=1e-5)
    assert (np.diff(found.data.reshape(300, 6), axis=1) >= 0).all()
    assert result.to_json()["neighbors"]["method"] == "exact"


def test_result__of_a_radius(cube, tmp_path):
    # Its lists have any length, and may be empty.
    tables = {"neighbors": {"method": "radius", "radius": 3.0}, "graph": {"components": "largest"}}
    samples, labels = cube[0].values.reshape(300, 6), cube[1].ravel()
    job = eigenscape.job_for(
        samples, labels, directory=tmp_path, **{**KEYS, **tables, "output": {"formats": []}}
    )
    found = eigenscape.run(job).neighbors.to_csr().toarray()
    lengths = np.linalg.norm(samples[:, None] - samples, axis=-1)
    np.testing.assert_allclose(found, np.where(lengths <= 3, lengths, 0), atol=1e-4)


def test_result__stands_for_its_directory(result):
    assert os.fspath(result) == str(result.path)
    assert eigenscape.verify(result)["whole"]
    assert eigenscape.extend(result, np.zeros((2, 6))).shape == (2, 6)
    back = pickle.loads(pickle.dumps(result))
    assert back == result
    assert back.neighbors.to_csr().nnz == 1800


def test_result__picture_and_page(result, tmp_path, monkeypatch):
    figure = result.plot()
    assert figure._repr_png_().startswith(b"\x89PNG")
    figure.savefig(tmp_path / "map.png")
    # As wide as the run's own, which leaves the same border around it.
    shapes = [
        matplotlib.image.imread(path).shape
        for path in (tmp_path / "map.png", result.outputs["quicklook"])
    ]
    assert shapes[0][1] > 0.5 * shapes[1][1]
    opened = []
    monkeypatch.setattr(webbrowser, "open", opened.append)
    page = result.report()
    assert (page, opened) == (Path(result.outputs["report"]), [])
    assert result.report(show=True) == page
    assert opened == [page.as_uri()]


@pytest.mark.slow
def test_result__of_a_table_and_of_an_applied_run(cube, result, tmp_path):
    scene, labels = cube
    job = eigenscape.job_for(
        scene.values.reshape(300, 6), labels.ravel(), directory=tmp_path, **KEYS
    )
    table = eigenscape.run(job)
    assert table.class_map.dims == ("sample",)
    assert table.eigenvectors.dims == ("sample", "mode")
    assert table.eigenvectors.shape == (300, 5)
    assert table.plot()._repr_png_().startswith(b"\x89PNG")
    # A cube in memory, and its labels, are compared with, too: those that the run did not learn from.
    truth = np.repeat([1, 2], 150).reshape(labels.shape)
    applied = eigenscape.apply(result, scene, labels=truth, run_dir=tmp_path / "applied")
    assert applied.scores["overall_accuracy"] > 0.9
    assert applied.scores["left_out"] == np.count_nonzero(labels) == 300 - applied.scores["samples"]
    assert applied.confidence.rio.crs == scene.rio.crs
    with pytest.raises(InputError, match="the run has no eigenvectors"):
        _ = applied.eigenvectors
    with pytest.raises(InputError, match="no neighbour lists"):
        applied.neighbors.to_csr()


@pytest.mark.parametrize("given", [3, {}, None, np.zeros(3)])
def test_functions_of_runs__refuse_what_is_no_run(given):
    for function in (
        eigenscape.open_run, eigenscape.open_maps, eigenscape.report, eigenscape.verify,
    ):  # fmt: skip
        with pytest.raises(InputError, match=f"a run of type {type(given).__name__}: give a run"):
            function(given)
    with pytest.raises(InputError, match="a run of type"):
        eigenscape.apply(given, "scene.tif")


def test_result__stands_for_its_directory_as_a_graph(result):
    found = eigenscape.eigenpairs(result, 3)
    np.testing.assert_array_equal(found.values, eigenscape.eigenpairs(result.path, 3).values)

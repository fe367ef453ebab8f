import numpy as np
import pytest

import eigenscape

METHODS = ["eigenfunctions", "centroid-angle"]


def classes(folder, X, labels, method, **tables):
    job = eigenscape.job_for(
        X, labels, directory=folder, features={"method": "none"}, spectrum={"dimension": 8},
        neighbors={"method": "exact"}, learn={"trials": 2, "method": method}, output={"formats": []},
        **tables,
    )  # fmt: skip
    return eigenscape.open_run(eigenscape.run(job))["class"].values.ravel()


@pytest.mark.parametrize("laplacian", ["normalized", "random-walk"])
@pytest.mark.parametrize("method", METHODS)
def test_identical__it_does_not_matter_which_samples_have_the_labels(
    tmp_path, rng, method, laplacian
):
    X = rng.normal(size=(200, 4))
    X = np.vstack([np.repeat(X[:1], 40, axis=0), X]).astype(np.float32)
    labels = np.zeros(240, int)
    labels[41:60] = 1 + (X[41:60, 0] > 0)
    found = []
    for number, three in enumerate([(1, 1, 2), (2, 1, 1)]):
        labels[:3] = three
        folder = tmp_path / str(number)
        found.append(classes(folder, X, labels, method, graph={"laplacian": laplacian}))
        assert len(set(found[-1][:41])) == 1
    np.testing.assert_array_equal(*found)


@pytest.mark.parametrize("method", METHODS)
def test_identical__blocks_do_not_matter(tmp_path, rng, method, monkeypatch):
    # Each of 30 values about as often; a fifth of the labels is wrong.
    X = rng.normal(size=(30, 4))[rng.integers(0, 30, 600)].astype(np.float32)
    labels = 1 + ((X[:, 0] > 0) ^ (rng.random(600) < 0.2))
    labels[rng.random(600) < 0.5] = 0
    expected = classes(tmp_path / "whole", X, labels, method)
    monkeypatch.setattr("eigenscape.learn.classify.coordinates._TILE_BYTES", 600)
    np.testing.assert_array_equal(classes(tmp_path / "tiles", X, labels, method), expected)
    # All of a group have one class, whether labelled or not.
    for value in np.unique(X, axis=0):
        assert len(set(expected[(value == X).all(axis=1)])) == 1


@pytest.mark.parametrize("method", METHODS)
def test_identical__pixels_with_edges_to_their_neighbours_have_their_own_coordinates(
    tmp_path, rng, method
):
    image = rng.normal(size=(12, 12, 4)).astype(np.float32)
    image[:, :8] = 0
    labels = np.zeros((12, 12), int)
    labels[:6, ::2], labels[6:, ::2] = 1, 2
    found = classes(tmp_path, image, labels, method, graph={"spatial": {"weight": 1.0}})
    assert set(found.reshape(12, 12)[:, :8].ravel()) == {1, 2}

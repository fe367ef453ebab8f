import numpy as np
import pytest
from sklearn.neighbors import NearestNeighbors

from eigenscape.applied import index as module
from eigenscape.applied.index import Index
from eigenscape.store.arrays import open_array
from eigenscape.store.rows import Rows
from eigenscape.store.workspace import Workspace

K = 6


@pytest.fixture(scope="module")
def clouds():
    """Samples on a surface of three dimensions, and new ones of the same kind."""
    rng = np.random.default_rng(3)
    lift = rng.normal(size=(3, 12))
    hidden = rng.uniform(-2, 2, (3600, 3))
    X = np.sin(hidden @ lift) + rng.normal(0, 0.02, (3600, 12))
    return X[:3000].astype(np.float32), X[3000:].astype(np.float32)


def planted(folder, X, chosen=None):
    workspace = Workspace(folder / "work")
    path = workspace.create_array("features", X.shape, np.float32)
    open_array(path)[...] = X
    lists = NearestNeighbors(n_neighbors=K + 1).fit(X).kneighbors(X, return_distance=False)
    index = Index(workspace.folder("index"), X.shape, K)
    index.plant(Rows(path), lists[:, 1:], np.arange(len(X)) if chosen is None else chosen)
    return index


def test_index__of_one_leaf_is_exact(tmp_path, clouds):
    X, new = clouds
    chosen = np.flatnonzero(np.arange(len(X)) % 3)
    found, squared = planted(tmp_path, X, chosen).nearest(new, np.arange(len(new)))
    distance, near = NearestNeighbors(n_neighbors=K).fit(X[chosen]).kneighbors(new)
    np.testing.assert_array_equal(found, chosen[near])
    np.testing.assert_allclose(np.sqrt(squared), distance, rtol=1e-4)


def test_index__of_many_leaves_finds_nearly_all_whatever_the_blocks(tmp_path, clouds, monkeypatch):
    X, new = clouds
    monkeypatch.setattr(module, "EXACT", 500)
    monkeypatch.setattr(module, "LEAF", 100)
    index = planted(tmp_path, X)
    numbers = np.arange(len(new))
    found, squared = index.nearest(new, numbers)
    near = NearestNeighbors(n_neighbors=K).fit(X).kneighbors(new, return_distance=False)
    hits = np.mean([len(np.intersect1d(*pair)) for pair in zip(found, near, strict=True)]) / K
    assert hits > 0.98
    assert (np.diff(squared, axis=1) >= 0).all()
    parts = [index.nearest(new[rows], numbers[rows]) for rows in np.array_split(numbers, 7)]
    np.testing.assert_array_equal(np.concatenate([part[0] for part in parts]), found)
    np.testing.assert_array_equal(np.concatenate([part[1] for part in parts]), squared)

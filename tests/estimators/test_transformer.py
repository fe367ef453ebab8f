"""`NeighborsTransformer` against scikit-learn's, and in the places that take such a transformer."""

import pickle
import warnings

import anndata
import dask.array
import h5py
import numpy as np
import pytest
import zarr
from scipy.sparse import csr_array
from sklearn.cluster import HDBSCAN, SpectralClustering
from sklearn.manifold import TSNE, Isomap
from sklearn.metrics import adjusted_rand_score
from sklearn.neighbors import KNeighborsTransformer
from sklearn.pipeline import make_pipeline

from eigenscape import NeighborsTransformer
from eigenscape.errors import EstimatorError

K = 6


@pytest.fixture(scope="module")
def groups():
    """Return 600 samples in three groups far apart, and the number of the group of each."""
    rng = np.random.default_rng(0)
    truth = np.arange(600) % 3
    return (rng.normal(size=(600, 5)) + 20 * truth[:, None]).astype(np.float32), truth


@pytest.fixture(scope="module")
def exact(groups):
    return NeighborsTransformer(n_neighbors=K, neighbors="exact").fit(groups[0])


def equal(graph, other):
    assert graph.shape == other.shape
    assert graph.nnz == other.nnz
    np.testing.assert_allclose(graph.toarray(), other.toarray(), atol=2e-5)


@pytest.mark.parametrize("mode", ["distance", "connectivity"])
@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_graph__is_that_of_scikit_learn(groups, mode, metric):
    X, new = groups[0] % 3 - 1.5, groups[0][::7] % 2.7 - 1.3
    ours = NeighborsTransformer(mode=mode, metric=metric, n_neighbors=K, neighbors="exact")
    theirs = KNeighborsTransformer(mode=mode, metric=metric, n_neighbors=K).fit(X)
    graph = ours.fit_transform(X)
    equal(graph, theirs.transform(X))
    equal(ours.transform(X), graph)
    equal(ours.transform(new), theirs.transform(new))
    assert ours.recall_ == 1
    # Each sample is the first of its own row, as scanpy and UMAP expect.
    assert (graph.indices.reshape(len(X), -1)[:, 0] == np.arange(len(X))).all()


def test_graph__angle_is_in_radians(groups):
    graph = NeighborsTransformer(metric="angle", n_neighbors=K).fit_transform(groups[0])
    cosine = NeighborsTransformer(metric="cosine", n_neighbors=K).fit_transform(groups[0])
    np.testing.assert_allclose(1 - np.cos(graph.data), cosine.data, atol=1e-6)


def test_kneighbors__are_those_of_scikit_learn(groups, exact):
    theirs = KNeighborsTransformer(n_neighbors=K).fit(groups[0])
    for given, count in ((None, None), (None, 3), (groups[0][:9] + 1, 4)):
        for ours, other in zip(
            exact.kneighbors(given, count), theirs.kneighbors(given, count), strict=True
        ):
            np.testing.assert_allclose(ours, other, atol=2e-5)
    np.testing.assert_array_equal(
        exact.kneighbors(None, 2, return_distance=False),
        theirs.kneighbors(None, 2, return_distance=False),
    )


def test_graph__of_many_equal_samples_holds_them():
    rng = np.random.default_rng(1)
    X = rng.integers(0, 4, (400, 3)).astype(np.float32)  # 64 values: each about six times
    X[:50] = X[0]
    graph = NeighborsTransformer(n_neighbors=K, neighbors="exact").fit_transform(X)
    theirs = KNeighborsTransformer(n_neighbors=K, algorithm="brute").fit_transform(X)
    # Which of equally near samples are listed is open: the distances are not.
    distances = (np.sort(part.data.reshape(400, -1), axis=1) for part in (graph, theirs))
    np.testing.assert_allclose(*distances, atol=1e-6)
    rows = np.repeat(np.arange(400), K + 1)
    real = np.linalg.norm(X[rows] - X[graph.indices], axis=1)
    np.testing.assert_allclose(graph.data, real, atol=1e-5)
    assert len(set(zip(rows.tolist(), graph.indices.tolist(), strict=True))) == graph.nnz


def test_fit__of_all_equal_but_one(groups):
    X = np.zeros((40, 3), np.float32)
    X[3] = 1
    graph = NeighborsTransformer(n_neighbors=4).fit_transform(X)
    assert graph.nnz == 40 * 5
    assert graph.data.reshape(40, 5)[3, 1:].tolist() == pytest.approx([3**0.5] * 4)
    assert not np.delete(graph.data.reshape(40, 5), 3, axis=0).any()


@pytest.mark.slow
def test_fit__reads_samples_from_files_and_lazily(tmp_path, groups, exact):
    X, _ = groups
    graph = exact.fit_transform(X)
    stored = zarr.create_array(
        tmp_path / "X.zarr", shape=X.shape, chunks=(100, 5), dtype=np.float32
    )
    stored[...] = X
    with h5py.File(tmp_path / "X.h5", "w") as file:
        given = [stored, file.create_dataset("X", data=X), dask.array.from_array(X, (90, 2))]
        table = anndata.AnnData(X)
        table.write_h5ad(tmp_path / "X.h5ad")
        given += [table, anndata.read_h5ad(tmp_path / "X.h5ad", backed="r")]
        for samples in given:
            model = NeighborsTransformer(n_neighbors=K, neighbors="exact")
            equal(model.fit_transform(samples), graph)
            equal(model.transform(samples), graph)
    sparse = NeighborsTransformer(n_neighbors=K, neighbors="exact").fit_transform(csr_array(X))
    equal(sparse, graph)


@pytest.mark.slow
def test_fit__has_a_measured_recall_and_survives_a_pickle(groups):
    X = np.random.default_rng(3).normal(size=(6000, 12)).astype(np.float32)
    model = NeighborsTransformer(n_neighbors=10, random_state=0)
    graph = model.fit_transform(X)
    truth = KNeighborsTransformer(n_neighbors=10).fit_transform(X)
    shared = graph.astype(bool).multiply(truth.astype(bool)).sum() / (6000 * 10)
    low, high = model.recall_interval_
    assert low <= model.recall_ <= high
    assert low - 0.01 <= shared <= high + 0.01
    copy = pickle.loads(pickle.dumps(model))
    equal(copy.transform(X[:5]), model.transform(X[:5]))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"mode": "both"}, "mode = 'both': give 'distance' or 'connectivity'"),
        ({"metric": "manhattan"}, "metric = 'manhattan': give 'euclidean', 'cosine' or 'angle'"),
        ({"neighbors": "radius"}, "neighbors = 'radius'"),
        ({"n_neighbors": 0}, "n_neighbors = 0"),
    ],
)
def test_fit__refuses_what_cannot_work(groups, options, words):
    with pytest.raises(EstimatorError, match=words):
        NeighborsTransformer(**options).fit(groups[0])


def test_kneighbors__refuses_more_than_there_are(exact):
    with pytest.raises(EstimatorError, match="n_neighbors = 7: give a whole number from 1 to 6"):
        exact.kneighbors(n_neighbors=7)


def test_transformer__serves_spectral_clustering_and_isomap(groups):
    X, truth = groups[0] / 3, groups[1]
    clusters = SpectralClustering(3, affinity="precomputed_nearest_neighbors", n_neighbors=K - 1)
    with pytest.warns(UserWarning, match="not fully connected"):
        labels = make_pipeline(NeighborsTransformer(n_neighbors=K), clusters).fit_predict(X)
    assert adjusted_rand_score(truth, labels) == 1
    line = np.linspace(0, 1, 300)[:, None] * [1.0, 2.0]
    ours, theirs = (
        make_pipeline(kind(n_neighbors=8), Isomap(n_neighbors=7, metric="precomputed"))
        for kind in (NeighborsTransformer, KNeighborsTransformer)
    )
    np.testing.assert_allclose(
        np.abs(ours.fit_transform(line)), np.abs(theirs.fit_transform(line)), atol=1e-4
    )


@pytest.mark.slow
def test_transformer__serves_tsne_and_hdbscan(groups):
    X, truth = groups[0] / 3, groups[1]
    graph = NeighborsTransformer(n_neighbors=90, mode="distance").fit_transform(X)
    points = TSNE(
        metric="precomputed", init="random", perplexity=20, max_iter=250, random_state=0
    ).fit_transform(graph)
    nearest = NeighborsTransformer(n_neighbors=1).fit(points).kneighbors(return_distance=False)
    assert (truth[nearest[:, 0]] == truth).mean() > 0.97
    # HDBSCAN takes a symmetric matrix, in one piece: here of all pairs of a part.
    part = NeighborsTransformer(n_neighbors=89).fit_transform(X[:90])
    labels = HDBSCAN(metric="precomputed", copy=True).fit_predict(part.maximum(part.T))
    assert adjusted_rand_score(truth[:90], labels) > 0.95


@pytest.mark.exhaustive
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:precomputed_knn")
def test_transformer__serves_scanpy_and_umap(groups):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # theirs, of packages that they can do without
        import scanpy
        import umap
    X, truth = groups
    tables = [anndata.AnnData(X), anndata.AnnData(X)]
    for table, kind in zip(tables, (NeighborsTransformer, KNeighborsTransformer), strict=True):
        scanpy.pp.neighbors(table, transformer=kind(n_neighbors=15), use_rep="X")
    for name in ("distances", "connectivities"):
        ours, theirs = (table.obsp[name].toarray() for table in tables)
        np.testing.assert_allclose(ours, theirs, atol=1e-3)
    graph = NeighborsTransformer(n_neighbors=14).fit_transform(X)
    known = graph.indices.reshape(600, 15), graph.data.reshape(600, 15)
    points = umap.UMAP(
        n_neighbors=15, precomputed_knn=known, random_state=0, n_jobs=1, n_epochs=30
    ).fit_transform(X)
    nearest = NeighborsTransformer(n_neighbors=1).fit(points).kneighbors(return_distance=False)
    assert (truth[nearest[:, 0]] == truth).mean() > 0.99

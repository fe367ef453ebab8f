import pickle

import dask.array
import numpy as np
import pytest
import scipy.sparse
from sklearn.datasets import make_blobs, make_s_curve
from sklearn.exceptions import NotFittedError
from sklearn.manifold import spectral_embedding
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier, NearestNeighbors, kneighbors_graph
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import eigenscape
from eigenscape import LaplacianEigenmaps
from eigenscape.errors import EstimatorError, InputError


@pytest.fixture(scope="module")
def curve():
    return make_s_curve(200, noise=0.02, random_state=0)[0]


def cosines(one, other):
    """Return |cos| of the angles between columns, for vectors up to sign and length."""
    lengths = np.linalg.norm(one, axis=0) * np.linalg.norm(other, axis=0)
    return np.abs((one * other).sum(axis=0)) / lengths


@pytest.mark.parametrize("laplacian", ["normalized", "random-walk"])
def test_laplacian_eigenmaps__agree_with_scikit_learn(curve, laplacian):
    W = kneighbors_graph(curve, 8)
    W = W.maximum(W.T)
    degree = np.sqrt(np.asarray(W.sum(axis=1)))
    # Of the random walk's Laplacian by itself; times D^1/2 of the normalised one.
    expected = spectral_embedding(W, n_components=3, eigen_solver="arpack", random_state=0)
    expected = expected * degree if laplacian == "normalized" else expected
    found = LaplacianEigenmaps(3, n_neighbors=8, weights="binary", laplacian=laplacian)
    assert cosines(found.fit_transform(curve), expected).min() > 1 - 1e-6


def test_laplacian_eigenmaps__unnormalized(curve):
    W = kneighbors_graph(curve, 8)
    W = W.maximum(W.T).toarray()
    values, vectors = np.linalg.eigh(np.diag(W.sum(axis=1)) - W)
    model = LaplacianEigenmaps(3, n_neighbors=8, weights="binary", laplacian="unnormalized")
    found = model.fit_transform(curve)
    np.testing.assert_allclose(model.eigenvalues_, values[1:4], rtol=1e-6)
    assert cosines(found, vectors[:, 1:4]).min() > 1 - 1e-6


def test_transform__of_fitted_samples_is_the_embedding(curve):
    model = LaplacianEigenmaps(4, random_state=0)
    embedding = model.fit_transform(curve)
    np.testing.assert_array_equal(model.transform(curve), embedding)
    assert model.transform(curve[7:9]) == pytest.approx(embedding[7:9])


def test_transform__of_identical_samples_is_that_of_the_first(rng):
    """Groups that one of them represents in the graph, and pairs, which stand in the lists as they are."""
    X = np.vstack([rng.normal(size=(20, 4))[rng.integers(0, 20, 200)], rng.normal(size=(100, 4))])
    X = np.vstack([X, X[-30:]])
    _, first, group = np.unique(X, axis=0, return_index=True, return_inverse=True)
    model = LaplacianEigenmaps(4, random_state=0).fit(X)
    found = model.transform(X)
    np.testing.assert_array_equal(found, model.embedding_[first[group.ravel()]])


def test_transform__places_new_samples_among_the_others(curve):
    model = LaplacianEigenmaps(2, random_state=0).fit(curve[::2])
    new = model.transform(curve[1::2])
    near = NearestNeighbors(n_neighbors=1).fit(curve[::2]).kneighbors(curve[1::2])[1][:, 0]
    spread = model.embedding_.std(axis=0)
    assert np.median(np.abs(new - model.embedding_[near]) / spread, axis=0).max() < 0.1


def test_transform__is_that_of_the_run(curve):
    model = LaplacianEigenmaps(2, random_state=0).fit(curve[::2])
    extended = eigenscape.extend(model.run_, curve[1::2])
    np.testing.assert_array_equal(extended[:, 1:], model.transform(curve[1::2]))


def test_transform__says_which_eigenvalues_do_not_extend(rng):
    X = rng.normal(size=(30, 8))
    model = LaplacianEigenmaps(10, n_neighbors=25).fit(X)
    with pytest.raises(EstimatorError, match="Set n_components to"):
        model.transform(X + 1)


@pytest.mark.parametrize("chunks", [(200, 3), ((7, 150, 43), 1)])
def test_dask__is_as_numpy(curve, chunks):
    model = LaplacianEigenmaps(2, random_state=0)
    expected, values = model.fit_transform(curve), model.eigenvalues_
    lazy = dask.array.from_array(curve, chunks=chunks)
    found = model.fit_transform(lazy)
    assert isinstance(found, dask.array.Array)
    np.testing.assert_array_equal(found.compute(), expected)
    np.testing.assert_array_equal(model.eigenvalues_, values)
    new = model.transform(lazy[:50] + 0.01)
    assert isinstance(new, dask.array.Array)
    assert new.shape == (50, 2)
    np.testing.assert_allclose(new.compute(), model.transform(curve[:50] + 0.01), atol=1e-6)


def test_dask__array_outlives_its_estimator(curve):
    lazy = dask.array.from_array(curve, chunks=(70, 3))
    embedding = LaplacianEigenmaps(random_state=0).fit_transform(lazy)
    new = LaplacianEigenmaps(random_state=0).fit(lazy).transform(lazy)
    np.testing.assert_array_equal(embedding.compute(), new.compute())


@pytest.mark.parametrize("columns", [20, 100])
def test_sparse__is_as_dense(rng, columns):
    X = scipy.sparse.random_array((150, columns), density=0.3, rng=rng, format="csr")
    model = LaplacianEigenmaps(2, random_state=0)
    expected = model.fit_transform(X.toarray())
    np.testing.assert_allclose(model.fit_transform(X), expected, atol=1e-3)
    # A 0 that is stored, and an entry in two parts, are nothing else.
    parts = X.tocoo()
    row, column = (np.r_[place, place, 0] for place in parts.coords)
    twice = scipy.sparse.coo_array(
        (np.r_[parts.data / 2, parts.data / 2, 0], (row, column)), X.shape
    )
    np.testing.assert_allclose(model.fit_transform(twice), expected, atol=1e-3)
    np.testing.assert_allclose(model.transform(X), model.embedding_, atol=1e-5)


def test_pickle__takes_the_files_along(curve, tmp_path):
    model = LaplacianEigenmaps(random_state=0).fit(curve)
    data, expected, path = pickle.dumps(model), model.transform(curve[:5] + 0.01), model.run_
    del model
    assert not path.exists()
    np.testing.assert_array_equal(pickle.loads(data).transform(curve[:5] + 0.01), expected)
    kept = LaplacianEigenmaps(random_state=0, directory=tmp_path).fit(curve)
    path = kept.run_
    assert len(pickle.dumps(kept)) < 20_000
    del kept
    assert path.parent == tmp_path
    assert eigenscape.open_run(path)["eigenvector"].shape == (200, 3)


def test_embedding__of_a_run_that_was_deleted_is_an_error(curve, tmp_path):
    model = LaplacianEigenmaps(random_state=0, directory=tmp_path)
    lazy = model.fit(dask.array.from_array(curve, chunks=(100, 3))).embedding_
    assert lazy.compute(scheduler="sync").any()
    model.run_.rename(tmp_path / "moved")
    with pytest.raises(InputError, match=r"spectrum/vector: this array is gone.*compute it again"):
        lazy.compute(scheduler="sync")


def test_pipeline_and_grid_search():
    X, y = make_blobs(120, 6, centers=3, random_state=1)
    pipeline = make_pipeline(
        StandardScaler(), LaplacianEigenmaps(random_state=0), KNeighborsClassifier()
    )
    search = GridSearchCV(
        pipeline,
        {"laplacianeigenmaps__n_neighbors": np.array([5, 10])},
        cv=2, error_score="raise",
    )  # fmt: skip
    search.fit(X, y)
    assert search.best_score_ > 0.95
    assert search.predict(X[:4]).shape == (4,)


def test_output__as_a_data_frame(curve):
    model = LaplacianEigenmaps(2, random_state=0).set_output(transform="pandas")
    frame = model.fit_transform(curve)
    assert list(frame.columns) == ["laplacianeigenmaps0", "laplacianeigenmaps1"]


def test_random_state__decides_the_projection(rng):
    X = rng.normal(size=(100, 90)) * np.linspace(1, 5, 90)

    def fit(state):
        return LaplacianEigenmaps(features_dimension=5, random_state=state).fit_transform(X)

    np.testing.assert_array_equal(fit(3), fit(3))
    np.testing.assert_array_equal(fit(np.random.RandomState(3)), fit(3))
    assert cosines(fit(3), fit(4)).min() < 0.999


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_neighbors": 0}, "n_neighbors = 0: input should be greater than or equal to 1"),
        ({"weights": "cosine"}, "weights = 'cosine': input should be 'self-tuning', 'heat' or 'binary'"),
        ({"neighbors": "radius"}, "neighbors = "),
        ({"features": "mnf"}, "features = 'mnf'"),
        ({"n_components": 200}, "n_components = 200: 200 samples have at most 199"),
        ({"memory": "2 apples"}, "memory = '2 apples'"),
        ({"memory": "1MiB"}, "memory = 1.0 MiB: the stage .* Set memory to"),
    ],
)  # fmt: skip
def test_parameters__are_checked(curve, options, message):
    with pytest.raises(EstimatorError, match=message):
        LaplacianEigenmaps(**options).fit(curve)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.zeros((5, 3)), "all 5 samples are identical"),
        (scipy.sparse.csr_array(np.ones((5, 3))), "all 5 samples are identical"),
        (np.full((5, 3), 1e300), "too large for float32, in the rows from 0 to 4"),
        (dask.array.zeros(5), "a dask array of 1 axes"),
        (dask.array.zeros((1, 3)), r"shape \(1, 3\); at least 2 samples"),
        (dask.array.zeros((9, 3), dtype=complex), "real numbers are needed"),
        (dask.array.from_array(np.r_[np.ones((9, 3)), np.full((1, 3), np.nan)], 5), "contains NaN"),
        (dask.array.ones((9, 3))[dask.array.ones(9) > 0], "compute_chunk_sizes"),
        (dask.array.zeros((2**20, 2**9), chunks=-1), r"chunk .* 4.0 GiB.*X.rechunk\(\(\d+, -1\)\)"),
    ],
)  # fmt: skip
def test_samples__are_checked(X, message):
    with pytest.raises(ValueError, match=message):
        LaplacianEigenmaps().fit(X)


def test_features__of_a_dask_array_are_counted(curve):
    model = LaplacianEigenmaps().fit(curve)
    with pytest.raises(ValueError, match="2 features, but LaplacianEigenmaps is expecting 3"):
        model.transform(dask.array.zeros((5, 2)))


def test_samples__few_have_all_others_as_neighbours():
    model = LaplacianEigenmaps(1).fit(np.array([[0.0], [1], [3]]))
    assert model.n_neighbors_ == 2
    assert model.embedding_.shape == (3, 1)


def test_fit__that_fails_leaves_the_earlier_one(curve):
    X = curve[:100]
    model = LaplacianEigenmaps(2, random_state=0).fit(X)
    embedding = model.transform(X)
    with pytest.raises(EstimatorError, match="n_components = 500"):
        model.set_params(n_components=500).fit(X)
    np.testing.assert_array_equal(model.transform(X), embedding)
    with pytest.raises(NotFittedError, match="not fitted yet"):
        _ = LaplacianEigenmaps().run_

import dask.array
import numpy as np
import pytest
import scipy.linalg
from sklearn.datasets import make_s_curve
from sklearn.neighbors import kneighbors_graph

from eigenscape import LaplacianEigenmaps, SchroedingerEigenmaps
from eigenscape.errors import EstimatorError

SAMPLES = 200


@pytest.fixture(scope="module")
def curve():
    return make_s_curve(SAMPLES, noise=0.02, random_state=0)[0]


@pytest.fixture(scope="module")
def labels():
    y = np.full(SAMPLES, -1)
    y[:6], y[6:9] = 0, 1
    return y


def operator(X, laplacian, V):
    """Return the dense L + V for 8 neighbours and weights of 1."""
    W = kneighbors_graph(X, 8)
    W = W.maximum(W.T).toarray()
    degree = W.sum(axis=1)
    L = np.diag(degree) - W
    if laplacian == "normalized":
        L /= np.sqrt(np.outer(degree, degree))
    return L + V


@pytest.mark.parametrize("laplacian", ["normalized", "unnormalized"])
@pytest.mark.parametrize("relative", [False, True])
def test_barrier__agrees_with_a_dense_solve(curve, labels, laplacian, relative):
    model = SchroedingerEigenmaps(
        3, n_neighbors=8, weights="binary", laplacian=laplacian, alpha=0.3, relative=relative
    ).fit(curve, labels)
    V = np.diag((labels != -1).astype(float))
    trace = np.trace(operator(curve, laplacian, 0)) / np.trace(V) if relative else 1
    values, vectors = np.linalg.eigh(operator(curve, laplacian, 0.3 * trace * V))
    np.testing.assert_allclose(model.eigenvalues_, values[:3], rtol=1e-5)
    np.testing.assert_allclose(np.abs(model.embedding_), np.abs(vectors[:, :3]), atol=1e-5)


def test_barrier__of_given_values(curve):
    V = np.linspace(0, 2, SAMPLES)
    model = SchroedingerEigenmaps(3, n_neighbors=8, weights="binary", potential=V, alpha=0.5).fit(
        curve
    )
    # By default (L + alpha V) f = lambda D f.
    L = operator(curve, "unnormalized", 0)
    values, vectors = scipy.linalg.eigh(L + np.diag(0.5 * V), np.diag(L.diagonal()))
    np.testing.assert_allclose(model.eigenvalues_, values[:3], rtol=1e-5)
    vectors = vectors[:, :3] / np.linalg.norm(vectors[:, :3], axis=0)
    found = model.embedding_ / np.linalg.norm(model.embedding_, axis=0)
    np.testing.assert_allclose(np.abs(found), np.abs(vectors), atol=1e-4)


def test_barrier__pushes_the_labelled_samples_to_0(curve, labels):
    embedding = SchroedingerEigenmaps(alpha=1000).fit_transform(curve, labels)
    size = np.abs(embedding).max(axis=1)
    assert size[labels != -1].max() < 0.03 * np.median(size[labels == -1])


@pytest.mark.parametrize("kind", [int, object])
def test_identification__draws_the_samples_of_a_label_together(curve, labels, kind):
    y = labels.astype(kind)
    if kind is object:
        y[:6], y[6:9] = "river", "road"

    def scatter(embedding):
        return embedding[:6].std(axis=0).max() / embedding.std(axis=0).max()

    plain = LaplacianEigenmaps(2).fit_transform(curve)
    drawn = SchroedingerEigenmaps(2, potential="identification", alpha=500).fit_transform(curve, y)
    assert scatter(drawn) < 0.05 * scatter(plain)


def test_transform__of_fitted_samples_is_the_embedding(curve, labels):
    lazy = dask.array.from_array(curve, chunks=(90, 2))
    model = SchroedingerEigenmaps(random_state=0).fit(lazy, dask.array.from_array(labels, 50))
    np.testing.assert_array_equal(model.transform(curve), model.embedding_.compute())
    expected = SchroedingerEigenmaps(random_state=0).fit_transform(curve, labels)
    np.testing.assert_array_equal(model.embedding_.compute(), expected)


@pytest.mark.parametrize(
    ("options", "y", "message"),
    [
        ({}, None, "the target y is None"),
        ({}, np.full(SAMPLES, -1), "none of 200 samples is labelled"),
        ({}, np.zeros(3), "y: 3 labels for 200 samples"),
        ({"potential": "wall"}, np.zeros(SAMPLES), "potential = 'wall'"),
        ({"potential": np.ones(3)}, None, r"its shape is \(3,\); \(200,\)"),
        ({"potential": -np.ones(SAMPLES)}, None, "finite values, 0 or more"),
        ({"alpha": 0.0}, np.zeros(SAMPLES), "alpha = 0.0: input should be greater than 0"),
        ({"potential": "identification"}, np.arange(SAMPLES) // 199 - 1, "nothing to identify"),
    ],
)  # fmt: skip
def test_potential__is_checked(curve, options, y, message):
    with pytest.raises(EstimatorError, match=message):
        SchroedingerEigenmaps(**options).fit(curve, y)

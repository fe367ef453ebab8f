"""Graphs in place of samples: the same eigenvectors, classes and clusters as of the samples themselves."""

import networkx
import numpy as np
import pytest
import scipy.sparse
from sklearn.cluster import SpectralClustering
from sklearn.neighbors import KNeighborsTransformer, NearestNeighbors, kneighbors_graph
from sklearn.pipeline import make_pipeline

from eigenscape import (
    EigenfunctionClassifier,
    InterpolatedClassifier,
    LaplacianEigenmaps,
    NeighborsTransformer,
    PoissonClassifier,
    SchroedingerEigenmaps,
    SpectralClusterer,
    eigenpairs,
)
from eigenscape.errors import EstimatorError

N, K = 300, 12


@pytest.fixture(scope="module")
def samples():
    rng = np.random.default_rng(0)
    side = np.arange(N) % 2
    return (rng.normal(size=(N, 4)) + 2.5 * side[:, None]).astype(np.float32), side


@pytest.fixture(scope="module")
def fitted(samples):
    return LaplacianEigenmaps(3, neighbors="exact", random_state=0).fit(samples[0])


def same_up_to_signs(one, other, tolerance=1e-3):
    signs = np.sign((one * other).sum(axis=0))
    np.testing.assert_allclose(one, signs * other, atol=tolerance)


def test_affinity_matrix__is_symmetric_and_of_the_samples(samples, fitted):
    W = fitted.affinity_matrix_
    assert W.shape == (N, N)
    assert (W != W.T).nnz == 0
    named = kneighbors_graph(samples[0], K, mode="connectivity")
    assert ((W > 0) != (named + named.T > 0)).nnz == 0


@pytest.mark.parametrize("bandwidth", ["auto", 0.25, 3])
@pytest.mark.parametrize("weights", ["self-tuning", "heat", "binary"])
def test_affinity_matrix__is_what_its_documentation_says(samples, weights, bandwidth):
    X = samples[0][:60].astype(np.float64)
    model = LaplacianEigenmaps(
        2, n_neighbors=9, neighbors="exact", weights=weights, bandwidth=bandwidth, random_state=0
    ).fit(X)
    found = model.affinity_matrix_.toarray()
    squares = ((X[:, None] - X) ** 2).sum(axis=2)
    near = np.argsort(squares, axis=1)[:, 1:10]
    edge = np.zeros((60, 60), bool)
    edge[np.arange(60)[:, None], near] = True
    s = np.sqrt(squares[np.arange(60), near[:, -1]])
    automatic = {"self-tuning": 1.0, "heat": squares[edge].mean(), "binary": 1.0}[weights]
    t = automatic if bandwidth == "auto" else bandwidth
    formulas = {
        "self-tuning": np.exp(-squares / (t * s[:, None] * s)),
        "heat": np.exp(-squares / t),
        "binary": np.ones_like(squares),
    }
    # No weight is below the rounding of single precision.
    floor = np.finfo(np.float32).eps
    expected = np.where(edge | edge.T, np.maximum(formulas[weights], floor), 0)
    np.testing.assert_allclose(found, expected, rtol=1e-4)


def test_precomputed__degrees_are_exact():
    """Sums in single precision are 1e-7 off: small eigenvalues by a percent, and Poisson has no solution."""
    rng = np.random.default_rng(0)
    n = 5000
    line = rng.uniform(0.5, 1, n - 1).astype(np.float32)
    path = scipy.sparse.diags_array(line, offsets=1, shape=(n, n))
    W = scipy.sparse.csr_array(path + path.T, dtype=np.float64)
    wanted = eigenpairs(W, 3, kind="unnormalized").values[1:]  # without the null vector
    found = LaplacianEigenmaps(3, affinity="precomputed", laplacian="unnormalized").fit(W)
    np.testing.assert_allclose(found.eigenvalues_, wanted, rtol=1e-6)


def test_precomputed__poisson_equals_a_dense_solve():
    rng = np.random.default_rng(1)
    for _ in range(4):
        n = 500
        truth = rng.integers(0, 4, n)
        X = rng.normal(size=(n, 3)) + 3 * np.vstack([np.zeros(3), np.eye(3)])[truth]
        W = kneighbors_graph(X, 8, mode="distance")
        W.data = np.exp(-(W.data**2)).astype(np.float32)
        W = scipy.sparse.csr_array(W.maximum(W.T), dtype=np.float64)
        y = np.full(n, -1)
        for label in range(4):
            y[np.flatnonzero(truth == label)[:2]] = label
        known = np.flatnonzero(y >= 0)
        source = np.zeros((n, 4))
        source[known] = np.eye(4)[y[known]] - np.eye(4)[y[known]].mean(axis=0)
        degree = W.sum(axis=1)
        field = np.linalg.solve(np.diag(degree) - W.toarray() + 1 / n, source)
        field -= degree @ field / degree.sum()
        found = PoissonClassifier(affinity="precomputed").fit(W, y).transduction_
        assert (found != field.argmax(axis=1)).mean() < 0.01


def test_precomputed__weights_give_what_samples_gave(fitted):
    for given in (
        fitted.affinity_matrix_, fitted.affinity_matrix_.toarray(), fitted,
        networkx.from_scipy_sparse_array(fitted.affinity_matrix_),
    ):  # fmt: skip
        found = LaplacianEigenmaps(3, affinity="precomputed", random_state=0).fit(given)
        np.testing.assert_allclose(found.eigenvalues_, fitted.eigenvalues_, atol=1e-5)
        same_up_to_signs(found.embedding_, fitted.embedding_)
        assert found.n_features_in_ == N
        assert (found.affinity_matrix_ != fitted.affinity_matrix_).nnz == 0


@pytest.mark.parametrize(
    "near",
    [
        lambda X: kneighbors_graph(X, K, mode="distance"),
        lambda X: kneighbors_graph(X, K + 4, mode="distance"),
        lambda X: KNeighborsTransformer(n_neighbors=K).fit_transform(X),
        lambda X: NeighborsTransformer(n_neighbors=K, neighbors="exact").fit_transform(X),
        lambda X: NearestNeighbors(n_neighbors=K).fit(X),
    ],
    ids=["graph", "more", "sklearn", "ours", "fitted"],
)
def test_precomputed_nearest_neighbors__give_what_samples_gave(samples, fitted, near):
    found = LaplacianEigenmaps(3, affinity="precomputed_nearest_neighbors", random_state=0)
    found.fit(near(samples[0]))
    assert found.n_neighbors_ == K
    np.testing.assert_allclose(found.eigenvalues_, fitted.eigenvalues_, atol=1e-5)
    assert abs(found.affinity_matrix_ - fitted.affinity_matrix_).max() < 1e-5


def test_precomputed__in_all_that_take_a_graph(samples, fitted):
    X, side = samples
    W = fitted.affinity_matrix_
    y = np.where(np.arange(N) < 40, side, -1)
    for classifier in (InterpolatedClassifier, EigenfunctionClassifier):
        found = classifier(affinity="precomputed", random_state=0).fit(W, y)
        assert (found.transduction_ == side).mean() > 0.9
        with pytest.raises(EstimatorError, match="the estimator was fitted to a graph"):
            found.predict(X)
    ours = SpectralClusterer(2, affinity="precomputed", random_state=0).fit_predict(W)
    theirs = SpectralClustering(2, affinity="precomputed", random_state=0).fit_predict(W)
    assert max((ours == theirs).mean(), (ours != theirs).mean()) > 0.97
    steered = SchroedingerEigenmaps(2, affinity="precomputed", random_state=0)
    assert steered.fit_transform(W, np.where(y == 0, 1, -1)).shape == (N, 2)
    pipeline = make_pipeline(
        KNeighborsTransformer(n_neighbors=K),
        SpectralClusterer(2, affinity="precomputed_nearest_neighbors", random_state=0),
    )
    found = pipeline.fit_predict(X)
    assert max((found == ours).mean(), (found != ours).mean()) > 0.97


def test_precomputed__components_stay_apart():
    blocks = [scipy.sparse.csr_array(np.ones((size, size))) for size in (6, 9)]
    W = scipy.sparse.block_diag(blocks, format="csr")
    with pytest.warns(UserWarning, match="2 connected components, which stay apart"):
        found = SpectralClusterer(2, affinity="precomputed", random_state=0).fit(W)
    assert len({*found.labels_[:6]}) == len({*found.labels_[6:]}) == 1
    assert found.labels_[0] != found.labels_[-1]


@pytest.mark.parametrize(
    ("affinity", "X", "message"),
    [
        ("cosine", np.eye(4), "affinity = 'cosine': give 'nearest_neighbors', 'precomputed' or"),
        ("precomputed", np.ones((4, 3)), "as many columns as rows"),
        ("precomputed", np.triu(np.ones((4, 4))), "not symmetric"),
        ("precomputed", -np.ones((4, 4)), "finite and not negative"),
        ("precomputed", np.eye(4), "4 of 4 samples have no edge, the first is 0"),
        ("precomputed_nearest_neighbors", np.ones((4, 4)), "takes a sparse matrix of distances"),
        ("precomputed_nearest_neighbors", scipy.sparse.eye_array(4) * -1, "finite and not negative"),
    ],
)  # fmt: skip
def test_precomputed__what_is_no_graph(affinity, X, message):
    with pytest.raises(EstimatorError, match=message):
        LaplacianEigenmaps(affinity=affinity).fit(X)


def test_precomputed__is_a_tag_of_scikit_learn():
    assert LaplacianEigenmaps(affinity="precomputed").__sklearn_tags__().input_tags.pairwise
    assert not LaplacianEigenmaps().__sklearn_tags__().input_tags.pairwise


def test_precomputed__constant_vectors_of_components_count_as_clusters_do():
    pairs = scipy.sparse.block_diag([np.array([[0, 1.0], [1, 0]])] * 4, format="csr")
    for clusters in (4, 6, 8):
        with pytest.warns(UserWarning, match="4 connected components"):
            model = SpectralClusterer(clusters, affinity="precomputed", random_state=0).fit(pairs)
        assert len(model.eigenvalues_) == clusters == len(set(model.labels_))
    values = np.sort(np.linalg.eigvalsh(np.eye(8) - pairs.toarray()))
    np.testing.assert_allclose(model.eigenvalues_, values, atol=1e-6)


def test_precomputed__a_graph_whose_vectors_extend_to_nothing_has_classes():
    """All its eigenvalues but 0 are 30 / 29, and no new sample is ever asked about."""
    complete = np.ones((30, 30)) - np.eye(30)
    complete[:15, 15:] *= 0.9
    complete[15:, :15] *= 0.9
    y = np.full(30, -1)
    y[[0, 1, 15, 16]] = [0, 0, 1, 1]
    model = EigenfunctionClassifier(affinity="precomputed", random_state=0).fit(complete, y)
    np.testing.assert_array_equal(model.transduction_, np.repeat([0, 1], 15))


@pytest.mark.parametrize("factor", [1e39, 1e-46])
def test_precomputed__weights_beyond_single_precision_are_named(fitted, factor):
    weights = fitted.affinity_matrix_.astype(np.float64) * factor
    with pytest.raises(EstimatorError, match=r"the largest weight is .*Divide the weights by"):
        LaplacianEigenmaps(3, affinity="precomputed", random_state=0).fit(weights)

import dask.array
import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.datasets import make_blobs, make_moons
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from eigenscape import (
    EigenfunctionClassifier,
    GeodesicClassifier,
    InterpolatedClassifier,
    PoissonClassifier,
    SpectralClusterer,
    TikhonovClassifier,
    extend,
    open_run,
)
from eigenscape.errors import EstimatorError

CLASSIFIERS = [
    EigenfunctionClassifier(n_components=8, random_state=0),
    EigenfunctionClassifier(n_components=8, prior=[0.3, 0.7], random_state=0),
    PoissonClassifier(random_state=0),
    PoissonClassifier("poisson-mbo", random_state=0),
    InterpolatedClassifier(random_state=0),
    TikhonovClassifier(random_state=0),
    GeodesicClassifier(random_state=0),
]


@pytest.fixture(scope="module")
def moons():
    return make_moons(300, noise=0.05, random_state=0)


@pytest.fixture(scope="module")
def few(moons):
    """Eight labels of each moon."""
    _, truth = moons
    y = np.full(300, -1)
    for number in (0, 1):
        chosen = np.flatnonzero(truth == number)[::20]
        y[chosen] = number
    return y


def name(model):
    return f"{type(model).__name__}-{getattr(model, 'method', '')}"


@pytest.mark.mostly_slow(3)
@pytest.mark.parametrize("model", CLASSIFIERS, ids=name)
def test_classifiers__learn_from_few_labels(model, moons, few):
    X, truth = moons
    model = clone(model).fit(X, few)
    assert (model.transduction_ == truth).mean() > 0.97
    np.testing.assert_array_equal(model.predict(X), model.transduction_)
    new, expected = make_moons(200, noise=0.05, random_state=1)
    assert model.score(new, expected) > 0.95
    lazy = model.predict(dask.array.from_array(new, chunks=(60, 1)))
    np.testing.assert_array_equal(lazy.compute(), model.predict(new))


@pytest.mark.mostly_slow(3)
@pytest.mark.parametrize("model", CLASSIFIERS, ids=name)
def test_classifiers__take_texts(model, moons, few):
    X, truth = moons
    names = np.array(["lower", "upper"])
    y = np.where(few < 0, -1, names[few].astype(object))
    model = clone(model).fit(X, y)
    assert list(model.classes_) == ["lower", "upper"]
    assert (model.transduction_ == names[truth]).mean() > 0.97
    # Where labels are of a type of texts, every sample has one.
    assert clone(model).fit(X, names[truth]).score(X, names[truth]) > 0.97


@pytest.mark.mostly_slow(1)
@pytest.mark.parametrize("model", CLASSIFIERS[:2], ids=name)
def test_classifiers__take_dask_and_sparse_arrays(model, moons, few):
    X, _ = moons
    expected = clone(model).fit(X, few).transduction_
    lazy = clone(model).fit(dask.array.from_array(X, (77, 1)), dask.array.from_array(few, 60))
    np.testing.assert_array_equal(lazy.transduction_, expected)
    sparse = clone(model).fit(scipy.sparse.csr_array(X), few)
    assert (sparse.transduction_ == expected).mean() > 0.99
    assert (sparse.predict(scipy.sparse.csr_array(X)) == sparse.transduction_).all()


@pytest.mark.mostly_slow(3)
@pytest.mark.parametrize("model", CLASSIFIERS, ids=name)
def test_classifiers__shares_are_in_the_order_of_the_classes(model, moons, few):
    X, _ = moons
    model = clone(model).fit(X, few)
    new, _ = make_moons(200, noise=0.05, random_state=1)
    shares = model.predict_proba(new)
    assert shares.shape == (200, 2)
    np.testing.assert_allclose(shares.sum(axis=1), 1, atol=1e-5)
    np.testing.assert_array_equal(model.classes_[shares.argmax(axis=1)], model.predict(new))
    lazy = model.predict_proba(dask.array.from_array(new, chunks=(60, 1)))
    np.testing.assert_allclose(lazy.compute(), shares, atol=1e-6)


@pytest.mark.mostly_slow(1)
@pytest.mark.parametrize(
    "model",
    [PoissonClassifier("poisson"), PoissonClassifier("poisson-mbo"), InterpolatedClassifier()],
    ids=["poisson", "poisson-mbo", "interpolated"],
)
def test_prior__makes_up_for_uneven_labels(model):
    X, truth = make_blobs(600, centers=3, n_features=5, cluster_std=3.0, random_state=1)
    y = np.full(600, -1)
    for number, labels in enumerate((2, 8, 10)):
        chosen = np.flatnonzero(truth == number)[:labels]
        y[chosen] = number

    def accuracy(prior):
        fitted = clone(model).set_params(prior=prior, random_state=0).fit(X, y)
        np.testing.assert_array_equal(fitted.predict(X), fitted.transduction_)
        np.testing.assert_array_equal(fitted.predict_proba(X).argmax(axis=1), fitted.transduction_)
        return (fitted.transduction_ == truth).mean()

    assert accuracy("none") < 0.85
    assert accuracy("uniform") > 0.97
    assert accuracy(np.full(3, 1 / 3)) == accuracy("uniform")
    assert accuracy([0.1, 0.4, 0.5]) < accuracy("uniform")


def test_prior__of_samples_that_are_all_labelled_changes_nothing(moons):
    X, truth = moons
    found = InterpolatedClassifier(prior=[0.1, 0.9], random_state=0).fit(X, truth)
    np.testing.assert_array_equal(found.transduction_, truth)


def test_tikhonov__outvotes_a_wrong_label(moons, few):
    X, truth = moons
    y = np.array(truth)
    wrong = np.arange(0, 300, 30)
    y[wrong] = 1 - truth[wrong]
    kept = InterpolatedClassifier(random_state=0).fit(X, y).transduction_
    found = TikhonovClassifier(gamma=10.0, random_state=0).fit(X, y).transduction_
    np.testing.assert_array_equal(kept, y)
    assert (found == truth).mean() > 0.98
    with pytest.raises(EstimatorError, match="gamma = -1"):
        TikhonovClassifier(gamma=-1).fit(X, y)
    with pytest.raises(EstimatorError, match="power = 9"):
        TikhonovClassifier(power=9).fit(X, y)


def test_classifiers__in_a_grid_search(moons):
    X, truth = moons
    pipeline = make_pipeline(StandardScaler(), EigenfunctionClassifier(random_state=0))
    grid = {"eigenfunctionclassifier__n_components": [2, 10]}
    search = GridSearchCV(pipeline, grid, cv=2, error_score="raise").fit(X, truth)
    assert search.best_score_ > 0.95


def test_eigenfunctions__are_least_squares(moons, few):
    X, _ = moons
    model = EigenfunctionClassifier(n_components=5).fit(X, few)
    vectors = open_run(model.run_)["eigenvector"].to_numpy().astype(np.float64)
    known = few >= 0
    targets = np.where(few[known], 1.0, -1.0)
    coefficients, *_ = np.linalg.lstsq(vectors[known], targets)
    np.testing.assert_allclose(model.decision_function(X), vectors @ coefficients, atol=2e-3)
    assert model.coef_.shape == (6, 2)


def test_eigenfunctions__auto_is_a_fifth_of_the_labels(moons, few):
    X, truth = moons
    y = np.where(np.arange(300) < 100, truth, -1)
    # The constant one comes on top.
    assert EigenfunctionClassifier().fit(X, y).coef_.shape[0] == 1 + 20
    assert EigenfunctionClassifier().fit(X, few).coef_.shape[0] == 1 + 3
    three = np.where(np.arange(300) < 3, np.arange(300), -1)
    assert EigenfunctionClassifier().fit(X, three).coef_.shape[0] == 3


def test_eigenfunctions__smooth_functions_keep_to_the_shape_of_few_labels(moons):
    X, truth = moons
    y = np.where(np.arange(300) < 6, truth, -1)
    rough = EigenfunctionClassifier(40, random_state=0).fit(X, y)
    smooth = EigenfunctionClassifier(40, gamma=0.1, random_state=0).fit(X, y)
    assert (smooth.transduction_ == truth).mean() > (rough.transduction_ == truth).mean()
    assert EigenfunctionClassifier(gamma=0.1).fit(X, y).coef_.shape[0] > 41
    with pytest.raises(EstimatorError, match="gamma = -1"):
        EigenfunctionClassifier(gamma=-1).fit(X, y)
    with pytest.raises(EstimatorError, match="gamma = 'much'"):
        EigenfunctionClassifier(gamma="much").fit(X, y)


def test_eigenfunctions__leave_out_what_does_not_extend(rng):
    X = rng.normal(size=(60, 6))
    model = EigenfunctionClassifier(40, n_neighbors=10).fit(X, X[:, 0] > 0)
    assert len(model.eigenvalues_) < 41
    assert model.eigenvalues_.max() <= 0.95
    assert model.predict(X + 0.01).shape == (60,)


def test_eigenfunctions__take_fewer_neighbours_where_none_extends(rng, tmp_path):
    X = rng.normal(size=(60, 6))
    y = X[:, 0] > 0
    model = EigenfunctionClassifier(n_neighbors=59, weights="binary", directory=tmp_path).fit(X, y)
    assert model.n_neighbors_ < 59
    assert len(model.eigenvalues_) > 1
    assert list(tmp_path.iterdir()) == [model.run_]
    same = EigenfunctionClassifier(n_neighbors=model.n_neighbors_, weights="binary").fit(X, y)
    np.testing.assert_array_equal(model.predict(X + 0.01), same.predict(X + 0.01))
    with pytest.raises(EstimatorError, match="X: no eigenvector of the graph of 2 samples"):
        EigenfunctionClassifier().fit(X[:2], [0, 1])


def test_poisson__distributions(moons, few):
    X, _ = moons
    model = PoissonClassifier(random_state=0).fit(X, few)
    shares = model.label_distributions_
    np.testing.assert_allclose(shares.sum(axis=1), 1, atol=1e-6)
    np.testing.assert_allclose(model.predict_proba(X), shares, atol=1e-6)
    # A new sample: the mean of its three nearest.
    new = X[:20] + 0.003
    near = np.argsort(((new[:, None] - X) ** 2).sum(axis=2), axis=1)[:, :3]
    np.testing.assert_allclose(model.predict_proba(new), shares[near].mean(axis=1), atol=1e-6)
    lazy = PoissonClassifier(random_state=0).fit(dask.array.from_array(X, (100, 2)), few)
    np.testing.assert_array_equal(lazy.label_distributions_.compute(), shares)


def test_poisson_mbo__makes_classes_of_the_shares_of_the_labels(moons, few):
    X, _ = moons
    y = np.where((few == 1) & (np.cumsum(few == 1) > 4), -1, few)  # 8 and 4
    found = PoissonClassifier("poisson-mbo", random_state=0).fit(X, y).transduction_
    assert np.bincount(found).tolist() == pytest.approx([200, 100], abs=2)


@pytest.mark.parametrize(
    ("model", "y", "message"),
    [
        (PoissonClassifier(), np.full(300, -1), "none of 300 samples is labelled"),
        (PoissonClassifier(), np.linspace(0, 1, 300), "Unknown label type"),
        (PoissonClassifier(), np.zeros(299), "y: 299 labels for 300 samples"),
        (PoissonClassifier(), np.array([1, "a"] * 150, object), "several types|Unknown label type"),
        (PoissonClassifier("tikhonov"), np.zeros(300), "method = 'tikhonov'"),
        (
            PoissonClassifier("poisson-mbo"),
            np.arange(300) // 9,
            '34 classes, .* 32. Set method to "poisson"',
        ),
        (EigenfunctionClassifier(300), np.arange(300) % 2, "n_components = 300"),
        (EigenfunctionClassifier("all"), np.arange(300) % 2, "n_components = 'all'"),
    ],
    ids=str,
)
def test_classifiers__say_what_is_wrong(moons, model, y, message):
    with pytest.raises(ValueError, match=message):
        model.fit(moons[0], y)


def test_new_samples__of_two_neighbours_the_nearest_decides():
    pairs = np.array([[0, 0], [0, 0.5], [0, 1], [0, 1.5]])
    X, y = (
        np.concatenate([pairs, pairs + np.array([10, 0])]),
        np.array([0, 0, -1, -1, 1, 1, -1, -1]),
    )
    # At distances 4 and 6.
    new = np.array([[4.0, 0], [6.0, 0]])
    model = InterpolatedClassifier(n_neighbors=2, random_state=0).fit(X, y)
    np.testing.assert_array_equal(model.predict(new), [0, 1])
    clusterer = SpectralClusterer(2, n_neighbors=2, random_state=0).fit(X)
    np.testing.assert_array_equal(clusterer.predict(new), clusterer.labels_[[0, 4]])


@pytest.mark.parametrize("lazily", [False, True])
@pytest.mark.parametrize("model", CLASSIFIERS[4:], ids=name)
def test_new_samples__what_is_identical_to_a_group_has_its_class(model, rng, lazily):
    X = np.vstack([rng.normal(size=(20, 4))[rng.integers(0, 20, 300)], rng.normal(size=(50, 4))])
    y = np.where(rng.random(350) < 0.3, (X[:, 0] > 0) ^ (rng.random(350) < 0.2), -1)
    given = dask.array.from_array(X, (90, 4)) if lazily else X
    model = clone(model).fit(given, y)
    np.testing.assert_array_equal(np.asarray(model.predict(X)), model.transduction_)
    # Not the label of the first sample alone, nor each its own.
    for row in np.unique(X[:300], axis=0):
        own = (row == X).all(axis=1) & (y >= 0)
        assert len(set(model.transduction_[(row == X).all(axis=1)])) == 1
        counts = np.bincount(y[own], minlength=2)
        if model.__class__ is not TikhonovClassifier and counts[0] != counts[1]:
            assert set(model.transduction_[own]) == {counts.argmax()}


def test_eigenfunctions__it_does_not_matter_which_of_identical_samples_have_the_labels(rng):
    X = rng.normal(size=(200, 4))
    X, y = np.vstack([np.repeat(X[:1], 40, axis=0), X]), np.full(240, -1)
    y[41:60] = X[41:60, 0] > 0
    fitted = []
    for y[:3] in [(0, 0, 1), (1, 0, 0)]:
        fitted.append(clone(CLASSIFIERS[0]).fit(X, y))
        assert len(set(fitted[-1].transduction_[:41])) == 1
        np.testing.assert_array_equal(fitted[-1].predict(X), fitted[-1].transduction_)
    np.testing.assert_array_equal(fitted[0].transduction_, fitted[1].transduction_)
    np.testing.assert_allclose(fitted[0].coef_, fitted[1].coef_, atol=1e-5)


def test_eigenfunctions__no_number_is_no_class(moons, few):
    X = moons[0]
    model = clone(CLASSIFIERS[0]).fit(X, few)
    wrong = X[:20].copy()
    wrong[3, 1] = np.nan
    with pytest.raises(EstimatorError, match="Input X contains NaN"):
        model.predict(dask.array.from_array(wrong, chunks=(5, 2))).compute()
    # Where the unnormalised extension would divide by next to nothing the nearest sample stands in.
    model = EigenfunctionClassifier(laplacian="unnormalized", weights="heat", random_state=0)
    model.fit(X, few)
    new, expected = make_moons(400, noise=0.2, random_state=2)
    assert np.isnan(extend(model.run_, new)).any()
    assert np.isfinite(model.predict_proba(new)).all()
    assert model.score(new, expected) > 0.8

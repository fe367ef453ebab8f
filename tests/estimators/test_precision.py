"""Samples far from 0: the same classes and coordinates as of the same samples near 0."""

import warnings

import dask.array
import numpy as np
import pytest
from sklearn.datasets import load_digits, make_blobs, make_moons

import eigenscape
from eigenscape import (
    EigenfunctionClassifier,
    InterpolatedClassifier,
    LaplacianEigenmaps,
    PoissonClassifier,
)
from eigenscape.clusters import Threads
from eigenscape.errors import EstimatorError
from eigenscape.estimators import samples

OFFSETS = [0, 1e3, 1e7, 1e8, 1e12]


def moons():
    return make_moons(300, noise=0.05, random_state=0)


def digits():
    X, y = load_digits(return_X_y=True)
    return X[:400], y[:400]


def blobs():
    return make_blobs(300, n_features=90, centers=6, random_state=0)[:2]


def some(y, count=5):
    given = np.full(len(y), -1)
    for number in np.unique(y):
        given[np.flatnonzero(y == number)[:count]] = number
    return given


@pytest.mark.slow
@pytest.mark.parametrize("scale", [1e-6, 1, 1e6])
@pytest.mark.parametrize("make", [moons, digits, blobs])
def test_classifier__same_classes_wherever_the_samples_lie(make, scale):
    X, y = make()
    given = some(y)
    expected = PoissonClassifier(random_state=0).fit(X, given).transduction_
    for offset in OFFSETS:
        moved = scale * X + offset
        # What double has not kept nobody can bring back.
        if np.spacing(offset) * 2**10 > np.ptp(scale * X, axis=0).max():
            continue
        with warnings.catch_warnings():
            # Single columns of digits spread less than the widest does.
            warnings.filterwarnings("ignore", message=".*have lost most of their spread")
            fitted = PoissonClassifier(random_state=0).fit(moved, given)
        np.testing.assert_array_equal(fitted.transduction_, expected)
        np.testing.assert_array_equal(fitted.predict(moved[:40]), expected[:40])


@pytest.mark.slow
@pytest.mark.parametrize("chunks", [(300, 90), (64, 90), (37, 20), (1, 90)])
def test_samples__same_bits_for_any_chunking(chunks):
    X, y = blobs()
    X = X * 1e-3 + np.linspace(0, 1e6, 90)
    expected = EigenfunctionClassifier(random_state=0).fit(X, some(y))
    table = dask.array.from_array(X, chunks=chunks)
    found = EigenfunctionClassifier(random_state=0).fit(table, some(y))
    np.testing.assert_array_equal(found.coef_, expected.coef_)
    stored = eigenscape.open_run(found.run_)
    np.testing.assert_array_equal(
        stored["origin"], eigenscape.open_run(expected.run_)["origin"].values
    )
    np.testing.assert_array_equal(found.predict(table).compute(), expected.predict(X))


def test_samples__near_0_are_read_once_and_kept_to_the_bit(tmp_path):
    X, _ = moons()
    reads = []

    def count(block):
        if len(block):
            reads.append(len(block))
        return block

    table = dask.array.from_array(X, chunks=(100, 2)).map_blocks(count, meta=np.empty((0, 0)))
    fitted = LaplacianEigenmaps(random_state=0, directory=tmp_path).fit(table)
    assert sum(reads) == len(X)
    run = eigenscape.open_run(fitted.run_)
    np.testing.assert_array_equal(run["values"], X.astype(np.float32))
    assert "origin" not in run


@pytest.mark.parametrize(("method", "count"), [("pca", 2), ("random-projection", 1)])
def test_transform__fitted_samples_are_known_by_one_or_two_features(method, count):
    """Features near 0 round by shares of the sample, not of themselves, and otherwise in other blocks."""
    X = np.random.default_rng(1).normal(size=(300, 200))
    y = np.where(np.arange(300) < 60, np.arange(300) % 3, -1)
    kept = {"features": method, "features_dimension": count, "random_state": 0}
    embedded = LaplacianEigenmaps(2, n_neighbors=8, **kept).fit(X)
    classifier = InterpolatedClassifier(**kept).fit(X, y)
    for size in (1, 2, 7, 300):
        for start in range(0, min(300, 10 * size), size):
            here = slice(start, start + size)
            np.testing.assert_array_equal(embedded.transform(X[here]), embedded.embedding_[here])
            shares = classifier.predict_proba(X[here])
            np.testing.assert_allclose(shares, classifier.label_distributions_[here], atol=1e-6)


def test_transform__new_samples_far_from_0(tmp_path):
    X, _ = moons()
    near = LaplacianEigenmaps(3, random_state=0).fit(X[:200])
    far = LaplacianEigenmaps(3, random_state=0, directory=tmp_path).fit(X[:200] + 1e9)
    expected = near.transform(X[200:])
    sign = np.sign((near.embedding_ * far.embedding_).sum(axis=0))
    for moved in (X[200:] + 1e9, dask.array.from_array(X[200:] + 1e9, chunks=(30, 1))):
        np.testing.assert_allclose(far.transform(moved) * sign, expected, atol=2e-3)
    np.testing.assert_allclose(
        eigenscape.extend(far.run_, X[200:] + 1e9)[:, 1:] * sign, expected, atol=2e-3
    )


def test_angles__are_those_of_whole_vectors():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 90)) + np.where(np.arange(90) < 3, 300.0, 0)
    assert samples.find_origin(X.min(axis=0), X.max(axis=0), X.dtype, exact=True) is not None
    double = LaplacianEigenmaps(2, metric="angle", random_state=0).fit(X)
    single = LaplacianEigenmaps(2, metric="angle", random_state=0).fit(X.astype(np.float32))
    np.testing.assert_allclose(double.eigenvalues_, single.eigenvalues_, atol=1e-3)
    np.testing.assert_allclose(double.transform(X[:5]), double.embedding_[:5], atol=1e-6)


def test_fit__warns_of_a_spread_that_is_lost():
    X, y = moons()
    with pytest.warns(
        UserWarning, match="float32.*column 1 from 9999999 to 10000002 in steps of 1;"
    ) as said:
        PoissonClassifier(random_state=0).fit((X + 1e7).astype(np.float32), some(y))
    assert len(said) == 1
    with pytest.warns(UserWarning, match="type float64.*steps of 0.016"):
        PoissonClassifier(random_state=0).fit(X + 1e14, some(y))
    with pytest.raises(EstimatorError, match=r"identical.*float32 as large as 1e\+10 lie 1e\+03"):
        PoissonClassifier().fit((X + 1e10).astype(np.float32), some(y))
    with pytest.raises(EstimatorError, match=r"identical.*float64 as large as 1e\+18"):
        PoissonClassifier().fit(X + 1e18, some(y))


def test_samples__new_ones_by_a_run_without_origin():
    X, _ = moons()
    fitted = LaplacianEigenmaps(2, random_state=0).fit(X)
    before = fitted.transform(X[:20].astype(np.float32))
    np.testing.assert_array_equal(fitted.transform(X[:20]), before)


@pytest.mark.slow
def test_job_and_estimator__agree_far_from_0(tmp_path):
    X, y = moons()
    given = some(y)
    for offset in (0, 1e8):
        np.save(tmp_path / "table.npy", (X + offset)[:, None])
        np.save(tmp_path / "labels.npy", (given + 1)[:, None].astype(np.uint8))
        job = eigenscape.parse_job(
            {
                "scene": {
                    "path": str(tmp_path / "table.npy"),
                    "labels": str(tmp_path / "labels.npy"),
                },
                "learn": {"method": "poisson", "train": "all"},
                "output": {"directory": str(tmp_path / f"runs-{offset:.0e}"), "formats": []},
            },
            base=tmp_path,
        )
        result = eigenscape.run(job, executor=Threads(1))
        found = eigenscape.open_run(result.path)["class"].values - 1
        fitted = PoissonClassifier(random_state=0).fit(X + offset, given)
        np.testing.assert_array_equal(found, fitted.transduction_)
        np.testing.assert_array_equal(found, y)


def test_fit__refuses_values_whose_squares_are_lost(rng):
    X = rng.normal(size=(100, 3))
    assert LaplacianEigenmaps(2, random_state=0).fit(1e-14 * X).embedding_.shape == (100, 2)
    with pytest.raises(
        EstimatorError, match=r"columns span .*e-20 at most, .* Multiply X by a factor"
    ):
        LaplacianEigenmaps(2, random_state=0).fit(1e-20 * X)


def test_fit__refuses_masked_values(rng):
    X = np.ma.masked_greater(rng.normal(size=(100, 3)), 2)
    with pytest.raises(EstimatorError, match="a masked array, of which"):
        LaplacianEigenmaps(2, random_state=0).fit(X)

import dask.array
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits, make_blobs
from sklearn.exceptions import DataConversionWarning
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import eigenscape
from eigenscape import (
    EigenfunctionClassifier,
    GeodesicClassifier,
    InterpolatedClassifier,
    PoissonClassifier,
    SchroedingerEigenmaps,
    TikhonovClassifier,
)
from eigenscape.errors import EstimatorError
from eigenscape.estimators.classifiers.labels import check_length, encode_labels, is_labelled

CLASSIFIERS = [
    EigenfunctionClassifier(random_state=0), GeodesicClassifier(random_state=0),
    InterpolatedClassifier(random_state=0), PoissonClassifier(random_state=0),
    TikhonovClassifier(random_state=0),
]  # fmt: skip
WORDS = ["a", "b", None, "a", None]
CODES = [0, 1, -1, 0, -1]
NUMBERS = [3, 7, None, 3, None]


def objects(values):
    return np.array(values, object)


@pytest.mark.parametrize(
    ("y", "classes"),
    [
        (WORDS, ["a", "b"]),
        (objects(WORDS), ["a", "b"]),
        (objects(["a", "b", np.nan, "a", -1]), ["a", "b"]),
        (["a", "b", float("nan"), "a", -1], ["a", "b"]),
        (objects(["a", "b", pd.NA, "a", pd.NaT]), ["a", "b"]),
        (np.array(["a", "b", "-1", "a", "-1"]), ["a", "b"]),
        (np.array(["a", "b", -1, "a", -1]), ["a", "b"]),
        (np.array(["a", "b", "", "a", ""]), ["a", "b"]),
        (objects(["a", "b", "", "a", None]), ["a", "b"]),
        (pd.Series(WORDS), ["a", "b"]),
        (pd.Series(WORDS, dtype="string"), ["a", "b"]),
        (pd.Series(WORDS, dtype="category"), ["a", "b"]),
        (pd.Series(NUMBERS, dtype="Int64"), [3, 7]),
        (pd.array([2**60, 2**60 + 1, None, 2**60, -1], dtype="Int64"), [2**60, 2**60 + 1]),
        (pd.Series([2**60, 2**60 + 1, None, 2**60, -1], dtype="Int64"), [2**60, 2**60 + 1]),
        (pd.DataFrame({"class": pd.array(NUMBERS, dtype="Int64")})["class"], [3, 7]),
        (
            pd.Series([2**60, 2**60 + 1, None, 2**60, None], dtype="Int64").astype("category"),
            [2**60, 2**60 + 1],
        ),
        (pd.Series([False, True, None, False, None], dtype="boolean"), [False, True]),
        (pd.Index(WORDS, dtype="string"), ["a", "b"]),
        (pd.Series(NUMBERS), [3.0, 7.0]),
        (pd.DataFrame({"class": NUMBERS})["class"], [3.0, 7.0]),
        (objects(NUMBERS), [3, 7]),
        (NUMBERS, [3, 7]),
        (np.array([3, 7, -1, 3, -1]), [3, 7]),
        (np.array([3.0, 7.0, -1.0, 3.0, np.nan]), [3, 7]),
        (objects([False, True, None, False, -1]), [False, True]),
        (dask.array.from_array(np.array([3, 7, -1, 3, -1]), chunks=2), [3, 7]),
    ],
    ids=lambda value: f"{type(value).__name__}-{getattr(value, 'dtype', '')}",
)
def test_encode_labels__what_stands_for_none(y, classes):
    found, codes = encode_labels(y, 5)
    assert found.tolist() == classes
    assert codes.tolist() == CODES


@pytest.mark.parametrize("kind", ["Int64", "category"])
def test_encode_labels__integers_stay_integers(kind):
    classes, _ = encode_labels(pd.Series(NUMBERS, dtype="Int64").astype(kind), 5)
    assert classes.dtype == np.int64
    with pytest.warns(DataConversionWarning, match="column-vector"):
        classes, _ = encode_labels(pd.DataFrame({"y": pd.array(NUMBERS, dtype=kind)}), 5)
    assert classes.dtype.kind == "i"


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (
            np.array(["a", "b", np.nan, "a", np.nan]),
            r"label of 2 samples is the text 'nan'.*Give None",
        ),
        (pd.Series(WORDS, dtype="string").astype(str), r"label of 2 samples is the text '<NA>'"),
        (
            pd.cut(pd.Series([0.5, 1.5, None, 0.5, None]), [0, 1, 2]),
            r"type Interval.*y\.astype\(str\)",
        ),
        (
            pd.Series([1, 2, None, 1, None], dtype="Int64").astype(object).replace(1, "a"),
            "several types",
        ),
        (pd.Series([None] * 5, dtype="string"), "none of 5 samples is labelled"),
        (pd.Series([0.5, 1.5, None, 0.5, None], dtype="Float64"), "Unknown label type: continuous"),
    ],
    ids=["nan", "NA", "interval", "mixed", "missing", "continuous"],
)
def test_encode_labels__what_are_no_labels(y, message):
    with pytest.raises(ValueError, match=message):
        encode_labels(y, 5)


@pytest.mark.mostly_slow(2)
@pytest.mark.parametrize("model", CLASSIFIERS, ids=lambda model: type(model).__name__)
def test_fit__missing_values_of_pandas_are_no_labels(model, blobs):
    X, truth = blobs
    known = np.arange(120) < 20
    plain = clone(model).fit(X, np.where(known, truth, -1))
    for kind in ("Int64", "boolean"):
        y = pd.Series(truth, dtype="Int64").astype(kind).mask(~known)
        fitted = clone(model).fit(X, y)
        np.testing.assert_array_equal(fitted.predict(X[:30]), plain.predict(X[:30]))
        weight = pd.Series(np.ones(120), dtype="Float64").mask(~known)
        assert fitted.score(X, y, sample_weight=weight) == plain.score(X, y)


@pytest.fixture(scope="module")
def blobs():
    return make_blobs(120, centers=2, random_state=0, cluster_std=0.5)


@pytest.mark.parametrize("model", [PoissonClassifier(), EigenfunctionClassifier()], ids=repr)
@pytest.mark.parametrize(("none", "names"), [(-1, [-1, 1]), ("-1", ["-1", "1"]), (-1.0, [-1.0, 1])])
def test_fit__refuses_two_classes_of_which_one_is_minus_1(model, none, names, blobs):
    X, truth = blobs
    y = np.array(names)[truth]
    with pytest.raises(
        EstimatorError, match=r"the only class is 1.*60 have no label.*encode"
    ) as told:
        model.fit(X, y)
    assert isinstance(told.value, ValueError)
    assert model.fit(X, (truth > 0).astype(int)).score(X, truth) == 1
    one = np.full(120, none)
    one[:4] = names[1]
    with pytest.raises(EstimatorError, match="label samples of another"):
        model.fit(X, one)


def test_fit__one_label_is_enough_for_a_potential_and_where_all_have_it(blobs):
    X, _ = blobs
    y = np.full(120, None)
    y[:5] = "wet"
    assert SchroedingerEigenmaps(potential="identification").fit(X, y).embedding_.shape == (120, 2)
    assert (PoissonClassifier().fit(X, np.ones(120, int)).predict(X) == 1).all()


def test_fit__says_what_labels_it_cannot_take(blobs):
    X, _ = blobs
    with pytest.raises(EstimatorError, match=r"none of 120 .*\(all are -1, None or NaN\)"):
        PoissonClassifier().fit(X, np.full(120, None))
    mixed = objects(["a", 2] * 60)
    with pytest.raises(EstimatorError, match="several types"):
        PoissonClassifier().fit(X, mixed)
    with pytest.raises(EstimatorError, match=r"bytes.*y\.astype\(str\)"):
        PoissonClassifier().fit(X, np.array([b"a", b"b"] * 60))
    with pytest.raises(ValueError, match="Unknown label type"):
        PoissonClassifier().fit(X, np.linspace(0, 1, 120))


@pytest.fixture(scope="module")
def partial():
    """Digits, of which a fifth has labels."""
    X, truth = load_digits(return_X_y=True)
    X, truth = X[:500], truth[:500]
    y = np.where(np.arange(500) % 5 == 0, truth, -1)
    return X, truth, y


def test_labelled_accuracy__counts_labelled_samples(partial):
    X, truth, y = partial
    model = PoissonClassifier(random_state=0).fit(X, y)
    known = y >= 0
    right = model.predict(X) == truth
    assert eigenscape.labelled_accuracy(model, X, y) == pytest.approx(right[known].mean())
    assert model.score(X, y) == eigenscape.labelled_accuracy(model, X, y)
    assert model.score(X, truth) == pytest.approx(right.mean())
    weight = np.arange(500.0)
    expected = np.average(right[known], weights=weight[known])
    assert model.score(X, y, sample_weight=weight) == pytest.approx(expected)
    missing = pd.Series(y).astype("Int64").mask(y < 0)
    assert model.score(X, missing) == model.score(X, y)
    lazy = dask.array.from_array(X, chunks=(100, 64))
    assert model.score(lazy, y) == pytest.approx(model.score(X, y))
    with pytest.raises(EstimatorError, match=r"sample_weight: shape \(3,\) for 500 samples"):
        model.score(X, y, sample_weight=[1, 2, 3])
    with pytest.raises(EstimatorError, match="1 of 100 labelled samples have none"):
        model.score(X, y, sample_weight=[None, *range(1, 500)])
    with pytest.raises(EstimatorError, match="none of 4 samples to score"):
        model.score(X[:4], [-1, -1, None, -1])


@pytest.mark.slow
def test_labelled_accuracy__in_searches_on_partial_labels(partial):
    X, truth, y = partial
    folds = StratifiedKFold(3)
    search = GridSearchCV(
        PoissonClassifier(random_state=0), {"n_neighbors": [5, 10]}, cv=folds,
        scoring=eigenscape.labelled_accuracy, error_score="raise",
    ).fit(X, y)  # fmt: skip
    assert search.best_score_ > 0.85
    assert (search.predict(X) == truth).mean() > 0.85
    model = make_pipeline(StandardScaler(), PoissonClassifier(random_state=0))
    # A classifier's own score is the same, through a pipeline too.
    own = cross_val_score(model, X, y, cv=folds, error_score="raise")
    named = cross_val_score(model, X, y, cv=folds, scoring=eigenscape.labelled_accuracy)
    np.testing.assert_array_equal(own, named)


@pytest.mark.parametrize("kind", [int, str, float])
def test_labels__masked_ones_are_none(kind):
    given = np.ma.masked_array(np.array([0, 1, 1, 0]).astype(kind), mask=[False, False, True, True])
    np.testing.assert_array_equal(is_labelled(check_length(given, 4)), [True, True, False, False])

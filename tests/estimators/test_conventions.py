"""scikit-learn's own checks, and the few that cannot hold, each with its reason."""

import pytest
from sklearn.base import is_classifier
from sklearn.utils.estimator_checks import estimator_checks_generator

from eigenscape import (
    EigenfunctionClassifier,
    GeodesicClassifier,
    InterpolatedClassifier,
    LaplacianEigenmaps,
    NeighborsTransformer,
    PoissonClassifier,
    SchroedingerEigenmaps,
    SpectralClusterer,
    TikhonovClassifier,
)
from eigenscape.estimators import expected_failed_checks

ESTIMATORS = [
    LaplacianEigenmaps(),
    SchroedingerEigenmaps(),
    SchroedingerEigenmaps(potential="identification"),
    EigenfunctionClassifier(),
    PoissonClassifier(),
    PoissonClassifier("poisson-mbo"),
    InterpolatedClassifier(),
    TikhonovClassifier(),
    GeodesicClassifier(),
    SpectralClusterer(),
    SpectralClusterer(assign_labels="kmeans"),
    NeighborsTransformer(),
    NeighborsTransformer(mode="connectivity"),
]
"""With their defaults, and with what makes them work otherwise."""

READING = {
    "check_classifier_data_not_an_array", "check_dtype_object", "check_estimator_sparse_array",
    "check_estimator_sparse_matrix", "check_estimators_dtypes", "check_estimators_nan_inf",
    "check_transformer_data_not_an_array",
}  # fmt: skip
"""Checks of how X is read, half of all fits: the same code for options of one estimator."""


def cases():
    seen = set()
    for estimator in ESTIMATORS:
        other = type(estimator) in seen
        seen.add(type(estimator))
        for case in estimator_checks_generator(
            estimator, expected_failed_checks=expected_failed_checks(estimator), mark="xfail"
        ):
            _, check = getattr(case, "values", case)
            if not (other and check.func.__name__ in READING):
                yield case


def name_of(value):
    return value.func.__name__ if hasattr(value, "func") else repr(value)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("estimator", "check"), list(cases()), ids=name_of)
def test_estimators__follow_the_conventions(estimator, check):
    check(estimator)


def test_expected_failed_checks__are_few_and_reasoned():
    waived = [expected_failed_checks(estimator) for estimator in ESTIMATORS]
    # Labels of -1 mean none: classifiers alone have a class less.
    assert [list(checks) for checks in waived] == [
        ["check_classifiers_classes"] if is_classifier(estimator) else []
        for estimator in ESTIMATORS
    ]
    assert all(len(reason) > 40 for checks in waived for reason in checks.values())

"""scikit-learn's own checks."""

import pytest
from sklearn.utils.estimator_checks import estimator_checks_generator

from eigenscape import (
    EigenfunctionClassifier,
    LaplacianEigenmaps,
    PoissonClassifier,
    SchroedingerEigenmaps,
    SpectralClusterer,
)

MINUS_ONE = {
    "check_classifiers_classes": "it has a class -1, which marks samples without a label here, as in "
    "sklearn.semi_supervised, whose classifiers the check excepts by name"
}

ESTIMATORS = [
    LaplacianEigenmaps(n_neighbors=4),
    # Checks label all samples: a potential of 1 everywhere would move all eigenvalues beyond 0.95.
    SchroedingerEigenmaps(n_neighbors=4, alpha=0.05),
    EigenfunctionClassifier(n_neighbors=5),
    PoissonClassifier(n_neighbors=5),
    SpectralClusterer(3, n_neighbors=5),
]


READING = {
    "check_classifier_data_not_an_array", "check_dtype_object", "check_estimator_sparse_array",
    "check_estimator_sparse_matrix", "check_estimators_dtypes", "check_estimators_nan_inf",
    "check_transformer_data_not_an_array",
}  # fmt: skip
"""Checks of how X is read, half of all fits: the same code for all estimators, so checked on one."""


def cases():
    for number, estimator in enumerate(ESTIMATORS):
        waived = MINUS_ONE if hasattr(estimator, "predict") else None
        for case in estimator_checks_generator(
            estimator, expected_failed_checks=waived, mark="xfail"
        ):
            _, check = getattr(case, "values", case)
            if number == 0 or check.func.__name__ not in READING:
                yield case


def name_of(value):
    return value.func.__name__ if hasattr(value, "func") else type(value).__name__


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("estimator", "check"), list(cases()), ids=name_of)
def test_estimators__follow_the_conventions(estimator, check):
    check(estimator)

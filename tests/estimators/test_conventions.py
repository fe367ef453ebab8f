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

QUICK = {
    "check_do_not_raise_errors_in_init_or_set_param", "check_estimator_cloneable",
    "check_estimator_get_tags_default_keys", "check_estimators_pickle", "check_estimators_unfitted",
    "check_f_contiguous_array_estimator", "check_fit1d", "check_get_params_invariance",
    "check_n_features_in", "check_no_attributes_set_in_init", "check_parameters_default_constructible",
    "check_set_params",
}  # fmt: skip
"""Checks that take few fits or none: they run always, the others, which take minutes, where slow ones do,
those of further options of an estimator, and of `ALIKE`, where exhaustive ones do."""

ALIKE = (SchroedingerEigenmaps, InterpolatedClassifier, TikhonovClassifier, GeodesicClassifier)
"""Estimators that read what they are given by the code of another."""


def cases():
    seen = set()
    for estimator in ESTIMATORS:
        other = type(estimator) in seen
        seen.add(type(estimator))
        for case in estimator_checks_generator(
            estimator, expected_failed_checks=expected_failed_checks(estimator), mark="xfail"
        ):
            _, check = getattr(case, "values", case)
            if check.func.__name__ in QUICK and not other:
                yield case
            elif not (other and check.func.__name__ in READING):
                values = getattr(case, "values", case)
                alike = other or type(estimator) in ALIKE
                further = pytest.mark.exhaustive if alike else pytest.mark.slow
                yield pytest.param(*values, marks=[*getattr(case, "marks", ()), further])


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

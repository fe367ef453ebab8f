"""Checks of scikit-learn that cannot hold, each with its reason."""

from typing import Any

from sklearn.base import is_classifier

_MINUS_ONE = {
    "check_classifiers_classes": "it has a class -1, which marks samples without a label, as in "
    "sklearn.semi_supervised, whose classifiers the check excepts by name"
}


def expected_failed_checks(estimator: Any) -> dict[str, str]:
    """Return the checks of scikit-learn that an estimator of this package cannot pass, and why.

    For ``expected_failed_checks=`` of `sklearn.utils.estimator_checks.check_estimator` and
    `parametrize_with_checks`.

    Parameters
    ----------
    estimator
        One of `eigenscape.estimators`.
    """
    return dict(_MINUS_ONE) if is_classifier(estimator) else {}

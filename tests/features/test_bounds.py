import numpy as np
import pytest
from sklearn.random_projection import johnson_lindenstrauss_min_dim

from eigenscape.features.bounds import describe_bounds, eigenvector_bound, johnson_lindenstrauss


@pytest.mark.parametrize("samples", [100, 21_025, 10**7])
@pytest.mark.parametrize("distortion", [0.1, 0.5, 0.9])
def test_johnson_lindenstrauss__as_scikit_learn(samples, distortion):
    # Which rounds down.
    found = johnson_lindenstrauss(samples, distortion)
    assert found - 1 == johnson_lindenstrauss_min_dim(samples, eps=distortion)


def test_eigenvector_bound__by_hand():
    e = 0.2 * 0.5 / (4 * 10 * 9)
    wanted = (4 + 2 * np.log(10)) / (e**2 / 200 + e**3 / 3000) * 3 * np.log(7 * 3 * 50 / e)
    found = eigenvector_bound(
        10, 50, 3, relative_gap=0.2, change=0.5, failure=0.1, shape=7
    )  # fmt: skip
    assert found == pytest.approx(wanted)


def test_eigenvector_bound__grows_with_what_is_asked():
    least = eigenvector_bound(1000, 100)
    for harder in ({"dimension": 2}, {"relative_gap": 0.1}, {"change": 0.1}, {"failure": 0.01}):
        assert eigenvector_bound(1000, 100, **harder) > least
    assert eigenvector_bound(2000, 100) > least


def test_describe_bounds__says_that_they_are_loose():
    text = describe_bounds(21_025, 200, 80)
    for word in ("to 80 of 200", " 478 ", "Johnson", "theorem 4.3.1", "loose"):
        assert word in text

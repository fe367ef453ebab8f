import networkx as nx
import numpy as np
import pytest
import scipy.sparse

from eigenscape.spectrum.iteration.kernels.density import quantile
from eigenscape.spectrum.kernels.operator import as_operator

ROWS = 1500
VALUES = {
    "path": 2 - 2 * np.cos(np.pi * np.arange(ROWS) / ROWS),
    "uniform": np.linspace(0, 1, ROWS),
}
BOUND = {"path": 4.0, "uniform": 1.0}


def operator_of(name, dtype=np.float64):
    if name == "path":
        A = nx.laplacian_matrix(nx.path_graph(ROWS)).astype(float)
    else:
        A = scipy.sparse.diags_array(VALUES[name])
    return as_operator(scipy.sparse.csr_array(A), np.ones(ROWS), dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("share", [0.01, 0.2, 0.9])
@pytest.mark.parametrize("name", ["path", "uniform"])
def test_quantile__is_that_of_a_known_spectrum(name, share, dtype):
    found = quantile(operator_of(name, dtype), share, BOUND[name])
    assert found == pytest.approx(np.quantile(VALUES[name], share), abs=0.03 * BOUND[name])


def test_quantile__lies_between_the_steps_of_a_clustered_spectrum():
    A = nx.normalized_laplacian_matrix(nx.hypercube_graph(10))
    operator = as_operator(scipy.sparse.csr_array(A), np.ones(1024), np.float64)
    # One of 1024 is 0, ten are 0.2, forty-five 0.4.
    assert quantile(operator, 0.03, 2.0) == pytest.approx(0.4, abs=0.08)
    assert quantile(operator, 0.5, 2.0) == pytest.approx(1.0, abs=0.08)


def test_quantile__grows_with_the_share_and_bears_a_loose_bound():
    operator = operator_of("path")
    for bound in (4.0, 8.0):
        found = [quantile(operator, share, bound) for share in (0.01, 0.1, 0.3, 0.6, 0.99)]
        assert (np.diff(found) > 0).all()
        assert 0 <= found[0] < found[-1] <= bound
    assert found[2] == pytest.approx(np.quantile(VALUES["path"], 0.3), abs=0.24)

from typing import get_args

import networkx as nx
import numpy as np
import pytest

from eigenscape import eigenpairs
from eigenscape.job.options import Laplacian
from eigenscape.spectrum.kernels.forms import FORMS


@pytest.fixture
def W(rng):
    graph = nx.grid_2d_graph(5, 7)
    for _, _, data in graph.edges(data=True):
        data["weight"] = float(rng.uniform(0.5, 3))
    return nx.to_numpy_array(graph)


def dense(W, kind):
    degree = W.sum(axis=1)
    L = np.diag(degree) - W
    if kind == "normalized":
        return L / np.sqrt(np.outer(degree, degree))
    return L / degree[:, None] if kind == "random-walk" else L


def test_forms__are_the_laplacians_of_jobs():
    assert [*FORMS] == [*get_args(Laplacian)]


@pytest.mark.parametrize("kind", FORMS)
def test_forms__describe_values_and_vectors(W, kind):
    form, found = FORMS[kind], eigenpairs(W, 34, kind=kind)
    np.testing.assert_allclose(
        dense(W, kind) @ found.vectors, found.vectors * found.values, atol=1e-9
    )
    assert (found.values.max() <= 2) == form.normalized
    assert (np.ptp(found.vectors[:, 0]) < 1e-9) == form.constant
    # The symmetric form that is solved has the same eigenvalues, and vectors of its own if they are turned.
    solved = eigenpairs(W, 34, kind=form.solved)
    np.testing.assert_allclose(solved.values, found.values, atol=1e-9)
    assert (not np.allclose(solved.vectors, found.vectors)) == form.turned
    assert not FORMS[form.solved].turned

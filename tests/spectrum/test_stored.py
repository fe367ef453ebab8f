"""Tests of operators in files."""

import networkx as nx
import numpy as np

from eigenscape.spectrum.stored import store_rounded


def test_store_rounded__shares_all_but_the_values(make_problem, tmp_path):
    W = nx.adjacency_matrix(nx.grid_2d_graph(9, 7)).astype(float)
    stored = make_problem(W, kind="normalized", count=3).operator
    rounded = store_rounded(stored, tmp_path / "single")
    # Repeated by another worker.
    assert store_rounded(stored, tmp_path / "single") == rounded
    assert (rounded.graph, rounded.null) == (stored.graph, stored.null)
    assert not {*rounded.data, rounded.diagonal} & {*stored.data, stored.diagonal}
    exact, operator = stored.open(), rounded.open()
    assert operator.diagonal.dtype == np.float32
    assert all(block.data.dtype == np.float32 for block in operator.blocks)
    difference = abs(operator.matrix() - exact.matrix()).max()
    assert 0 < difference <= np.finfo(np.float32).eps

from dataclasses import fields, replace

import networkx as nx
import numpy as np
import pytest

from eigenscape.learn.propagate.hierarchy import StoredGraphs
from eigenscape.learn.propagate.kernels.multigrid import coarse_graphs
from eigenscape.spectrum.kernels.operator import as_operator
from eigenscape.spectrum.stored import store_operator


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_stored_graphs__are_those_of_the_kernel_in_memory_and_mapped(tmp_path, rng, dtype):
    graph = nx.convert_node_labels_to_integers(nx.grid_2d_graph(30, 30))
    for _, _, data in graph.edges(data=True):
        data["weight"] = rng.random()
    L = nx.laplacian_matrix(graph).astype(float)
    operator = as_operator(L, np.ones(900), dtype)
    expected = list(coarse_graphs(operator))
    assert len(expected) >= 2
    for in_memory in (True, False):
        folder = tmp_path / str(in_memory)
        folder.mkdir()
        stored = StoredGraphs(store_operator(operator, folder), folder, in_memory)
        count = stored.make(0)
        assert count == len(expected)
        for one, other in zip(replace(stored, count=count).open(), expected, strict=True):
            for part in fields(other):
                values = np.asarray(getattr(other, part.name))
                if values.dtype == np.float64:
                    values = values.astype(dtype)
                np.testing.assert_array_equal(getattr(one, part.name), values)
        assert not list(folder.glob("work-*"))


def test_stored_graphs__none_of_few_rows(tmp_path):
    L = nx.laplacian_matrix(nx.path_graph(20)).astype(float)
    operator = store_operator(as_operator(L, np.ones(20), np.float32), tmp_path)
    stored = StoredGraphs(operator, tmp_path, in_memory=True)
    assert stored.make(0) == 0
    assert stored.open() == []

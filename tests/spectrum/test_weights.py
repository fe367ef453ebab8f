from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse

from eigenscape import eigenpairs
from eigenscape.spectrum.weights import check_weights


def with_duplicates(W):
    """The same matrix with each entry in two halves and the columns of a row in falling order."""
    rows = list(pairwise(W.indptr))
    data = np.concatenate([np.repeat(W.data[a:b][::-1] / 2, 2) for a, b in rows])
    columns = np.concatenate([np.repeat(W.indices[a:b][::-1], 2) for a, b in rows])
    parts = data, columns, 2 * W.indptr
    return scipy.sparse.csr_array(parts, shape=W.shape)


@pytest.fixture(scope="module")
def graph():
    """Even weights, whose columns ascend in each row."""
    rng = np.random.default_rng(4)
    dense = np.triu(2 * rng.integers(1, 9, (60, 60)) * (rng.random((60, 60)) < 0.3), 1)
    return scipy.sparse.csr_array((dense + dense.T).astype(np.float64))


@pytest.mark.parametrize("kind", [np.float32, np.float64, np.int64, np.bool_])
@pytest.mark.parametrize("form", ["unsorted", "duplicates"])
def test_check_weights__writes_nothing_into_the_matrix_it_is_given(graph, kind, form):
    order = np.random.default_rng(5).permutation(60)
    given = graph[order][:, order] if form == "unsorted" else with_duplicates(graph)
    given.data = given.data.astype(kind)
    assert not given.has_canonical_format
    before = [part.copy() for part in (given.data, given.indices, given.indptr)]
    expected = given.astype(np.float64).toarray()
    for _ in range(2):
        W = check_weights("weights", given)
        assert W.has_canonical_format
        assert W.dtype == np.float64
        np.testing.assert_array_equal(W.toarray(), expected)
        for part, kept in zip((given.data, given.indices, given.indptr), before, strict=True):
            np.testing.assert_array_equal(part, kept)
    canonical = scipy.sparse.csr_array(expected)
    np.testing.assert_array_equal(eigenpairs(given, 5).values, eigenpairs(canonical, 5).values)

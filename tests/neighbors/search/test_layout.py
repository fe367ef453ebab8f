import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from eigenscape.neighbors.kernels.partition import Leaves
from eigenscape.neighbors.search.forest import Tree
from eigenscape.neighbors.search.layout import Layout, lay_out
from eigenscape.neighbors.search.scratch import Ranked
from eigenscape.store.rows import Rows
from lists import METHODS, choose_copies_slowly, clustered, words


@given(n=st.integers(1, 50), seed=st.integers(0, 999), share=st.floats(0, 0.9))
def test_locality_order__puts_copies_behind_who_represents_them(tmp_path_factory, n, seed, share):
    rng = np.random.default_rng(seed)
    copies = np.flatnonzero(rng.random(n) < share)[: n - 1]
    order = rng.permutation(np.setdiff1d(np.arange(n), copies))
    represented = rng.choice(order, len(copies))
    rank = np.empty(n, np.int32)
    rank[order] = np.arange(len(order))
    rank[copies] = rank[represented]
    folder = tmp_path_factory.mktemp("layout")
    arrays = {"order": order, "rank": rank, "copies": copies, "represented": represented}
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array)
    tree = Tree(folder, folder, Rows(""), (), 1, 1, Leaves(0, 0, 32), "int32")
    ranked = Ranked(folder, len(order), 1, False)
    found = Layout(folder, n, ranked, tree, (0, len(order))).locality_order()
    expected = [sample for first in order for sample in (first, *copies[represented == first])]
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize("unit", [False, True])
def test_lay_out__sorts_the_features_by_rank(surround, rng, small_blocks, kind, unit):
    which = np.arange(2500)
    which[40:60] = 40
    features = (words(rng, 2500) if kind == "sparse" else clustered(rng, 2500))[which]
    context, source = surround(features, unit=unit)
    layout = lay_out(context, source, Leaves(0, 0.0, 300), least=4, most_equal=1)
    whole, order, rank = source.read(0, 2500), layout.order(), layout.rank()
    whole = whole.toarray() if sp.issparse(whole) else whole
    copies = choose_copies_slowly(whole, 4, 1)
    assert layout.tree.parts == 4
    assert layout.starts[-1] == layout.ranked.rows == len(order) == 2500 - len(copies)
    np.testing.assert_array_equal(rank[order], np.arange(len(order)))
    assert dict(zip(*(part.tolist() for part in layout.copies()), strict=True)) == copies
    for copy, represented in copies.items():
        assert rank[copy] == rank[represented]
    # Nobody reads the samples by part any more.
    assert not list(layout.tree.folder.glob("run-*"))
    found = layout.ranked.read(0, len(order))
    assert sp.issparse(found) == (kind == "sparse")
    found = found.toarray() if sp.issparse(found) else found
    np.testing.assert_array_equal(found, whole[order])


@pytest.mark.parametrize(
    "method",
    # The library is compiled anew in each process.
    [
        pytest.param(method, marks=pytest.mark.slow) if method == "pynndescent" else method
        for method in METHODS
    ],
)
def test_lay_out__order_keeps_neighbours_together(find, rng, method):
    features = rng.uniform(0, 1, (2500, 2))
    found = find(features, method=method, k=6, leaf_size=64)
    rank = np.empty(2500, int)
    rank[found.order] = np.arange(2500)
    # In random order the median would be near 2500 * 0.29.
    assert np.median(np.abs(rank[found.index] - rank[:, None])) < 100

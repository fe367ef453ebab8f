import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from eigenscape.neighbors.kernels.partition import Leaves
from eigenscape.neighbors.search.forest import Tree, _number, bundle_count, load_tree
from eigenscape.neighbors.search.layout import grow_tree, lay_out
from lists import clustered, words


@given(n=st.integers(1, 60), seed=st.integers(0, 999), share=st.floats(0, 0.9))
def test_number__counts_the_samples_that_are_no_copies(n, seed, share):
    rng = np.random.default_rng(seed)
    copies = np.flatnonzero(rng.random(n) < share)
    others = np.setdiff1d(np.arange(n), copies)
    np.testing.assert_array_equal(_number(np.arange(len(others)), copies), others)


@pytest.fixture(params=["dense", "sparse", "bundles"])
def planted(request, surround, rng, small_blocks, monkeypatch):
    """Features, a layout, and a second tree over the same samples; parts are kept."""
    monkeypatch.setattr(Tree, "remove_runs", lambda tree, bundles: None)
    if request.param == "bundles":
        monkeypatch.setattr("eigenscape.neighbors.search.forest.BUNDLE_PARTS", 2)
    sparse = request.param == "sparse"
    features = words(rng, 2000) if sparse else clustered(rng, 2000)
    which = np.arange(2000)
    which[200:300] = 7
    context, source = surround(features[which])
    leaves = Leaves(3, 0.2, 100)
    layout = lay_out(context, source, leaves, least=3, most_equal=1)
    further = Leaves(3, 0.2, 100, turn=1)
    rows = layout.ranked.rows
    tree, _ = grow_tree(context, source, further, layout.folder, rows)
    assert tree.bundles == (2 if request.param == "bundles" else 1)
    whole = source.read(0, 2000)
    return whole.toarray() if sparse else whole, layout, tree


def test_tree__parts_hold_every_sample_but_copies(planted):
    whole, layout, further = planted
    copies = layout.copies()[0]
    # Further trees cut elsewhere.
    one, other = (load_tree(tree.folder) for tree in (layout.tree, further))
    assert np.abs(one.directions - other.directions).max() > 0.1
    for tree in (layout.tree, further):
        tree = pickle.loads(pickle.dumps(tree))
        assert tree.home == (tree.leaves.turn == 0)
        assert tree.parts == load_tree(tree.folder).parts == 4
        owned, held = [], 0
        for part in range(tree.parts):
            features, samples, home = tree.read_part(part)
            assert (np.diff(samples) > 0).all()
            features = features.toarray() if sp.issparse(features) else features
            np.testing.assert_array_equal(features, whole[samples])
            owned.append(samples[home == part])
            held += len(samples)
        others = np.setdiff1d(np.arange(2000), copies)
        np.testing.assert_array_equal(np.sort(np.concatenate(owned)), others)
        assert 1.3 < held / len(others) < 3


def test_layout__has_the_features_in_order_and_no_copy_of_them(planted):
    whole, layout, _ = planted
    features = layout.ranked.read(0, layout.ranked.rows)
    features = features.toarray() if sp.issparse(features) else features
    np.testing.assert_array_equal(features, whole[layout.order()])
    assert not list(layout.tree.folder.glob("residents-*"))


@pytest.mark.parametrize(
    ("parts", "width", "steps"),
    [
        (32, 2, [32]),
        (128, 2, [64, 64]),
        (512, 2, [128] * 4),
        (512, 20, [256, 256]),
        (512, 99, [512]),
    ],
)
def test_steps__leave_no_worker_without_a_part(tmp_path, parts, width, steps):
    tree = Tree(
        tmp_path, tmp_path, None, (), parts, bundle_count(parts), Leaves(0, 0.1, 9), "int32"
    )
    found = [tree.parts_of(bundles) for bundles in tree.steps(width)]
    assert [len(step) for step in found] == steps
    assert [part for step in found for part in step] == list(range(parts))


def test_tree__mails_every_list_home(planted):
    whole, layout, further = planted
    rank, starts = layout.rank(), layout.starts
    for tree in (layout.tree, further):
        tree.sort_mail("all")
        assert tree.home_parts() == layout.tree.parts
        arrived = np.zeros(2000, int)
        for home in range(layout.tree.parts):
            for samples, index, distance in tree.mail(home):
                np.add.at(arrived, samples, 1)
                ranks = rank[samples]
                assert ((ranks >= starts[home]) & (ranks < starts[home + 1])).all()
                squared = ((whole[index] - whole[samples][:, None]) ** 2).sum(axis=2)
                np.testing.assert_allclose(distance, squared, rtol=1e-5)
        # As many lists as the sample has parts.
        expected = np.zeros(2000, int)
        for part in range(tree.parts):
            expected[tree.read_part(part)[1]] += 1
        np.testing.assert_array_equal(arrived, expected)


def test_tree__removes_parts_and_mail_and_keeps_the_rest(planted, monkeypatch):
    _, _, tree = planted
    tree.sort_mail("all")
    monkeypatch.undo()

    def kinds():
        return {path.name.partition("-")[0] for path in tree.folder.iterdir()}

    assert kinds() == {"run", "mail", "tree.npz"}
    for bundle in range(tree.bundles):
        assert kinds() == {"run", "mail", "tree.npz"}
        tree.remove_runs(range(bundle, bundle + 1))
    assert kinds() == {"mail", "tree.npz"}
    # Once more, as a run that goes on does.
    for _ in range(2):
        tree.remove_mail()
        assert kinds() == {"tree.npz"}

import pickle

import numpy as np
import pytest
import scipy.sparse as sp

from eigenscape.neighbors.search import scratch
from eigenscape.neighbors.search.scratch import (
    Lists,
    Ranked,
    index_type,
    load_vectors,
    save_vectors,
)

KINDS = {"dense": np.asarray, "sparse": sp.csr_array}


def dense(vectors):
    return vectors if isinstance(vectors, np.ndarray) else vectors.toarray()


@pytest.fixture
def table(rng):
    table = rng.standard_normal((70, 6)) * (rng.random((70, 6)) < 0.4)
    table[[0, 30, 69]] = 0
    return table.astype(np.float32)


@pytest.mark.parametrize("kind", KINDS)
def test_save_vectors__are_read_back_by_ranges(tmp_path, monkeypatch, rng, table, kind):
    monkeypatch.setattr(scratch, "_WRITE_ROWS", 16)
    rows = rng.integers(0, 70, 100).astype(np.int32)
    save_vectors(tmp_path / "run.features", KINDS[kind](table), rows)
    for start, stop in ((0, 100), (7, 55), (99, 100), (4, 4)):
        found = load_vectors(tmp_path / "run.features", 6, start, stop, sparse=kind == "sparse")
        assert found.dtype == np.float32
        assert found.shape == (stop - start, 6)
        np.testing.assert_array_equal(dense(found), table[rows[start:stop]])


@pytest.mark.parametrize("kind", KINDS)
def test_ranked__is_filled_in_any_order(tmp_path, table, kind):
    vectors = KINDS[kind](table)
    ranked = Ranked(tmp_path, 70, 6, kind == "sparse")
    ranked.create(np.diff(vectors.indptr) if ranked.sparse else None)
    ranked.write(40, vectors[40:])
    # An attempt that goes on finds what the one before has written.
    ranked.create(np.diff(vectors.indptr) if ranked.sparse else None)
    ranked = pickle.loads(pickle.dumps(ranked))
    ranked.write(0, vectors[:25])
    ranked.write(25, vectors[25:40])
    np.testing.assert_array_equal(dense(ranked.read(0, 70)), table)
    np.testing.assert_array_equal(dense(ranked.read(24, 43)), table[24:43])
    assert ranked.read(5, 5).shape == (0, 6)
    ranks = np.array([69, 3, 3, 0, 50])
    np.testing.assert_array_equal(dense(ranked.take(ranks)), table[ranks])


def test_ranked__maps_what_compiled_loops_take(tmp_path, table):
    sparse = sp.csr_array(table)
    ranked = Ranked(tmp_path, 70, 6, True)
    ranked.create(np.diff(sparse.indptr))
    ranked.write(0, sparse)
    data, columns, starts = ranked.parts()
    assert (data.dtype, columns.dtype, starts.dtype) == (np.float32, np.int32, np.int64)
    np.testing.assert_array_equal(starts, sparse.indptr)
    np.testing.assert_array_equal(columns, sparse.indices)
    np.testing.assert_array_equal(data, sparse.data)


def test_ranked__without_entries(tmp_path):
    ranked = Ranked(tmp_path, 5, 3, True)
    ranked.create(np.zeros(5, np.int64))
    ranked.write(0, sp.csr_array((5, 3), dtype=np.float32))
    np.testing.assert_array_equal(ranked.read(1, 4).toarray(), np.zeros((3, 3)))


def test_lists__keep_the_version_before(tmp_path):
    lists = pickle.loads(pickle.dumps(Lists(tmp_path, 9, 2, "int32")))
    for version in range(4):
        lists.create(version)
        whole = np.full((9, 2), version)
        for rows in (slice(5), slice(5, 9)):
            lists.write(
                version, rows.start or 0, whole[rows], whole[rows] + 0.5, whole[rows] % 2 == 1
            )
        for known in (version, version - 1)[: version + 1]:
            assert lists.index(known).dtype == np.int32
            np.testing.assert_array_equal(lists.index(known), np.full((9, 2), known))
            np.testing.assert_array_equal(lists.distance(known), np.full((9, 2), known + 0.5))
            np.testing.assert_array_equal(lists.fresh(known), np.full((9, 2), known % 2))
    # Copy on write: what a task does to its map is not seen by others.
    lists.index(3)[...] = 77
    assert lists.index(3).max() == 3


def test_index_type__holds_every_number():
    assert index_type(2**31 - 1) == np.int32
    assert index_type(2**31) == np.int64

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from eigenscape.base.vectors import as_parts, join, unit_vectors
from eigenscape.store.rows import Rows
from harness import Harness
from lists import put_features

KINDS = ["dense", "sparse"]

# Entries of every size that float32 has, and many zeros.
tables = arrays(
    np.float32,
    st.tuples(st.integers(1, 12), st.integers(1, 6)),
    elements=st.one_of(
        st.just(0.0), st.floats(-(2.0**60), 2.0**60, width=32), st.floats(-1, 1, width=32)
    ),
)


@pytest.fixture
def save(tmp_path):
    """Save a table as the features stage does."""

    def write(table, *, unit=False, name="run"):
        harness = Harness(tmp_path / name)
        put_features(harness, table)
        return Rows(str(harness.run_directory.array_path("features/values")), unit=unit)

    return write


def dense(vectors):
    return vectors if isinstance(vectors, np.ndarray) else vectors.toarray()


@pytest.fixture
def table(rng):
    table = rng.standard_normal((9000, 5)) * (rng.random((9000, 5)) < 0.4)
    table[[0, 17, 18, 8999]] = 0
    return table.astype(np.float32)


@pytest.mark.parametrize("kind", KINDS)
def test_rows__reads_what_was_saved(save, table, kind):
    rows = save(sp.csr_array(table) if kind == "sparse" else table)
    assert rows.sparse == (kind == "sparse")
    assert rows.shape == table.shape
    assert rows.stored == (np.count_nonzero(table) if rows.sparse else table.size)
    assert rows.step == (4096 if rows.sparse else 9000)
    for start, stop in ((0, 9000), (17, 19), (4095, 4098), (8999, 9000), (5, 5)):
        found = rows.read(start, stop)
        assert found.dtype == np.float32
        np.testing.assert_array_equal(dense(found), table[start:stop])
    assert pickle.loads(pickle.dumps(rows)) == rows


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("unit", [False, True])
def test_take__returns_rows_in_the_order_given(save, table, monkeypatch, kind, unit):
    monkeypatch.setattr("eigenscape.store.rows.ROW_TILE", 512)
    rows = save(sp.csr_array(table) if kind == "sparse" else table, unit=unit)
    samples = np.array([0, 3, 17, 511, 512, 4096, 8999])
    np.testing.assert_array_equal(dense(rows.take(samples)), dense(rows.read(0, 9000))[samples])
    nothing = rows.take(np.zeros(0, np.int64))
    assert nothing.shape == (0, 5 + unit)


@pytest.mark.parametrize("kind", KINDS)
def test_rows__of_unit_length_are_the_same_in_any_block(save, table, kind):
    rows = save(sp.csr_array(table) if kind == "sparse" else table, unit=True)
    assert rows.shape == (9000, 6)
    whole = dense(rows.read(0, 9000))
    np.testing.assert_allclose((whole.astype(np.float64) ** 2).sum(axis=1), 1, rtol=1e-6)
    pieces = [dense(rows.read(start, min(start + 700, 9000))) for start in range(0, 9000, 700)]
    np.testing.assert_array_equal(np.concatenate(pieces), whole)


@given(table=tables)
def test_unit_vectors__have_length_one_and_the_direction_of_the_row(table):
    wide = table.astype(np.float64)
    length = np.linalg.norm(wide, axis=1, keepdims=True)
    expected = np.column_stack([wide / np.where(length > 0, length, 1), length == 0])
    for vectors in (table, sp.csr_array(table)):
        unit = unit_vectors(vectors)
        assert unit.dtype == np.float32
        np.testing.assert_allclose(dense(unit), expected, rtol=1e-6, atol=1e-37)
        # A zero has no entry, but every row without direction has one.
        if sp.issparse(unit):
            unit.check_format()
            np.testing.assert_array_equal(
                np.diff(unit.indptr), np.maximum(np.diff(vectors.indptr), 1)
            )


@pytest.mark.parametrize("scale", [1e-44, 1e-30, 1.0, 1e30, 3e38])
def test_unit_vectors__of_any_size(scale):
    row = np.array([[0.0, scale, -scale]], np.float32)
    expected = [[0, np.sqrt(0.5), -np.sqrt(0.5), 0]]
    for vectors in (row, sp.csr_array(row)):
        np.testing.assert_allclose(dense(unit_vectors(vectors)), expected, rtol=1e-6)


def test_unit_vectors__keep_entries_that_vanish_beside_others():
    table = sp.csr_array(np.array([[1e-30, 1e30], [0, 0], [0, 0], [2, 0], [0, 0]], np.float32))
    unit = unit_vectors(table)
    np.testing.assert_array_equal(np.diff(unit.indptr), [2, 1, 1, 1, 1])
    np.testing.assert_array_equal(
        unit.toarray(), [[0, 1, 0], [0, 0, 1], [0, 0, 1], [1, 0, 0], [0, 0, 1]]
    )


def test_unit_vectors__change_nothing_of_what_they_are_given(table):
    for vectors in (table, sp.csr_array(table)):
        before = dense(vectors).copy()
        unit_vectors(vectors)
        np.testing.assert_array_equal(dense(vectors), before)


@pytest.mark.parametrize("kind", KINDS)
def test_join__stacks_pieces(table, kind):
    whole = sp.csr_array(table) if kind == "sparse" else table
    pieces = [whole[:10], whole[10:10], whole[10:400]]
    for some in (pieces, pieces[:1]):
        found = join(some)
        assert type(found) is type(whole)
        np.testing.assert_array_equal(dense(found), table[: found.shape[0]])


def test_as_parts__has_the_types_that_loops_are_compiled_for(table):
    assert as_parts(table) is table
    sparse = sp.csr_array(table)
    sparse.indptr, sparse.indices = sparse.indptr.astype(np.int32), sparse.indices.astype(np.int64)
    data, columns, starts = as_parts(sparse)
    assert (data.dtype, columns.dtype, starts.dtype) == (np.float32, np.int32, np.int64)
    np.testing.assert_array_equal(
        sp.csr_array((data, columns, starts), shape=table.shape).toarray(), table
    )


def test_unit_vectors__a_row_of_explicit_zeros_has_no_direction():
    data, indices = np.array([0, 0, 3], np.float32), np.array([0, 1, 1])
    table = sp.csr_array((data, indices, np.array([0, 2, 2, 3])), shape=(3, 2))
    unit = unit_vectors(table)
    unit.check_format()
    np.testing.assert_array_equal(unit.toarray(), [[0, 0, 1], [0, 0, 1], [0, 1, 0]])

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eigenscape.base.blocks import task_bytes
from eigenscape.base.memory import ROW_TILE
from eigenscape.features import pieces
from eigenscape.features.method import Table
from eigenscape.features.methods.none import NoProjection
from eigenscape.features.methods.pca import PrincipalComponents
from eigenscape.features.pieces import MOMENT_ROWS, partial_blocks, piece_rows


@given(rows=st.integers(1, 10**9), bands=st.integers(1, 20_000), whole=st.booleans())
def test_partial_blocks__are_whole_and_can_be_held(rows, bands, whole):
    found = partial_blocks(rows, bands, whole=whole)
    assert found[0][0] == 0
    assert found[-1][1] == rows
    assert all(stop == start for (_, stop), (start, _) in itertools.pairwise(found))
    assert all(start % MOMENT_ROWS == 0 for start, _ in found)
    size = 8 * bands * (bands if whole else 1)
    assert len(found) == 1 or len(found) * size <= pieces._PARTIAL_BYTES


def test_partial_blocks__of_few_bands_are_those_of_tasks():
    assert len(partial_blocks(10_000_000, 110)) == -(-10_000_000 // MOMENT_ROWS)


@pytest.mark.parametrize("bands", [1, 110, 1500, 10_000])
def test_piece_rows__are_whole_tiles(bands):
    rows = piece_rows(bands)
    assert rows % ROW_TILE == 0
    assert rows == ROW_TILE or rows * bands * 4 <= 2**24


@pytest.mark.parametrize(
    "method", [PrincipalComponents(dimension=20), NoProjection(standardize=True)]
)
def test_footprint__of_wide_tables_fits_a_gibibyte(method):
    limit = 2**30
    found = method.footprint(Table(10_000_000, 1500, None, task_bytes(limit, 2), limit))
    assert 2 * found.each + found.shared + 200 * 2**20 < limit

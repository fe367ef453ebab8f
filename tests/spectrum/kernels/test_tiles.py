import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eigenscape.base.memory import ROW_TILE
from eigenscape.spectrum.kernels import tiles
from eigenscape.spectrum.kernels.gather import WIDTH


@pytest.mark.parametrize("rows", [1, ROW_TILE, 4 * 10**6, 10**7, 10**9])
def test_tile_rows__whole_tiles_and_not_too_many(rows):
    step = tiles.tile_rows(rows)
    assert step % ROW_TILE == 0
    assert -(-rows // step) <= tiles.MOST_TILES
    assert step == ROW_TILE or rows / step > tiles.MOST_TILES / 2


def test_tiles__cover_a_part(monkeypatch):
    monkeypatch.setattr(tiles, "ROW_TILE", 10)
    assert tiles.tiles(45) == [(0, 10), (10, 20), (20, 30), (30, 40), (40, 45)]
    assert tiles.tiles(45, 20) == [(20, 30), (30, 40), (40, 45)]
    assert tiles.tiles(45, 10, 30) == [(10, 20), (20, 30)]


@given(
    seed=st.integers(0, 1000),
    rows=st.integers(1, 90),
    pieces=st.integers(1, 5),
    cut=st.integers(0, 9),
)
def test_null_shares__do_not_depend_on_the_cut(seed, rows, pieces, cut):
    rng, step = np.random.default_rng(seed), 10
    component = None if pieces == 1 else rng.integers(0, pieces, rows).astype(np.int32)
    null, X = rng.random(rows) + 0.1, rng.standard_normal((rows, WIDTH)).astype(np.float32)
    label = np.zeros(rows, int) if component is None else component
    squares = np.maximum(np.bincount(label, null**2, pieces), 1e-9)
    at = min(cut * step, rows)
    parts = [slice(0, at), slice(at, rows)]
    sums = [
        tiles.null_sums(null[part], None if component is None else component[part], X[part], step)
        for part in parts
    ]
    shares = tiles.null_shares((each for part in sums for each in part), squares)
    whole = tiles.null_shares(tiles.null_sums(null, component, X, step), squares)
    np.testing.assert_array_equal(shares, whole)
    basis = null[:, None] * (label[:, None] == np.arange(pieces))
    np.testing.assert_allclose(whole, (basis.T @ X) / squares[:, None], atol=1e-6)


def test_add_tiles__the_norm_of_all_rows(rng):
    X, image = rng.standard_normal((2, 95, WIDTH))
    values = rng.random(WIDTH)
    sums = tiles.residual_tiles(X, image, values, 10)
    assert sums.shape == (10, WIDTH)
    np.testing.assert_allclose(tiles.add_tiles(sums), ((image - values * X) ** 2).sum(axis=0))

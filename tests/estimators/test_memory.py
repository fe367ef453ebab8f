"""The promise of `memory`: dask arrays larger than it."""

import dask.array
import numpy as np
import pytest

from eigenscape import LaplacianEigenmaps, PoissonClassifier
from eigenscape.base import memory
from eigenscape.base.blocks import BASE_BYTES
from eigenscape.estimators.folders import RunFolder

MIB = 2**20
ROWS, COLUMNS, DISTINCT = 150_000, 500, 4000


def chunk(block_info=None):
    """Return one chunk of an array that is nowhere as a whole: 572 MiB in double.

    Its first 4000 rows again and again, so that the search for neighbours is short.
    """
    (start, stop), (first, last) = block_info[None]["array-location"]
    rows = np.random.default_rng(first).random((DISTINCT, last - first))
    return np.roll(rows, -start, axis=0)[: stop - start]


@pytest.fixture
def huge():
    chunks = ((2000,) * (ROWS // 2000), (COLUMNS // 2,) * 2)
    return dask.array.map_blocks(chunk, chunks=chunks, dtype=float, meta=np.empty((0, 0)))


def fit(model, *data):
    """Return the fitted model and what memory the fit took."""
    # What libraries keep for products of such matrices is theirs.
    LaplacianEigenmaps(1, threads=1).fit(np.random.default_rng(0).normal(size=(9000, COLUMNS)))
    memory.release()
    before = memory.anonymous_bytes()
    with memory.watch() as peak:
        model.fit(*data)
    return model, peak.bytes - before


@pytest.mark.slow
def test_memory__holds_for_dask_arrays_larger_than_it(huge):
    limit = 400 * MIB
    assert huge.nbytes > 1.4 * limit
    model = LaplacianEigenmaps(
        1, n_neighbors=4, tolerance=1e-2, memory=f"{limit}B", threads=1, random_state=0
    )  # fmt: skip
    model, taken = fit(model, huge)
    assert taken < limit - BASE_BYTES
    assert model.embedding_.shape == (ROWS, 1)
    assert np.isfinite(model.transform(huge[:100].compute())).all()


def test_memory__less_gives_the_same(huge):
    part = huge[:5000, :100]
    y = np.where(np.arange(5000) < 40, np.arange(5000) % 4, -1)

    def shares(**limits):
        model = PoissonClassifier(features="pca", features_dimension=10, random_state=0, **limits)
        return model.fit(part, y).label_distributions_.compute()

    np.testing.assert_array_equal(shares(), shares(memory="250MiB", threads=1))


def test_run_folder__of_a_small_run_is_deleted_with_it():
    folder = RunFolder(small=True)
    path = folder.path
    (path / "file").write_text("text")
    assert path.is_dir()
    del folder
    assert not path.exists()

"""Samples that are read a block at a time."""

import dask.array
import numpy as np
import pytest
import xarray
from sklearn.base import clone

from eigenscape import (
    EigenfunctionClassifier,
    LaplacianEigenmaps,
    NeighborsTransformer,
    PoissonClassifier,
    SchroedingerEigenmaps,
    SpectralClusterer,
)
from eigenscape.errors import EstimatorError
from eigenscape.estimators import samples

ROWS, BLOCK = 900, 150
X = np.random.default_rng(0).normal(size=(ROWS, 4)) + 6 * (np.arange(ROWS) % 3)[:, None]
Y = np.where(np.arange(ROWS) < 90, np.arange(ROWS) % 3, -1)


@pytest.fixture
def largest(monkeypatch):
    """Rows of the largest piece of the samples that is computed at a time."""
    seen = [0]
    compute = dask.array.Array.compute

    def spy(array, **options):
        found = compute(array, **options)
        if found.shape[1:] == X.shape[1:]:  # not the coordinates that are clustered
            seen[0] = max(seen[0], len(found))
        return found

    monkeypatch.setattr(dask.array.Array, "compute", spy)
    # Otherwise so few rows would be one block.
    monkeypatch.setattr(samples, "_BLOCK_BYTES", BLOCK * 4 * 8)
    # All of an xarray.DataArray, which NumPy and scikit-learn would ask for.
    monkeypatch.setattr(
        xarray.DataArray, "__array__", lambda *_, **__: pytest.fail("it is read at once")
    )
    return seen


@pytest.mark.mostly_slow(2)
@pytest.mark.parametrize(
    "model",
    [
        LaplacianEigenmaps(3, random_state=0), SchroedingerEigenmaps(3, random_state=0),
        SpectralClusterer(3, random_state=0), PoissonClassifier(random_state=0),
        EigenfunctionClassifier(random_state=0), NeighborsTransformer(neighbors="exact"),
    ],
    ids=lambda model: type(model).__name__,
)  # fmt: skip
def test_fit__of_a_lazy_data_array_reads_blocks(model, largest):
    blocks = dask.array.from_array(X, (BLOCK, -1))
    lazy = xarray.DataArray(blocks, dims=("sample", "band"))
    fitted = clone(model).fit(lazy, Y)
    assert largest[0] == BLOCK
    expected = vars(clone(model).fit(blocks, Y))
    results = [name for name in expected if name.endswith("_") and not name.startswith("n_")]
    assert results
    for name in results:
        assert type(vars(fitted)[name]) is type(expected[name])
        np.testing.assert_array_equal(vars(fitted)[name], expected[name])
    if hasattr(model, "predict"):
        assert isinstance(fitted.predict(lazy), dask.array.Array)


@pytest.mark.parametrize(
    "model",
    [LaplacianEigenmaps(2), PoissonClassifier(), EigenfunctionClassifier(), NeighborsTransformer()],
    ids=lambda model: type(model).__name__,
)
def test_samples__masked_values_of_dask_arrays_are_refused(model):
    lazy = dask.array.ma.masked_greater(dask.array.from_array(X, (BLOCK, -1)), X.max() - 1e-6)
    fitted = clone(model).fit(X, Y)
    new = fitted.predict if hasattr(model, "predict") else fitted.transform
    for work in (clone(model).fit, lambda given, _: dask.compute(new(given), scheduler="sync")):
        with pytest.raises(EstimatorError, match="a masked array, of which 1 values are masked"):
            work(lazy, Y)


def test_fit__of_a_data_array_in_memory_and_of_an_image():
    plain = PoissonClassifier(random_state=0).fit(X, Y)
    found = PoissonClassifier(random_state=0).fit(xarray.DataArray(X), xarray.DataArray(Y))
    np.testing.assert_array_equal(found.label_distributions_, plain.label_distributions_)
    image = xarray.DataArray(dask.array.zeros((3, 30, 30)), dims=("band", "y", "x"))
    with pytest.raises(EstimatorError, match=r"3 axes; \(n_samples, n_features\) is needed"):
        PoissonClassifier().fit(image, Y)

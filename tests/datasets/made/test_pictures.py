import numpy as np
import pytest
from scipy.sparse.csgraph import connected_components
from sklearn.neighbors import kneighbors_graph

from eigenscape.datasets import bars, urban_like
from eigenscape.datasets.made.pictures import BAR, PURE, SIDE, URBAN_SCALE
from eigenscape.errors import InputError


def test_bars__hold_one_bar_each():
    images, classes = bars(300, seed=1)
    assert images.shape == (300, SIDE * SIDE)
    np.testing.assert_array_equal(np.bincount(classes), [0, 150, 150])
    assert (images.sum(axis=1) == BAR[0] * BAR[1]).all()
    for image, kind in zip(images.reshape(-1, SIDE, SIDE), classes, strict=True):
        rows, columns = np.flatnonzero(image.any(axis=1)), np.flatnonzero(image.any(axis=0))
        assert (len(rows), len(columns)) == (BAR if kind == 1 else BAR[::-1])
        # As many pixels as rows x columns, so the bar is whole.
        assert image[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1].all()


def test_bars__reach_every_edge():
    images, classes = bars(1000, seed=0)
    for kind in (1, 2):
        seen = images[classes == kind].any(axis=0).reshape(SIDE, SIDE)
        assert seen[0].any()
        assert seen[-1].any()
        assert seen[:, 0].any()
        assert seen[:, -1].any()


def test_bars__local_graph_is_connected_but_nearly_parts():
    images, classes = bars(1000, seed=0)
    graph = kneighbors_graph(images.astype(float), 14).tocoo()
    assert connected_components(graph, directed=False)[0] == 1
    assert (classes[graph.row] != classes[graph.col]).mean() < 0.02


@pytest.mark.parametrize("samples", [7, 4000])
def test_bars__refuse_odd_and_too_many(samples):
    with pytest.raises(InputError, match=f"samples = {samples}: give an even number up to 2204"):
        bars(samples)


@pytest.fixture
def parts(rng):
    """Return shares of 3 materials in 20 x 30 pixels, column by column, and 12 bands of each."""
    shares = rng.dirichlet([0.3] * 3, 600)
    shares[40] = [0.0, 1.0, 0.0]
    return shares.T, rng.uniform(0.05, 0.5, (12, 3))


def test_urban_like__is_the_mixture_give_or_take_light(parts):
    shares, spectra = parts
    cube, labels = urban_like(shares, spectra, (20, 30), seed=1)
    assert cube.shape == (20, 30, 12)
    for row in range(0, 20, 6):
        for column in range(0, 30, 7):
            pixel = row + 20 * column
            expected = URBAN_SCALE * spectra @ shares[:, pixel]
            assert np.abs(cube[row, column] / expected - 1).max() < 0.45
            assert np.corrcoef(cube[row, column], expected)[0, 1] > 0.9
            most = shares[:, pixel].argmax() + 1
            assert labels[row, column] == (most if shares[:, pixel].max() >= PURE else 0)
    assert labels[0, 2] == 2


def test_urban_like__seed_moves_light_and_noise_only(parts):
    first, labels = urban_like(*parts, (20, 30), seed=1)
    again, _ = urban_like(*parts, (20, 30), seed=1)
    other, same = urban_like(*parts, (20, 30), seed=2)
    np.testing.assert_array_equal(first, again)
    np.testing.assert_array_equal(labels, same)
    assert (first != other).mean() > 0.9

import dask.array
import pytest
from sklearn.datasets import make_moons
from sklearn.metrics import adjusted_rand_score

from eigenscape import SpectralClusterer
from eigenscape.errors import EstimatorError


@pytest.fixture(scope="module")
def moons():
    return make_moons(300, noise=0.04, random_state=0)


@pytest.mark.mostly_slow(1)
@pytest.mark.parametrize("assign_labels", ["cluster_qr", "kmeans"])
def test_spectral_clusterer__finds_the_moons(moons, assign_labels):
    if assign_labels == "kmeans":
        pytest.importorskip("dask_ml")
    X, truth = moons
    model = SpectralClusterer(2, assign_labels=assign_labels, random_state=0)
    assert adjusted_rand_score(model.fit_predict(X), truth) > 0.98
    expected = model.labels_
    lazy = model.fit_predict(dask.array.from_array(X, chunks=(110, 1)))
    assert (lazy == expected).all()


def test_spectral_clusterer__one_cluster(moons):
    assert set(SpectralClusterer(1).fit_predict(moons[0])) == {0}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_clusters": 0}, "n_clusters = 0: give a whole number from 1"),
        ({"n_clusters": 2.5}, "n_clusters = 2.5: give a whole number from 1"),
        ({"n_clusters": "two"}, "n_clusters = 'two': give a whole number from 1"),
        ({"n_clusters": 301}, "n_clusters = 301: .* 300"),
        ({"assign_labels": "discretize"}, "assign_labels = 'discretize'"),
    ],
)
def test_spectral_clusterer__says_what_is_wrong(moons, options, message):
    with pytest.raises(EstimatorError, match=message):
        SpectralClusterer(**options).fit(moons[0])

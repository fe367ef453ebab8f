"""Estimators on a client that the caller has; what is shared, copied and pickled of one."""

import copy
import pickle

import dask.array
import numpy as np
import pytest
from distributed import Client, LocalCluster
from sklearn.base import clone

from eigenscape import LaplacianEigenmaps, NeighborsTransformer, SpectralClusterer
from eigenscape.base.process.progress import PlainLines
from eigenscape.errors import EstimatorError
from eigenscape.estimators import base, folders


@pytest.fixture(scope="module")
def client():
    cluster = LocalCluster(
        n_workers=1, threads_per_worker=2, processes=False, dashboard_address="127.0.0.1:0",
        memory_limit="3GiB", silence_logs=50,
    )  # fmt: skip
    with cluster, Client(cluster, set_as_default=False) as found:
        yield found


@pytest.fixture(scope="module")
def samples():
    return np.random.default_rng(0).normal(size=(9000, 6)).astype(np.float32)


def test_client__gives_what_threads_give(samples, client):
    ours = NeighborsTransformer(random_state=0, client=client)
    theirs = NeighborsTransformer(random_state=0)
    found = ours.fit_transform(dask.array.from_array(samples, chunks=(2500, -1)))
    assert (found != theirs.fit_transform(samples)).nnz == 0
    assert ours.recall_ == theirs.recall_
    assert client.submit(abs, -1).result() == 1


def test_client__is_shared_by_clones_and_left_out_of_pickles(samples, client):
    fitted = SpectralClusterer(2, random_state=0, client=client, n_neighbors=7).fit(samples[:300])
    other = clone(fitted)
    assert other.client is client
    assert other.get_params() == fitted.get_params()
    assert fitted.client is client
    for back in (pickle.loads(pickle.dumps(fitted)), copy.deepcopy(fitted)):
        assert back.client is None
        assert back.run_ != fitted.run_
        np.testing.assert_array_equal(back.predict(samples[:300]), fitted.labels_)
    assert (
        pickle.loads(pickle.dumps(clone(fitted).set_params(client="current"))).client == "current"
    )


def test_client__inside_a_task_of_a_worker(samples, client):
    inside = LaplacianEigenmaps(random_state=0, client="current")
    found = client.submit(inside.fit_transform, samples[:300]).result(timeout=120)
    expected = LaplacianEigenmaps(random_state=0).fit_transform(samples[:300])
    np.testing.assert_array_equal(found, expected)


def test_client__that_is_none(samples):
    with pytest.raises(EstimatorError, match="client of type int"):
        LaplacianEigenmaps(client=3).fit(samples[:100])


def test_runs__are_named_sized_and_swept(samples, monkeypatch):
    fitted = LaplacianEigenmaps(random_state=0).fit(samples[:200])
    path = fitted.run_
    assert path.name.startswith("LaplacianEigenmaps-")
    assert path.parent.name.startswith("eigenscape-")
    del fitted
    assert not path.exists()
    monkeypatch.setattr(
        folders.shutil, "disk_usage", lambda _: folders.shutil._ntuple_diskusage(9, 4, 5)
    )
    with pytest.raises(
        EstimatorError, match=r"up to .* below .*, where 5 B are free. Set directory"
    ):
        LaplacianEigenmaps().fit(samples[:200])


def test_verbose__shows_the_stages(samples, capsys, monkeypatch):
    monkeypatch.setattr(base, "shown_reporter", PlainLines)
    LaplacianEigenmaps(random_state=0, verbose=True).fit(samples[:200])
    told = capsys.readouterr().err
    assert "spectrum: running" in told
    LaplacianEigenmaps(random_state=0).fit(samples[:200])
    assert capsys.readouterr().err == ""


def test_clusterer__predicts_new_samples(samples):
    X = samples[:400] + 8 * (np.arange(400) % 2)[:, None].astype(np.float32)
    fitted = SpectralClusterer(2, random_state=0).fit(X[:300])
    np.testing.assert_array_equal(fitted.predict(X[:300]), fitted.labels_)
    found = fitted.predict(X[300:])
    assert (found == np.where(np.arange(100) % 2, fitted.labels_[1], fitted.labels_[0])).all()
    lazy = fitted.predict(dask.array.from_array(X[300:], chunks=(30, -1)))
    assert lazy.dtype == fitted.labels_.dtype
    np.testing.assert_array_equal(lazy.compute(), found)

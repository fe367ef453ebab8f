import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import make_blobs
from sklearn.neighbors import KNeighborsClassifier

from eigenscape.errors import InputError
from eigenscape.learn.classify.nearestneighbors import classify_new
from eigenscape.scenes.types import Grid
from harness import Harness

GOOD = [True, True, False, True, True]


@pytest.fixture
def labelled_run(tmp_path):
    """A run whose class map was made from few labels; the third band is a bad one."""

    def make(samples, given, name="run", bands=None, **tables):
        harness = Harness(
            tmp_path / name, features={"method": "none"}, neighbors={"method": "exact", "k": 8},
            spectrum={"dimension": 4, "solver": "dense"},
            learn={"method": "interpolated", "trials": 1}, **tables,
        )  # fmt: skip
        rows = samples.shape[0]
        summary = {
            "bands": {"good": GOOD, "names": bands},
            "grid": Grid(rows, 1).to_json(),
            "labelled": len(given),
        }
        arrays = {"samples/pixel": np.arange(rows), "labels/given": given}
        harness.put("ingest", {**arrays, "samples/values": samples}, **summary)
        for stage in ("features", "neighbors", "graph", "spectrum", "learn"):
            harness.run(stage)
        harness.run_directory.path.joinpath("job.toml").write_text(harness.job.to_toml())
        return harness

    return make


@pytest.fixture
def blobs():
    X, classes = make_blobs(700, 4, centers=3, cluster_std=2.5, random_state=4)
    return X.astype(np.float32), classes


@pytest.mark.parametrize("k", [1, 3, 25])
def test_classify_new__equals_scikit_learn_on_the_labels_of_the_run(labelled_run, blobs, k):
    X, classes = blobs
    given = np.where(np.arange(500) < 30, 5 * (classes[:500] + 1), 0).astype(np.uint16)
    harness = labelled_run(X[:500], given)
    called = harness["labels/class"]
    assert (called > 0).all()
    new = X[500:].copy()
    new[7, 1] = np.nan
    found, share = classify_new(harness.run_directory.path, new, k=k)
    model = KNeighborsClassifier(k).fit(X[:500], called)
    finite = np.isfinite(new).all(axis=1)
    votes = model.predict_proba(new[finite])
    # Of a tie scikit-learn takes the smaller class, we the nearer one.
    untied = (votes == votes.max(axis=1, keepdims=True)).sum(axis=1) == 1
    np.testing.assert_array_equal(found[finite][untied], model.predict(new[finite])[untied])
    np.testing.assert_allclose(share[finite], votes.max(axis=1), rtol=1e-6)
    assert untied.mean() > 0.9
    assert (found[7], share[7]) == (0, 0)
    # All bands of the scene may be given too, and blocks do not matter.
    wide = np.insert(new, 2, 1e6, axis=1)
    np.testing.assert_array_equal(classify_new(harness.run_directory.path, wide, k=k)[0], found)


def test_classify_new__refuses_what_it_cannot_use(labelled_run, blobs):
    X, classes = blobs
    harness = labelled_run(X[:200], (classes[:200] + 1).astype(np.uint16))
    path = harness.run_directory.path
    with pytest.raises(InputError, match="4 bands"):
        classify_new(path, X[:5, :3])
    for k in (0, 2.5, None):
        with pytest.raises(InputError, match=f"k = {k}: a whole number"):
            classify_new(path, X[:5], k=k)
    with pytest.raises(InputError, match="no run directory"):
        classify_new(path / "nothing", X[:5])


def test_classify_new__takes_lists_and_masked_arrays(labelled_run, blobs):
    X, classes = blobs
    path = labelled_run(X[:200], (classes[:200] + 1).astype(np.uint16)).run_directory.path
    expected, _ = classify_new(path, X[:5])
    np.testing.assert_array_equal(classify_new(path, X[:5].tolist())[0], expected)
    masked = np.ma.array(X[:5], mask=np.arange(20).reshape(5, 4) == 9)
    np.testing.assert_array_equal(
        classify_new(path, masked)[0], np.where(np.arange(5) == 2, 0, expected)
    )


def test_classify_new__takes_the_columns_of_a_frame_by_name(labelled_run, blobs):
    X, classes = blobs
    given = (classes[:200] + 1).astype(np.uint16)
    path = labelled_run(X[:200], given, bands=["a", "b", "bad", "c", "d"]).run_directory.path
    expected, _ = classify_new(path, X[200:240])
    frame = pd.DataFrame(X[200:240], columns=["a", "b", "c", "d"]).assign(note="text")
    for columns in (["d", "b", "note", "c", "a"], ["a", "b", "c", "d"]):
        np.testing.assert_array_equal(classify_new(path, frame[columns])[0], expected)
    with pytest.raises(InputError, match="none of the 4 columns is called 'd'"):
        classify_new(path, frame.drop(columns="d"))

"""Which new samples are training samples of a run, told by bands and by features."""

import shutil

import numpy as np
import pytest

import eigenscape
from eigenscape.applied.learned import Learned
from eigenscape.spectrum.trained import Trained


@pytest.fixture(scope="module")
def table():
    """Samples of which 40 are one and the same, and their labels: of those one alone has one."""
    rng = np.random.default_rng(0)
    classes = np.repeat([1, 2], 100)
    values = (rng.normal(size=(200, 5)) + 6 * classes[:, None]).astype(np.float32)
    values[20:60] = values[20]
    labels = np.where(rng.random(200) < 0.3, classes, 0)
    labels[20:60] = 0
    labels[45] = 1
    return values, labels


@pytest.fixture(scope="module", params=["euclidean", "angle"])
def learned(table, request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("learned")
    job = eigenscape.job_for(
        *table, directory=folder, features={"method": "none"}, spectrum={"dimension": 4},
        neighbors={"k": 8, "method": "exact", "metric": request.param}, limits={"threads": 1},
        output={"formats": []}, learn={"trials": 1},
    )  # fmt: skip
    trained = Trained.open(eigenscape.run(job).path)
    found = Learned(folder)
    found.prepare(trained)
    return found, trained


def test_learned__finds_training_samples_and_what_is_identical(table, learned):
    values, labels = table
    found, trained = learned
    expected = labels > 0
    # Whichever of identical samples is taken for their twin.
    expected[20:60] = True
    features = trained.project(values)
    twins = trained.twins(features, trained.search(features))
    assert (twins >= 0).all()
    np.testing.assert_array_equal(found.find(values, twins), expected)
    # By its bands, where it has no twin, and by its twin, where its numbers were rounded.
    none = np.full(200, -1)
    np.testing.assert_array_equal(found.find(values, none), expected)
    rounded = values + np.float32(1e-5)
    np.testing.assert_array_equal(found.find(rounded, twins), expected)
    assert not found.find(rounded, none).any()


def test_learned__of_a_run_of_an_earlier_version_any_label_counts(table, learned, tmp_path):
    values, labels = table
    _, trained = learned
    earlier = shutil.copytree(trained.run.path, tmp_path / "earlier")
    sample = trained.run.array_path("learn/sample").relative_to(trained.run.path)
    shutil.rmtree(earlier / sample)
    found = Learned(tmp_path)
    found.prepare(Trained.open(earlier))
    expected = labels > 0
    expected[20:60] = True
    np.testing.assert_array_equal(found.find(values, np.full(200, -1)), expected)


@pytest.mark.slow
def test_learned__clusters_learn_from_no_label(table, tmp_path):
    values, labels = table
    job = eigenscape.job_for(
        values, labels=labels, directory=tmp_path, neighbors={"k": 8, "method": "exact"},
        spectrum={"dimension": 4}, learn={"method": "spectral-clustering", "clusters": 2},
        features={"method": "none"}, limits={"threads": 1}, output={"formats": []},
    )  # fmt: skip
    found = Learned(tmp_path)
    found.prepare(Trained.open(eigenscape.run(job).path))
    assert not found.find(values, np.arange(200)).any()

import pickle

import numpy as np
import pytest

from eigenscape.errors import InputError
from eigenscape.job.jobfile import parse_job
from eigenscape.labels.testing import Disjoint
from eigenscape.labels.training import Draws, Labelled, plan_fits
from eigenscape.scenes.ingest.ingested import IngestedScene
from eigenscape.scenes.types import Grid


@pytest.mark.parametrize("tested", [False, True])
def test_labelled__takes_the_path_of_its_arrays_along(tmp_path, tested):
    rng = np.random.default_rng(0)
    train = rng.random((5, 4000)) < 0.5
    disjoint = None
    if tested:
        given, other = rng.integers(0, 4, (2, 9000)).astype(np.uint16)
        disjoint = Disjoint(given, other, "test.tif", 3, {7: 2})
    sample = np.sort(rng.permutation(9000)[:4000])
    classes = rng.integers(0, 3, 4000)
    labelled = Labelled(sample, classes, np.arange(1, 4, dtype=np.uint16), train, disjoint)
    stored = labelled.stored(tmp_path)
    sent = pickle.dumps(stored)
    assert len(sent) < 2000 < len(pickle.dumps(labelled))
    for other in (stored, pickle.loads(sent)):
        for name in ("sample", "classes", "numbers", "train", "tested"):
            np.testing.assert_array_equal(getattr(other, name), getattr(labelled, name))
        np.testing.assert_array_equal(other.held(2), labelled.held(2))
        if disjoint is not None:
            assert other.disjoint.report() == disjoint.report()


@pytest.mark.parametrize(
    ("labelled", "train", "trained"),
    [
        (1000, "all", 100),
        (100, "all", 20),
        (40, "all", 20),
        (24, "all", 12),
        (40, 0.2, 8),
    ],
)
def test_draws__of_few_labels_have_five_of_each_class(labelled, train, trained):
    """A tenth of the labels; more of few ones, half of them at most; what the job says in any case."""
    rng = np.random.default_rng(0)
    classes = np.arange(labelled) % 4
    row, column = rng.integers(0, 60, (2, labelled))
    options = parse_job({"scene": {"path": "a.tif"}, "learn": {"train": train}}).learn
    draws = Draws(options, classes, row, column, Grid(height=60, width=60))
    for trial in range(3):
        assert draws.draw("random", trial).sum() == trained


@pytest.mark.parametrize(
    ("train", "fix"), [("all", "Set learn.split"), (0.1, "Raise learn.train, or set learn.split")]
)
def test_draws__of_a_class_that_is_too_rare_say_what_helps(train, fix):
    classes = np.zeros(4000, np.intp)
    classes[:9] = np.arange(9)
    options = parse_job({"scene": {"path": "gone"}, "learn": {"train": train, "split": "uniform"}})
    places = np.arange(4000)
    draws = Draws(options.learn, classes, places, 0 * places, Grid(height=4000, width=1))
    with pytest.raises(InputError, match=rf"the rarest has 1 of 4000\. {fix}"):
        draws.draw("uniform", 0)


@pytest.mark.parametrize(
    ("labels", "train", "calibrating"),
    [
        (1000, "all", {"random": [5, 6], "blocked": [7, 8]}),
        # The draws that are scored learn from half already.
        (30, "all", {"random": [1, 2], "blocked": [3, 4]}),
        (1000, 0.1, {"random": [0, 1], "blocked": [2, 3]}),
    ],
)
def test_plan_fits__confidence_of_a_map_of_all_labels_follows_from_half(labels, train, calibrating):
    rng = np.random.default_rng(0)
    grid = Grid(height=60, width=60)
    given = np.zeros(grid.size, np.uint16)
    given[rng.permutation(grid.size)[:labels]] = 1 + np.arange(labels) % 4
    job = parse_job({"scene": {"path": "a.tif"}, "learn": {"train": train, "trials": 2}})
    summary = {"grid": grid.to_json(), "labelled": {"1": 1}}
    scene = IngestedScene.from_summary(summary, job.scene, str)
    pixel = np.arange(grid.size)
    planned = plan_fits(job.learn, given, pixel, pixel, scene, first_only=False)
    assert planned.calibrating == calibrating
    assert set(calibrating) == set(planned.protocols) - {"all"}
    if planned.calibrating["random"] != planned.protocols["random"]:
        sets = planned.labelled.train[[*calibrating["random"], *calibrating["blocked"]]]
        assert np.abs(sets.mean(axis=1) - 0.5).max() < 0.05
        for learned in sets:
            assert set(planned.labelled.classes[learned]) == {0, 1, 2, 3}


def test_labelled__classes_that_the_first_fit_learns_nothing_of():
    classes = np.array([0, 0, 1, 1, 1, 2])
    train = np.array([[True, False, False, False, False, True], [True] * 6])
    labelled = Labelled(np.arange(6), classes, np.array([3, 5, 9], np.uint16), train)
    assert labelled.untaught == {5: 3}

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.neighbors import KNeighborsClassifier

from eigenscape import open_run, parse_job
from eigenscape.study import run as study_run
from eigenscape.study.measuring import mark_distances, rank_correlation, same_class
from eigenscape.study.run import run_study


def test_same_class__counts_the_nearest(rng):
    plane = rng.normal(size=(60, 2)).astype(np.float32)
    plane[7] = np.nan
    labels = rng.integers(0, 3, 60).astype(np.uint16)
    known = np.flatnonzero((labels > 0) & np.isfinite(plane[:, 0]))
    distance = cdist(plane[known], plane[known])
    np.fill_diagonal(distance, np.inf)
    nearest = labels[known][np.argsort(distance, axis=1)[:, :4]]
    expected = (nearest == labels[known][:, None]).mean()
    assert same_class(plane, labels, 4) == pytest.approx(expected)


def test_same_class__twins_are_neighbours():
    plane = np.zeros((6, 2), np.float32)
    assert same_class(plane, np.full(6, 2, np.uint16), 3) == 1


def test_rank_correlation__knows_order_alone(rng):
    along = rng.normal(size=50)
    assert rank_correlation(-np.exp(along), along) == pytest.approx(1)
    assert rank_correlation(rng.normal(size=50), along) < 0.5


def test_mark_distances__in_percent_of_the_diagonal():
    plane = np.array([[0, 0], [3, 4], [0, 1], [3, 3.5]], np.float32)
    assert mark_distances(plane, np.array([0, 1])) == pytest.approx(
        {"isolation": 10, "mark_distance": 100}
    )
    alone = mark_distances(plane, np.array([0]))
    assert alone == {"isolation": pytest.approx(20), "mark_distance": None}


# --- samples that a run never saw


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """Two blobs that touch, 150 samples with labels, as files."""
    rng = np.random.default_rng(3)
    directory = tmp_path_factory.mktemp("table")
    classes = rng.integers(1, 3, 150)
    values = rng.normal(size=(150, 4)) + 1.5 * classes[:, None]
    np.save(directory / "values.npy", values.astype(np.float32)[:, None, :])
    np.save(directory / "labels.npy", classes.astype(np.uint8)[:, None])
    return directory


def job(table, study, **scene):
    files = {"path": "values.npy", "labels": "labels.npy"}
    return parse_job(
        {
            "scene": {**files, **scene},
            "features": {"method": "none"},
            "neighbors": {"method": "exact", "k": 6},
            "spectrum": {"dimension": 4},
            "learn": {"train": 20, "split": "uniform", "trials": 1},
            "limits": {"threads": 2},
            "study": {"measure": ["held_out_error"], "grid": {"learn.seed": [0]}, **study},
        },
        name="study",
        base=table,
    )  # fmt: skip


@pytest.mark.slow
def test_held_out_error__equals_scikit_learn_on_the_labels_of_the_run(table, tmp_path, monkeypatch):
    study = job(table, {"held_out": 30}, samples=110, seed=4)
    result = run_study(study, run_dir=tmp_path)
    (row,) = [row for row in result.rows if row["main"]]
    values, labels = (np.load(table / f"{name}.npy") for name in ("values", "labels"))
    ours = open_run(result.outcomes[0].path)
    features = ours["values"].to_numpy()
    inside = (values == features[None]).all(axis=2).any(axis=1)
    assert inside.sum() == 110
    left = np.flatnonzero(~inside)
    chosen = np.random.default_rng([4, 1]).choice(left, 30, replace=False)
    nearest = KNeighborsClassifier(3).fit(features, ours["class"].to_numpy())
    wrong = nearest.predict(values[chosen, 0]) != labels[chosen, 0]
    assert row["held_out_error"] == pytest.approx(100 * wrong.mean())
    # The second time it is there.
    monkeypatch.setattr(study_run, "measure", lambda *_: pytest.fail("measured again"))
    assert run_study(study, run_dir=tmp_path).rows == result.rows


def test_held_out_error__is_the_same_far_from_0(table, tmp_path):
    np.save(table / "far.npy", np.load(table / "values.npy").astype(np.float64) + 1e9)
    errors = []
    for name in ("values.npy", "far.npy"):
        study = job(table, {"held_out": 40}, path=name, samples=110, seed=4)
        result = run_study(study, run_dir=tmp_path / name)
        errors += [row["held_out_error"] for row in result.rows if row["main"]]
    assert errors[0] == errors[1] < 40


def test_held_out_error__nothing_was_left_out(table, tmp_path):
    result = run_study(job(table, {"held_out": 41}, samples=110), run_dir=tmp_path)
    (failed,) = result.failed
    assert (
        "study.held_out = 41: scene.samples = 110 leaves 40 labelled samples out" in failed.reason
    )


def test_mark__a_row_that_is_no_sample(table, tmp_path):
    result = run_study(job(table, {"mark": [150]}), run_dir=tmp_path)
    (failed,) = result.failed
    assert "study.mark = [150]: row 150 is not a sample" in failed.reason

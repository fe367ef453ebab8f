import numpy as np
import pytest

from eigenscape.errors import InputError
from eigenscape.job.jobfile import parse_job
from eigenscape.scenes.open import open_scene
from eigenscape.workflow.choice.roles import labels_by_role
from eigenscape.workflow.choice.survey import survey
from eigenscape.workflow.choice.window import window_of

LABELS = np.array([[1, 1, 2, 2], [1, 0, 2, 0], [2, 1, 0, 1]], np.uint8)
MARKS = np.array([[1, 0, 1, 1], [1, 1, 0, 0], [1, 1, 1, 0]], np.uint8)
MASK = np.array([[1, 1, 1, 1], [0, 1, 1, 1], [0, 1, 0, 1]], np.uint8)
TEST = np.array([[0, 0, 0, 2], [1, 1, 0, 0], [0, 0, 2, 0]], np.uint8)


@pytest.fixture
def job_of(tmp_path):
    def make(labels=LABELS, marks=None, test=None, mask=None):
        scene, learn = {"path": "scene.npy"}, {}
        np.save(tmp_path / "scene.npy", np.arange(3.0 * LABELS.size).reshape(*LABELS.shape, 3))
        for name, values, table, key in (
            ("labels.npy", labels, scene, "labels"),
            ("marks.npy", marks, learn, "train"),
            ("test.npy", test, learn, "test"),
            ("mask.npy", mask, scene, "mask"),
        ):
            if values is not None:
                np.save(tmp_path / name, values)
                table[key] = name
        return parse_job({"scene": scene, "learn": learn}, base=tmp_path)

    return make


@pytest.mark.parametrize(
    ("files", "seen", "judging"),
    [
        ({}, LABELS, None),
        ({"marks": MARKS}, LABELS * MARKS, LABELS * (MARKS == 0)),
        ({"test": TEST}, LABELS * (TEST == 0), TEST),
        ({"marks": MARKS, "test": TEST}, LABELS * MARKS * (TEST == 0), TEST),
        ({"mask": MASK}, LABELS * MASK, None),
        ({"mask": MASK, "marks": MARKS}, LABELS * MARKS * MASK, LABELS * (MARKS == 0) * MASK),
        ({"mask": MASK, "test": TEST}, LABELS * (TEST == 0) * MASK, TEST * MASK),
    ],
)
def test_labels_by_role__what_files_say(job_of, files, seen, judging):
    job = job_of(**files)
    roles = labels_by_role(job, open_scene(job.scene, job.resolve))
    np.testing.assert_array_equal(roles.seen.read(0, 3), seen)
    np.testing.assert_array_equal(roles.seen.read(1, 2), seen[1:2])
    assert roles.seen.legend.names == {}
    assert roles.seen.files[0].endswith("labels.npy")
    counts = np.bincount(seen.ravel(), minlength=3)
    assert survey(job).labelled == {1: counts[1], 2: counts[2]}
    if judging is None:
        assert roles.judging is None
        assert roles.both is roles.seen
    else:
        np.testing.assert_array_equal(roles.judging.read(0, 3), judging)
        # Classes to judge by are others than those to see, so that a part has both.
        both = roles.both.read(0, 3)
        np.testing.assert_array_equal(np.where(both < 2**16, both, 0), seen)
        np.testing.assert_array_equal(both >= 2**16, (seen == 0) & (judging > 0))


def test_labels_by_role__none_without_labels(job_of):
    job = job_of(None)
    roles = labels_by_role(job, open_scene(job.scene, job.resolve))
    assert (roles.seen, roles.judging, roles.both) == (None, None, None)


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({"test": LABELS}, r"learn.test = 'test.npy': 0 labelled pixels of fewer than two classes"),
        ({"test": LABELS * (LABELS == 1)}, r"learn.test = 'test.npy': 4 labelled pixels"),
        ({"marks": LABELS == 2}, r"learn.train = 'marks.npy': 4 labelled pixels"),
        ({"marks": MARKS, "test": LABELS}, r"learn.train = 'marks.npy' and learn.test = 'test.npy': 0"),
    ],
)  # fmt: skip
def test_survey__refuses_files_that_leave_nothing_to_learn_from(job_of, files, said):
    with pytest.raises(InputError, match=said):
        survey(job_of(**{key: values.astype(np.uint8) for key, values in files.items()}))


def far_apart(tmp_path, *, table):
    """Return a job whose test labels are few, and far from those that are learned from."""
    height, width = 60, 90
    labels, test = np.zeros((2, height, width), np.uint8)
    labels[:50, :40:2], labels[::2, :40:2] = 1, 2
    test[52:54, 82:84], test[57, 85] = 1, 2
    files = {"labels.npy": labels, "test.npy": test, "scene.npy": np.ones((height, width, 3), "f4")}
    for name, values in files.items():
        flat = values.reshape(height * width, -1) if table else values
        np.save(tmp_path / name, flat)
    return parse_job(
        {"scene": {"path": "scene.npy", "labels": "labels.npy"}, "learn": {"test": "test.npy"}},
        base=tmp_path,
    ), labels, test  # fmt: skip


@pytest.mark.parametrize("table", [False, True])
def test_window_of__holds_what_judges_where_that_is_asked_for(tmp_path, table):
    job, labels, test = far_apart(tmp_path, table=table)
    held, learned = [], []
    for judged in (False, True):
        part = window_of(job, tmp_path / "w.npy", 600, 0, judged=judged)
        chosen = np.load(tmp_path / "w.npy").reshape(test.shape)
        assert (labels[chosen > 0] > 0).any()
        held.append(int((test[chosen > 0] > 0).sum()))
        learned.append(part.labelled)
        assert ("to judge by" in part.notes) is judged
        assert part.labelled == (labels[chosen > 0] > 0).sum()
    assert held[1] == 5
    assert held[0] < 5
    # What is learned from hardly has less room.
    assert learned[1] >= 0.8 * learned[0]

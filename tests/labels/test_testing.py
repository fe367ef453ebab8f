import numpy as np
import pytest

from eigenscape.errors import InputError
from eigenscape.job.jobfile import parse_job
from eigenscape.labels.testing import Disjoint, read_at
from eigenscape.labels.training import TEST, plan_fits
from eigenscape.scenes.ingest.ingested import IngestedScene
from eigenscape.scenes.types import Grid, Legend

GRID = Grid(30, 20)


class Plane:
    """Labels in memory, of which no row may be read twice."""

    legend, files = Legend(), ("plane",)

    def __init__(self, values):
        self.values = values

    def read(self, start, stop):
        return self.values[start:stop]


def test_read_at__some_pixels_of_a_grid(rng, monkeypatch):
    values = rng.integers(0, 9, (30, 20)).astype(np.uint16)
    pixel = np.sort(rng.choice(600, 200, replace=False))
    row, column = np.divmod(pixel, 20)
    for strip in (1, 70, 10**6):
        monkeypatch.setattr("eigenscape.labels.testing._STRIP_PIXELS", strip)
        found = read_at(Plane(values), GRID, row, column)
        np.testing.assert_array_equal(found, values[row, column])


@pytest.fixture
def planned(tmp_path, rng):
    """Plan the fits of a scene of 600 pixels with a file of test labels."""
    given = rng.choice([0, 1, 2, 3], 600, p=[0.5, 0.2, 0.2, 0.1]).astype(np.uint16)

    def plan(tested, grid=GRID, given=given, names=None, first_only=False, **options):
        shape = (grid.height,) if grid.is_table else (grid.height, grid.width)
        np.save(tmp_path / "test.npy", tested.reshape(shape))
        job = parse_job({"scene": {"path": "gone.npy"}, "learn": {"test": "test.npy", **options}})
        summary = {"grid": grid.to_json(), "labelled": {"1": 1}, "class_names": names or {}}
        scene = IngestedScene.from_summary(summary, job.scene, lambda path: str(tmp_path / path))
        planned = plan_fits(
            job.learn, given, np.arange(600), np.arange(600), scene, first_only=first_only
        )
        return given, planned.labelled, planned.protocols

    return plan


def test_plan_fits__nothing_is_learned_of_test_pixels(planned, rng):
    tested = rng.choice([0, 1, 2, 3], 600, p=[0.4, 0.2, 0.2, 0.2]).astype(np.uint16)
    given, labelled, fits = planned(tested, trials=3)
    np.testing.assert_array_equal(labelled.sample, np.flatnonzero((given > 0) | (tested > 0)))
    np.testing.assert_array_equal(labelled.tested, tested[labelled.sample] > 0)
    expected = np.where(tested > 0, tested, given)[labelled.sample]
    np.testing.assert_array_equal(labelled.numbers[labelled.classes], expected)
    assert not (labelled.train & labelled.tested).any()
    np.testing.assert_array_equal(labelled.train[0], ~labelled.tested)
    assert fits == {"all": [0], "random": [1, 2, 3], "blocked": [4, 5, 6], TEST: [0]}
    for number in range(7):
        groups = (labelled.train[number], labelled.held(number), labelled.tested)
        assert (np.sum(groups, axis=0) == 1).all()
    assert labelled.disjoint.report()["not_learned_from"] == ((given > 0) & (tested > 0)).sum()
    assert "not learned from" in labelled.disjoint.notes()[0]


def test_plan_fits__notes_on_the_test_file_are_told(planned, tmp_path):
    rows = [f"{row},5,{row % 2 + 1}" for row in range(20)]
    (tmp_path / "test.csv").write_text("\n".join(["row,column,class", *rows, "99,5,1", "4,99,1"]))
    _, labelled, _ = planned(np.zeros(600, np.uint16), test="test.csv", trials=1)
    told = "learn.test: 2 of 22 points lie outside of the scene and are left out"
    assert told in labelled.disjoint.notes()


def test_plan_fits__draws_of_a_share_are_tested_alike(planned):
    tested = np.where(np.arange(600) % 3 == 0, 1, 0).astype(np.uint16)
    _, labelled, fits = planned(tested, train=0.3, trials=2)
    assert fits[TEST] == fits["random"] == [0, 1]
    assert not (labelled.train & labelled.tested).any()


def test_plan_fits__labels_that_shape_eigenvectors_are_those_of_the_first_set(planned):
    tested = np.where(np.arange(600) % 3 == 0, 1, 0).astype(np.uint16)
    _, every, _ = planned(tested, train=0.3, trials=2)
    _, labelled, fits = planned(tested, train=0.3, trials=2, first_only=True)
    assert fits == {"random": [0], TEST: [0]}
    np.testing.assert_array_equal(labelled.train, every.train[:1])
    np.testing.assert_array_equal(labelled.tested, every.tested)


def test_plan_fits__classes_of_one_file_alone(planned):
    tested = np.zeros(600, np.uint16)
    tested[:40] = 1
    tested[40:43] = 9
    tested[50] = 2
    _, labelled, _ = planned(tested, trials=1)
    found = labelled.disjoint.report()
    assert found["unknown_classes"] == {"9": 3}
    assert found["classes_without_test"] == [3]
    assert found["per_class"] == {"1": 40, "2": 1}
    assert labelled.numbers.tolist() == [1, 2, 3]
    text = " ".join(labelled.disjoint.notes())
    assert "3 test pixels are left out of the scores: nothing is learned of their classes 9" in text
    assert "no test pixel has the class 3" in text
    assert "class 2 has one or two test pixels" in text


@pytest.mark.parametrize(
    ("number", "message"),
    [
        (0, "none of its labels lies on a valid pixel"),
        (
            9,
            "labels of scene.labels are test labels too.*leaves 0 labels of fewer than two classes",
        ),
    ],
)
def test_plan_fits__nothing_to_test_on_or_to_learn_from_is_refused(planned, number, message):
    with pytest.raises(InputError, match=message):
        planned(np.full(600, number, np.uint16))


def test_plan_fits__classes_that_the_file_to_train_on_leaves_out_are_not_tested(planned, tmp_path):
    tested = np.where(np.arange(600) % 3 == 0, np.arange(600) % 4, 0).astype(np.uint16)
    given = np.where(np.arange(600) % 3, 1 + np.arange(600) % 3, 0).astype(np.uint16)
    given[1::6] = 1
    np.save(tmp_path / "marks.npy", ((given > 0) & (given < 3)).reshape(30, 20))
    _, labelled, fits = planned(tested, given=given, train="marks.npy")
    assert fits == {"file": [0], TEST: [0]}
    assert set(labelled.numbers[labelled.classes[labelled.train[0]]]) == {1, 2}
    assert set(labelled.numbers[labelled.classes[labelled.tested]]) == {1, 2}
    report = labelled.disjoint.report()
    assert report["unknown_classes"] == {"3": (tested == 3).sum()}
    assert report["classes_without_test"] == []
    only = np.where(tested == 3, tested, 0)
    with pytest.raises(InputError, match=r"have the classes 3, and learn\.train has 1, 2"):
        planned(only, given=given, train="marks.npy")


def test_plan_fits__names_the_file_to_train_on_where_too_little_is_left_of_it(planned, tmp_path):
    given = (1 + np.arange(600) % 2).astype(np.uint16)
    np.save(tmp_path / "marks.npy", (np.arange(600) < 4).reshape(30, 20))
    tested = np.where(np.arange(600) < 3, given, 0).astype(np.uint16)
    left = "3 of the labels of learn.train are test labels too .* leaves 1 labels .* do not overlap"
    with pytest.raises(InputError, match=left):
        planned(tested, given=given, train="marks.npy")
    # Files of one class overlap or not: no other choice of test labels helps.
    np.save(tmp_path / "marks.npy", ((np.arange(600) < 8) & (given == 1)).reshape(30, 20))
    one = "learn.train marks 4 labels of fewer than two classes"
    for tested in (np.where(np.arange(600) > 99, given, 0), given):
        with pytest.raises(InputError, match=one) as caught:
            planned(tested.astype(np.uint16), given=given, train="marks.npy")
        assert "overlap" not in str(caught.value)


def test_plan_fits__test_classes_that_are_not_learned_are_refused(planned):
    given = np.where(np.arange(600) < 300, 1 + np.arange(600) % 2, 0).astype(np.uint16)
    tested = np.where(np.arange(600) >= 300, 9, 0).astype(np.uint16)
    with pytest.raises(
        InputError, match=r"300 pixels have the classes 9, and scene.labels has 1, 2"
    ):
        planned(tested, given=given)


def test_plan_fits__a_table_has_no_squares(planned):
    tested = np.where(np.arange(600) % 3 == 0, 1, 0).astype(np.uint16)
    _, labelled, fits = planned(tested, grid=Grid(600, 1), trials=2)
    assert fits == {"all": [0], "random": [1, 2], TEST: [0]}
    assert labelled.disjoint.report()["pixels"] == 200


def test_disjoint__names_classes_that_only_the_test_file_has():
    given, tested = np.uint16([1, 2, 0, 0]), np.uint16([0, 0, 1, 1])
    found = Disjoint(given, tested, "file", 0, {7: 3}, {1: "corn", 2: "oats", 7: "rye"})
    assert [note.rpartition("class")[2] for note in found.notes()] == [
        "es rye",
        " oats: its accuracy is not measured",
        " corn has one or two test pixels: its accuracy says little",
    ]


def test_disjoint__says_nothing_of_files_that_fit():
    given, tested = np.uint16([1, 2, 0, 0]), np.uint16([0, 0, 1, 2])
    found = Disjoint(np.tile(given, 5), np.tile(tested, 5), "file", 0, {})
    assert found.notes() == []
    assert found.report()["classes_without_test"] == []

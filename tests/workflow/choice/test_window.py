import numpy as np
import pytest

from eigenscape.job.jobfile import parse_job
from eigenscape.scenes.open import open_scene
from eigenscape.scenes.views.subset import subset_of
from eigenscape.workflow.choice import window
from eigenscape.workflow.choice.roles import labels_by_role
from eigenscape.workflow.choice.window import Window, set_aside, window_of

HEIGHT, WIDTH = 60, 90


@pytest.fixture
def job_of(tmp_path, monkeypatch):
    monkeypatch.setattr(window, "TILE", 10)

    def make(labels, *, table=False, mask=None, **scene):
        cube = np.random.default_rng(0).normal(size=(HEIGHT, WIDTH, 3)).astype(np.float32)
        np.save(tmp_path / "scene.npy", cube.reshape(-1, 3) if table else cube)
        if labels is not None:
            np.save(tmp_path / "labels.npy", labels.reshape(-1, 1) if table else labels)
            scene["labels"] = "labels.npy"
        if mask is not None:
            np.save(tmp_path / "mask.npy", mask.astype(np.uint8))
            scene["mask"] = "mask.npy"
        return parse_job({"scene": {"path": "scene.npy", **scene}}, base=tmp_path)

    return make


def test_window_of__small_scenes_are_left_alone(job_of, tmp_path):
    job = job_of(None)
    assert window_of(job, tmp_path / "w.npy", HEIGHT * WIDTH, 0) == Window(job)


def test_window_of__holds_the_labels(job_of, tmp_path):
    labels = np.zeros((HEIGHT, WIDTH), np.uint8)
    labels[3, 4], labels[55, 82:86], labels[21:29, 41:49] = 1, 2, 3
    part = window_of(job_of(labels), tmp_path / "w.npy", 600, 0)
    chosen = np.load(tmp_path / "w.npy")
    assert chosen.sum() == 600
    assert (chosen[labels > 0] == 1).all()
    assert "69 of 69 labelled ones of 3 of 3 classes" in part.notes
    assert (part.labelled, part.lacking) == (69, 0)
    _, valid = open_scene(part.job.scene, part.job.resolve).read(0, HEIGHT)
    np.testing.assert_array_equal(valid, chosen > 0)


@pytest.mark.parametrize(("scattered", "side"), [(False, 32), (True, 64)])
def test_window_of__halves_its_squares_where_these_hold_all_labels(tmp_path, scattered, side):
    size, most = 448, 6 * 64**2
    labels = np.zeros((size, size), np.uint8)
    # More squares than there is room for, each with labels in one of its quarters alone.
    for number in range(7):
        row = 64 * number + 5
        labels[row : row + 3, row : row + 4] = number % 2 + 1
    if scattered:
        labels[::16, ::16] = 1
    np.save(tmp_path / "scene.npy", np.ones((size, size, 3), np.float32))
    np.save(tmp_path / "labels.npy", labels)
    job = parse_job({"scene": {"path": "scene.npy", "labels": "labels.npy"}}, base=tmp_path)
    part = window_of(job, tmp_path / "w.npy", most, 0)
    chosen = np.load(tmp_path / "w.npy")
    assert (part.labelled < np.count_nonzero(labels)) == scattered
    assert chosen.sum() == most
    filled = chosen.reshape(size // side, side, size // side, side).mean(axis=(1, 3))
    assert set(filled.ravel().tolist()) == {0.0, 1.0}


def test_window_of__counts_the_labels_of_classes_that_it_lacks(job_of, tmp_path):
    labels = np.zeros((HEIGHT, WIDTH), np.uint8)
    labels[:10, :20], labels[30:32, 50:53], labels[55, 82:86] = 1, 2, 3
    part = window_of(job_of(labels), tmp_path / "w.npy", 200, 0)
    inside = labels[np.load(tmp_path / "w.npy") > 0]
    assert len(set(inside.tolist()) - {0}) == 2
    lacked = 4 if 3 not in inside else 6
    assert part.labelled == np.count_nonzero(inside)
    assert part.lacking == lacked / np.count_nonzero(labels)


def test_window_of__keeps_the_mask_of_the_job(job_of, tmp_path):
    mask = np.zeros((HEIGHT, WIDTH), bool)
    mask[:, 45:] = True
    labels = np.ones((HEIGHT, WIDTH), np.uint8)
    window_of(job_of(labels, mask=mask), tmp_path / "w.npy", 1000, 0)
    assert not np.load(tmp_path / "w.npy")[~mask].any()


def test_window_of__lies_where_the_mask_keeps_labels(job_of, tmp_path):
    mask = np.zeros((HEIGHT, WIDTH), bool)
    mask[20:30, 40:60] = True
    labels = np.ones((HEIGHT, WIDTH), np.uint8)
    labels[:, ::2] = 2
    part = window_of(job_of(labels, mask=mask), tmp_path / "w.npy", 200, 0)
    np.testing.assert_array_equal(np.load(tmp_path / "w.npy") > 0, mask)
    assert "200 of 200 labelled ones of 2 of 2 classes" in part.notes
    assert (part.labelled, part.lacking) == (200, 0)


def test_window_of__a_table_by_rows_of_every_class(job_of, tmp_path):
    labels = np.zeros((HEIGHT, WIDTH), np.uint8)
    labels.ravel()[::50] = 1
    labels.ravel()[7] = 2
    window_of(job_of(labels, table=True), tmp_path / "w.npy", 500, 0)
    chosen = np.load(tmp_path / "w.npy").ravel()
    assert chosen.sum() == 500
    assert chosen[labels.ravel() > 0].all()


def test_window_of__without_labels_at_random_and_the_same_again(job_of, tmp_path):
    window_of(job_of(None), tmp_path / "a.npy", 900, 1)
    window_of(job_of(None), tmp_path / "b.npy", 900, 1)
    first, second = np.load(tmp_path / "a.npy"), np.load(tmp_path / "b.npy")
    np.testing.assert_array_equal(first, second)
    assert first.sum() == 900


def test_window_of__leaves_its_file_as_it_is(job_of, tmp_path):
    # A newer file would be another input, and what was tried with it would be tried again.
    window_of(job_of(None), tmp_path / "w.npy", 900, 1)
    before = (tmp_path / "w.npy").stat().st_mtime_ns
    window_of(job_of(None), tmp_path / "w.npy", 900, 1)
    assert (tmp_path / "w.npy").stat().st_mtime_ns == before


@pytest.mark.parametrize("most", [300, 1000, 4000])
def test_window_of__is_of_the_size_asked_for(job_of, tmp_path, monkeypatch, most):
    monkeypatch.setattr(window, "TILE", 64)
    window_of(job_of(np.ones((HEIGHT, WIDTH), np.uint8)), tmp_path / "w.npy", most, 1)
    assert 0.5 * most <= np.load(tmp_path / "w.npy").sum() <= most


@pytest.mark.parametrize("table", [False, True])
def test_window_of__labels_that_are_all_0_are_no_labels(job_of, tmp_path, table):
    job = job_of(np.zeros((HEIGHT, WIDTH), np.uint8), table=table)
    part = window_of(job, tmp_path / "w.npy", 600, 0)
    assert np.load(tmp_path / "w.npy").sum() == 600
    assert (part.labelled, part.lacking) == (0, 0)


@pytest.mark.parametrize(("table", "samples"), [(False, None), (True, None), (True, 700)])
def test_set_aside__leaves_a_choice_the_other_labels(job_of, tmp_path, table, samples):
    labels = np.random.default_rng(0).integers(1, 4, (HEIGHT, WIDTH)).astype(np.uint8)
    job = job_of(labels, table=table)
    scene = job.scene.model_copy(update={"samples": samples})
    job = job.model_copy(update={"scene": scene})
    opened = open_scene(job.scene, job.resolve)
    pixels = np.random.default_rng(1).permutation(opened.grid.size)[:300]
    job = set_aside(job, pixels, tmp_path / "aside.npy")
    seen = labels_by_role(job, opened).seen.read(0, opened.grid.height).ravel()
    np.testing.assert_array_equal(np.flatnonzero(seen == 0), np.sort(pixels))
    # Another draw of the table's rows lacks the same labels.
    if samples:
        fewer = job.scene.model_copy(update={"samples": 200})
        opened = open_scene(fewer, job.resolve)
        seen = labels_by_role(job.model_copy(update={"scene": fewer}), opened).seen
        aside = np.isin(subset_of(opened).rows, np.flatnonzero(np.load(tmp_path / "aside.npy")))
        np.testing.assert_array_equal(seen.read(0, 200).ravel() == 0, aside)

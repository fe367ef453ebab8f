from dataclasses import replace

import numpy as np
import pytest

from eigenscape.job.jobfile import parse_job
from eigenscape.workflow.choice.survey import SMALL, survey


@pytest.fixture
def job_of(tmp_path, small):
    def make(cube, labels=small.labels):
        np.save(tmp_path / "scene.npy", cube)
        np.save(tmp_path / "labels.npy", labels)
        scene = {"path": "scene.npy", "labels": "labels.npy"}
        return parse_job({"scene": scene}, base=tmp_path)

    return make


def test_survey__ground_is_contiguous_and_shuffled_pixels_are_not(job_of, small):
    found = survey(job_of(small.cube))
    assert found.contiguous
    assert found.labelled == {n: int((small.labels == n).sum()) for n in (1, 2, 3, 4)}
    assert (found.table, found.pixels, found.bands) == (False, 1200, 20)
    assert found.small
    assert not replace(found, pixels=SMALL + 1).fulfils("small")
    pixels = small.cube.reshape(-1, 20)
    shuffled = np.random.default_rng(0).permutation(pixels).reshape(small.cube.shape)
    mixed = survey(job_of(shuffled))
    assert mixed.alike == pytest.approx(1, abs=0.15)
    assert not mixed.contiguous


def test_survey__alike_is_what_it_says(job_of, small):
    # All rows are read where there are 16 or fewer.
    cube = small.cube[8:24].astype(np.float64)
    beside = ((cube[:, 1:] - cube[:, :-1]) ** 2).sum(axis=2).mean()
    spread = 2 * cube.reshape(-1, 20).var(axis=0).sum()
    found = survey(job_of(small.cube[8:24], small.labels[8:24]))
    assert found.alike == pytest.approx(beside / spread, rel=1e-5)


def test_survey__a_table_has_no_place(job_of, small):
    found = survey(job_of(small.cube.reshape(-1, 20), small.labels.reshape(-1, 1)))
    assert found.table
    assert not found.small
    assert found.alike is None
    assert not found.fulfils("image")
    assert not found.fulfils("contiguous")
    assert found.fulfils("labels")

from dataclasses import replace

import numpy as np
import pytest

from eigenscape.job.jobfile import parse_job
from eigenscape.workflow.choice.survey import _DEVIATIONS, SMALL, _chance, survey


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
    cube = small.cube.astype(np.float64)
    pairs = np.stack([cube[:, :-1], cube[:, 1:]])
    beside = ((pairs[0] - pairs[1]) ** 2).mean(axis=(0, 1)) / (2 * pairs.var(axis=(0, 1, 2)))
    found = survey(job_of(small.cube))
    assert found.alike == pytest.approx(beside.mean(), rel=1e-5)


@pytest.mark.parametrize("noise", [2.0, 4.0])
def test_survey__noisy_ground_is_contiguous(job_of, rng, noise):
    ground = np.kron(rng.normal(size=(6, 8, 30)), np.ones((10, 10, 1)))
    cube = ground + noise * rng.normal(size=ground.shape)
    labels = 1 + rng.integers(0, 3, ground.shape[:2])
    found = survey(job_of(cube, labels))
    assert found.alike > 0.7
    assert found.contiguous
    for seed in range(20):
        mixed = np.random.default_rng(seed).permutation(cube.reshape(-1, 30)).reshape(cube.shape)
        assert not survey(job_of(mixed, labels)).contiguous


def test_survey__chance_is_that_of_shuffled_pairs(rng):
    first, second = 1 + rng.normal(size=(2, 60, 7)) @ rng.normal(size=(7, 7))
    found = [((first - rng.permutation(second)) ** 2).mean() / 2 for _ in range(20_000)]
    expected = np.mean(found) - _DEVIATIONS * np.std(found)
    assert _chance(first, second) == pytest.approx(expected, abs=0.1 * np.std(found))


def test_survey__a_strong_band_of_noise_is_one_among_many(job_of, small, rng):
    cube = np.dstack([small.cube, 1e4 * rng.normal(size=small.cube.shape[:2])])
    found = survey(job_of(cube))
    assert found.alike < survey(job_of(small.cube)).alike + 1 / 20
    assert found.contiguous


def test_survey__a_table_has_no_place(job_of, small):
    found = survey(job_of(small.cube.reshape(-1, 20), small.labels.reshape(-1, 1)))
    assert found.table
    assert not found.small
    assert found.alike is None
    assert not found.fulfils("image")
    assert not found.fulfils("contiguous")
    assert found.fulfils("labels")

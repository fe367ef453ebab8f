import numpy as np

from eigenscape.base.process.progress import Silent
from eigenscape.clusters import ClusterOptions
from eigenscape.job.jobfile import parse_job
from eigenscape.store.siblings import Siblings
from eigenscape.tuning.stability import Stability


def mask_of(directory, *, size=(8, 10), seed=0):
    """Return the mask of a part of a scene in a directory, as a call of tune writes it."""
    np.save(directory / "scene.npy", np.ones((*size, 3), np.float32))
    table = {
        "scene": {"path": "scene.npy"},
        "learn": {"method": "spectral-clustering", "seed": seed},
    }
    stability = Stability(directory, ClusterOptions(), Silent(), None, Siblings(list))
    part = stability._part(parse_job(table, base=directory), 3)
    return np.load(part.scene.mask)


def test_part__is_drawn_again_for_another_seed_or_scene(tmp_path):
    first = mask_of(tmp_path)
    state = (tmp_path / "part-3.npy").stat()
    np.testing.assert_array_equal(mask_of(tmp_path), first)
    # Not written again: a file that is newer would be another input.
    assert (tmp_path / "part-3.npy").stat().st_mtime_ns == state.st_mtime_ns
    assert (mask_of(tmp_path, seed=1) != first).any()
    assert mask_of(tmp_path, size=(9, 12)).shape == (9, 12)

import numpy as np

import eigenscape
from eigenscape.store.run import Run


def test_confidence__of_a_map_that_learns_from_ten_times_as_many_labels_as_its_trials(
    tmp_path, rng
):
    """A tenth of the labels knows half of the groups of alike samples, all of them know nearly all."""
    groups = rng.normal(size=(300, 6)).repeat(10, axis=0)
    order = rng.permutation(len(groups))
    values = (groups + 0.01 * rng.normal(size=groups.shape))[order].astype(np.float32)
    truth = (1 + np.arange(300) % 4).repeat(10)[order]
    learned = rng.random(len(values)) < 0.6
    np.save(tmp_path / "values.npy", values)
    np.save(tmp_path / "labels.npy", np.where(learned, truth, 0).astype(np.uint8))
    np.save(tmp_path / "test.npy", np.where(learned, 0, truth).astype(np.uint8))
    job = eigenscape.parse_job(
        {
            "scene": {"path": "values.npy", "labels": "labels.npy"},
            "features": {"method": "none"},
            "neighbors": {"k": 8, "method": "exact"},
            "spectrum": {"dimension": 5},
            "learn": {"method": "interpolated", "test": "test.npy", "trials": 3},
            "limits": {"threads": 2},
            "output": {"formats": []},
        },
        base=tmp_path,
    )
    result = eigenscape.run(job, run_dir=tmp_path / "run")
    run = Run(result.path, create=False)
    confidence = np.asarray(run.open("labels/confidence")[...])[~learned]
    right = (np.asarray(run.open("labels/class")[...]) == truth)[~learned]
    assert right.mean() > 0.95
    assert confidence.mean() > right.mean() - 0.1

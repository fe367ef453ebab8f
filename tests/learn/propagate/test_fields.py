import numpy as np
import pytest

import eigenscape


@pytest.mark.mostly_slow(1)
@pytest.mark.parametrize("method", ["tikhonov", "poisson", "poisson-mbo", "interpolated"])
def test_fields__a_component_with_labels_of_one_class_has_that_class(tmp_path, rng, method):
    """The others are not in the graph: potentials are 0 there, and shares of the whole scene mean nothing."""
    truth = np.repeat([1, 2, 3], [60, 80, 160])
    X = (rng.normal(size=(300, 4)) + 50 * truth[:, None]).astype(np.float32)
    labels = np.where(rng.random(300) < 0.4, truth, 0)
    job = eigenscape.job_for(
        X, labels, directory=tmp_path, graph={"components": "largest"},
        neighbors={"k": 6, "method": "exact"}, spectrum={"dimension": 5}, learn={"method": method},
    )  # fmt: skip
    result = eigenscape.run(job)
    found = eigenscape.open_run(result)["class"].values
    assert set(found[truth == 3]) == {3}
    assert set(found[truth != 3]) == {0}

import pickle

import numpy as np
import pytest

from eigenscape.labels.testing import Disjoint
from eigenscape.labels.training import Labelled


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

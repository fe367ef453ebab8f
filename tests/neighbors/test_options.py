"""What callers ask of the options of any method."""

import pytest

from eigenscape import parse_job
from eigenscape.estimators.fitting import offered
from eigenscape.job.options import REGISTRIES
from eigenscape.neighbors.method import NearestMethod


@pytest.mark.parametrize("method", REGISTRIES["neighbors"].names())
def test_options__say_what_the_lists_hold(method):
    keys = {"radius": {"radius": 2.5}, "landmarks": {"landmarks": 400}}.get(method, {})
    options = parse_job(
        {"scene": {"path": "none.tif"}, "neighbors": {"method": method, "k": 7, **keys}}
    ).neighbors
    assert options.least_neighbors == (0 if method == "radius" else 7)
    assert options.reach == (2.5 if method == "radius" else None)
    assert options.most_landmarks == (400 if method == "landmarks" else None)
    # Estimators offer the methods that find k neighbours among all samples.
    nearest = options.reach is None and options.most_landmarks is None
    assert isinstance(options, NearestMethod) == nearest == (method in offered("neighbors"))

"""Memory that methods of ``[learn]`` are planned to take."""

import math
from dataclasses import replace

from eigenscape.base.footprint import Footprint
from eigenscape.learn.method import Samples
from eigenscape.learn.methods.geodesic_nn import GeodesicNearest


def test_geodesic_nn__scores_of_all_classes_are_counted():
    samples = Samples(10**6, 20, 10, 2, 2**40, Footprint(1, 0, 0, 0), classes=200.0, fields=1000.0)
    # Of every sample the scores of 200 classes in single precision, beside the paths.
    assert GeodesicNearest().footprint(samples).each == (60 + 4 * 200) * 10**6
    least = GeodesicNearest().footprint(replace(samples, classes=math.inf, fields=math.inf))
    assert least.each == 60 * 10**6
    kept = [GeodesicNearest(smoothing=value).footprint(samples).scratch for value in (0, 1)]
    assert [scratch - least.scratch for scratch in kept] == [4 * 200 * 10**6, 4 * 1000 * 10**6]

"""Memory and disk of the learn stage: blocks of eigenvectors, the method, labels, calibration, smoothing."""

import math
from collections.abc import Mapping
from dataclasses import replace

from eigenscape.base.footprint import Footprint
from eigenscape.base.memory import rows_within
from eigenscape.job.sizes import JobSizes
from eigenscape.labels.training import CALIBRATING_TRIALS
from eigenscape.learn.decide.sampling import MOST_CALLED, MOST_VALUES
from eigenscape.learn.decide.smoothing import array_count
from eigenscape.learn.method import Classifier, Samples, learn_method
from eigenscape.spectrum.kernels.gather import WIDTH
from eigenscape.store.arrays import chunk_rows, stored_bytes

_COORDINATE_BYTES = 3 * 4
"""Of each coordinate of a block that a task reads: three arrays in single precision."""

_SAMPLE_BYTES = 30.0
"""Of each sample, beside the tasks: its label, pixel and place, and what is made of them."""

_DRAWN_BYTES = 120
"""Of each labelled sample while training sets are drawn (measured: 108)."""

_CALIBRATED = 20_000
"""Samples, at most, whose probabilities are calibrated at once, where there are many classes."""

_CALIBRATED_BYTES = 1300
"""Of each of these: its scores and probabilities by all that the calibration tries."""

_EDGE_BYTES = 150.0
"""Of each sample on disk, with ``learn.smoothing``: the edges of its pixel."""


def learn_footprint(sizes: JobSizes) -> Footprint:
    """Return the memory and disk of the stage.

    Parameters
    ----------
    sizes
        Of the job.
    """
    samples = _samples(sizes)
    method = learn_method(sizes.job)
    needs = method.footprint(samples)
    if sizes.labelled and isinstance(method, Classifier):
        kept = _kept_bytes(sizes, samples)
        needs = replace(needs, scratch=needs.scratch + kept)
    return _with_smoothing(needs, sizes, samples) if sizes.job.learn.smoothing else needs


def _samples(sizes: JobSizes) -> Samples:
    """Return the samples as far as memory depends on them, and what all methods take."""
    n, job, labelled = sizes.n, sizes.job, sizes.labelled
    modes = job.spectrum.dimension + 1
    classes = math.inf if labelled is None else float(len(labelled))
    return Samples(
        n, modes, job.neighbors.k, sizes.tasks, sizes.budget, _usual(sizes, modes), classes,
        fields=_fits(sizes) * classes,
        labelled=math.inf if labelled is None else float(sum(labelled.values())),
    )  # fmt: skip


def _fits(sizes: JobSizes) -> int:
    """Return the number of fits: of all labels, and of the draws of two kinds of split."""
    return 1 + 2 * (sizes.job.learn.trials + CALIBRATING_TRIALS)


def _usual(sizes: JobSizes, modes: int) -> Footprint:
    """Return what all methods take: blocks of eigenvectors, calibration, the arrays of the map."""
    n = sizes.n
    tasks, rows = sizes.step(chunk_rows(n, 4), _COORDINATE_BYTES * modes)
    rows = min(rows, rows_within(sizes.budget, _COORDINATE_BYTES * modes))
    rows = max(rows, chunk_rows(n, 4 * modes))
    most = min(sizes.tasks, -(-n // rows))
    each = min(n / most, rows) * modes * _COORDINATE_BYTES
    # Class and confidence; entropy where classes have probabilities.
    arrays = (2, 4, 4) if isinstance(learn_method(sizes.job), Classifier) else (2, 4)
    disk = sum(stored_bytes(n, size) for size in arrays)
    before = sizes.heap + _calibrating_bytes(n, sizes.labelled)
    return Footprint(2 * tasks, each, _SAMPLE_BYTES * n, disk, before=before, most=most)


def _calibrating_bytes(n: int, labelled: Mapping[int, int] | None) -> float:
    """Return the memory of a calibration, or of the draws of training sets, whichever is more."""
    calibrated, drawn = float(min(n, _CALIBRATED)), 0.0
    if labelled:
        total = float(sum(labelled.values()))
        drawn = _DRAWN_BYTES * total
        calibrated = max(calibrated, min(total, MOST_VALUES // len(labelled)))
    return max(_CALIBRATED_BYTES * calibrated, drawn)


def _kept_bytes(sizes: JobSizes, samples: Samples) -> float:
    """Return the scratch of the labelled samples of a classifier.

    That is coordinates or features, numbers, classes and zones; for every fit its training set, its calls and
    some scores, once more where maps are smoothed.
    """
    learn, labelled, classes, fits = (
        sizes.job.learn, samples.labelled, samples.classes, _fits(sizes),
    )  # fmt: skip
    called = MOST_CALLED * (2 if learn.test is not None else 1)
    held = 2 * MOST_VALUES / max(1, learn.trials)
    read = min(labelled, (called + held) / classes + 4)
    of_fit = (1 if classes <= 128 else 2) * labelled + read * (4 * classes + 8)
    kept = labelled * (4 * max(samples.modes, sizes.d) + 32 + fits)
    return kept + of_fit * fits * (2 if learn.smoothing else 1)


def _with_smoothing(needs: Footprint, sizes: JobSizes, samples: Samples) -> Footprint:
    """Add the edges of the pixels; shares, their image and a spare array, in memory if they fit."""
    count = len(sizes.labelled or ())
    group = array_count(count) * sizes.n * WIDTH * 4
    inside = group <= sizes.budget
    fields = _fits(sizes) if count > WIDTH / 2 else samples.fields // (WIDTH / 2) + 1
    smoothing = min(sizes.tasks, fields) * (group + sizes.heap) if inside else 0
    return replace(
        needs,
        before=max(needs.before, smoothing),
        scratch=needs.scratch + _EDGE_BYTES * sizes.n + group * (not inside),
    )

"""The scoring stage: how well a job's classifier does on draws of training pixels, and nothing else.

::

    gather   sample blocks   what the method needs of the labelled samples
    fit      draws           a model each, and the accuracy on the samples of the draw to test on
    smooth   draws           the same after smoothing over the scene       (where the job asks)

No map, no calibration: it is what a choice among jobs compares (`eigenscape.labels.nested`).
"""

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenscape.context import Context
from eigenscape.job.options import LearnOptions
from eigenscape.labels.nested import Nested, Part
from eigenscape.labels.priors import Prior
from eigenscape.labels.testing import read_disjoint, read_learnable
from eigenscape.labels.training import Labelled, labelled_samples, marked_labels
from eigenscape.learn.decide.fitscores import FitScores, Fitted
from eigenscape.learn.decide.kernels.scores import accuracy, confusion_matrix
from eigenscape.learn.decide.smoothing import prepare_smoothing
from eigenscape.learn.method import Classifier
from eigenscape.scenes.ingest.ingested import IngestedScene

_KEPT = ("overall_accuracy", "average_accuracy", "kappa", "samples")


def scoring_stage(
    context: Context, part: Part, split: str, trials: tuple[int, int]
) -> dict[str, Any]:
    """Return the scores of some draws; write nothing.

    Parameters
    ----------
    context
        Of the stage.
    part, split, trials
        See `eigenscape.labels.nested.Nested`; the draws first ... last-1.

    Returns
    -------
    dict
        ``draws``: overall and average accuracy, kappa and tested samples of each draw; ``side`` of the
        squares, ``seen`` and ``labelled`` samples, ``training`` samples on average.
    """
    ingest = context.run.record("ingest")
    assert ingest is not None, "scoring follows ingest"
    scene = IngestedScene.from_summary(ingest.summary, context.job.scene, context.job.resolve)
    options = context.job.learn
    given, pixel = context.open("labels/given")[...], context.open("samples/pixel")[...]
    marked = marked_labels(options, given, pixel, scene)
    given, tested = _labels(options, part, given, marked, pixel, scene)
    place = context.open(scene.places)[...]
    sample, row, column = labelled_samples(given, place, scene.extent.width)
    numbers, classes = np.unique(given[sample], return_inverse=True)
    seen = None if marked is None else marked[sample] > 0
    if tested is not None:
        tested = tested[sample]
        seen = ~tested if seen is None else seen & ~tested
    nested = Nested(options, split, classes, row, column, scene.extent, seen, tested)
    last = trials[0] + nested.trials(part, trials[1] - trials[0])
    drawn = [nested.draw(part, trial) for trial in range(trials[0], last)]
    train = np.array([train for train, _ in drawn])
    labelled = Labelled(sample, classes, numbers, train, mapped=False)
    folder = context.workspace.folder("learn")
    method = context.job.learn
    assert isinstance(method, Classifier), "it learns from labels"
    prior = Prior(method.wanted_prior, folder)
    fitted = Fitted(method.prepare(context, labelled), prior, labelled, folder)
    fits = list(range(len(drawn)))
    context.map("fit", fitted.fit, fits, label="fitting")
    source: FitScores = fitted
    if context.job.learn.smoothing:
        source = smoothed = prepare_smoothing(context, fitted)
        bundles = list(range(len(smoothed.bundles)))
        context.map("smooth", smoothed.smooth, bundles, label="smoothing")
    score = partial(_score, source, labelled, [test for _, test in drawn])
    return {
        "draws": [score(number) for number in fits],
        "split": split,
        "side": nested.side if split == "blocked" else None,
        "seen": int(nested.seen.sum()),
        "labelled": len(sample),
        "training": int(labelled.train.sum(axis=1).mean()),
    }


def _labels(
    options: LearnOptions,
    part: Part,
    given: NDArray[np.uint16],
    marked: NDArray[np.uint16] | None,
    pixel: NDArray[np.int64],
    scene: IngestedScene,
) -> tuple[NDArray[np.uint16], NDArray[np.bool_] | None]:
    """Return the labels that a part needs, and which are those of a test file: None without one."""
    if options.test is None:
        return given, None
    if part == "judging":
        disjoint = read_disjoint(options.test, given, pixel, scene, marked)
        return disjoint.marked, disjoint.tested > 0
    # What the job is tested on has no part in the choice.
    return read_learnable(options.test, given, pixel, scene), np.zeros(len(given), np.bool_)


def _score(
    source: FitScores, labelled: Labelled, tests: list[NDArray[np.bool_]], number: int
) -> dict[str, Any]:
    test = tests[number]
    called = source.called(number)[test]
    found = accuracy(confusion_matrix(labelled.classes[test], called, labelled.count))
    return {name: found[name] for name in _KEPT}

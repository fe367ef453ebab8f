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
from eigenscape.labels.nested import Part, nested_labels
from eigenscape.labels.priors import Prior
from eigenscape.labels.training import Labelled
from eigenscape.learn.decide.fitscores import FitScores, Fitted
from eigenscape.learn.decide.fitting import fit_all
from eigenscape.learn.decide.kernels.scores import accuracy, confusion_matrix
from eigenscape.learn.method import Classifier

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
    nested, sample, numbers = nested_labels(context.run, context.job, part, split)
    last = trials[0] + nested.trials(part, trials[1] - trials[0])
    drawn = [nested.draw(part, trial) for trial in range(trials[0], last)]
    train = np.array([train for train, _ in drawn])
    labelled = Labelled(sample, nested.classes, numbers, train, mapped=False)
    folder = context.workspace.folder("learn")
    method = context.job.learn
    assert isinstance(method, Classifier), "it learns from labels"
    prior = Prior(method.wanted_prior, folder)
    fitted = Fitted(method.prepare(context, labelled), prior, labelled, folder)
    source, _ = fit_all(context, fitted)
    score = partial(_score, source, labelled, [test for _, test in drawn])
    return {
        "draws": [score(number) for number in range(len(drawn))],
        "split": split,
        "side": nested.side if split == "blocked" else None,
        "seen": int(nested.seen.sum()),
        "labelled": len(sample),
        "training": int(labelled.train.sum(axis=1).mean()),
    }


def _score(
    source: FitScores, labelled: Labelled, tests: list[NDArray[np.bool_]], number: int
) -> dict[str, Any]:
    test = tests[number]
    called = source.called(number)[test]
    found = accuracy(confusion_matrix(labelled.classes[test], called, labelled.count))
    return {name: found[name] for name in _KEPT}

"""All fits of a method, smoothed over the scene where the job asks for it.

::

    fit        training sets   a model each, and its scores on the labelled samples
    smooth     bundles         the same after smoothing      (with learn.smoothing)
"""

import numpy as np
from numpy.typing import NDArray

from eigenscape.context import Context
from eigenscape.learn.decide.fitscores import FitScores, Fitted
from eigenscape.learn.decide.smoothing import prepare_smoothing


def fit_all(context: Context, fitted: Fitted) -> tuple[FitScores, list[NDArray[np.int64]]]:
    """Fit a method to all training sets.

    Returns
    -------
    source
        The scores that count: smoothed ones if the job has ``learn.smoothing``.
    confusions
        Arrays of the confusion matrices of every fit (`eigenscape.learn.decide.fitscores.confusions`): of the
        fits as they are, then of the smoothed ones, if there are any.
    """
    fits = list(range(len(fitted.labelled.train)))
    found = [np.array(context.map("fit", fitted.fit, fits, label="fitting"))]
    if not context.job.learn.smoothing:
        return fitted, found
    smoothed = prepare_smoothing(context, fitted)
    bundles = list(range(len(smoothed.bundles)))
    bundled = context.map("smooth", smoothed.smooth, bundles, label="smoothing")
    return smoothed, [*found, np.array([fit for bundle in bundled for fit in bundle])]

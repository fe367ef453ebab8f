"""What a classifier of the learn stage is, and which one a job asks for."""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from eigenscape.base.blocks import Block
from eigenscape.context import Context
from eigenscape.errors import InputError
from eigenscape.job.options import LearnOptions
from eigenscape.labels.priors import check_prior
from eigenscape.labels.training import Labelled
from eigenscape.learn.classify.coordinates import CentroidAngle, Eigenfunctions, gather
from eigenscape.learn.classify.nearestneighbors import prepare_geodesic, prepare_nearest
from eigenscape.learn.propagate.fields import METHODS as FIELDS
from eigenscape.learn.propagate.fields import prepare_fields
from eigenscape.spectrum.kernels.gather import WIDTH


class Method(Protocol):
    """A classifier whose data lie on disk: small, so that every task can carry it.

    Attributes
    ----------
    bytes_per_sample
        What `scores` takes for each sample of a block beside the scores, temporaries included.
    """

    @property
    def bytes_per_sample(self) -> float:
        """See above."""
        ...

    def implied(self, number: int) -> NDArray[np.float64] | None:
        """Return the shares of the classes that the scores of a fit follow, after it was fitted.

        None where the method itself has brought in ``learn.prior``.
        """
        ...

    def fit(self, number: int) -> NDArray[np.float32]:
        """Fit to one training set; return the scores of all labelled samples, (labelled, classes).

        Scores are about the share that speaks for each class (`eigenscape.learn.kernels.decisions`); NaN
        where there is nothing to tell. The model stays where `scores` finds it.
        """
        ...

    def scores(self, number: int, block: Block) -> NDArray[np.float32]:
        """Return the scores of some samples, shape (samples, classes), by a fit.

        Where the job does not smooth, of the first fit alone.
        """
        ...


def check_classes(options: LearnOptions, numbers: list[int]) -> None:
    """Refuse a method, or a prior, that does not go with the classes of the labels.

    Parameters
    ----------
    options
        ``[learn]`` of the job.
    numbers
        Class numbers, ascending; none without labels.

    Raises
    ------
    InputError
        With the numbers, and the fix.
    """
    if not numbers:
        return
    check_prior(options.prior, numbers)
    if options.method == "poisson-mbo" and len(numbers) > WIDTH:
        raise InputError(
            f'learn.method = "poisson-mbo": the labels have {len(numbers)} classes, the limit is '
            f'{WIDTH}. Set learn.method to "poisson".'
        )


def prepare(context: Context, labelled: Labelled) -> Method:
    """Gather what the method of a job needs of the labelled samples."""
    options = context.job.learn
    if options.method == "k-nn":
        return prepare_nearest(context, labelled, options.k)
    if options.method == "geodesic-nn":
        return prepare_geodesic(context, labelled)
    if options.method in FIELDS:
        return prepare_fields(context, labelled)
    coordinates = gather(context, labelled)
    if options.method == "eigenfunctions":
        return Eigenfunctions(coordinates, options.eigenvectors)
    return CentroidAngle(coordinates)

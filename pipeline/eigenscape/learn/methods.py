"""What a classifier of the learn stage is, and which one a job asks for."""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from eigenscape.learn.coordinates import CentroidAngle, Eigenfunctions, gather
from eigenscape.learn.fields import METHODS as FIELDS
from eigenscape.learn.fields import prepare_fields
from eigenscape.learn.labelled import Labelled
from eigenscape.learn.nearby import prepare_geodesic, prepare_nearest
from eigenscape.stage import Block, Context


class Method(Protocol):
    """A classifier whose data lie on disk: small, so that every task can carry it.

    Attributes
    ----------
    bytes_per_sample
        What `classify` takes for each sample of a block, temporaries included.
    """

    @property
    def bytes_per_sample(self) -> float:
        """See above."""
        ...

    def fit(self, number: int) -> NDArray[np.intp]:
        """Fit to one training set; return the class of every labelled sample, -1 for none.

        The first fit leaves its model where `classify` finds it.
        """
        ...

    def classify(self, block: Block) -> tuple[NDArray[np.intp], NDArray[np.float32]]:
        """Return class (-1 for none) and confidence, 0 ... 1, of some samples, by the first fit."""
        ...


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

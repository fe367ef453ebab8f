"""How many clusters to look for, and which number each gets."""

import numpy as np
from numpy.typing import NDArray

from eigenscape.errors import InputError
from eigenscape.options import LearnOptions


def choose_count(
    options: LearnOptions, values: NDArray[np.float64], nulls: int, classes: int
) -> tuple[int, str]:
    """Return how many clusters to look for, and why.

    Parameters
    ----------
    options
        ``[learn]``.
    values : array, shape (modes,)
        Eigenvalues, ascending, the null ones included.
    nulls
        Null vectors: components of the graph that are not joined.
    classes
        Classes of the labels, 0 without labels.

    Raises
    ------
    InputError
        More clusters than eigenvectors, or fewer than components.
    """
    modes = len(values)
    if options.clusters != "auto":
        count, reason = int(options.clusters), "learn.clusters"
    elif options.ncut is not None:
        count, reason = modes, "as many as learn.ncut allows"
    elif classes > 1:
        count, reason = classes, "the classes of the labels"
    else:
        first = max(2, nulls)
        if modes <= first:
            raise InputError(
                f'learn.clusters = "auto": {modes} eigenvectors show no gap to tell a number of '
                f"clusters by. Set learn.clusters, or spectrum.dimension to {first + 8} or so."
            )
        gaps = 1 - values[first - 1 : -1] / np.maximum(values[first:], np.finfo(float).tiny)
        count = first + int(gaps.argmax())
        reason = (
            f"the largest relative gap, {gaps.max():.2f}, among the {modes} eigenvalues: between "
            f"numbers {count} and {count + 1}"
        )
    if count > modes:
        raise InputError(
            f"learn.clusters = {count}: {reason} ask for as many eigenvectors, and there are {modes} "
            f"with the constant one. Set spectrum.dimension to {count - 1} or more."
        )
    if count < nulls:
        raise InputError(
            f"learn.clusters = {count}: the graph has {nulls} components that no edge joins, and each "
            f'is a cluster at least. Set learn.clusters to {nulls} or more, or graph.components to "connect".'
        )
    return count, reason


def by_size(cluster: NDArray[np.integer]) -> NDArray[np.uint16]:
    """Renumber clusters from 0 in the order of their size, equal ones as they were; none is empty."""
    sizes = np.bincount(cluster)
    order = np.argsort(-sizes, kind="stable")
    rank = np.empty(len(sizes), np.uint16)
    rank[order] = np.arange(len(sizes))
    return np.asarray(rank[cluster])

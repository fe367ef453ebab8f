"""The number of clusters, and the numbers that they get."""

import numpy as np
from numpy.typing import NDArray

from eigenscape.errors import InputError
from eigenscape.learn.method import Clustering

CLEAR_EXCESS = 4.0
"""k times the relative gap after k eigenvalues from which k may be the number of clusters. Without
clusters the eigenvalues grow as k^(2 / d) (Weyl), so that the product stays at about 2 / d: 1.3 to 3.8 at
most on scenes, digits and noise, 3.8 to 19.7 after the number of 4 to 20 made clusters."""

CLEAR_GAP = 0.8
"""Relative gap that is enough for few clusters: 0.96 to 1.0 for two to four made ones."""

_LEAST_GAP = 0.3
"""Relative gap below which it is noise among the many large numbers, however large the product is."""

_LEAST_SHARE = 0.25
"""Of the samples that clusters of equal size would have: a few clusters that a gap tells have no fewer."""

_SHOWN = 4


def choose_count(
    method: Clustering, values: NDArray[np.float64], nulls: int, classes: int
) -> tuple[int, str]:
    """Return how many clusters to look for, and why.

    Parameters
    ----------
    method
        Its keys.
    values : array, shape (modes,)
        Eigenvalues, ascending, the null ones included.
    nulls
        Null vectors: components of the graph that are not joined.
    classes
        Classes of the labels, 0 without labels.

    Raises
    ------
    InputError
        More clusters than eigenvectors, or fewer than components; or no gap of the eigenvalues is clear.
    """
    modes = len(values)
    if method.clusters != "auto":
        count, reason = int(method.clusters), "learn.clusters"
    elif method.open_ended:
        count, reason = modes, method.open_ended
    elif classes > 1:
        count, reason = classes, "the classes of the labels"
    else:
        count, reason = _by_gap(values, max(2, nulls))
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


def _by_gap(values: NDArray[np.float64], first: int) -> tuple[int, str]:
    """Return the number of clusters by the last clear gap of the eigenvalues, `first` or more.

    Groups of clusters that lie closer leave gaps before it.
    """
    modes = len(values)
    if modes <= first:
        raise InputError(
            f'learn.clusters = "auto": {modes} eigenvectors have no gap from which a number of '
            f"clusters could be chosen. Set learn.clusters, or spectrum.dimension to {first + 8} or so."
        )
    numbers = np.arange(first, modes)
    gaps = 1 - values[first - 1 : -1] / np.maximum(values[first:], np.finfo(float).tiny)
    many = (gaps >= _LEAST_GAP) & (numbers * gaps >= CLEAR_EXCESS)
    clear = np.flatnonzero(many | (gaps >= CLEAR_GAP))
    if len(clear):
        count = int(numbers[clear[-1]])
        return count, (
            f"a relative gap of {gaps[clear[-1]]:.2f} among the {modes} eigenvalues, between numbers "
            f"{count} and {count + 1}"
        )
    best = numbers[np.argsort(-numbers * gaps, kind="stable")[:_SHOWN]].tolist()
    listed = ", ".join(f"{number} ({gaps[number - first]:.2f})" for number in sorted(best))
    raise InputError(
        f'learn.clusters = "auto": none of the gaps among the {modes} eigenvalues is clear enough to '
        f"give a number of clusters. The clearest follow the numbers {listed}: in brackets the share by "
        f"which the next eigenvalue is larger; {CLEAR_GAP} would be clear, or k times it {CLEAR_EXCESS:g}. "
        "Set learn.clusters."
    )


def check_shares(method: Clustering, classes: int, sizes: NDArray[np.integer]) -> None:
    """Refuse few clusters of a gap alone, one of which is a group apart from all others.

    Such a group is next to no edge away from the rest, whatever the rest is made of: water in a scene of
    land leaves a gap after 2. Of many clusters the gap is measured in a larger number.

    Parameters
    ----------
    method
        Its keys.
    classes
        Classes of the labels, 0 without labels.
    sizes : array of int, shape (count,)
        Samples of each cluster.

    Raises
    ------
    InputError
        With the sizes, and the fix.
    """
    count = len(sizes)
    told = method.clusters == "auto" and not method.open_ended and classes <= 1
    least, total = int(sizes.min()), int(sizes.sum())
    if told and count < CLEAR_EXCESS and least * count < _LEAST_SHARE * total:
        raise InputError(
            f'learn.clusters = "auto": a gap of the eigenvalues follows the number {count}, but it parts '
            f"{least:,} of {total:,} samples ({least / total:.1%}) from the others, and says nothing of "
            f"these. Set learn.clusters: to {count} for this division, or to more."
        )


def by_size(cluster: NDArray[np.integer]) -> NDArray[np.uint16]:
    """Renumber clusters from 0 in the order of their size, equal ones as they were; none is empty."""
    sizes = np.bincount(cluster)
    order = np.argsort(-sizes, kind="stable")
    rank = np.empty(len(sizes), np.uint16)
    rank[order] = np.arange(len(sizes))
    return np.asarray(rank[cluster])

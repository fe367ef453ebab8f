"""Agreement of clusters with classes: from a table of counts, whatever the number of samples."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

Table = NDArray[np.int64]


@dataclass(frozen=True)
class Agreement:
    """Agreement of clusters with classes.

    Attributes
    ----------
    ari
        Adjusted Rand index (Hubert, Arabie 1985): 1 for the same partition, 0 on average by chance.
    nmi
        Mutual information over the mean of both entropies, 0 ... 1.
    accuracy
        Share of the samples whose cluster is matched with their class.
    matched : array of int, shape (clusters,)
        Class of each cluster under the best one-to-one matching, -1 for clusters that are left over
        or have no sample in common with their class.
    samples
        How many samples were compared.
    """

    ari: float
    nmi: float
    accuracy: float
    matched: NDArray[np.intp]
    samples: int


def contingency(
    classes: NDArray[np.signedinteger],
    clusters: NDArray[np.signedinteger],
    shape: tuple[int, int],
) -> Table:
    """Return how many samples of each class lie in each cluster; tables of blocks add up.

    Parameters
    ----------
    classes, clusters : array of int, shape (m,)
        From 0; samples where either is negative do not count.
    shape
        Number of classes and of clusters.

    Returns
    -------
    array of int, shape (classes, clusters)
    """
    counted = (classes >= 0) & (clusters >= 0)
    cells = np.ravel_multi_index((classes[counted], clusters[counted]), shape)
    return np.bincount(cells, minlength=shape[0] * shape[1]).reshape(shape)


def agreement(table: Table) -> Agreement:
    """Return how well the clusters of a contingency table agree with its classes.

    Parameters
    ----------
    table : array of int, shape (classes, clusters)
        See `contingency`.
    """
    rows, columns = linear_sum_assignment(table, maximize=True)
    matched = np.full(table.shape[1], -1, np.intp)
    common = table[rows, columns] > 0
    matched[columns[common]] = rows[common]
    samples = int(table.sum())
    accuracy = float(table[rows, columns].sum() / samples) if samples else 0.0
    return Agreement(_adjusted_rand(table), _mutual_information(table), accuracy, matched, samples)


def _pairs(counts: NDArray[np.int64]) -> int:
    # As Python's integers: products of pairs of a million samples overflow 64 bits.
    return sum(count * (count - 1) // 2 for count in counts.ravel().tolist())


def _adjusted_rand(table: Table) -> float:
    together = _pairs(table)
    by_class, by_cluster = _pairs(table.sum(axis=1)), _pairs(table.sum(axis=0))
    every = _pairs(table.sum(keepdims=True))
    # By how much pairs exceed chance, everything times twice all pairs.
    above = 2 * (together * every - by_class * by_cluster)
    largest = (by_class + by_cluster) * every - 2 * by_class * by_cluster
    return above / largest if largest else 1.0


def _mutual_information(table: Table) -> float:
    if not table.any():
        return 1.0
    joint = table / table.sum()
    of_class, of_cluster = joint.sum(axis=1), joint.sum(axis=0)
    entropies = _entropy(of_class) + _entropy(of_cluster)
    if entropies == 0:
        return 1.0  # one class, one cluster: the same partition
    shared = entropies - _entropy(joint)
    return float(np.clip(2 * shared / entropies, 0, 1))


def _entropy(shares: NDArray[np.float64]) -> float:
    held = shares[shares > 0]
    return max(0.0, -float(held @ np.log(held)))

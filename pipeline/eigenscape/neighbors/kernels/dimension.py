"""The intrinsic dimension of samples, by maximum likelihood on their neighbour lists.

Around a sample of an m-dimensional manifold the j-th of k neighbours lies at the distance T_j, and
log(T_k / T_j) is exponentially distributed with mean 1 / m (Levina, Bickel 2004). The estimate
pools these logarithms over all samples rather than averaging estimates of single samples, whose
mean is too high (MacKay, Ghahramani 2005).
"""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenscape.base.memory import ROW_TILE

SEGMENT_ROWS = 256
"""Samples whose logarithms are summed before anything else; `ROW_TILE` is a multiple of it."""

_QUANTILE = 1.96
"""Of the normal distribution, for 95 %."""


@dataclass(frozen=True)
class Dimension:
    """An intrinsic dimension.

    Attributes
    ----------
    value
        The estimate; NaN if no sample has two neighbours at positive distances, inf if all neighbours
        of every sample are equally far.
    low, high
        Ends of its 95 % confidence interval; NaN if one segment is all there is. It shows how well
        the average over the samples is known, not the bias of lists that reach beyond where the
        manifold is flat and evenly sampled.
    samples
        Samples that contributed.
    """

    value: float
    low: float
    high: float
    samples: int

    def to_json(self) -> dict[str, Any]:
        """Return the estimate as JSON values, None where a number is not finite."""
        return {key: value if np.isfinite(value) else None for key, value in asdict(self).items()}


def log_sums(distance: NDArray[np.floating], k: int | None = None) -> NDArray[np.float64]:
    """Return the sums that the estimate is made of, by segments of samples.

    Parameters
    ----------
    distance : array, shape (m, width)
        Distances to the neighbours, nearest first; not finite where there is none. Duplicates, at
        distance 0, do not depend on the dimension and are left out.
    k
        How many of the neighbours count, all by default.

    Returns
    -------
    array, shape (ceil(m / SEGMENT_ROWS), 3)
        Sum of log(T_k / T_j), number of its terms, samples that have any. Those of blocks of whole
        segments can be joined.
    """
    sums = np.zeros((-(-len(distance) // SEGMENT_ROWS), 3))
    for start in range(0, len(distance), ROW_TILE):
        lengths = np.asarray(distance[start : start + ROW_TILE, :k], np.float64)
        counts = np.isfinite(lengths) & (lengths > 0)
        logs = np.log(lengths, out=np.full(lengths.shape, -np.inf), where=counts)
        last = logs.max(axis=1, initial=-np.inf)[:, None]
        terms = np.maximum(counts.sum(axis=1) - 1, 0)
        ratios = np.subtract(last, logs, out=np.zeros_like(logs), where=counts).sum(axis=1)
        rows = np.column_stack([ratios, terms, terms > 0])
        first = start // SEGMENT_ROWS
        begins = np.arange(0, len(rows), SEGMENT_ROWS)
        sums[first : first + len(begins)] = np.add.reduceat(rows, begins, axis=0)
    return sums


def intrinsic_dimension(sums: NDArray[np.float64]) -> Dimension:
    """Return the intrinsic dimension and how sure it is.

    The spread of the segments, and not that of single samples, gives the interval: neighbours share
    neighbours, so their logarithms are not independent.

    Parameters
    ----------
    sums : array, shape (segments, 3)
        See `log_sums`.
    """
    used = sums[sums[:, 1] > 0]
    total, terms, samples = used.sum(axis=0)
    if total == 0:  # no logarithms, or equal distances only
        return Dimension(np.inf if terms else np.nan, np.nan, np.nan, int(samples))
    inverse = total / terms
    low = high = np.nan
    if len(used) > 1:
        # Standard error of a ratio of sums over segments.
        away = used[:, 0] - inverse * used[:, 1]
        error = np.sqrt(float(away @ away) * len(used) / (len(used) - 1)) / terms
        low = 1 / (inverse + _QUANTILE * error)
        high = 1 / (inverse - _QUANTILE * error) if inverse > _QUANTILE * error else np.inf
    return Dimension(float(1 / inverse), float(low), float(high), int(samples))

"""Areas of classes and accuracies from a sample of reference labels, with standard errors.

Pixels counted on a map are no estimate of an area: errors of commission and omission do not cancel. Olofsson,
Foody, Herold, Stehman, Woodcock, Wulder (2014), "Good practices for estimating area and assessing accuracy
of land change", Remote Sensing of Environment 148: 42-57. The classes of the map are the strata::

    W_i     share of the map that is called i             n_ij    sample units called i that are j
    p_ij  = W_i n_ij / n_i
    O     = sum of p_jj,  U_i = p_ii / p_i,  P_j = p_jj / p_j
    V(O)  = sum of W_i^2 U_i (1 - U_i) / (n_i - 1)
    V(U_i) = U_i (1 - U_i) / (n_i - 1)
    V(P_j) = [N_j.^2 (1 - P_j)^2 U_j (1 - U_j) / (n_j - 1)
              + P_j^2 sum over i != j of N_i.^2 n_ij / n_i (1 - n_ij / n_i) / (n_i - 1)] / N_.j^2
    p_.k  = sum of W_i n_ik / n_i,  its area A p_.k
    S(p_.k) = sqrt(sum of W_i^2 (n_ik / n_i) (1 - n_ik / n_i) / (n_i - 1))
    S(A_k) = A S(p_.k)

What the map leaves without a class is a stratum too, in which nothing is right.

They hold where the sample was drawn at random within each class of the map, or from the whole scene at
random (then the strata are used afterwards). Labels that somebody found easy to give are neither.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenscape.learn.decide.kernels.scores import plain


def estimate_areas(sample: NDArray[np.int64], mapped: NDArray[np.int64]) -> dict[str, Any]:
    """Return estimates and standard errors.

    Parameters
    ----------
    sample : array, shape (classes or classes + 1, classes)
        n_ij: rows are what the map says, columns the reference; the last of one more row is what the map
        leaves without a class.
    mapped : array, shape (classes or classes + 1,)
        Pixels of each of these strata on the map.

    Returns
    -------
    dict
        ``overall_accuracy``, ``overall_accuracy_se``; of each class ``users_accuracy``,
        ``producers_accuracy`` and ``proportion``, with ``..._se``; ``pixels``, the number of pixels that
        it has, and ``pixels_se``. Standard errors are None where a stratum has one sample unit alone:
        ``one_unit``, its place. ``without_sample``: places of strata of the map that no unit lies in;
        all else is None then, since nothing is known of their ground.
    """
    n = sample.sum(axis=1).astype(np.float64)
    total, count = float(mapped.sum()), sample.shape[1]
    missing = np.flatnonzero((mapped > 0) & (n == 0)).tolist()
    alone = np.flatnonzero((mapped > 0) & (n == 1)).tolist()
    if missing or not total:
        each = ("users_accuracy", "producers_accuracy", "proportion", "pixels")
        names = [name + end for name in each for end in ("", "_se")]
        return {
            "overall_accuracy": None,
            "overall_accuracy_se": None,
            **{name: [None] * count for name in names},
            "without_sample": missing,
            "one_unit": alone,
        }
    # A class that the map lacks is no stratum: what was drawn there cannot be.
    used = mapped > 0
    W = mapped / total
    with np.errstate(invalid="ignore", divide="ignore"):
        shares = np.where(used[:, None], sample / n[:, None], 0)
        spread = np.where(used[:, None], shares * (1 - shares) / (n - 1)[:, None], 0)
        # One unit says nothing of the spread of its stratum.
        spread[used & (n == 1)] = np.nan
        p = W[:, None] * shares
        proportion = p.sum(axis=0)
        called = used[:count]
        users, producers = np.where(called, np.diag(shares), np.nan), np.diag(p) / proportion
        own = np.diag(spread)
        # Over the square of the total, as W is.
        variance = (W[:, None] ** 2 * spread).sum(axis=0)
        right = W[:count] ** 2 * own
        within, others = (1 - producers) ** 2 * right, variance - right
        producers_variance = (within + producers**2 * others) / proportion**2
    found = {
        "users_accuracy": (users, np.sqrt(np.where(called, own, np.nan))),
        "producers_accuracy": (producers, np.sqrt(producers_variance)),
        "proportion": (proportion, np.sqrt(variance)),
        "pixels": (total * proportion, total * np.sqrt(variance)),
    }
    report: dict[str, Any] = {
        "overall_accuracy": plain(float(np.diag(p).sum())),
        "overall_accuracy_se": plain(float(np.sqrt(right.sum()))),
    }
    for name, (value, error) in found.items():
        report[name], report[f"{name}_se"] = plain(value.tolist()), plain(error.tolist())
    return {**report, "without_sample": [], "one_unit": alone}

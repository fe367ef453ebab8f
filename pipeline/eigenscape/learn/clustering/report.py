"""The report on clusters: sizes, cuts, Cheeger's bounds, agreement with labels."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenscape.learn.clustering.kernels.agreement import agreement
from eigenscape.learn.clustering.kernels.costs import ClusterCuts, ncut_bound
from eigenscape.learn.clustering.kernels.cuts import cheeger_bounds
from eigenscape.learn.method import Clustering


@dataclass(frozen=True)
class Measured:
    """Measurements of the stage.

    Attributes
    ----------
    sizes : array of int, shape (clusters,)
        Samples of each cluster.
    cuts
        Cut and volume of each.
    values : array, shape (modes,)
        Eigenvalues, ascending.
    splits
        The best two-way splits: samples, cut, volumes, ncut and cheeger of each; None where no
        vector of the graph is constant.
    table : array of int, shape (classes, clusters)
        Labelled samples of each class in each cluster.
    classes, class_names
        Numbers and names of the labels.
    exact
        Whether the eigenvalues are those of the normalised Laplacian, to which the bounds apply.
    """

    sizes: NDArray[np.int64]
    cuts: ClusterCuts
    values: NDArray[np.float64]
    splits: dict[str, Any] | None
    table: NDArray[np.int64]
    classes: list[int]
    class_names: list[str]
    exact: bool


def report(method: Clustering, measured: Measured, wanted: int, reason: str) -> dict[str, Any]:
    """Return the scores of a clustering as JSON values.

    Parameters
    ----------
    method
        The method that made it.
    measured
        The measurements.
    wanted, reason
        How many clusters were looked for, and why.
    """
    count = len(measured.sizes)
    cuts, agreed = measured.cuts, describe_agreement(measured.table, measured.classes)
    matches = _matches(measured, agreed)
    columns = zip(
        measured.sizes, cuts.cut, cuts.volume, cuts.ncut, cuts.conductance, matches, strict=True
    )
    return {
        "method": method.method,
        **method.told(),
        "clusters": count,
        "wanted": wanted,
        "reason": reason,
        "per_cluster": [
            {
                "cluster": number,
                "samples": int(samples),
                "cut": float(cut),
                "volume": float(volume),
                "ncut": float(ncut),
                "conductance": float(conductance),
                **match,
            }
            for number, (samples, cut, volume, ncut, conductance, match) in enumerate(columns, 1)
        ],
        "cut": float(cuts.cut.sum() / 2),
        "ncut": float(cuts.ncut.sum()),
        "ncut_at_least": ncut_bound(measured.values, count) if measured.exact else None,
        "two_way": _two_way(measured),
        "agreement": agreed,
    }


def _matches(measured: Measured, agreed: dict[str, Any] | None) -> list[dict[str, Any]]:
    """Return name and samples in common of the class that matches each cluster."""
    if agreed is None:
        return [{"best_match": None, "matched": 0}] * len(measured.sizes)
    matches: list[dict[str, Any]] = []
    for cluster, number in enumerate(agreed["matches"]):
        row = None if number is None else measured.classes.index(number)
        name = None if row is None else measured.class_names[row]
        common = 0 if row is None else int(measured.table[row, cluster])
        matches.append({"best_match": name, "matched": common})
    return matches


def _two_way(measured: Measured) -> dict[str, Any] | None:
    if measured.splits is None:
        return None
    bounds = None
    if measured.exact:
        checked = cheeger_bounds(float(measured.values[1]), measured.splits["cheeger"]["cheeger"])
        bounds = {"lower": checked.lower, "upper": checked.upper, "holds": checked.holds}
    return {"eigenvalue": float(measured.values[1]), **measured.splits, "bounds": bounds}


def describe_agreement(table: NDArray[np.int64], classes: list[int]) -> dict[str, Any] | None:
    """Return how clusters agree with classes as JSON values, None where nothing is labelled.

    Parameters
    ----------
    table : array of int, shape (classes, clusters)
        See `eigenscape.learn.clustering.kernels.agreement.contingency`.
    classes
        Numbers of the labels.
    """
    if not table.any():
        return None
    measured = agreement(table)
    rows = measured.matched.tolist()
    return {
        "ari": measured.ari,
        "nmi": measured.nmi,
        "best_match_accuracy": measured.accuracy,
        "samples": measured.samples,
        "matches": [None if row < 0 else classes[row] for row in rows],
        "classes": classes,
        "contingency": table.tolist(),
    }

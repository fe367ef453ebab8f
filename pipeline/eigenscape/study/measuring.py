"""Measures that no stage reports: of the plane of a finished variant, of samples it never saw.

They are computed once for each variant and kept in its folder as ``measured.json``.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenscape.base.files.whole import explain_write_errors, write_json
from eigenscape.base.fingerprint import content_key
from eigenscape.job.study import StudyOptions, VariantOptions
from eigenscape.study.outcomes import VariantOutcome
from eigenscape.workflow.finished.shown import Shown
from eigenscape.workflow.finished.unseen import held_out_error

FILE = "measured.json"
FORMAT = 1
_MOST_TRUSTED = 3000

Floats = NDArray[np.float32]


def missing(outcome: VariantOutcome, study: StudyOptions) -> bool:
    """Return whether a finished variant lacks measures that its study wants."""
    wanted = _wanted(outcome, study)
    return wanted is not None and _stored(outcome.path).get("key") != content_key(wanted)


def read_measured(outcome: VariantOutcome, study: StudyOptions) -> Mapping[str, Any]:
    """Return the columns that `measure` wrote; none where the study wants none."""
    if _wanted(outcome, study) is None or missing(outcome, study):
        return {}
    columns: Mapping[str, Any] = _stored(outcome.path)["columns"]
    return columns


def measure(outcome: VariantOutcome, study: StudyOptions) -> None:
    """Measure a finished variant and keep what was found in its folder.

    Raises
    ------
    InputError
        What is to be measured is not there: samples that were left out, rows that are marked.
    """
    wanted = _wanted(outcome, study)
    if wanted is None:
        return
    shown = Shown.open(outcome.variant.job, outcome.path)
    columns: dict[str, float | None] = {}
    if wanted["plane"]:
        plane = shown.plane(wanted["coordinates"])
        given, along = shown.labels("given"), shown.parameter()
        if "same_class" in wanted["plane"] and given is not None:
            columns["same_class"] = 100 * same_class(plane, given, shown.job.neighbors.k)
        if "along" in wanted["plane"] and along is not None:
            columns["along"] = rank_correlation(plane[:, 0], along)
        if "trustworthiness" in wanted["plane"] and (place := shown.parameters()) is not None:
            columns["trustworthiness"] = trusted_share(plane, place, shown.job.neighbors.k)
        if study.mark:
            columns |= mark_distances(plane, shown.marked(study.mark))
    if wanted["held_out"]:
        columns["held_out_error"] = held_out_error(shown.job, outcome.path, wanted["held_out"])
    with explain_write_errors(outcome.path):
        write_json(outcome.path / FILE, {"key": content_key(wanted), "columns": columns})


def same_class(plane: Floats, labels: NDArray[np.uint16], k: int) -> float:
    """Return the mean share of the k nearest labelled samples in the plane that have one's label.

    Parameters
    ----------
    plane : array, shape (samples, 2)
    labels : array, shape (samples,)
        0 = none.
    k
        How many; all others at most.
    """
    from scipy.spatial import KDTree

    known = (labels > 0) & np.isfinite(plane).all(axis=1)
    points, classes = plane[known].astype(np.float64), labels[known]
    k = min(k, len(points) - 1)
    # The nearest to each is itself, or a twin of it.
    _, index = KDTree(points).query(points, k + 1)
    own = index == np.arange(len(points))[:, np.newaxis]
    own[~own.any(axis=1), -1] = True
    others = index[~own].reshape(len(points), k)
    return float((classes[others] == classes[:, np.newaxis]).mean())


def rank_correlation(values: NDArray[Any], along: NDArray[np.float64]) -> float:
    """Return the size of Spearman's rank correlation, 0 ... 1; a coordinate has no sign."""
    from scipy.stats import spearmanr

    known = np.isfinite(values)
    return abs(float(spearmanr(values[known], along[known]).statistic))


def trusted_share(plane: Floats, place: NDArray[np.float64], k: int) -> float:
    """Return the trustworthiness of a plane (Venna, Kaski 2001): 1 where neighbours in it are so really.

    A sample that is among the k nearest in the plane, but on the manifold only the r-th nearest, costs
    r - k. A plane whose samples lie anyhow has about 0.5.

    Parameters
    ----------
    plane : array, shape (samples, 2)
    place : array, shape (samples, parameters)
        Where the samples are on the manifold, whose distances are those of its parameters.
    k
        Neighbours that count.
    """
    from sklearn.manifold import trustworthiness

    known = np.flatnonzero(np.isfinite(plane).all(axis=1))
    # All distances are compared: some of the samples stand for all.
    known = known[:: -(-len(known) // _MOST_TRUSTED)]
    points = plane[known].astype(np.float64)
    return float(trustworthiness(place[known], points, n_neighbors=min(k, len(known) // 2 - 1)))


def mark_distances(plane: Floats, marked: NDArray[np.int64]) -> dict[str, float | None]:
    """Return how far marked samples are from others and from each other.

    Parameters
    ----------
    plane : array, shape (samples, 2)
    marked : array of int
        One sample or more.

    Returns
    -------
    dict
        ``isolation``: smallest distance of a marked sample from one that is not; ``mark_distance``:
        largest between two marked ones, None for one alone. In percent of the diagonal of the box
        around all samples.
    """
    points = plane.astype(np.float64)
    low, high = np.nanmin(points, axis=0), np.nanmax(points, axis=0)
    diagonal = float(np.hypot(*(high - low)))
    others = np.delete(points, marked, axis=0)
    between = points[marked][:, np.newaxis] - points[marked]
    nearest = min(float(np.nanmin(np.hypot(*(others - point).T))) for point in points[marked])
    return {
        "isolation": 100 * nearest / diagonal,
        "mark_distance": 100 * float(np.hypot(between[..., 0], between[..., 1]).max()) / diagonal
        if len(marked) > 1
        else None,
    }


def _wanted(outcome: VariantOutcome, study: StudyOptions) -> dict[str, Any] | None:
    """Return what is to be measured of a variant, and all that it depends on; None for nothing."""
    named = ("same_class", "along", "trustworthiness")
    plane = [name for name in named if name in study.shown_measures]
    if not (plane or study.mark or study.held_out):
        return None
    options = next(
        (v for v in study.variants if v.name == outcome.variant.name),
        VariantOptions.model_construct(),
    )
    return {
        "plane": [*plane, *(["mark"] if study.mark else [])],
        "coordinates": options.coordinates,
        "mark": study.mark,
        "held_out": study.held_out,
        "run": outcome.keys["learn"],
        "format": FORMAT,
    }


def _stored(path: Path) -> dict[str, Any]:
    try:
        return dict(json.loads((path / FILE).read_text(encoding="utf-8")))
    except (OSError, ValueError):
        return {}  # not there yet, or cut off: measured again

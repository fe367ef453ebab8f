"""The ways in which a run classifies new samples: eigenvectors, a machine, or the nearest samples alone."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from eigenscape.applied.supportvectors import (
    FIT_BYTES,
    LEAST_LABELS,
    ScaledMachine,
    choose_machine,
    distributions,
    draw_labels,
)
from eigenscape.base.files.mapped import save_array
from eigenscape.base.files.whole import write_json
from eigenscape.base.vectors import Vectors
from eigenscape.job.jobfile import Job
from eigenscape.labels.priors import Wanted, prior_factors, training_shares, weigh_scores
from eigenscape.labels.splits import square_of
from eigenscape.labels.training import Labelled
from eigenscape.learn.decide.kernels.decisions import Calibration, probabilities
from eigenscape.learn.method import Classifier, learn_method
from eigenscape.scenes.ingest.places import places_of
from eigenscape.spectrum.extension import LEAST_SHARE, count_extended, nystrom
from eigenscape.spectrum.trained import FlatNeighbors, Trained
from eigenscape.store.rows import Rows
from eigenscape.store.run import Run

F4 = NDArray[np.float32]
F8 = NDArray[np.float64]

_BANDS, _FEATURES = "bands", "features"


@dataclass(frozen=True)
class NewSamples:
    """A block of new samples.

    Attributes
    ----------
    bands, features : array or csr_array, shape (m, bands), (m, features)
        The samples, and their features.
    near
        Their lists of neighbours in the run.
    weights : array
        Of each entry of the lists.
    twins : array of int, shape (m,)
        The sample of the run that each coincides with, -1 for none.
    """

    bands: Vectors
    features: Vectors
    near: FlatNeighbors
    weights: F4
    twins: NDArray[np.int64]


@dataclass(frozen=True)
class Scored:
    """Some new samples: those that a way can classify better than their neighbours.

    Attributes
    ----------
    rows : array, shape (m,)
        Which samples, as a mask.
    p : array, shape (scored, classes)
        Their probabilities, the largest one that of their class.
    """

    rows: NDArray[np.bool_]
    p: F4


class ByNeighbors:
    """By the classes of the nearest samples of the run, which each other way also begins with.

    Attributes
    ----------
    name
        Name of the way in manifests and summaries.
    """

    name: ClassVar[str] = "neighbors"

    def prepare(self, folder: Path, trained: Trained) -> dict[str, Any] | None:
        """Write what `score` needs of the run to a folder; return what a summary says of a machine."""
        return None

    def score(self, folder: Path, trained: Trained, new: NewSamples) -> Scored | None:
        """Return what to take instead of the classes of the neighbours, None for no sample."""
        return None

    def row_bytes(self, run: Run) -> float:
        """Return the memory of a new sample in a task, beside its features and neighbours."""
        return 0

    def chunk_bytes(self, run: Run) -> int:
        """Return the memory of a chunk of the run in a task, beside its features."""
        return 0

    def reading_bytes(self, samples: int) -> int:
        """Return the memory of `prepare` for a run of so many samples."""
        return 0


@dataclass(frozen=True)
class ByEigenvectors(ByNeighbors):
    """By eigenvectors, extended, and the classifier of the run.

    Attributes
    ----------
    classifier
        The classifier.
    calibration
        From its scores to probabilities; a new scene is far from all that is labelled.
    """

    name: ClassVar[str] = "eigenvectors"
    classifier: Classifier
    calibration: Calibration

    def prepare(self, folder: Path, trained: Trained) -> None:
        """Write ``degree.npy``."""
        save_array(folder / "degree.npy", trained.degree)

    def score(self, folder: Path, trained: Trained, new: NewSamples) -> Scored:
        """Return what the classifier says, except where the formula divides by too little."""
        run, (starts, index, _) = trained.run, new.near
        shape = (new.features.shape[0], trained.rows.shape[0])
        coordinates = nystrom(
            csr_array((new.weights, index, starts), shape), new.twins,
            np.asarray(np.load(folder / "degree.npy", mmap_mode="r")),
            np.asarray(run.open("spectrum/value")[...]), trained.vectors(), trained.graph.laplacian,
        )  # fmt: skip
        stored = np.asarray(run.open("learn/model")[...])
        estimated = self.classifier.estimate(coordinates.astype(np.float32), stored)
        scores = np.asarray(estimated, np.float32)
        if run.has("learn/prior"):
            scores = weigh_scores(scores, np.asarray(run.open("learn/prior")[...]))
        rows = np.asarray(np.isfinite(coordinates).all(axis=1))
        return Scored(rows, probabilities(scores[rows], self.calibration))

    def row_bytes(self, run: Run) -> float:
        """Count coordinates."""
        return 24.0 * len(run.open("spectrum/value")[...])

    def chunk_bytes(self, run: Run) -> int:
        """Count eigenvectors."""
        stored = run.open("spectrum/vector")
        return int(12 * stored.shape[1] * stored.chunks[0])


@dataclass(frozen=True)
class ByMachine(ByNeighbors):
    """By a support vector machine on the labels of the run.

    Attributes
    ----------
    numbers
        Class numbers of the map of the run, ascending.
    prior
        Shares that the run takes its classes to have.
    """

    name: ClassVar[str] = "support-vectors"
    numbers: tuple[int, ...]
    prior: Wanted

    def prepare(self, folder: Path, trained: Trained) -> dict[str, Any]:
        """Fit the machine; write ``machine.npz`` and ``machine.json``."""
        run = trained.run
        sample = np.asarray(run.open("learn/sample")[...])
        y = np.searchsorted(self.numbers, np.asarray(run.open("learn/class")[...]))
        drawn = draw_labels(y)
        sample, y = sample[drawn], y[drawn]
        ingest = run.record("ingest")
        assert ingest is not None, "the run has a map"
        places, grid = places_of(ingest.summary)
        place = np.asarray(run.open(places)[...])[sample]
        # Samples of a table are squares of their own.
        row, column = np.divmod(place, grid.width)
        square = place if grid.is_table else square_of(row, column, grid)
        tables = {_BANDS: Rows(str(run.array_path("samples/values"))), _FEATURES: trained.rows}
        if trained.features.spatial is None and not trained.projected:
            del tables[_FEATURES]
        vectors = {name: np.asarray(rows.take(sample)) for name, rows in tables.items()}
        factors = self._factors(sample, y)
        chosen = choose_machine(vectors, y, square, len(self.numbers), factors)
        chosen.machine.save(folder / "machine.npz")
        stored = {
            "vectors": chosen.vectors,
            "calibration": chosen.calibration.to_json(),
            "factors": None if factors is None else factors.tolist(),
        }
        write_json(folder / "machine.json", stored)
        return {"vectors": chosen.vectors, "labels": len(y), "accuracy": chosen.accuracy}

    def score(self, folder: Path, trained: Trained, new: NewSamples) -> Scored:
        """Return what the machine says of samples that do not coincide with one of the run."""
        stored = json.loads((folder / "machine.json").read_text(encoding="utf-8"))
        given = new.features if stored["vectors"] == _FEATURES else new.bands
        assert isinstance(given, np.ndarray), "sparse tables have no machine"
        rows = new.twins < 0
        scores = ScaledMachine.load(folder / "machine.npz").scores(given[rows], len(self.numbers))
        factors = None if stored["factors"] is None else np.array(stored["factors"])
        calibration = Calibration.from_json(stored["calibration"])
        return Scored(rows, distributions(scores, calibration, factors))

    def reading_bytes(self, samples: int) -> int:
        """Count the fit, and where the labelled samples lie."""
        return 24 * samples + FIT_BYTES

    def _factors(self, sample: NDArray[np.int64], y: NDArray[np.intp]) -> F8 | None:
        """Return the factors of the prior, of what follows the shares of these labels; None without one."""
        if self.prior == "none":
            return None
        every = np.ones((1, len(y)), np.bool_)
        labelled = Labelled(sample, y, np.array(self.numbers, np.uint16), every)
        return prior_factors(self.prior, labelled, 0, training_shares(labelled, 0))


def choose_way(
    run: Run, job: Job, numbers: tuple[int, ...], learned: Mapping[str, Any]
) -> tuple[ByNeighbors, str]:
    """Return the way of a run, and why not one that comes before it.

    Parameters
    ----------
    run, job
        The run, and its job.
    numbers
        Class numbers of its map, ascending.
    learned
        Summary of its stage learn.
    """
    method = learn_method(job)
    if not (why := _why_not_extended(run, job, learned)):
        assert isinstance(method, Classifier), "clusterings have no scores"
        given = learned.get("calibration")
        calibration = Calibration.from_json(given) if given else Calibration.none(len(numbers))
        return ByEigenvectors(method, calibration), ""
    if too_few := _too_few(run, len(numbers), clusters="names" in learned):
        return ByNeighbors(), f"{why}; {too_few}"
    assert isinstance(method, Classifier), "clusters have no labels"
    return ByMachine(numbers, method.wanted_prior), why


def _why_not_extended(run: Run, job: Job, learned: Mapping[str, Any]) -> str:
    """Return why the eigenvectors of a run are not extended, nothing if they are."""
    if not learn_method(job).extends():
        return f'learn.method = "{job.learn.method}" has no scores for new samples'
    if job.graph.spatial is not None:
        return "the run has edges between neighbouring pixels, which a new scene has no share in"
    if job.learn.smoothing:
        return "the classes of the run are smoothed over its scene, its calibration too"
    if job.neighbors.most_landmarks is not None:
        return "the eigenvectors of the run are themselves extended, from its landmarks"
    if not run.has("learn/model"):
        return "an earlier version made the run, which did not store its classifier"
    values = np.asarray(run.open("spectrum/value")[...])
    if count_extended(values, job.graph.laplacian) < len(values):
        return f"the largest eigenvalue is {values.max():.3g}, above {1 - LEAST_SHARE}"
    if learned.get("calibration") and "excess" not in learned["calibration"]:
        return "an earlier version made the run, which calibrated in another way"
    return ""


def _too_few(run: Run, classes: int, *, clusters: bool) -> str:
    """Return why no machine is fitted to the labels of a run, nothing if one is."""
    if clusters:
        return "clusters have no labels"
    if not run.has("learn/sample"):
        return "an earlier version made the run, which did not store what it learned from"
    if Rows(str(run.array_path("samples/values"))).sparse:
        return "sparse tables are compared with their nearest samples"
    labels = np.asarray(run.open("learn/class")[...])
    if len(np.unique(labels)) < 2:
        return "one class alone has labels"
    if len(labels) < LEAST_LABELS * classes:
        return f"{len(labels)} labels of {classes} classes are fewer than {LEAST_LABELS} of each, on average"
    return ""

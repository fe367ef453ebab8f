"""The interface of the methods of ``[learn]``: classes or clusters from eigenvectors, graph and labels."""

import math
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Protocol

from pydantic import Field, field_validator

from eigenscape.base.footprint import Footprint
from eigenscape.errors import InputError
from eigenscape.job.options import LearnOptions

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

    from eigenscape.base.blocks import Block
    from eigenscape.context import Context
    from eigenscape.job.jobfile import Job
    from eigenscape.labels.priors import Wanted
    from eigenscape.labels.training import Labelled
    from eigenscape.learn.clustering.coordinates import Coordinates
    from eigenscape.spectrum.scaled import StoredGraph

Share = Annotated[float, Field(gt=0, le=1)]


@dataclass(frozen=True)
class Samples:
    """The samples that are classified, as far as memory depends on them.

    Attributes
    ----------
    rows, modes, neighbors
        Number of samples, of eigenvectors, and of neighbours per sample.
    threads
        Largest number of tasks at a time in a process.
    budget
        Bytes that a task may take.
    usual
        Footprint that all methods share: reading blocks of eigenvectors, and writing classes.
    classes, fields, labelled
        Number of classes, that of all fits together, and the number of labelled samples; infinite if labels
        are not counted.
    """

    rows: int
    modes: int
    neighbors: int
    threads: int
    budget: int
    usual: Footprint
    classes: float = math.inf
    fields: float = math.inf
    labelled: float = math.inf


class Prepared(Protocol):
    """A classifier whose data lie on disk: small, so that every task can carry it.

    Attributes
    ----------
    bytes_per_sample
        Bytes that `scores` takes for each sample of a block, in addition to the scores, including temporary
        arrays.
    """

    @property
    def bytes_per_sample(self) -> float:
        """See above."""
        ...

    def implied(self, number: int) -> "NDArray[np.float64] | None":
        """Return the shares of the classes that the scores of a fit follow, after it was fitted.

        None where the method itself has brought in what ``learn.prior`` says.
        """
        ...

    def fit(self, number: int) -> "NDArray[np.float32]":
        """Fit to one training set; return the scores of all labelled samples, (labelled, classes).

        Scores are approximately the share in favour of each class
        (`eigenscape.learn.decide.kernels.decisions`); NaN for samples without data. The fitted
        model is stored in a file for `scores`.
        """
        ...

    def scores(self, number: int, block: "Block") -> "NDArray[np.float32]":
        """Return the scores of some samples, shape (samples, classes), by a fit.

        Where the job does not smooth, of the first fit alone.
        """
        ...


class LearnMethod(LearnOptions):
    """The base class of the methods of ``[learn]``: keys, work of the learn stage, and footprint."""

    @abstractmethod
    def work(self, context: "Context") -> dict[str, Any]:
        """Do the work of the stage; return its summary for the manifest."""

    def footprint(self, samples: Samples) -> Footprint:
        """Return memory and disk of the stage, without smoothing and calibration."""
        return samples.usual

    @property
    def library_bytes(self) -> int:
        """Memory of libraries that only it loads; they stay for the stage after it."""
        return 0

    def extends(self) -> bool:
        """Return whether new samples can be scored by `Classifier.estimate`."""
        return False


class Classifier(LearnMethod):
    """A method that learns from labels.

    Attributes
    ----------
    model
        Stem of the files ``STEM-FIT.npy`` in which fits leave an array: all that `estimate` needs to classify
        new samples by their eigenvectors. Empty where scores are no function of these; `apply` then
        fits a support vector machine to the labels of the run, or, of few labels, takes the classes of the
        nearest samples.
    most_classes
        Largest number of classes, and the method to use for more classes; None for no limit.
    needs_eigenvectors
        Whether the method needs the spectrum; false if eigenvectors only save time.
    needs_graph
        Whether a method that does not need the spectrum needs the graph or the lists of neighbours.
    """

    model: ClassVar[str] = ""
    most_classes: ClassVar[tuple[int, str] | None] = None
    needs_eigenvectors: ClassVar[bool] = True
    needs_graph: ClassVar[bool] = True

    @abstractmethod
    def prepare(self, context: "Context", labelled: "Labelled") -> Prepared:
        """Gather what all fits need of the labelled samples."""

    def estimate(
        self, coordinates: "NDArray[np.float32]", model: "NDArray[Any]"
    ) -> "NDArray[np.float32]":
        """Return the scores of samples, shape (samples, classes); only with a `model`.

        Parameters
        ----------
        coordinates : array, shape (samples, modes)
            Their eigenvectors, null vectors first.
        model
            What a fit has left.
        """
        raise NotImplementedError(f"{type(self).__name__} does not define estimate")

    @property
    def reads(self) -> Literal["eigenvectors", "graph", "features"]:
        """What the classes follow from."""
        if self.needs_eigenvectors:
            return "eigenvectors"
        return "graph" if self.needs_graph else "features"

    @property
    def wanted_prior(self) -> "Wanted":
        """Shares that the classes are taken to have; see `WithPrior`."""
        return "none"

    def work(self, context: "Context") -> dict[str, Any]:
        """See `eigenscape.learn.stage.classify_stage`."""
        from eigenscape.learn.stage import classify_stage

        return classify_stage(context, self)

    def extends(self) -> bool:
        """Whether new samples have scores of their own."""
        return bool(self.model)

    def check_classes(self, classes: Sequence[object]) -> None:
        """Refuse a prior, or more classes than there may be."""
        from eigenscape.labels.priors import check_prior

        if not classes:
            return
        check_prior(self.wanted_prior, classes)
        if self.most_classes is not None and len(classes) > self.most_classes[0]:
            most, other = self.most_classes
            raise InputError(
                f'learn.method = "{self.method}": the labels have {len(classes)} classes, the limit is '
                f'{most}. Set learn.method to "{other}".'
            )


class WithPrior(Classifier):
    """A classifier whose scores follow shares of the classes, so that these can be given."""

    prior: Literal["none", "training", "uniform"] | tuple[Share, ...] = "none"
    """Assumed shares of the classes: "none" (no correction), "training" (those among the training pixels),
    "uniform", or a list. The scores of "interpolated" are normalised by class mass (Zhu, Ghahramani, Lafferty
    2003)."""

    @field_validator("prior")
    @classmethod
    def _check_prior(cls, value: str | tuple[float, ...]) -> str | tuple[float, ...]:
        if not value:
            raise ValueError("the list is empty; give a share for each class")
        if not isinstance(value, str) and abs(sum(value) - 1) > 1e-3:
            raise ValueError(
                f"the shares sum to {sum(value):.4g}, not to 1: divide each by {sum(value):.4g}"
            )
        return value

    @property
    def wanted_prior(self) -> "Wanted":
        """Shares that the classes are taken to have."""
        return self.prior


class TrainingTiles(Protocol):
    """The samples of a training set, tile by tile. It can be iterated over several times.

    Each tile is a pair of arrays: eigenvectors, shape (samples, modes), null vectors first, and
    classes from 0. Samples outside the graph, which have no eigenvectors, are left out.
    """

    @property
    def samples(self) -> int:
        """Number of training samples, including those outside the graph."""
        ...

    @property
    def modes(self) -> int:
        """Number of eigenvectors, including null vectors."""
        ...

    @property
    def nulls(self) -> int:
        """Number of null vectors, each of which is constant on a component of the graph."""
        ...

    @property
    def extended(self) -> int:
        """Number of other eigenvectors, from the first, that extend to new samples (`eigenscape.extend`)."""
        ...

    @property
    def values(self) -> "NDArray[np.float64]":
        """Eigenvalues, shape (modes,), those of null vectors first."""
        ...

    def __iter__(self) -> "Iterator[tuple[NDArray[np.float32], NDArray[np.intp]]]":
        """Yield the tiles."""
        ...


class OfEigenvectors(Classifier):
    """A classifier that is a function of eigenvectors, fitted in memory tile by tile.

    A method of this kind defines `learn` and `estimate`; this class provides everything else. If scores
    follow the shares of the classes in the training set, the method can derive from `WithPrior` as
    well, which gives it the key ``learn.prior``.
    """

    model: ClassVar[str] = "model"

    @abstractmethod
    def learn(self, tiles: TrainingTiles, count: int) -> "NDArray[Any]":
        """Return the model of one training set, an array.

        Parameters
        ----------
        tiles
            The training set.
        count
            Number of classes.
        """

    def prepare(self, context: "Context", labelled: "Labelled") -> Prepared:
        """Copy the coordinates of the labelled samples."""
        from eigenscape.learn.classify.coordinates import ByTiles, gather

        return ByTiles(gather(context, labelled), self)

    def footprint(self, samples: Samples) -> Footprint:
        """Add the coordinates of groups of identical samples, to what all methods share."""
        usual = samples.usual
        # 40 bytes as in `eigenscape.learn.propagate.method`; a group has two samples or more.
        return replace(usual, scratch=usual.scratch + (40 + 2.0 * samples.modes) * samples.rows)


class Clustering(LearnMethod):
    """A method without labels, whose clusters are parts of the graph.

    Attributes
    ----------
    leads_by_cuts
        Whether the confidence is computed from the cuts; otherwise `divide` writes it ("lead").
    """

    unsupervised: ClassVar[bool] = True
    leads_by_cuts: ClassVar[bool] = False

    clusters: Annotated[int, Field(ge=2, le=1000)] | Literal["auto"] = "auto"
    """Number of clusters; "auto" is the number of classes, or without labels the last clear gap of the
    eigenvalues."""

    @property
    def open_ended(self) -> str:
        """Return why no number of clusters is needed (a reason for messages), or an empty text."""
        return ""

    def columns(self, wanted: int) -> int:
        """Return how many eigenvectors are used for so many clusters."""
        return max(wanted, 2)

    def form(self, laplacian: str) -> Literal["plain", "unit", "per degree"]:
        """Return how the eigenvectors are scaled."""
        return "plain"

    @abstractmethod
    def divide(
        self,
        context: "Context",
        graph: "StoredGraph",
        coordinates: "Coordinates",
        folder: "Path",
        wanted: int,
    ) -> "NDArray[np.integer]":
        """Return the cluster of every row of the graph, from 0, none of them empty.

        Parameters
        ----------
        context
            Of the stage.
        graph
            Its blocks of rows.
        coordinates
            Eigenvectors of every row, in `form`.
        folder
            Scratch of the stage. There ``lead-NUMBER.npy``, for each block of rows, is how sure the clusters
            are; not where `leads_by_cuts`.
        wanted
            How many clusters to look for.
        """

    def told(self) -> dict[str, Any]:
        """Return what the report is to say beside the method's name."""
        return {}

    def work(self, context: "Context") -> dict[str, Any]:
        """See `eigenscape.learn.clustering.stage.cluster_stage`."""
        from eigenscape.learn.clustering.stage import cluster_stage

        return cluster_stage(context, self)

    def footprint(self, samples: Samples) -> Footprint:
        """Count the sweep over thresholds of a vector; coordinates in the order of the rows."""
        from eigenscape.learn.clustering.kernels.cuts import SWEEP_BYTES

        each = max(samples.usual.each, SWEEP_BYTES * samples.rows)
        scratch = samples.rows * (4.0 * samples.modes + 16)
        return replace(samples.usual, each=each, scratch=scratch, most=samples.threads)

    def check_clusters(self, classes: int, dimension: int) -> None:
        """Refuse more clusters than there will be eigenvectors."""
        auto = self.clusters == "auto"
        if auto and (classes < 2 or self.open_ended):
            return
        wanted = classes if self.clusters == "auto" else self.clusters
        if wanted - 1 > dimension:
            why = f", the {classes} classes of the labels," if auto else ""
            raise InputError(
                f"learn.clusters = {self.clusters}: {wanted} clusters{why} need {wanted - 1} "
                f"eigenvectors beside the constant one, and spectrum.dimension is "
                f"{dimension}. Set spectrum.dimension to {wanted - 1} or more, or "
                "learn.clusters to fewer."
            )


def learn_method(job: "Job") -> LearnMethod:
    """Return the method of a job's classes or clusters."""
    assert isinstance(job.learn, LearnMethod), "every method of the table is one"
    return job.learn


def reads_eigenvectors(options: "LearnOptions", *, potential: bool) -> bool:
    """Return whether the classifier of a job reads the spectrum."""
    return last_read(options, potential=potential) == "spectrum"


def last_read(options: "LearnOptions", *, potential: bool) -> str:
    """Return the last stage that the classifier of a job reads."""
    if potential or not isinstance(options, Classifier) or options.reads == "eigenvectors":
        return "spectrum"
    return options.reads

"""The tables of a job file: every key with its default, its limits, its unit and its source."""

import math
import re
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, field_validator, model_validator

from eigenscape.base.memory import parse_bytes
from eigenscape.job.scene import Options as Options
from eigenscape.job.scene import SceneOptions as SceneOptions


def _check_size(value: Any) -> Any:
    # A number has no unit either.
    parse_bytes(value if isinstance(value, str) else "")
    return value


Size = Annotated[str, BeforeValidator(_check_size)]
"""Bytes with a unit, such as "2GiB"."""


class FeatureOptions(Options):
    """``[features]``: samples to the vectors in which neighbours are sought."""

    method: Literal["random-projection", "pca", "mnf", "none"] = "random-projection"
    """Orthoprojector (Halevy 2011, chapter 4), principal components (Belkin 2003, 3.8.1), minimum
    noise fractions (Green and others 1988), or none of them."""
    dimension: Annotated[int, Field(ge=1, le=10_000)] = 80
    """Number of features; a scene of no more bands than this is not projected."""
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 0
    """Seed of the random projection."""
    standardize: bool = False
    """Give every band mean 0 and variance 1 first."""


class NeighborOptions(Options):
    """``[neighbors]``: the k-nearest-neighbour lists, or all neighbours within a radius."""

    method: Literal["lanczos-bisection", "pynndescent", "exact", "radius", "landmarks"] = (
        "lanczos-bisection"
    )
    """Recursive Lanczos bisection (Halevy 2011, chapter 5), NN-descent in memory, brute force, radius; or
    landmarks alone, whose eigenvectors the Nystrom formula extends to all others (Halevy 2011, 4.4)."""
    k: Annotated[int, Field(ge=1, le=1000)] = 12
    """Neighbours per sample, itself not counted."""
    metric: Literal["euclidean", "angle"] = "euclidean"
    """Distance of the features, or the angle between them in radians (for text and for shaded scenes)."""
    radius: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    """Largest distance of neighbours, for method "radius": in units of the features, or in radians."""
    overlap: Annotated[float, Field(ge=0, le=0.5)] = 0.1
    """Share of the samples that a split gives to both halves (Halevy 2011, chapter 5)."""
    leaf_size: Annotated[int, Field(ge=32, le=16_384)] = 1000
    """Samples in a subset at which splitting stops and all pairs are compared."""
    searcher: Literal["auto", "blas", "pynndescent"] = "auto"
    """What searches a part of the bisection: leaves of all pairs, or NN-descent; "auto" as measured."""
    refine: Annotated[int, Field(ge=0, le=10)] = 3
    """Most rounds of neighbour-of-neighbour refinement; they end when the recall rises by less than 0.01."""
    recall: Annotated[float, Field(gt=0, le=1)] | None = None
    """Recall to reach, by as many rounds and further trees as it takes; instead of ``refine``."""
    landmarks: Annotated[int, Field(ge=2, le=20_000)] = 1000
    """For method "landmarks": how many; they are the samples nearest to the centres of k-means."""
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 0
    """For method "landmarks": seed of k-means and of the samples that it sees."""

    @model_validator(mode="after")
    def _check_method(self) -> "NeighborOptions":
        if self.method == "radius" and self.radius is None:
            raise ValueError('method = "radius" needs a radius: set neighbors.radius')
        if self.metric == "angle" and self.radius is not None and self.radius > math.pi:
            raise ValueError(f"radius = {self.radius}: an angle is at most pi radians")
        if self.method == "landmarks" and self.landmarks <= self.k:
            raise ValueError(
                f"landmarks = {self.landmarks}: each has k = {self.k} neighbours among the others; "
                f"set neighbors.landmarks to {self.k + 1} or more"
            )
        return self


class SpatialOptions(Options):
    """``[graph.spatial]``: edges between neighbouring pixels of a raster (Cahill and others 2014)."""

    neighbors: Literal[4, 8] = 8
    """Pixels that share an edge, or a corner too."""
    weight: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 5.0
    """Total weight of these edges, as a multiple of that of the spectral ones."""
    bandwidth: Annotated[float, Field(gt=0, allow_inf_nan=False)] | Literal["auto"] = "auto"
    """t of their weights exp(-d^2 / t), in squared units of the features; "auto": twice the median of d^2."""


class PotentialOptions(Options):
    """``[graph.potential]``: the Schroedinger operator L + factor V for L (Halevy 2011, chapter 3)."""

    kind: Literal["barrier", "identification"] = "barrier"
    """V = 1 at the chosen samples, which keeps them apart; or V that draws those of a class together."""
    labels: Annotated[str, Field(min_length=1)] | None = None
    """Choose by labels: "train" (those the map learns from), "all", or a raster of class numbers."""
    classes: tuple[Annotated[int, Field(ge=1)], ...] = ()
    """Of these labels, the classes to choose; all of them by default."""
    pixels: tuple[
        tuple[Annotated[int, Field(ge=0)], Annotated[int, Field(ge=0)]]
        | Annotated[int, Field(ge=0)],
        ...,
    ] = ()
    """Choose by place: [row, column] from 0, of a table the row alone; together they are one class."""
    raster: Annotated[str, Field(min_length=1)] | None = None
    """For "barrier": a raster or array on the scene's grid that is V itself, from 0 up."""
    alpha: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 1.0
    """Factor of V ..."""
    relative: bool = False
    """... or, if true, the factor is alpha tr(L) / tr(V), as in Cahill and others 2014 (alpha = 17.78)."""

    @model_validator(mode="after")
    def _check_choice(self) -> "PotentialOptions":
        chosen = {"labels": self.labels, "pixels": self.pixels, "raster": self.raster}
        given = [name for name, value in chosen.items() if value]
        if len(given) != 1:
            raise ValueError(
                f"{' and '.join(given) or 'nothing'} is given: choose the samples by exactly one of "
                "labels, pixels and raster"
            )
        if self.raster and self.kind != "barrier":
            raise ValueError(
                f'raster = {self.raster!r} is V itself, which kind = "identification" makes of '
                "classes: give these as labels"
            )
        if self.classes and not self.labels:
            raise ValueError("classes choose among labels: give labels, or leave classes out")
        if self.kind == "identification" and self.pixels and len(set(self.pixels)) < 2:
            raise ValueError(
                "pixels: one alone cannot be identified with another; give two or more"
            )
        return self


class GraphOptions(Options):
    """``[graph]``: neighbour lists to a Laplacian."""

    weights: Literal["self-tuning", "heat", "binary"] = "self-tuning"
    """exp(-d^2 / (t s_i s_j)) with s the distance to the last neighbour; exp(-d^2 / t); or 1."""
    bandwidth: Annotated[float, Field(gt=0, allow_inf_nan=False)] | Literal["auto"] = "auto"
    """t: of the heat kernel in squared units of the features, "auto" is the mean of d^2; of self-tuning
    weights without unit, "auto" is 1 (0.25 is better for few labels: jobs/README.md)."""
    laplacian: Literal["normalized", "random-walk", "unnormalized"] = "normalized"
    """D^-1/2 (D - W) D^-1/2, D^-1 (D - W), or D - W."""
    components: Literal["connect", "largest", "each"] = "connect"
    """Bridge the connected components, keep the largest (Halevy 2011), or solve on each (Belkin 2003)."""
    spatial: SpatialOptions | None = None
    """Edges between neighbouring pixels beside those between similar ones: a table of its own."""
    potential: PotentialOptions | None = None
    """What is added to the Laplacian at chosen samples: a table of its own, read by the spectrum."""


class SpectrumOptions(Options):
    """``[spectrum]``: the smallest eigenpairs of the Laplacian."""

    dimension: Annotated[int, Field(ge=1, le=20_000)] = 55
    """Eigenvectors to keep, the constant one(s) not counted."""
    solver: Literal["auto", "chebyshev", "shift-invert", "lanczos", "lobpcg", "dense"] = "auto"
    """"auto": Chebyshev-filtered subspace iteration, or, on graphs as thin as a curve, ARPACK on the
    factorised matrix (shift-invert). For comparison ARPACK, LOBPCG with multigrid, LAPACK."""
    tolerance: Annotated[float, Field(ge=1e-12, le=1e-2)] = 1e-5
    """Largest residual norm |L v - lambda v| with |v| = 1, of D - W in units of the median degree; below
    1e-6 the solver works in double."""


Share = Annotated[float, Field(gt=0, le=1)]

_NUMBER = re.compile(r"\s*(\d+\.?\d*|\.\d+)\s*(%?)\s*")
"""What is meant as a number of training pixels, and is no name of a file."""


class LearnOptions(Options):
    """``[learn]``: eigenvectors and labels to classes."""

    method: Literal[
        "centroid-angle", "eigenfunctions", "interpolated", "tikhonov", "poisson", "poisson-mbo",
        "k-nn", "geodesic-nn", "spectral-clustering", "normalized-cut",
    ] = "centroid-angle"  # fmt: skip
    """Smallest angle to a class mean in eigenmap coordinates (Halevy 2011, 2.3); least squares on the
    first eigenvectors, one class against all (Belkin 2003, 3.5); labels spread over the graph:
    interpolated (harmonic) or Tikhonov regularisation (Belkin 2003, 3.7.1), Poisson learning and its
    variant with classes of given sizes (Calder and others 2020); or the baselines: nearest labels in
    feature space, or along the graph (Belkin 2003, 3.8). Without labels: k-way spectral clustering
    (Ng, Jordan, Weiss 2001) and recursive normalised cuts (Shi, Malik 2000; Belkin 2003, 1.2 and 2.4)."""
    clusters: Annotated[int, Field(ge=2, le=1000)] | Literal["auto"] = "auto"
    """For the methods without labels: how many; "auto": as many as classes, else by a clear eigengap."""
    assign: Literal["cluster-qr", "k-means"] = "cluster-qr"
    """For "spectral-clustering": column-pivoted QR (Damle and others 2019), or k-means (extra "clusters")."""
    ncut: Annotated[float, Field(gt=0, le=2)] | None = None
    """For "normalized-cut": splits that cost more are not made; clusters "auto" are then what it allows."""
    gamma: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 1e-5
    """For "tikhonov": weight of roughness against error at the labels; the larger, the smoother."""
    power: Annotated[int, Field(ge=1, le=8)] = 1
    """For "tikhonov": roughness is f^T L^p f."""
    kernel: Literal["power", "heat"] = "power"
    """For "tikhonov": that roughness, or f^T exp(t L) f, whose kernel is the heat kernel exp(-t L)
    (Belkin 2003, 3.7.1; Kondor, Lafferty 2002)."""
    time: Annotated[float, Field(gt=0, le=1e4)] = 1.0
    """For the heat kernel: t, in units of 1 / L of the unnormalised Laplacian."""
    k: Annotated[int, Field(ge=1, le=100)] = 3
    """For "k-nn": how many of the nearest labels vote."""
    eigenvectors: Annotated[int, Field(ge=1, le=20_000)] | Literal["auto"] = "auto"
    """For "eigenfunctions": how many beside the constant one; "auto" is a fifth of the training pixels."""
    train: Literal["all"] | int | float | str = "all"
    """Labels to learn from: "all", a share in (0, 1), a number of pixels in all, or a raster of them."""
    test: Annotated[str, Field(min_length=1)] | None = None
    """Labels to test on, in the forms of ``scene.labels``: scores are of them alone, and pixels that both
    label are not learned from."""
    areas: bool = False
    """Estimate the area of each class from the labels that scores are measured on, which have to be a
    random sample of the scene, or of each mapped class (Olofsson and others 2014)."""
    split: Literal["random", "blocked", "uniform", "balanced"] = "random"
    """How a share or number is drawn: the same share of each class; square blocks of the scene; from all
    labelled pixels alike until each class has one (Belkin 2003, 3.8); or as many pixels of each class."""
    trials: Annotated[int, Field(ge=1, le=1000)] = 10
    """Number of draws over which held-out accuracy is averaged."""
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 0
    """Seed of the draws."""
    prior: Literal["none", "training", "uniform"] | tuple[Share, ...] = "none"
    """Shares that the classes are taken to have: as the scores come, as among the training pixels, all
    alike, or a list. "interpolated" is normalised by class mass (Zhu, Ghahramani, Lafferty 2003)."""
    smoothing: Annotated[float, Field(ge=0, le=1e4)] = 0.0
    """Weight of edge-preserving smoothing of the class map between neighbouring pixels; 0 for none."""
    queries: Annotated[int, Field(ge=0, le=1000)] = 0
    """Pixels to propose for labelling next: uncertain ones that are unlike each other; 0 for none."""

    @field_validator("prior")
    @classmethod
    def _check_prior(cls, value: str | tuple[float, ...]) -> str | tuple[float, ...]:
        if not value:
            raise ValueError("an empty list has no shares: give one for each class")
        if not isinstance(value, str) and abs(sum(value) - 1) > 1e-3:
            raise ValueError(
                f"the shares sum to {sum(value):.4g}, not to 1: divide each by {sum(value):.4g}"
            )
        return value

    @model_validator(mode="after")
    def _check_areas(self) -> "LearnOptions":
        if self.areas and self.train == "all" and self.test is None:
            raise ValueError(
                "areas = true needs labels that the map does not learn from: set learn.test to a file of "
                "them, or learn.train to a share"
            )
        return self

    @property
    def unsupervised(self) -> bool:
        """Whether the method needs no labels."""
        return self.method in ("spectral-clustering", "normalized-cut")

    @field_validator("train")
    @classmethod
    def _check_train(cls, value: int | float | str) -> int | float | str:
        if isinstance(value, str) and (found := _NUMBER.fullmatch(value)):
            share = f"{float(found[1]) / 100:g}" if found[2] else found[1]
            raise ValueError(f"a share is a number without quotes: learn.train = {share}")
        if value == "":
            raise ValueError("an empty text names no file")
        if isinstance(value, float) and not 0 < value < 1:
            raise ValueError("a share lies between 0 and 1, both excluded")
        if isinstance(value, int) and value < 2:
            raise ValueError("a number of training pixels is at least 2")
        return value


class OutputOptions(Options):
    """``[output]``: what is written where."""

    directory: Annotated[str, Field(min_length=1)] | None = None
    """Where run directories are made; ``runs`` in the working directory by default."""
    formats: tuple[Literal["geotiff", "png"], ...] = ("geotiff", "png")
    """GeoTIFFs on the scene's own grid, and a PNG quick-look with its legend."""
    eigenvectors: Annotated[int, Field(ge=0, le=1000)] = 10
    """How many eigenvectors to write as bands of one GeoTIFF."""


class LimitsOptions(Options):
    """``[limits]``: promises about the machine; they change how a job runs, never its result."""

    memory: Size = "2GiB"
    """Anonymous memory of the run (of each worker process, on a cluster)."""
    threads: Annotated[int, Field(ge=1, le=1024)] | None = None
    """Threads to work on; every core by default."""

    @property
    def memory_bytes(self) -> int:
        """``memory`` as a number of bytes."""
        return parse_bytes(self.memory)

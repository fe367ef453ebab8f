"""The tables of a job file: every key with its default, its limits, its unit and its source."""

import math
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from eigenscape.memory import parse_bytes


class Options(BaseModel):
    """One table of a file that users write: frozen, and closed against unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


class SceneOptions(Options):
    """``[scene]``: where the pixels, their labels and their mask come from."""

    path: str | tuple[str, ...]
    """A file, a list of files (one band each), a URL that fsspec opens, or a registered data set."""
    variable: Annotated[str, Field(min_length=1)] | None = None
    """Name of the cube in a .mat, .npz or zarr file; needed when it holds more than one."""
    labels: Annotated[str, Field(min_length=1)] | None = None
    """Raster (any CRS or grid), vector points or polygons, or array file with the class numbers."""
    labels_variable: Annotated[str, Field(min_length=1)] | None = None
    """Name of the labels in a .mat, .npz or zarr file (the scene's own file unless ``labels`` is set)."""
    labels_field: Annotated[str, Field(min_length=1)] | None = None
    """Attribute of a vector file that holds the class (numbers or names)."""
    mask: Annotated[str, Field(min_length=1)] | None = None
    """Raster or array on the scene's grid: pixels where it is 0 or nodata are left out."""
    bad_bands: tuple[int | str, ...] = ()
    """Bands to leave out besides those the metadata marks: numbers from 1, or ranges such as "104-108"."""
    scale: Annotated[float, Field(gt=0)] | Literal["auto"] = "auto"
    """Factor from stored to physical values; "auto" takes scale and offset from the metadata."""
    nodata: float | None = None
    """Stored value that marks missing pixels, for files whose metadata does not say it."""


class FeatureOptions(Options):
    """``[features]``: samples to the vectors in which neighbours are sought."""

    method: Literal["random-projection", "pca", "none"] = "random-projection"
    """Orthoprojector (Halevy 2011, chapter 4), principal components (Belkin 2003, 3.8.1), or neither."""
    dimension: Annotated[int, Field(ge=1, le=10_000)] = 80
    """Number of features; a scene of no more bands than this is not projected."""
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 0
    """Seed of the random projection."""
    standardize: bool = False
    """Give every band mean 0 and variance 1 first."""


class NeighborOptions(Options):
    """``[neighbors]``: the k-nearest-neighbour lists, or all neighbours within a radius."""

    method: Literal["lanczos-bisection", "pynndescent", "exact", "radius"] = "lanczos-bisection"
    """Recursive Lanczos bisection (Halevy 2011, chapter 5), NN-descent in memory, brute force, or radius."""
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

    @model_validator(mode="after")
    def _check_method(self) -> "NeighborOptions":
        if (self.method == "radius") != (self.radius is not None):
            raise ValueError(
                'method = "radius" needs a radius: set neighbors.radius'
                if self.radius is None
                else f"radius = {self.radius} means nothing to the k nearest; set "
                'neighbors.method = "radius" or leave it out'
            )
        if self.metric == "angle" and self.radius is not None and self.radius > math.pi:
            raise ValueError(f"radius = {self.radius}: an angle is at most pi radians")
        if self.recall is not None and self.method != "lanczos-bisection":
            raise ValueError(
                f'recall = {self.recall} is for method = "lanczos-bisection", which can go on until it '
                f'is reached; "{self.method}" cannot'
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


class GraphOptions(Options):
    """``[graph]``: neighbour lists to a Laplacian."""

    weights: Literal["self-tuning", "heat", "binary"] = "self-tuning"
    """exp(-d^2 / (s_i s_j)) with s the distance to the last neighbour; exp(-d^2 / t); or 1."""
    bandwidth: Annotated[float, Field(gt=0)] | Literal["auto"] = "auto"
    """t of the heat kernel, in squared units of the features; "auto" is the mean of d^2."""
    laplacian: Literal["normalized", "random-walk", "unnormalized"] = "normalized"
    """D^-1/2 (D - W) D^-1/2, D^-1 (D - W), or D - W."""
    components: Literal["connect", "largest", "each"] = "connect"
    """Bridge the connected components, keep the largest (Halevy 2011), or solve on each (Belkin 2003)."""
    spatial: SpatialOptions | None = None
    """Edges between neighbouring pixels beside those between similar ones: a table of its own."""


class SpectrumOptions(Options):
    """``[spectrum]``: the smallest eigenpairs of the Laplacian."""

    dimension: Annotated[int, Field(ge=1, le=20_000)] = 55
    """Eigenvectors to keep, the constant one(s) not counted."""
    solver: Literal["chebyshev", "lanczos", "lobpcg", "dense"] = "chebyshev"
    """Chebyshev-filtered subspace iteration; for comparison ARPACK, LOBPCG with multigrid, LAPACK."""
    tolerance: Annotated[float, Field(ge=1e-12, le=1e-2)] = 1e-5
    """Largest residual norm |L v - lambda v| with |v| = 1; below 1e-6 the solver works in double."""


class LearnOptions(Options):
    """``[learn]``: eigenvectors and labels to classes."""

    method: Literal[
        "centroid-angle", "eigenfunctions", "interpolated", "tikhonov", "poisson", "poisson-mbo",
        "k-nn", "geodesic-nn",
    ] = "centroid-angle"  # fmt: skip
    """Smallest angle to a class mean in eigenmap coordinates (Halevy 2011, 2.3); least squares on the
    first eigenvectors, one class against all (Belkin 2003, 3.5); labels spread over the graph:
    interpolated (harmonic) or Tikhonov regularisation (Belkin 2003, 3.7.1), Poisson learning and its
    variant with classes of given sizes (Calder and others 2020); or the baselines: nearest labels in
    feature space, or along the graph (Belkin 2003, 3.8)."""
    gamma: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 1e-5
    """For "tikhonov": weight of roughness against error at the labels; the larger, the smoother."""
    power: Annotated[int, Field(ge=1, le=8)] = 1
    """For "tikhonov": roughness is f^T L^p f."""
    k: Annotated[int, Field(ge=1, le=100)] = 3
    """For "k-nn": how many of the nearest labels vote."""
    eigenvectors: Annotated[int, Field(ge=1, le=20_000)] | Literal["auto"] = "auto"
    """For "eigenfunctions": how many, the constant one counted; "auto" is a fifth of the training pixels."""
    train: Literal["all"] | int | float | str = "all"
    """Labels to learn from: "all", a share in (0, 1), a number of pixels in all, or a raster of them."""
    split: Literal["random", "blocked"] = "random"
    """How a share or number is drawn: pixel by pixel within each class, or by square blocks of the scene."""
    trials: Annotated[int, Field(ge=1, le=1000)] = 10
    """Number of draws over which held-out accuracy is averaged."""
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 0
    """Seed of the draws."""

    @field_validator("train")
    @classmethod
    def _check_train(cls, value: int | float | str) -> int | float | str:
        if isinstance(value, bool):
            raise ValueError('true and false mean nothing here; give "all", a share or a number')
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

    memory: str = "2GiB"
    """Anonymous memory of the run (of each worker process, on a cluster)."""
    threads: Annotated[int, Field(ge=1, le=1024)] | None = None
    """Threads to work on; every core by default."""

    @field_validator("memory")
    @classmethod
    def _check_memory(cls, value: str) -> str:
        parse_bytes(value)
        return value

    @property
    def memory_bytes(self) -> int:
        """``memory`` as a number of bytes."""
        return parse_bytes(self.memory)

"""The tables of a job file: every key with its default, its limits, its unit and its source."""

import re
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, BeforeValidator, Field, field_validator, model_validator

from eigenscape.base.formats import FORMATS
from eigenscape.base.memory import parse_bytes
from eigenscape.errors import did_you_mean
from eigenscape.job.registry import MethodOptions, MethodRegistry
from eigenscape.job.scene import Options as Options
from eigenscape.job.scene import SceneOptions as SceneOptions


def _check_size(value: Any) -> Any:
    # A number has no unit either.
    parse_bytes(value if isinstance(value, str) else "")
    return value


Size = Annotated[str, BeforeValidator(_check_size)]
"""Bytes with a unit, such as "2GiB"."""

Radius = Annotated[int, Field(ge=1, le=64)]
"""In pixels."""

Sigma = Annotated[float, Field(gt=0, le=1e6)]
"""A standard deviation."""


def _check_format(name: str) -> str:
    if name not in FORMATS.names():
        raise ValueError(
            f"{name!r} is no output format.{did_you_mean(name, FORMATS.names())} There are: "
            f"{', '.join(FORMATS.names())}"
        )
    return name


class _Formats:
    """The names of formats in the JSON Schema, looked up when it is written."""

    def __get_pydantic_json_schema__(self, schema: Any, handler: Any) -> dict[str, Any]:
        return {**handler(schema), "enum": [*FORMATS.names()]}


def _is_byte(value: Any) -> bool:
    return type(value) is int and 0 <= value <= 255


def _as_hex(value: Any) -> Any:
    """Write [0, 92, 230] as "#005ce6"; what is neither is left to be refused."""
    if isinstance(value, (list, tuple)) and len(value) == 3 and all(map(_is_byte, value)):
        return "#{:02x}{:02x}{:02x}".format(*value)
    if isinstance(value, str) and re.fullmatch("#[0-9a-fA-F]{6}", value):
        return value.lower()
    raise ValueError(f'{value!r} is no colour: give "#005ce6" or [0, 92, 230]')


ClassColor = Annotated[str, BeforeValidator(_as_hex)]
"""A colour in sRGB, as "#rrggbb"."""

FormatName = Annotated[str, AfterValidator(_check_format), _Formats()]
"""Name of an output format."""


class FilterOptions(Options):
    """``[features.spatial]``: features filtered in the grid of the scene, before neighbours are sought."""

    method: Literal["bilateral", "guided", "profiles"] = "bilateral"
    """Joint bilateral filter (Tomasi, Manduchi 1998), guided filter (He, Sun, Tang 2013), or morphological
    profiles by reconstruction beside the features (Benediktsson, Palmason, Sveinsson 2005)."""
    radius: Radius | tuple[Radius, ...] | Literal["auto"] = "auto"
    """In pixels. Of the square windows of "bilateral", one for each scale, 2 and 5 by default; of the
    squares of "guided", 3; of the disks of "profiles", one for each opening and closing, 2, 4 and 6."""
    space_sigma: Sigma | tuple[Sigma, ...] | Literal["auto"] = "auto"
    """For "bilateral": standard deviation of the weights by place, in pixels; "auto": 0.6 radius."""
    range_sigma: Sigma | tuple[Sigma, ...] = 4.0
    """For "bilateral": standard deviation of the weights by the distance of feature vectors, in standard
    deviations of the noise of a feature (noise fractions have 1)."""
    epsilon: Annotated[float, Field(gt=0, le=1e6)] = 1.0
    """For "guided": what squared slopes cost, in variances of the noise; the larger, the smoother."""
    components: Annotated[int, Field(ge=1, le=8)] = 3
    """For "guided" and "profiles": how many of the leading features are the guide, or have profiles."""

    @model_validator(mode="after")
    def _check_scales(self) -> "FilterOptions":
        given = {
            name: value
            for name in ("radius", "space_sigma", "range_sigma")
            if isinstance(value := getattr(self, name), tuple)
        }
        if empty := [name for name, value in given.items() if not value]:
            raise ValueError(f"{empty[0]} = []: an empty list has no scale; give a number")
        if self.method == "guided" and len(self.radii) > 1:
            raise ValueError(
                f'radius = {list(self.radii)}: method = "guided" has one scale; give a number'
            )
        if self.method == "bilateral" and len({len(value) for value in given.values()}) > 1:
            lengths = ", ".join(f"{len(value)} of {name}" for name, value in given.items())
            raise ValueError(
                f"lists of different lengths ({lengths}): each has one entry for each scale; a number "
                "stands for all scales"
            )
        return self

    @property
    def radii(self) -> tuple[int, ...]:
        """``radius`` as a list."""
        if self.radius != "auto":
            return self.radius if isinstance(self.radius, tuple) else (self.radius,)
        return {"bilateral": (2, 5), "guided": (3,), "profiles": (2, 4, 6)}[self.method]

    @property
    def scales(self) -> tuple[tuple[int, float, float], ...]:
        """Radius, standard deviations of place and of range, of each scale of "bilateral"."""
        given = (self.radii, self.space_sigma, self.range_sigma)
        lists = [part if isinstance(part, tuple) else (part,) for part in given]
        count = max(map(len, lists))
        radii, places, ranges = (part * count if len(part) == 1 else part for part in lists)
        return tuple(
            (int(radius), 0.6 * int(radius) if place == "auto" else float(place), float(alike))
            for radius, place, alike in zip(radii, places, ranges, strict=True)
        )


class SpectralOptions(Options):
    """``[features.spectral]``: what is done to every spectrum before its features, in this order."""

    continuum: bool = False
    """First divide by the upper convex hull of the spectrum over wavelength (Clark, Roush 1984)."""
    normalize: bool = False
    """Then scale to length 1 (Euclidean norm), so that brightness does not count."""
    derivative: bool = False
    """Then take the slope over wavelength, per nanometre (central differences of unevenly spaced bands)."""


class FeatureOptions(MethodOptions):
    """``[features]``: samples to the vectors in which neighbours are sought; further keys by method."""

    registry: ClassVar[MethodRegistry] = MethodRegistry(
        "features", default="random-projection", interface="features.method:FeatureMethod"
    )

    method: str
    """How features come from samples."""
    spectral: SpectralOptions | None = None
    """Prepare every spectrum first: continuum, length, slope. A table of its own."""
    spatial: FilterOptions | None = None
    """Filter the features among neighbouring pixels: a table of its own."""


ListForm = Literal["nearest", "radius", "landmarks"]
"""What lists of neighbours hold."""


class NeighborOptions(MethodOptions):
    """``[neighbors]``: lists of the nearest, or of all within a radius; further keys by method.

    Attributes
    ----------
    form
        Lists hold the k nearest samples; all within a radius, `reach`; or the k nearest landmarks.
    """

    registry: ClassVar[MethodRegistry] = MethodRegistry(
        "neighbors", default="lanczos-bisection", interface="neighbors.method:NeighborMethod"
    )
    form: ClassVar[ListForm] = "nearest"

    method: str
    """How neighbours are found."""
    k: Annotated[int, Field(ge=1, le=1000)] = 12
    """Neighbours per sample, itself not counted."""
    metric: Literal["euclidean", "angle"] = "euclidean"
    """Distance of the features, or the angle between them in radians (for text and for shaded scenes)."""
    leaf_size: Annotated[int, Field(ge=32, le=16_384)] = 1000
    """Samples in a subset at which splitting stops and all pairs are compared."""

    @property
    def reach(self) -> float | None:
        """Distance within which all samples are neighbours; None unless the form is "radius"."""
        return None

    @property
    def most_landmarks(self) -> int | None:
        """Number of landmarks, at most; None unless the form is "landmarks"."""
        return None


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


_NUMBER = re.compile(r"\s*(\d+\.?\d*|\.\d+)\s*(%?)\s*")
"""What is meant as a number of training pixels, and is no name of a file."""


class LearnOptions(MethodOptions):
    """``[learn]``: eigenvectors and labels to classes; further keys by method.

    Attributes
    ----------
    unsupervised
        Whether the method needs no labels.
    seeded
        Whether a method without labels draws something.
    """

    registry: ClassVar[MethodRegistry] = MethodRegistry(
        "learn", default="centroid-angle", interface="learn.method:LearnMethod"
    )
    unsupervised: ClassVar[bool] = False
    seeded: ClassVar[bool] = False

    method: str
    """How classes come from eigenvectors, the graph and labels, or clusters without labels."""
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
    smoothing: Annotated[float, Field(ge=0, le=1e4)] = 0.0
    """Weight of edge-preserving smoothing of the class map between neighbouring pixels; 0 for none."""
    queries: Annotated[int, Field(ge=0, le=1000)] = 0
    """Pixels to propose for labelling next: local maxima, on the graph, of ambiguity times how little is
    known around them (LocalMax: Chen and others 2023); 0 for none."""

    def check_clusters(self, classes: int, dimension: int) -> None:
        """Refuse more clusters than there will be eigenvectors, where the method makes clusters.

        Parameters
        ----------
        classes
            Classes of the labels.
        dimension
            Eigenvectors beside the constant one.

        Raises
        ------
        InputError
            With the numbers, and the fix.
        """

    def check_classes(self, numbers: list[int]) -> None:
        """Refuse what does not go with the classes of the labels, where the method learns from them.

        Parameters
        ----------
        numbers
            Class numbers, ascending; none without labels.

        Raises
        ------
        InputError
            With the numbers, and the fix.
        """

    @model_validator(mode="after")
    def _check_areas(self) -> "LearnOptions":
        if self.areas and self.train == "all" and self.test is None:
            raise ValueError(
                "areas = true needs labels that the map does not learn from: set learn.test to a file of "
                "them, or learn.train to a share"
            )
        return self

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
    formats: tuple[FormatName, ...] = ("geotiff", "png", "report")
    """What is written: "geotiff" (maps on the scene's own grid), "png" (a quick-look with its legend),
    "report" (``report.html``, one page of 2 to 15 MB that shows and explains the run), "qml"
    (style for QGIS), "envi" (classification), "gpkg" (polygons and areas of the classes), "stac" (item for
    catalogues), "zarr" (CF / GeoZarr), or a format of another package."""
    colors: dict[str, ClassColor] = Field(default_factory=dict)
    """Colours of classes, by name or number: "#005ce6" or [0, 92, 230]. The others keep those of the labels,
    or have colours by what their names mean (water is blue)."""
    eigenvectors: Annotated[int, Field(ge=0, le=1000)] = 10
    """How many eigenvectors to write as bands of one GeoTIFF."""


class LimitsOptions(Options):
    """``[limits]``: promises about the machine; they change how a job runs, never its result."""

    memory: Size = "2GiB"
    """Anonymous memory of the run (of each worker process, on a cluster)."""
    threads: Annotated[int, Field(ge=1, le=1024)] | None = None
    """Threads to work on; every core by default."""
    layout: Literal["auto", "columns", "rows"] = "auto"
    """How tasks share the filter of the eigensolver: "columns", a task for every 32 columns, with all rows;
    "rows", tasks for parts of their rows; "auto", rows where there are fewer groups of columns than tasks
    that run at a time, or where all rows are more than the machine's memory. The result is the same."""

    @property
    def memory_bytes(self) -> int:
        """``memory`` as a number of bytes."""
        return parse_bytes(self.memory)


REGISTRIES = {
    kind.registry.table: kind.registry for kind in (FeatureOptions, NeighborOptions, LearnOptions)
}
"""The methods of each table that has a choice of them."""

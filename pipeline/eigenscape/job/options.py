"""The tables of a job file: every key with its default, its limits, its unit and its source."""

import re
from collections.abc import Sequence
from numbers import Integral
from typing import Annotated, Any, ClassVar, Literal

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    WithJsonSchema,
    field_validator,
    model_validator,
)

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
"""A radius, in pixels."""

Sigma = Annotated[float, Field(gt=0, le=1e6)]
"""A standard deviation."""


def _check_format(name: str) -> str:
    if name not in FORMATS.names():
        raise ValueError(
            f"{name!r} is not an output format.{did_you_mean(name, FORMATS.names())} There are: "
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
    raise ValueError(f'{value!r} is not a colour: give "#005ce6" or [0, 92, 230]')


def _as_key(value: Any) -> Any:
    """Write a class number as TOML writes keys, in which there are no numbers."""
    return str(value) if isinstance(value, Integral) and not isinstance(value, bool) else value


ClassKey = Annotated[str, BeforeValidator(_as_key)]
"""Name or number of a class."""

_Byte = Annotated[int, Field(ge=0, le=255)]

ClassColor = Annotated[
    str,
    BeforeValidator(
        _as_hex,
        json_schema_input_type=Annotated[str, Field(pattern="^#[0-9a-fA-F]{6}$")]
        | tuple[_Byte, _Byte, _Byte],
    ),
]
"""A colour in sRGB, as "#rrggbb"."""

FormatName = Annotated[str, AfterValidator(_check_format), _Formats()]
"""Name of an output format."""


class FilterOptions(Options):
    """``[features.spatial]``: a spatial filter of the features, applied before the neighbour search."""

    method: Literal["bilateral", "guided", "profiles"] = "bilateral"
    """Filter: "bilateral" (Tomasi, Manduchi 1998), "guided" (He, Sun, Tang 2013), or "profiles",
    morphological profiles by reconstruction, added to the features (Benediktsson, Palmason, Sveinsson
    2005)."""
    radius: Radius | tuple[Radius, ...] | Literal["auto"] = "auto"
    """Radius in pixels; a list gives several scales. For "bilateral" of the square windows (default 2 and 5),
    for "guided" of the squares (default 3), for "profiles" of the disks (default 2, 4 and 6)."""
    space_sigma: Sigma | tuple[Sigma, ...] | Literal["auto"] = "auto"
    """For "bilateral": standard deviation of the spatial weights, in pixels; "auto" is 0.6 times the
    radius."""
    range_sigma: Sigma | tuple[Sigma, ...] = 4.0
    """For "bilateral": standard deviation of the weights by distance between feature vectors, in standard
    deviations of the noise of one feature (this is 1 for noise fractions)."""
    epsilon: Annotated[float, Field(gt=0, le=1e6)] = 1.0
    """For "guided": penalty on squared slopes, in variances of the noise; larger values smooth more."""
    components: Annotated[int, Field(ge=1, le=8)] = 3
    """For "guided" and "profiles": number of leading features that form the guide, or that get profiles."""

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
        """Return ``radius`` as a list, with the default of the method for "auto"."""
        if self.radius != "auto":
            return self.radius if isinstance(self.radius, tuple) else (self.radius,)
        return {"bilateral": (2, 5), "guided": (3,), "profiles": (2, 4, 6)}[self.method]

    @property
    def scales(self) -> tuple[tuple[int, float, float], ...]:
        """Return radius, spatial and range standard deviation of each scale of "bilateral"."""
        given = (self.radii, self.space_sigma, self.range_sigma)
        lists = [part if isinstance(part, tuple) else (part,) for part in given]
        count = max(map(len, lists))
        radii, places, ranges = (part * count if len(part) == 1 else part for part in lists)
        return tuple(
            (int(radius), 0.6 * int(radius) if place == "auto" else float(place), float(alike))
            for radius, place, alike in zip(radii, places, ranges, strict=True)
        )


class SpectralOptions(Options):
    """``[features.spectral]``: preparation of every spectrum, in the order of the keys."""

    continuum: bool = False
    """Step 1: divide by the upper convex hull of the spectrum over wavelength (Clark, Roush 1984)."""
    normalize: bool = False
    """Step 2: scale to length 1 (Euclidean norm), so that brightness has no effect."""
    derivative: bool = False
    """Step 3: replace by the slope over wavelength, per nanometre (central differences, uneven spacing)."""


class FeatureOptions(MethodOptions):
    """``[features]``: the feature vectors of the samples; the other keys depend on the method."""

    registry: ClassVar[MethodRegistry] = MethodRegistry(
        "features", default="random-projection", interface="features.method:FeatureMethod"
    )

    method: str
    """Name of the feature method."""
    spectral: SpectralOptions | None = None
    """Preparation of every spectrum before the features (a table)."""
    spatial: FilterOptions | None = None
    """Spatial filter of the features (a table)."""


class NeighborOptions(MethodOptions):
    """``[neighbors]``: lists of neighbours; the other keys depend on the method.

    The lists hold the k nearest samples, all samples within the radius `reach`, or the k nearest of
    `most_landmarks` landmarks.
    """

    registry: ClassVar[MethodRegistry] = MethodRegistry(
        "neighbors", default="lanczos-bisection", interface="neighbors.method:NeighborMethod"
    )

    method: str
    """Name of the neighbour search."""
    k: Annotated[int, Field(ge=1, le=1000)] = 12
    """Number of neighbours per sample, not counting the sample itself."""
    metric: Literal["euclidean", "angle"] = "euclidean"
    """Distance between feature vectors: "euclidean", or "angle" in radians (for text and for shaded
    scenes)."""
    leaf_size: Annotated[int, Field(ge=32, le=16_384)] = 1000
    """Largest number of samples in a part that is not split further; all pairs within such a part are
    compared."""

    @property
    def reach(self) -> float | None:
        """Return the distance within which all samples are neighbours; None for the k nearest."""
        return None

    @property
    def least_neighbors(self) -> int:
        """Return the number of neighbours that every sample has: k, or 0 where a radius decides."""
        return self.k if self.reach is None else 0

    @property
    def most_landmarks(self) -> int | None:
        """Return the largest number of landmarks; None where any sample can be a neighbour."""
        return None


class SpatialOptions(Options):
    """``[graph.spatial]``: edges between neighbouring pixels of a raster (Cahill and others 2014)."""

    neighbors: Literal[4, 8] = 8
    """Neighbours of a pixel: 4 share an edge with it, 8 an edge or a corner."""
    weight: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 5.0
    """Total weight of the spatial edges, as a multiple of the total weight of the spectral edges."""
    bandwidth: Annotated[float, Field(gt=0, allow_inf_nan=False)] | Literal["auto"] = "auto"
    """t in the weights exp(-d^2 / t), in squared units of the features; "auto" is twice the median of d^2."""


class PotentialOptions(Options):
    """``[graph.potential]``: the Schroedinger operator L + factor V instead of L (Halevy 2011, chapter 3)."""

    kind: Literal["barrier", "identification"] = "barrier"
    """"barrier": V = 1 at the chosen samples, which pushes them away from all others; "identification": V
    draws together the chosen samples of each class."""
    labels: Annotated[str, Field(min_length=1)] | None = None
    """Chosen samples by label: "train" (the training labels), "all", or a raster of class numbers."""
    classes: tuple[Annotated[int, Field(ge=1)], ...] = ()
    """Classes to choose among these labels; all by default."""
    pixels: tuple[
        tuple[Annotated[int, Field(ge=0)], Annotated[int, Field(ge=0)]]
        | Annotated[int, Field(ge=0)],
        ...,
    ] = ()
    """Chosen samples by position: [row, column] from 0, or the row alone for a table; all form one class."""
    raster: Annotated[str, Field(min_length=1)] | None = None
    """For "barrier": raster or array on the scene's grid with the values of V, 0 or more."""
    alpha: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 1.0
    """Factor of V; see ``relative``."""
    relative: bool = False
    """If true, the factor of V is alpha tr(L) / tr(V), as in Cahill and others 2014 (alpha = 17.78)."""

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


Weights = Literal["self-tuning", "heat", "binary"]
"""Name of a rule of edge weights."""

Laplacian = Literal["normalized", "random-walk", "unnormalized"]
"""Name of a Laplacian."""


class GraphOptions(Options):
    """``[graph]``: the weighted graph of the neighbour lists, and its Laplacian."""

    weights: Weights = "self-tuning"
    """Weight of an edge of length d: "self-tuning", exp(-d^2 / (t s_i s_j)), where s_i is the distance from
    sample i to its last neighbour; "heat", exp(-d^2 / t); "binary", 1."""
    bandwidth: Annotated[float, Field(gt=0, allow_inf_nan=False)] | Literal["auto"] = "auto"
    """t in the weights. For "heat", in squared units of the features; "auto" is the mean of d^2. For
    "self-tuning", without unit; "auto" is 1 (0.25 is better for few labels: jobs/README.md)."""
    laplacian: Laplacian = "normalized"
    """"normalized", D^-1/2 (D - W) D^-1/2; "random-walk", D^-1 (D - W); "unnormalized", D - W."""
    components: Literal["connect", "largest", "each"] = "connect"
    """"connect": bridge the connected components; "largest": keep only the largest one (Halevy 2011); "each":
    solve on each (Belkin 2003)."""
    spatial: SpatialOptions | None = None
    """Edges between neighbouring pixels, in addition to those between similar samples (a table)."""
    potential: PotentialOptions | None = None
    """Potential that is added to the Laplacian at chosen samples (a table); only the spectrum depends on
    it."""


Solver = Literal["auto", "chebyshev", "shift-invert", "lanczos", "lobpcg", "dense"]
"""Name of an eigensolver."""


class SpectrumOptions(Options):
    """``[spectrum]``: the smallest eigenpairs of the Laplacian."""

    dimension: Annotated[int, Field(ge=1, le=20_000)] = 55
    """Number of eigenvectors, not counting the constant ones."""
    solver: Solver = "auto"
    """"auto": "chebyshev" (Chebyshev-filtered subspace iteration) or, for graphs as thin as a curve,
    "shift-invert" (ARPACK on the factorised matrix). For comparison: "lanczos" (ARPACK), "lobpcg" (with
    multigrid), "dense" (LAPACK)."""
    tolerance: Annotated[float, Field(ge=1e-12, le=1e-2)] = 1e-5
    """Largest allowed residual |L v - lambda v| with |v| = 1; for D - W, in units of the median degree. Below
    1e-6, the solver works in double precision."""


_NUMBER = re.compile(r"\s*(\d+\.?\d*|\.\d+)\s*(%?)\s*")
"""What is meant as a number of training pixels, and is no name of a file."""

# The limits of learn.train in the JSON Schema. LearnOptions checks them, in messages that say more.
_Count = Annotated[int, WithJsonSchema({"type": "integer", "minimum": 2})]
_Share = Annotated[
    float, WithJsonSchema({"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1})
]
_LabelFile = Annotated[
    str,
    WithJsonSchema(
        {"type": "string", "minLength": 1, "not": {"pattern": f"^{_NUMBER.pattern}$"}},
    ),
]


class LearnOptions(MethodOptions):
    """``[learn]``: classes from eigenvectors and labels; the other keys depend on the method.

    Attributes
    ----------
    unsupervised
        Whether the method needs no labels.
    seeded
        Whether a clustering uses random numbers, and so reads ``learn.seed``.
    """

    registry: ClassVar[MethodRegistry] = MethodRegistry(
        "learn", default="centroid-angle", interface="learn.method:LearnMethod"
    )
    unsupervised: ClassVar[bool] = False
    seeded: ClassVar[bool] = False

    method: str
    """Name of the classifier or, for clusters without labels, of the clustering."""
    train: Literal["all"] | _Count | _Share | _LabelFile = "all"
    """Training labels: "all", a share between 0 and 1, a total number of pixels (rounded within each class,
    at least one each), or a file of labels."""
    test: Annotated[str, Field(min_length=1)] | None = None
    """Test labels, in the forms of ``scene.labels``. Scores are measured on them alone; pixels that are in
    both files are not used for training."""
    areas: bool = False
    """Estimate the area of each class from the labels on which scores are measured. They must be a random
    sample of the scene, or of each mapped class (Olofsson and others 2014)."""
    split: Literal["random", "blocked", "uniform", "balanced"] = "random"
    """Draw of a share or number: "random", the same share of each class; "blocked", squares of the scene,
    with a whole one for each class, which may be more than the share asked for;
    "uniform", from all labelled pixels, each class at least once (Belkin 2003, 3.8); "balanced", as many
    pixels of each class."""
    trials: Annotated[int, Field(ge=1, le=1000)] = 10
    """Number of draws over which held-out accuracy is averaged."""
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 0
    """Seed of the draws."""
    smoothing: Annotated[float, Field(ge=0, le=1e4)] = 0.0
    """Weight of edge-preserving smoothing of the class map between neighbouring pixels; 0 for none."""
    queries: Annotated[int, Field(ge=0, le=1000)] = 0
    """Number of pixels to propose for labelling next, 0 for none. They are local maxima, on the graph, of
    class ambiguity times the effect of a new label (LocalMax: Chen and others 2023)."""

    @property
    def train_file(self) -> str | None:
        """The file that marks the training pixels; None if ``train`` is "all", a share or a number."""
        return self.train if isinstance(self.train, str) and self.train != "all" else None

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

    def check_classes(self, classes: Sequence[object]) -> None:
        """Refuse options that contradict the classes of the labels, if the method learns from labels.

        Parameters
        ----------
        classes
            Numbers or names of the classes, ascending; none without labels.

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
        if self.areas and self.test is None and self.split in ("blocked", "balanced"):
            raise ValueError(
                f'areas = true needs test labels that are a random sample, and split = "{self.split}" leaves '
                'others. Set learn.split to "random", or learn.test to a file of a random sample'
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
    """``[output]``: output files and their directory."""

    directory: Annotated[str, Field(min_length=1)] | None = None
    """Parent of the run directories; ``runs`` in the working directory by default."""
    formats: tuple[FormatName, ...] = ("geotiff", "png", "report")
    """Output formats: "geotiff" (maps on the scene's own grid), "png" (quick-look with legend),
    "report" (``report.html``, one page of 2 to 15 MB that shows and explains the run), "qml"
    (style for QGIS), "envi" (classification), "gpkg" (polygons and areas of the classes), "stac" (item for
    catalogues), "zarr" (CF / GeoZarr), or a format of another package."""
    colors: dict[ClassKey, ClassColor] = Field(default_factory=dict)
    """Colours of classes, by name or number: "#005ce6" or [0, 92, 230]. Other classes keep the colour of the
    labels or get one by the meaning of their name (water is blue)."""
    eigenvectors: Annotated[int, Field(ge=0, le=1000)] = 10
    """Number of eigenvectors to write, as bands of one GeoTIFF."""


class LimitsOptions(Options):
    """``[limits]``: memory and threads. They change how a job runs, never its result."""

    memory: Size = "2GiB"
    """Anonymous memory of the run (of each worker process, on a cluster)."""
    threads: Annotated[int, Field(ge=1, le=1024)] | None = None
    """Number of threads; all cores by default."""
    layout: Literal["auto", "columns", "rows"] = "auto"
    """Division of the eigensolver's filter into tasks: "columns", one task for every 32 columns, with all
    rows; "rows", tasks for parts of the rows; "auto", "rows" if there are fewer groups of columns than
    parallel tasks, or if all rows exceed the machine's memory. The result is the same."""

    @property
    def memory_bytes(self) -> int:
        """Return ``memory`` as a number of bytes."""
        return parse_bytes(self.memory)


REGISTRIES = {
    kind.registry.table: kind.registry for kind in (FeatureOptions, NeighborOptions, LearnOptions)
}
"""The registries of methods, by the name of their table."""

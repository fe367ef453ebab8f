"""The table ``[study]`` of a job file: variants of the job, their table and pictures."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from eigenscape.errors import did_you_mean
from eigenscape.job.conditions import parse_condition
from eigenscape.job.measures import MEASURES
from eigenscape.job.options import Options

Name = Annotated[str, Field(min_length=1)]
Coordinates = Literal["eigenvectors", "features"]


def flatten(table: Any, prefix: str = "") -> Any:
    """Return nested tables as dotted keys: TOML writes ``learn.k`` with and without quotes.

    Examples
    --------
    >>> flatten({"learn": {"k": [1, 3]}, "graph.weights": ["binary"]})
    {'learn.k': [1, 3], 'graph.weights': ['binary']}
    """
    if not isinstance(table, Mapping):
        return table
    flat: dict[str, Any] = {}
    for key, value in table.items():
        if isinstance(value, Mapping) and value:
            flat |= flatten(value, f"{prefix}{key}.")
        else:
            flat[f"{prefix}{key}"] = value
    return flat


def _lists(grid: Any) -> Any:
    """Refuse a grid in which a key has one value instead of a list of them."""
    if not isinstance(grid, Mapping):
        return grid
    flat = flatten(grid)
    for key, value in flat.items():
        if not isinstance(value, (list, tuple)):
            raise ValueError(f"{key} = {value!r}: give a list of its values, such as [{value!r}]")
    return flat


def _condition(text: str) -> str:
    parse_condition(text)
    return text


def _one_or_more(value: Any) -> Any:
    return (value,) if isinstance(value, str) else value


Keys = Annotated[dict[str, Any], BeforeValidator(flatten)]
# Keys of a job have up to three parts, each of which can be a table in the file.
Texts = Annotated[
    dict[str, str],
    BeforeValidator(
        flatten, json_schema_input_type=dict[str, str | dict[str, str | dict[str, str]]]
    ),
]
_Values = Annotated[tuple[Any, ...], Field(min_length=1)]
Grid = Annotated[
    dict[str, tuple[Any, ...]],
    BeforeValidator(
        _lists, json_schema_input_type=dict[str, _Values | dict[str, _Values | dict[str, _Values]]]
    ),
]
Condition = Annotated[str, AfterValidator(_condition)]
Names = Annotated[
    tuple[str, ...], BeforeValidator(_one_or_more, json_schema_input_type=str | tuple[str, ...])
]


class VariantOptions(Options):
    """``[[study.variants]]``: a named change of the job."""

    name: Name
    """Name of the variant in tables and legends."""
    set: Keys = Field(default_factory=dict)
    """Keys of the job that the variant changes."""
    grid: Grid = Field(default_factory=dict)
    """Lists of values for this variant, in addition to those of ``[study.grid]`` or replacing them."""
    drop: tuple[str, ...] = ()
    """Keys of ``[study.grid]`` that the variant does not vary."""
    best: tuple[str, ...] = ()
    """Keys over which tables and plots show only the best value, as in "best k-NN"."""
    published: Name | None = None
    """Variant with whose published values this variant is compared; by default its own name."""
    coordinates: Coordinates = "eigenvectors"
    """Plane of the variant in pictures and measures: the first two eigenvectors, or the first two
    features."""


class PlotOptions(Options):
    """``[study.plot]``: the picture of a study."""

    x: Name
    """Horizontal axis: a varied key, "variant", or a column of the table such as "samples"."""
    y: Names = ()
    """Measures, one line each; the study's measure by default."""
    right: str | None = None
    """A measure on a second axis, on the right."""
    lines: Name | None = None
    """A varied key, or "variant": one line for each of its values."""
    panels: Name | None = None
    """A varied key, or "variant": one panel for each of its values. Variants that do not vary the key of
    ``lines`` are in all panels."""
    log: tuple[Literal["x", "y", "right"], ...] = ()
    """Axes with a logarithmic scale."""
    slope: bool = False
    """Fit a power law to each line, and write its exponent in the legend."""


class PictureOptions(Options):
    """``[[study.pictures]]``: a picture with one panel for each variant."""

    kind: Literal["embedding", "words", "class-maps", "eigenvectors", "classes"] = "embedding"
    """"embedding": samples in the plane; "words": named samples in the plane of the first variant, with
    enlargements of ``zooms``; "class-maps": class maps of images and the given labels; "eigenvectors":
    eigenvectors of images; "classes": accuracy of each class."""
    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]*$")] | None = None
    """Name of the file; the kind by default."""
    title: str = ""
    """Title of the picture; that of the study by default."""
    rows: Name | None = None
    """A varied key, or "variant": one row of panels for each of its values."""
    columns: Name | None = None
    """A varied key, or "variant": one column of panels for each of its values. Without ``rows`` and
    ``columns``, the panels are in the order of the variants."""
    where: Condition | None = None
    """Condition on the variants, as in "scene.samples == 500", with varied keys, "variant" and measures; all
    variants by default."""
    measures: tuple[str, ...] = ()
    """Measures in the title of each panel."""
    coordinates: Coordinates | None = None
    """Coordinates instead of those of the variants."""
    color: Literal["label", "class", "along", "none"] = "label"
    """Colour of a sample: by its given "label" or its predicted "class" (with a marker for each), or by its
    place "along" a generated manifold."""
    training: bool = False
    """Draw training samples large, and the others small."""
    zooms: tuple[str, ...] = ()
    """For "words": samples whose surroundings are enlarged."""
    zoom_samples: Annotated[int, Field(ge=2, le=200)] = 20
    """Number of samples in an enlargement."""
    modes: tuple[Annotated[int, Field(ge=1)], ...] = (1, 2, 3, 4)
    """For "eigenvectors": numbers of the eigenvectors, from 1."""

    @property
    def file(self) -> str:
        """Return the name of the picture's file, without its ending."""
        return self.name or self.kind


class StudyOptions(Options):
    """``[study]``: variants of one job, which share the stages that they have in common."""

    title: str = ""
    """Title of the table and the pictures."""
    source: str = ""
    """Document, section, table or figure that the study reproduces."""
    note: str = ""
    """Remark for the comparison, such as other data or another machine."""
    measure: Names = ("accuracy",)
    """Measures in the table: "error", "accuracy", "kappa", "seconds", ...; with ``columns`` a single one."""
    protocol: str | None = None
    """Split of the draws: "random", "blocked", "uniform", ...; by default the split of the job's scores."""
    average: tuple[str, ...] = ()
    """Varied keys, such as a seed, over which tables and plots show the mean and its standard error."""
    baseline: Name | None = None
    """Variant to which "speedup" refers: the seconds of this variant divided by those of another, all stages
    counted."""
    rows: Name = "variant"
    """A varied key, or "variant": one row of the table for each of its values."""
    columns: Name | None = None
    """A varied key: one column for each of its values; one column per measure by default."""
    where: Condition | None = None
    """Condition on the combinations to run, as in "learn.eigenvectors < learn.train"; all by default. It does
    not apply to variants that drop one of its keys."""
    published: Name | None = None
    """CSV file of the published values: a column per varied key (or "variant") and per measure."""
    stand_in: bool = False
    """Whether other data replace the published data; then tables do not count which values are better."""
    labels: Texts = Field(default_factory=dict)
    """Names of the keys in tables and axes."""
    grid: Grid = Field(default_factory=dict)
    """Keys of the job and lists of their values; every combination is a variant."""
    variants: tuple[VariantOptions, ...] = ()
    """Named changes of the job, each with every combination of the grid."""
    plot: PlotOptions | None = None
    """Plot of the measures (a table)."""
    pictures: tuple[PictureOptions, ...] = ()
    """Pictures of the variants (an array of tables)."""
    mark: tuple[Annotated[int, Field(ge=0)], ...] = ()
    """Rows of the scene, from 0, that pictures mark and whose distances in the plane are measured."""
    held_out: Annotated[int, Field(ge=1)] | None = None
    """Number of samples outside ``scene.samples`` to classify by the 3 nearest neighbours among the samples
    of a variant, with the classes that the variant produced (Belkin 2003, 3.8.4)."""
    small: Keys = Field(default_factory=dict)
    """Overrides of any keys of the file for ``--small``, a version of the study that runs in seconds."""

    @model_validator(mode="after")
    def _check(self) -> "StudyOptions":
        if not self.grid and not self.variants:
            raise ValueError(
                "has no variants: give [study.grid], such as neighbors.k = [4, 8], or [[study.variants]]"
            )
        for place, grid in self._grids():
            for key, values in grid.items():
                if not values:
                    raise ValueError(f"{place}.{key} = []: an empty list has no variants")
                _no_twice(f"values of {place}.{key}", values)
        _no_twice("names in study.variants", [variant.name for variant in self.variants])
        for variant in self.variants:
            _known(f"drop of the variant {variant.name!r}", variant.drop, self.grid)
            varied = {*self.grid, *variant.grid} - {*variant.drop}
            _known(f"best of the variant {variant.name!r}", variant.best, varied)
        _known("measure", self.measure, MEASURES)
        if not self.measure or (self.columns and len(self.measure) > 1):
            raise ValueError("measure names one measure, or several where there are no columns")
        places = ["variant", *self.keys]
        _known("average", self.average, self.keys)
        names = [variant.name for variant in self.variants]
        _known("baseline", [self.baseline] if self.baseline else [], names)
        _known("rows", [self.rows], places)
        _known("columns", [self.columns] if self.columns else [], places)
        if self.plot is not None:
            _known("plot.x", [self.plot.x], [*places, *MEASURES])
            _known("plot.lines", [self.plot.lines] if self.plot.lines else [], places)
            _known("plot.panels", [self.plot.panels] if self.plot.panels else [], places)
            _known("plot.y", self.plot.y, MEASURES)
            _known("plot.right", [self.plot.right] if self.plot.right else [], MEASURES)
        _no_twice("names of study.pictures", [picture.file for picture in self.pictures])
        for picture in self.pictures:
            place = f"pictures.{picture.file}"
            _known(f"{place}.rows", [picture.rows] if picture.rows else [], places)
            _known(f"{place}.columns", [picture.columns] if picture.columns else [], places)
            _known(f"{place}.measures", picture.measures, MEASURES)
            keys = parse_condition(picture.where).keys if picture.where else ()
            _known(f"a key of {place}.where", keys, [*places, *MEASURES])
        return self

    def _grids(self) -> Iterator[tuple[str, Grid]]:
        yield "grid", self.grid
        for variant in self.variants:
            yield f"grid of the variant {variant.name!r}", variant.grid

    @property
    def keys(self) -> tuple[str, ...]:
        """Return every key that some variant varies, in the order of the file."""
        return tuple(dict.fromkeys(key for _, grid in self._grids() for key in grid))

    @property
    def shown_measures(self) -> frozenset[str]:
        """Return every measure that the table, the plot or a picture shows."""
        plotted = (*self.plot.y, self.plot.x, self.plot.right) if self.plot else ()
        told = (name for picture in self.pictures for name in picture.measures)
        return frozenset(name for name in (*self.measure, *plotted, *told) if name in MEASURES)

    def label(self, name: str) -> str:
        """Return the name of a key or a measure in tables and axes."""
        if name in self.labels:
            return self.labels[name]
        return MEASURES[name].title if name in MEASURES else name


def _known(what: str, names: Iterable[str], choices: Iterable[str]) -> None:
    choices = list(choices)
    for name in names:
        if name not in choices:
            raise ValueError(
                f"{what} = {name!r}: not one of {', '.join(choices) or 'none'}"
                f"{did_you_mean(name, choices).replace(' ', '; ', 1)}"
            )


def _no_twice(what: str, values: Iterable[Any]) -> None:
    seen: list[Any] = []
    for value in values:
        # True == 1 in Python, not in a job.
        if (type(value), value) in seen:
            raise ValueError(f"{value!r} occurs twice among the {what}")
        seen.append((type(value), value))

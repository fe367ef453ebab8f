"""The table ``[study]`` of a job file: which variants of the job to run, and how to show them."""

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
Texts = Annotated[dict[str, str], BeforeValidator(flatten)]
Grid = Annotated[dict[str, tuple[Any, ...]], BeforeValidator(_lists)]
Condition = Annotated[str, AfterValidator(_condition)]
Names = Annotated[tuple[str, ...], BeforeValidator(_one_or_more)]


class VariantOptions(Options):
    """``[[study.variants]]``: a named change of the job."""

    name: Name
    """What tables and legends call it."""
    set: Keys = Field(default_factory=dict)
    """Keys of the job that it changes."""
    grid: Grid = Field(default_factory=dict)
    """Lists of values of its own, beside those of ``[study.grid]`` or instead of them."""
    drop: tuple[str, ...] = ()
    """Keys of ``[study.grid]`` that it does not vary."""
    best: tuple[str, ...] = ()
    """Keys over which tables and plots show the best value only, as in "best k-NN"."""
    published: Name | None = None
    """The variant whose published values stand beside its own; by default those of its own name."""
    coordinates: Coordinates = "eigenvectors"
    """Its plane in pictures and measures: the first two eigenvectors, or the first two features."""


class PlotOptions(Options):
    """``[study.plot]``: the picture of a study."""

    x: Name
    """What goes along the axis: a varied key, "variant", or a column of the table such as "samples"."""
    y: Names = ()
    """Measures, one line each; the study's measure by default."""
    right: str | None = None
    """A measure on an axis of its own, on the right."""
    lines: Name | None = None
    """A varied key, or "variant": one line for each of its values."""
    panels: Name | None = None
    """The same for panels side by side; variants that do not vary `lines` are in all of them."""
    log: tuple[Literal["x", "y", "right"], ...] = ()
    """Axes with a logarithmic scale."""
    slope: bool = False
    """Fit a power law to each line and say its exponent in the legend."""


class PictureOptions(Options):
    """``[[study.pictures]]``: variants beside one another, a panel each."""

    kind: Literal["embedding", "words", "class-maps", "eigenvectors", "classes"] = "embedding"
    """Samples in the plane; named samples in the plane of the first variant with blow-ups of
    ``zooms``; of images class maps beside the labels given, or eigenvectors; accuracy of each class."""
    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]*$")] | None = None
    """Of its file; the kind by default."""
    title: str = ""
    """That of the study by default."""
    rows: Name | None = None
    """A varied key, or "variant": one row of panels for each of its values."""
    columns: Name | None = None
    """The same for columns; without both, panels follow one another."""
    where: Condition | None = None
    """Which variants, as in "scene.samples == 500": varied keys, "variant" and measures; all by default."""
    measures: tuple[str, ...] = ()
    """What the title of each panel says."""
    coordinates: Coordinates | None = None
    """Other coordinates than those that the variants say."""
    color: Literal["label", "class", "along", "none"] = "label"
    """Colour and marker by given label or called class; colour by the place along a made manifold."""
    training: bool = False
    """Draw the samples that were learned from large, and the others small."""
    zooms: tuple[str, ...] = ()
    """For "words": samples whose surroundings are blown up."""
    zoom_samples: Annotated[int, Field(ge=2, le=200)] = 20
    """How many samples a blow-up holds."""
    modes: tuple[Annotated[int, Field(ge=1)], ...] = (1, 2, 3, 4)
    """For "eigenvectors": which, counted from 1."""

    @property
    def file(self) -> str:
        """Name of the picture's file, without its ending."""
        return self.name or self.kind


class StudyOptions(Options):
    """``[study]``: many variants of one job, over stages that they share."""

    title: str = ""
    """What it shows, for the table and the picture."""
    source: str = ""
    """Document, section, table or figure that it reproduces."""
    note: str = ""
    """What a reader must know to compare: other data, other machines."""
    measure: Names = ("accuracy",)
    """What the table shows: "error", "accuracy", "kappa", "seconds", ...; several without ``columns``."""
    protocol: str | None = None
    """Which draws: "random", "blocked", "uniform", ...; by default those that the job's scores follow."""
    average: tuple[str, ...] = ()
    """Varied keys over which tables and plots show the mean, such as a seed; its standard error is
    that of the variants then."""
    baseline: Name | None = None
    """The variant beside which "speedup" tells the others: its seconds over theirs, all stages counted."""
    rows: Name = "variant"
    """A varied key, or "variant": one row of the table for each of its values."""
    columns: Name | None = None
    """A varied key: one column for each of its values; one per measure by default."""
    where: Condition | None = None
    """Which combinations to run, as in "learn.eigenvectors < learn.train"; all by default. It does not
    apply to variants that drop one of its keys."""
    published: Name | None = None
    """CSV file of the published values: a column per varied key (or "variant") and per measure."""
    stand_in: bool = False
    """Whether other data stand in for the published ones: tables do not count which is better then."""
    labels: Texts = Field(default_factory=dict)
    """What tables and axes call the keys."""
    grid: Grid = Field(default_factory=dict)
    """Keys of the job and the values that each of them takes; every combination is a variant."""
    variants: tuple[VariantOptions, ...] = ()
    """Named changes of the job, each with every combination of the grid."""
    plot: PlotOptions | None = None
    """The plot of its numbers."""
    pictures: tuple[PictureOptions, ...] = ()
    """Pictures of its variants."""
    mark: tuple[Annotated[int, Field(ge=0)], ...] = ()
    """Rows of the table, from 0, that pictures mark and whose distances in the plane are measured."""
    held_out: Annotated[int, Field(ge=1)] | None = None
    """How many of the samples that ``scene.samples`` left out to classify by 3 nearest neighbours on
    the labels that a variant produced (Belkin 2003, 3.8.4)."""
    small: Keys = Field(default_factory=dict)
    """Overrides for ``--small``: a version of the study that runs in seconds. Any key of the file."""

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
        """Every key that some variant varies, in the order of the file."""
        return tuple(dict.fromkeys(key for _, grid in self._grids() for key in grid))

    @property
    def shown_measures(self) -> frozenset[str]:
        """Every measure that its table, its plot or a picture shows."""
        plotted = (*self.plot.y, self.plot.x, self.plot.right) if self.plot else ()
        told = (name for picture in self.pictures for name in picture.measures)
        return frozenset(name for name in (*self.measure, *plotted, *told) if name in MEASURES)

    def label(self, name: str) -> str:
        """Return what tables and axes call a key or a measure."""
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
            raise ValueError(f"{value!r} stands twice among the {what}")
        seen.append((type(value), value))

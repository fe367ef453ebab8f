"""Job file (TOML) to a frozen, validated `Job`; the one place where options and defaults live."""

import difflib
import json
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import tomlkit
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from eigenscape.errors import JobError
from eigenscape.memory import parse_bytes


class Options(BaseModel):
    """One table of the job file: frozen, and closed against unknown keys."""

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
    """``[neighbors]``: the k-nearest-neighbour lists."""

    method: Literal["lanczos-bisection", "pynndescent", "exact"] = "lanczos-bisection"
    """Recursive Lanczos bisection (Halevy 2011, chapter 5), NN-descent in memory, or brute force."""
    k: Annotated[int, Field(ge=1, le=1000)] = 12
    """Neighbours per sample, itself not counted."""
    overlap: Annotated[float, Field(ge=0, le=0.5)] = 0.1
    """Share of the samples that a split gives to both halves (Halevy 2011, chapter 5)."""
    leaf_size: Annotated[int, Field(ge=32, le=16_384)] = 1000
    """Samples in a subset at which splitting stops and all pairs are compared."""
    refine: Annotated[int, Field(ge=0, le=10)] = 1
    """Rounds of neighbour-of-neighbour refinement after the lists are merged."""


class GraphOptions(Options):
    """``[graph]``: neighbour lists to a Laplacian."""

    weights: Literal["self-tuning", "heat", "binary"] = "self-tuning"
    """exp(-d^2 / (s_i s_j)) with s the distance to the k-th neighbour; exp(-d^2 / t); or 1."""
    bandwidth: Annotated[float, Field(gt=0)] | Literal["auto"] = "auto"
    """t of the heat kernel, in squared units of the features; "auto" is the mean of d^2."""
    laplacian: Literal["normalized", "random-walk", "unnormalized"] = "normalized"
    """D^-1/2 (D - W) D^-1/2, D^-1 (D - W), or D - W."""
    components: Literal["connect", "largest", "each"] = "connect"
    """Bridge the connected components, keep the largest (Halevy 2011), or solve on each (Belkin 2003)."""


class SpectrumOptions(Options):
    """``[spectrum]``: the smallest eigenpairs of the Laplacian."""

    dimension: Annotated[int, Field(ge=1, le=20_000)] = 55
    """Eigenvectors to keep, the constant one(s) not counted."""
    solver: Literal["chebyshev", "lanczos", "dense"] = "chebyshev"
    """Chebyshev-filtered subspace iteration, ARPACK through scipy, or LAPACK on the full matrix."""
    tolerance: Annotated[float, Field(ge=1e-12, le=1e-2)] = 1e-5
    """Largest residual norm |L v - lambda v| with |v| = 1; below 1e-6 the solver works in double."""


class LearnOptions(Options):
    """``[learn]``: eigenvectors and labels to classes."""

    method: Literal["centroid-angle"] = "centroid-angle"
    """Smallest angle to the mean of a class in eigenmap coordinates (Halevy 2011, 2.3)."""
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


class Job(Options):
    """A whole job: every table of the job file, with every default filled in."""

    scene: SceneOptions
    features: FeatureOptions = FeatureOptions()
    neighbors: NeighborOptions = NeighborOptions()
    graph: GraphOptions = GraphOptions()
    spectrum: SpectrumOptions = SpectrumOptions()
    learn: LearnOptions = LearnOptions()
    output: OutputOptions = OutputOptions()
    limits: LimitsOptions = LimitsOptions()
    name: str = Field(default="job", exclude=True)
    """Stem of the job file: the first half of the run directory's name. Not a key of the file."""
    base: Path = Field(default=Path("."), exclude=True)
    """Directory that relative paths are relative to. Not a key of the file."""

    def resolve(self, path: str) -> str:
        """Return `path` as this job means it: absolute, or untouched when it is a URL."""
        if "://" in path:
            return path
        return str((self.base / Path(path).expanduser()).resolve())

    def to_toml(self) -> str:
        """Return the job as TOML with every default written out."""
        return tomlkit.dumps(self.model_dump(mode="json", exclude_none=True))


def load_job(path: str | Path, overrides: Sequence[str] = ()) -> Job:
    """Read and check a job file.

    Parameters
    ----------
    path
        The TOML file.
    overrides
        ``key=value`` texts such as ``neighbors.k=8``; values are TOML, bare words are strings.

    Raises
    ------
    JobError
        The file cannot be read, is not TOML, or has an unknown key, a wrong type or an impossible value.
    """
    path = Path(path)
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise JobError(
            f"{path}: no such job file.{_closest_file(path)} "
            "A job file is TOML; its one required key is path in the table [scene]."
        ) from None
    except IsADirectoryError:
        raise JobError(f"{path}: is a directory. Give the job file inside it.") from None
    except (OSError, UnicodeDecodeError) as error:
        raise JobError(f"{path}: cannot be read ({error}).") from None
    except tomllib.TOMLDecodeError as error:
        raise JobError(f"{path}: not valid TOML: {error}.") from None
    for text in overrides:
        _override(table, text)
    source = " ".join([str(path), *(f"--set {text}" for text in overrides)])
    return parse_job(table, name=path.stem, base=path.resolve().parent, source=source)


def parse_job(
    table: Mapping[str, Any], *, name: str = "job", base: Path | None = None, source: str = "job"
) -> Job:
    """Check a job given as nested mappings, as `tomllib` returns them.

    Raises
    ------
    JobError
        An unknown key, a wrong type or an impossible value; all of them are listed.
    """
    if reserved := {"name", "base"} & table.keys():
        raise JobError(f"{source}: unknown key {sorted(reserved)[0]}. {_known_keys('')}")
    try:
        job = Job.model_validate({**table, "name": name, "base": base or Path.cwd()})
    except ValidationError as error:
        lines = [_explain(item) for item in _distinct(error)]
        raise JobError("\n".join(f"{source}: {line}" for line in lines)) from None
    if not job.scene.path:
        raise JobError(
            f"{source}: scene.path is empty. Give a file, a list of files or a data set."
        )
    return job


def job_schema() -> str:
    """Return the JSON Schema of the job file, for editors that check and complete TOML."""
    schema = Job.model_json_schema()
    schema["properties"] = {
        key: value for key, value in schema["properties"].items() if key not in ("name", "base")
    }
    schema["title"] = "eigenscape job file"
    return json.dumps(schema, indent=2)


def _override(table: dict[str, Any], text: str) -> None:
    key, separator, value = text.partition("=")
    parts = key.strip().split(".")
    if not separator or len(parts) != 2 or not all(parts):
        raise JobError(f"--set {text}: expected TABLE.KEY=VALUE, for example neighbors.k=8.")
    try:
        parsed = tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        parsed = value.strip()
    section = table.setdefault(parts[0], {})
    if not isinstance(section, dict):
        raise JobError(f"--set {text}: {parts[0]} is not a table in the job file.")
    section[parts[1]] = parsed


def _distinct(error: ValidationError) -> Iterator[Mapping[str, Any]]:
    """One error per key: a union reports every branch that failed, the first says enough."""
    seen = set()
    for item in error.errors():
        key = tuple(part for part in item["loc"] if isinstance(part, str))[:2]
        if key not in seen:
            seen.add(key)
            yield {
                **item,
                "loc": key,
                "others": [
                    other["msg"]
                    for other in error.errors()
                    if tuple(part for part in other["loc"] if isinstance(part, str))[:2] == key
                ],
            }


def _explain(item: Mapping[str, Any]) -> str:
    key = ".".join(item["loc"])
    if item["type"] == "extra_forbidden":
        return f"unknown key {key}. {_known_keys(key)}"
    if item["type"] == "missing":
        return f"{key} is missing. It is the one required key: the scene to work on."
    messages = dict.fromkeys(message.removeprefix("Value error, ") for message in item["others"])
    reason = ", or ".join(message[0].lower() + message[1:] for message in messages)
    # TOML has no tuples.
    reason = reason.replace("valid tuple", 'list, as in [3] or ["104-108"]')
    return f"{key} = {item['input']!r}: {reason.rstrip('.')}.{_describe(item['loc'])}"


def _describe(loc: Sequence[str]) -> str:
    options = _tables().get(loc[0])
    if len(loc) < 2 or options is None or loc[1] not in options.model_fields:
        return " It is a table: write [" + loc[0] + "] and its keys below." if len(loc) == 1 else ""
    field = options.model_fields[loc[1]]
    default = "" if field.is_required() else f" Default: {field.default!r}."
    return f" {field.description}{default}"


def _known_keys(key: str) -> str:
    section, _, name = key.partition(".")
    tables = {table: options.model_fields for table, options in _tables().items()}
    if name and section in tables:
        choices, what = list(tables[section]), f"Keys of [{section}]"
        elsewhere = [f"{table}.{name}" for table, fields in tables.items() if name in fields]
        close = difflib.get_close_matches(name, choices, n=1)
        hint = elsewhere[:1] or [f"{section}.{match}" for match in close]
    else:
        choices, what = list(tables), "Tables"
        hint = [f"[{match}]" for match in difflib.get_close_matches(section, choices, n=1)]
    question = f"Did you mean {hint[0]}? " if hint else ""
    return f"{question}{what}: {', '.join(choices)}."


def _tables() -> dict[str, type[Options]]:
    return {
        name: field.annotation
        for name, field in Job.model_fields.items()
        if isinstance(field.annotation, type) and issubclass(field.annotation, Options)
    }


def _closest_file(path: Path) -> str:
    siblings = [str(item) for item in path.parent.glob("*.toml")] if path.parent.is_dir() else []
    close = difflib.get_close_matches(str(path), siblings, n=1)
    return f" Did you mean {close[0]}?" if close else ""

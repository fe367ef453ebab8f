"""The tables of a job file to a frozen, validated `Job`, in which every default is filled in."""

import json
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, Self, cast

import tomlkit
from pydantic import Field, SerializeAsAny, ValidationError

from eigenscape.base import html
from eigenscape.base.files.names import own_path
from eigenscape.errors import JobError
from eigenscape.job.explanations import Tables, explain, keys_of, known_keys, tables_of
from eigenscape.job.files.overrides import changed_name, make_small, override
from eigenscape.job.files.reading import read_tables
from eigenscape.job.options import (
    REGISTRIES,
    FeatureOptions,
    GraphOptions,
    LearnOptions,
    LimitsOptions,
    NeighborOptions,
    Options,
    OutputOptions,
    SceneOptions,
    SpectrumOptions,
)
from eigenscape.job.registry import MethodOptions
from eigenscape.job.relevance import leave_out, refuse_unread
from eigenscape.job.study import StudyOptions, flatten

_NAMES_OF_FILES = ("scene", "scene.path", "scene.labels")

NO_KEYS = {"name", "base", "left_out"}
"""Fields of a job that its file cannot set."""


def _default(table: str) -> Callable[[], Any]:
    """Return a factory of a table's default; it imports the module of the method when it is called."""
    registry = REGISTRIES[table]
    return lambda: registry.find(registry.default).model_validate({})


class Job(Options):
    """A whole job: every table of the job file, with every default filled in.

    A job is frozen. Its tables are given by name, as mappings. `parse_job` makes a job from nested mappings,
    `load_job` from a file and `job_for` from a cube in memory. All check the keys alike; their errors name
    keys, values and fixes.

    Attributes
    ----------
    scene
        The scene, its labels and its mask: the only table without a default.
    features, neighbors, graph, spectrum, learn
        The methods and their keys, stage by stage.
    output, limits
        Output files and their directory; memory and threads.
    preset
        Source of the methods that the job leaves open: a comparison, or the defaults.
    study
        Variants of the job, for `run_study`.
    name
        First half of the name of its run directory.
    base
        Directory that relative paths are relative to.
    left_out
        Keys of the job file that belong to other methods than the chosen ones.

    Examples
    --------
    >>> from eigenscape import Job
    >>> job = Job(scene={"path": "scene.tif"}, neighbors={"k": 8}, name="first")
    >>> job.neighbors.k, job.graph.weights, job.limits.memory
    (8, 'self-tuning', '2GiB')
    >>> job
    Job('first', scene.path='scene.tif', neighbors.k=8)
    """

    scene: SceneOptions
    features: SerializeAsAny[FeatureOptions] = Field(default_factory=_default("features"))
    neighbors: SerializeAsAny[NeighborOptions] = Field(default_factory=_default("neighbors"))
    graph: GraphOptions = GraphOptions()
    spectrum: SpectrumOptions = SpectrumOptions()
    learn: SerializeAsAny[LearnOptions] = Field(default_factory=_default("learn"))
    output: OutputOptions = OutputOptions()
    limits: LimitsOptions = LimitsOptions()
    preset: Literal["auto", "halevy-2011"] | None = None
    """Choice of the methods that the job leaves open: "auto", by a comparison on the scene (also the default
    of a job that names no method); "halevy-2011", the defaults, which follow Halevy 2011."""
    study: StudyOptions | None = None
    """Variants of the job, which share the stages that they have in common (a table)."""
    name: str = Field(default="job", exclude=True)
    """Stem of the job file: the first part of the name of the run directory. Not a key of the file."""
    base: Path = Field(default=Path("."), exclude=True)
    """Directory that relative paths are relative to. Not a key of the file."""
    left_out: Mapping[str, Any] = Field(default_factory=dict, exclude=True)
    """Dotted keys of the file that belong to other methods than the chosen ones. Not a key of the file."""

    def __new__(cls, /, *scene: Any, **tables: Any) -> Self:
        """Refuse a positional argument, which users take for the scene."""
        if scene:
            raise JobError(
                f"Job({type(scene[0]).__name__}): a job is made of tables, by name. For a scene in memory "
                "or a path: eigenscape.job_for(scene, labels)."
            )
        return super().__new__(cls)

    def __init__(
        self, /, *, name: str = "job", base: str | Path | None = None, **tables: Any
    ) -> None:
        """Check the tables as `parse_job` does."""
        self.__setstate__(parse_job(tables, name=name, base=base, source="Job").__getstate__())

    def __hash__(self) -> int:
        # Of pydantic, it would be that of the fields, among which are dictionaries.
        table = json.dumps(self.model_dump(mode="json"), sort_keys=True)
        return hash((self.name, self.base, table))

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Return a copy with other tables.

        Parameters
        ----------
        update
            Tables, ``name`` and ``base``, each in place of the whole one of this job. A mapping is checked
            as in `parse_job`, and the job with it.
        deep
            Copy the values, too.

        Returns
        -------
        Job
            The copy.

        Raises
        ------
        JobError
            An unknown name, or what `parse_job` refuses.

        Examples
        --------
        >>> from eigenscape import Job
        >>> job = Job(scene={"path": "scene.tif"}, neighbors={"k": 8})
        >>> job.model_copy(update={"neighbors": {"method": "exact"}}).neighbors.k
        12
        """
        changed = dict(update or {})
        unknown = sorted(changed.keys() - type(self).model_fields.keys())
        if unknown:
            raise JobError(f"Job.model_copy: {unknown_key(unknown[0])}")
        tables = {key: value for key, value in changed.items() if key not in NO_KEYS}
        checked = {k for k, value in tables.items() if value is None or isinstance(value, Options)}
        known = super().model_copy(
            update={key: changed[key] for key in changed.keys() - (tables.keys() - checked)},
            deep=deep,
        )
        if checked == tables.keys():
            return known
        table = known.model_dump(mode="json", exclude_none=True, exclude_unset=True)
        table |= {key: tables[key] for key in tables.keys() - checked}
        job = parse_job(table, name=known.name, base=known.base, source="Job.model_copy")
        return cast(Self, job.model_copy(update={"left_out": known.left_out}))

    def resolve(self, path: str) -> str:
        """Return the absolute path of a file that the job names; that of a symbolic link is its own.

        Parameters
        ----------
        path
            Path of a file, absolute or relative to `base`; or a URL.

        Returns
        -------
        str
            The absolute path; a URL as it is.

        Raises
        ------
        JobError
            It has a null character.
        """
        if "://" in path:
            return path
        if "\0" in path:
            raise JobError(f"{path!r}: a path has no null character. Leave it out.")
        return own_path(self.base / os.path.expanduser(path))

    @property
    def open(self) -> bool:
        """Return whether the methods are chosen by trials on the scene (if it has labels)."""
        if self.preset is not None or self.study is not None:
            return self.preset == "auto"
        if any(getattr(self, table).model_fields_set for table in _METHOD_TABLES):
            return False
        return self.learn.model_fields_set <= _PROTOCOL_KEYS

    @property
    def advice(self) -> str:
        """Return why methods are not compared for a job that names no classifier; empty for all others."""
        named = "method" in self.learn.model_fields_set or self.learn.unsupervised
        if named or self.open or self.preset is not None or self.study is not None:
            return ""
        given = {name: getattr(self, name).model_fields_set for name in _METHOD_TABLES}
        given["learn"] = self.learn.model_fields_set - _PROTOCOL_KEYS
        key = next(f"{name}.{min(keys)}" for name, keys in given.items() if keys)
        return (
            f'the job gives {key}, so learn.method is the default, "{self.learn.method}". To have methods '
            'compared for the keys that the job does not give, set learn.method = "auto".'
        )

    def to_toml(self) -> str:
        """Return the job as TOML with every default, except the defaults of methods that are still open."""
        table = self.model_dump(mode="json", exclude_none=True)
        if self.open:
            given = self.model_dump(mode="json", exclude_none=True, exclude_unset=True)
            for name in (*_METHOD_TABLES, "learn"):
                table[name] = given.get(name, {})
        return _toml(json.dumps(table))

    def __repr__(self) -> str:
        given = flatten(self.model_dump(mode="json", exclude_unset=True, exclude={"study"}))
        keys = (f", {key}={value!r}" for key, value in given.items())
        return f"Job({self.name!r}{''.join(keys)})"

    def _repr_html_(self) -> str:
        methods = {
            name: (table.method if isinstance(table := getattr(self, name), MethodOptions) else "")
            for name in ("features", "neighbors", "learn")
        }
        if self.open:
            methods = {"methods": "chosen by trials on the scene, if it has labels"}
        given = self.model_dump(mode="json", exclude_none=True, exclude_unset=True)
        scene = (
            self.scene.path if isinstance(self.scene.path, str) else f"{len(self.scene.path)} files"
        )
        about = {"scene": scene, "labels": self.scene.labels, **methods}
        return html.card(
            "Job", self.name, html.facts({**about, "memory": self.limits.memory}),
            html.folded("keys that are given", html.code(tomlkit.dumps(given))),
            html.folded("all keys", html.code(self.to_toml())),
        )  # fmt: skip


@lru_cache(maxsize=64)
def _toml(content: str) -> str:
    """Return a table, given as JSON, as TOML: tomlkit takes longer than a stage of a small run does."""
    return tomlkit.dumps(json.loads(content))


_METHOD_TABLES = ("features", "neighbors", "graph", "spectrum")
"""Tables all of whose keys belong to methods."""

_PROTOCOL_KEYS = {"train", "test", "split", "trials", "seed", "queries", "areas", "smoothing"}
"""Keys of ``[learn]`` that do not."""


def load_job(path: str | Path, overrides: Sequence[str] = (), *, small: bool = False) -> Job:
    """Read and check a job file.

    Parameters
    ----------
    path
        The TOML file.
    overrides
        ``key=value`` texts such as ``neighbors.k=8``; values are TOML, bare words are strings. Keys of the
        file that no method reads after an override are dropped.
    small
        Apply the overrides in the table ``[study.small]`` of a study.

    Returns
    -------
    Job
        The job, named like the file. Relative paths are relative to the directory of the file, or of the
        symbolic link that `path` is.

    Raises
    ------
    JobError
        The file cannot be read, is not TOML, or has an unknown key, a wrong type, an impossible value or
        a key that nothing reads.

    Examples
    --------
    >>> import eigenscape
    >>> from pathlib import Path
    >>> _ = Path("scene.toml").write_text('scene.path = "scene.tif"')
    >>> eigenscape.load_job("scene.toml", ["neighbors.k=8"]).neighbors.k
    8
    """
    if not isinstance(path, str | os.PathLike):
        raise JobError(
            f"a job file of type {type(path).__name__}: give the path of a TOML file. Tables are checked by "
            "eigenscape.parse_job."
        )
    path = Path(path)
    table, name = read_tables(path), path.stem
    if small:
        make_small(table, path)
        name += "-small"
    for text in overrides:
        override(table, text, _tables())
    if "study" in table:
        name += changed_name(overrides)
    source = " ".join([str(path), *(f"--set {text}" for text in overrides)])
    keys, base = [text.partition("=")[0].strip() for text in overrides], Path(own_path(path)).parent
    if keys and "study" not in table:  # its variants leave out what they do not read
        leave_out(parse_job(table, base=base, source=source, strict=False), table, keys)
    job = parse_job(table, name=name, base=base, source=source)
    for key in keys:
        if job.study is not None and key in job.study.grid:
            raise JobError(f"{source}: the study varies {key}; set study.grid.{key} to a list.")
    return job


def parse_job(
    table: Mapping[str, Any],
    *,
    name: str = "job",
    base: str | Path | None = None,
    source: str = "job",
    strict: bool = True,
) -> Job:
    """Check a job given as nested mappings, as `tomllib` returns them.

    Parameters
    ----------
    table
        Its tables by name: at least ``{"scene": {"path": ...}}``.
    name
        First part of the name of the run directory.
    base
        Directory that relative paths are relative to; the working directory by default.
    source
        Name of the job in error messages.
    strict
        Refuse keys that the methods of the job do not read. For a study, the variants are checked later, one
        by one.

    Returns
    -------
    Job
        The job, with every default filled in.

    Raises
    ------
    JobError
        An unknown key, a wrong type, an impossible value or a key that nothing reads; all of them are
        listed. Or a name with slashes.

    Examples
    --------
    >>> import eigenscape
    >>> eigenscape.parse_job({"scene": {"path": "scene.tif"}}).learn.method
    'centroid-angle'
    """
    if not isinstance(table, Mapping):
        raise JobError(
            f"{source}: tables of type {type(table).__name__}: give nested mappings, at least "
            '{"scene": {"path": ...}}. A file is read by eigenscape.load_job.'
        )
    if "/" in str(name) or name in ("", ".", ".."):
        raise JobError(
            f"name = {name!r}: begins the name of the run directory. Give a text without slashes, such as "
            '"scene".'
        )
    table = _as_published(_opened(_from_python(table, "", source)))
    if reserved := NO_KEYS & table.keys():
        raise JobError(f"{source}: unknown key {sorted(reserved)[0]}.{known_keys('', _tables())}")
    place = {"name": name, "base": base or Path.cwd()}
    try:
        job = filled_job({**table, **place, "left_out": _left_out(table)})
    except ValidationError as error:
        lines = explain(error, _tables())
        raise JobError("\n".join(f"{source}: {line}" for line in lines)) from None
    if not job.scene.path:
        raise JobError(
            f"{source}: scene.path is empty. Give a file, a list of files or a data set."
        )
    if strict and job.study is None:
        refuse_unread(job, source)
    return job


def filled_job(tables: Mapping[str, Any]) -> Job:
    """Return the job of tables whose values are checked one by one, not with each other.

    Raises
    ------
    pydantic.ValidationError
        A key or a value is wrong.
    """
    job = Job.__new__(Job)
    Options.__init__(job, **tables)
    return job


def _from_python(value: Any, key: str, source: str) -> Any:
    """Convert Python values to TOML values: paths to text, arrays to lists.

    Raises
    ------
    JobError
        A scene or labels in memory, which a job cannot hold.
    """
    if isinstance(value, Mapping):
        return {
            name: _from_python(each, f"{key}.{name}".lstrip("."), source)
            for name, each in value.items()
        }
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, list | tuple):
        return [_from_python(each, key, source) for each in value]
    if not (hasattr(value, "shape") or hasattr(value, "data_vars")):
        return value
    if key in _NAMES_OF_FILES and getattr(value, "shape", None) != ():
        raise JobError(
            f"{source}: {key} holds a {type(value).__name__}; give the path of a file. For data in memory, "
            "use eigenscape.job_for(cube, labels), which writes them to files and returns the job."
        )
    return value.tolist() if hasattr(value, "tolist") else value


def _left_out(table: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keys of a job that belong to other methods than the chosen ones."""
    found: dict[str, Any] = {}
    for name, registry in REGISTRIES.items():
        if isinstance(own := table.get(name), Mapping):
            with suppress(ValidationError):  # of the method, which the job's own check says
                found |= {f"{name}.{key}": value for key, value in registry.foreign(own).items()}
    return found


def _opened(table: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the tables with ``learn.method = "auto"`` replaced by ``preset = "auto"``."""
    learn = table.get("learn")
    if not isinstance(learn, Mapping) or learn.get("method") != "auto":
        return table
    rest = {key: value for key, value in learn.items() if key != "method"}
    return {**table, "learn": rest, "preset": "auto"}


def _as_published(table: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the tables; with the preset of Halevy 2011, all bands are kept by default."""
    scene = table.get("scene")
    if table.get("preset") != "halevy-2011" or not isinstance(scene, Mapping):
        return table
    return {**table, "scene": {"drop_wavelengths": "none", **scene}}


def unknown_key(key: str) -> str | None:
    """Return the error message for an unknown key such as ``neighbors.kk``, or None if the key exists."""
    section, _, name = key.rpartition(".")
    options = _tables().get(section)
    if options is not None and name in keys_of(options):
        return None
    return f"unknown key {key}.{known_keys(key, _tables())}"


def _tables() -> Tables:
    return tables_of(Job)

"""Job file (TOML) to a frozen, validated `Job`; the one place where options and defaults live."""

import json
import os
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

import tomlkit
from pydantic import Field, ValidationError

from eigenscape.errors import JobError, did_you_mean
from eigenscape.options import (
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
from eigenscape.study.options import StudyOptions, flatten


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
    study: StudyOptions | None = None
    """Variants of the job to run over the stages that they share: a table of its own."""
    name: str = Field(default="job", exclude=True)
    """Stem of the job file: the first half of the run directory's name. Not a key of the file."""
    base: Path = Field(default=Path("."), exclude=True)
    """Directory that relative paths are relative to. Not a key of the file."""

    def resolve(self, path: str) -> str:
        """Return `path` as this job means it: absolute, or untouched when it is a URL."""
        if "://" in path:
            return path
        if "\0" in path:
            raise JobError(f"{path!r}: a path has no null character. Leave it out.")
        # A loop of symbolic links is a path too: whoever opens it says so.
        return os.path.realpath(self.base / os.path.expanduser(path))

    def to_toml(self) -> str:
        """Return the job as TOML with every default written out."""
        return tomlkit.dumps(self.model_dump(mode="json", exclude_none=True))


def load_job(path: str | Path, overrides: Sequence[str] = (), *, small: bool = False) -> Job:
    """Read and check a job file.

    Parameters
    ----------
    path
        The TOML file.
    overrides
        ``key=value`` texts such as ``neighbors.k=8``; values are TOML, bare words are strings.
    small
        Take the small version of a study: what its table ``[study.small]`` says.

    Raises
    ------
    JobError
        The file cannot be read, is not TOML, or has an unknown key, a wrong type or an impossible value.
    """
    path = Path(path)
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise JobError(f"{path}: is no file that could be read. A job file is TOML.")
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
    except RecursionError:
        raise JobError(
            f"{path}: its brackets are nested too deeply to be those of a job."
        ) from None
    name = path.stem
    if small:
        _make_small(table, path)
        name += "-small"
    for text in overrides:
        override(table, text)
    source = " ".join([str(path), *(f"--set {text}" for text in overrides)])
    job = parse_job(table, name=name, base=path.resolve().parent, source=source)
    for key in [text.partition("=")[0].strip() for text in overrides]:
        if job.study is not None and key in job.study.grid:
            raise JobError(f"{source}: the study varies {key}; set study.grid.{key} to a list.")
    return job


def parse_job(
    table: Mapping[str, Any], *, name: str = "job", base: Path | None = None, source: str = "job"
) -> Job:
    """Check a job given as nested mappings, as `tomllib` returns them.

    Parameters
    ----------
    table
        Its tables by name: at least ``{"scene": {"path": ...}}``.
    name
        First half of the name of its run directory.
    base
        Directory that relative paths are relative to: the working directory by default.
    source
        What errors call it.

    Raises
    ------
    JobError
        An unknown key, a wrong type or an impossible value; all of them are listed.
    """
    if reserved := {"name", "base"} & table.keys():
        raise JobError(f"{source}: unknown key {sorted(reserved)[0]}.{_known_keys('')}")
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


def unknown_key(key: str) -> str | None:
    """Return what to say about a key such as ``neighbors.kk`` that no job has, None if it has it."""
    section, _, name = key.rpartition(".")
    options = _tables().get(section)
    if options is not None and name in options.model_fields:
        return None
    return f"unknown key {key}.{_known_keys(key)}"


def override(table: dict[str, Any], text: str) -> None:
    """Set one key of a job given as nested mappings.

    Parameters
    ----------
    table
        Changed in place.
    text
        See `load_job`.

    Raises
    ------
    JobError
        The text is not of that form.
    """
    key, separator, value = text.partition("=")
    parts = [part.strip('"') for part in key.strip().split(".")]
    nested = ".".join(parts[:-1]) in _tables() or parts[0] == "study"
    if not separator or (len(parts) != 2 and not nested) or not all(parts):
        raise JobError(f"--set {text}: expected TABLE.KEY=VALUE, for example neighbors.k=8.")
    try:
        parsed = tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        parsed = value.strip()
    _put(table, parts, parsed, f"--set {text}")


def _make_small(table: dict[str, Any], path: Path) -> None:
    study = table.get("study", {})
    changes = flatten(study.get("small", {})) if isinstance(study, dict) else {}
    if not changes:
        raise JobError(f"{path}: --small: there is no small version: no table [study.small].")
    for key, value in changes.items():
        _put(table, key.split("."), value, f"{path}: study.small.{key}")


def _put(table: dict[str, Any], parts: Sequence[str], value: Any, source: str) -> None:
    """Set a key of nested tables."""
    section = table
    for number, part in enumerate(parts[:-1]):
        section = section.setdefault(part, {})
        if not isinstance(section, dict):
            name = ".".join(parts[: number + 1])
            raise JobError(f"{source}: {name} is not a table in the job file.")
    section[parts[-1]] = value


def _distinct(error: ValidationError) -> Iterator[Mapping[str, Any]]:
    """One error per key: a union reports every branch that failed, the first says enough."""
    seen = set()
    for item in error.errors():
        key = _key_of(item["loc"])
        if key not in seen:
            seen.add(key)
            yield {
                **item,
                "loc": key,
                "others": [
                    other["msg"] for other in error.errors() if _key_of(other["loc"]) == key
                ],
            }


def _key_of(loc: Sequence[int | str]) -> tuple[str, ...]:
    """Return table and key of an error, without the list items and branches of unions below."""
    parts = tuple(part for part in loc if isinstance(part, str))
    return parts[: 3 if ".".join(parts[:2]) in _tables() else 2]


def _explain(item: Mapping[str, Any]) -> str:
    key = ".".join(item["loc"])
    if item["type"] == "extra_forbidden":
        return f"unknown key {key}.{_known_keys(key)}"
    if item["type"] == "missing":
        if key.startswith("study"):
            return f"{key} is missing.{_describe(item['loc'])}"
        return f"{key} is missing. It is the one required key: the scene to work on."
    messages = dict.fromkeys(message.removeprefix("Value error, ") for message in item["others"])
    reason = ", or ".join(message[0].lower() + message[1:] for message in messages)
    # TOML has no tuples.
    reason = reason.replace("valid tuple", 'list, as in [3] or ["104-108"]').rstrip(".")
    if key in _tables() and item["type"] == "value_error":
        return f"[{key}] {reason}."  # of several keys, which it names itself
    return f"{key} = {item['input']!r}: {reason}.{_describe(item['loc'])}"


def _describe(loc: Sequence[str]) -> str:
    tables = _tables()
    if ".".join(loc) in tables:
        return f" It is a table: write [{'.'.join(loc)}] and its keys below."
    options = tables.get(".".join(loc[:-1]))
    if options is None or loc[-1] not in options.model_fields:
        return ""
    field = options.model_fields[loc[-1]]
    default = "" if field.is_required() else f" Default: {field.default!r}."
    # A docstring of several lines becomes one: messages are read in a terminal.
    return f" {' '.join(str(field.description).split())}{default}"


def _known_keys(key: str) -> str:
    section, _, name = key.rpartition(".") if "." in key else (key, "", "")
    tables = {table: options.model_fields for table, options in _tables().items()}
    if name and section in tables:
        choices, what = list(tables[section]), f"Keys of [{section}]"
        elsewhere = [f"{table}.{name}" for table, fields in tables.items() if name in fields]
        question = did_you_mean(name, choices, shown=f"{section}.{{}}")
        if elsewhere:
            question = f" Did you mean {elsewhere[0]}?"
    else:
        choices, what = list(tables), "Tables"
        question = did_you_mean(section, choices, shown="[{}]")
    return f"{question} {what}: {', '.join(choices)}."


def _tables() -> dict[str, type[Options]]:
    """Return the tables by name, those within others as ``"graph.spatial"``."""
    found: dict[str, type[Options]] = {}
    todo: list[tuple[str, type[Options]]] = [("", Job)]
    for prefix, options in todo:
        for name, field in options.model_fields.items():
            for kind in (field.annotation, *get_args(field.annotation)):
                if isinstance(kind, type) and issubclass(kind, Options):
                    found[prefix + name] = kind
                    todo.append((f"{prefix}{name}.", kind))
    return found


def _closest_file(path: Path) -> str:
    siblings = [str(item) for item in path.parent.glob("*.toml")] if path.parent.is_dir() else []
    return did_you_mean(str(path), siblings)

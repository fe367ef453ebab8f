"""Keys that are set in the tables of a job file before they are checked: ``--set``, ``--small``."""

import hashlib
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from eigenscape.errors import JobError
from eigenscape.job.explanations import Tables, keys_of
from eigenscape.job.study import flatten

_NO_RESULT = ("limits.", "output.directory", "scene.check_input")
"""Prefixes of the keys that change no result of a study or a tuning."""


def changed_name(overrides: Sequence[str]) -> str:
    """Return a suffix for the name of a job with overrides, so that the results of the file are kept."""
    changes = sorted(text.strip() for text in overrides if not text.strip().startswith(_NO_RESULT))
    return f"-{hashlib.sha256(chr(10).join(changes).encode()).hexdigest()[:8]}" if changes else ""


def override(table: dict[str, Any], text: str, known: Tables) -> None:
    """Set one key of a job given as nested mappings.

    Parameters
    ----------
    table
        Changed in place.
    text
        See `eigenscape.load_job`.
    known
        The tables of every job.

    Raises
    ------
    JobError
        The text is not of that form.
    """
    key, separator, value = text.partition("=")
    parts = _parts(key.strip())
    nested = ".".join(parts[:-1]) in known or parts[0] == "study"
    alone = parts == ["preset"]
    if not separator or (len(parts) != 2 and not nested and not alone) or not all(parts):
        places = [
            f"{name}.{parts[-1]}"
            for name, options in known.items()
            if parts[-1] in keys_of(options)
        ]
        question = f" Did you mean {' or '.join(places)}?" if places and len(parts) == 1 else ""
        raise JobError(
            f"--set {text}: expected TABLE.KEY=VALUE, for example neighbors.k=8.{question}"
        )
    try:
        parsed = tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        parsed = value.strip()
    _put(table, parts, parsed, f"--set {text}")


def _parts(key: str) -> list[str]:
    """Return the parts of a key as TOML reads them: a quoted part may have dots."""
    try:
        table: Any = tomllib.loads(f"{key} = 0")
    except tomllib.TOMLDecodeError:
        return key.split(".")
    parts = []
    while isinstance(table, dict) and len(table) == 1:
        part, table = next(iter(table.items()))
        parts.append(part)
    return parts


def make_small(table: dict[str, Any], path: Path) -> None:
    """Set the keys of the small version of a study, the table ``[study.small]`` of its file.

    Raises
    ------
    JobError
        It has none.
    """
    study = table.get("study", {})
    changes = flatten(study.get("small", {})) if isinstance(study, dict) else {}
    if not changes:
        raise JobError(
            f"{path}: --small: the study has no small version. Add a table [study.small]."
        )
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

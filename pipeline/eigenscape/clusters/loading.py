"""Reading a cluster file, and saying what is wrong with one."""

import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, get_args

from pydantic import ValidationError

from eigenscape.clusters.options import KEYS, ClusterOptions, DriverOptions, Kind
from eigenscape.errors import ClusterError, did_you_mean

_KEYS_OF_DRIVER = f"Keys of [driver]: {', '.join(DriverOptions.model_fields)}."


def load_cluster(path: str | Path | None) -> ClusterOptions:
    """Read a cluster file; a text with ``://`` is the address of a running scheduler.

    Raises
    ------
    ClusterError
        The file cannot be read, or has a key that its kind does not know or a value that cannot be.
    """
    if path is None:
        return ClusterOptions()
    if "://" in str(path):
        return ClusterOptions(kind="existing", address=str(path))
    try:
        table = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ClusterError(
            f"{path}: cannot be read as a cluster file ({error}). "
            "Give a TOML file such as cluster/local.toml, or a scheduler's address tcp://HOST:PORT."
        ) from None
    return parse_cluster(table, str(path))


def parse_cluster(table: Mapping[str, Any], source: str) -> ClusterOptions:
    """Check a cluster file given as `tomllib` returns it.

    Raises
    ------
    ClusterError
        A key that the kind does not know, or an impossible value; all of them are listed.
    """
    kind = table.get("kind", "threads")
    if kind not in KEYS:
        raise ClusterError(
            f"{source}: kind = {kind!r}: no such kind.{did_you_mean(str(kind), KEYS)} "
            f"Kinds: {', '.join(get_args(Kind))}."
        )
    lines = [_unknown(key, kind) for key in table if key not in KEYS[kind]]
    known = {key: value for key, value in table.items() if key in KEYS[kind]}
    try:
        options = ClusterOptions.model_validate(known)
    except ValidationError as error:
        lines += _explain(error)
    if lines:
        raise ClusterError("\n".join(f"{source}: {line}" for line in lines))
    return options


def _unknown(key: str, kind: str) -> str:
    others = [other for other, keys in KEYS.items() if key in keys]
    meant = {"account": "project", "project": "account"}.get(key, key)
    question = did_you_mean(meant, KEYS[kind])
    what = f"unknown key {key}"
    if others:
        what = f"{key} is no key of kind = {kind!r} (but of {', '.join(others)})"
    return f"{what}.{question} Keys: {', '.join(KEYS[kind])}."


def _explain(error: ValidationError) -> Iterator[str]:
    seen = set()
    for item in error.errors():
        reason = item["msg"].removeprefix("Value error, ")
        if not item["loc"]:
            yield f"{reason}."  # of several keys, which it names itself
            continue
        section, *below = (str(part) for part in item["loc"] if isinstance(part, str))
        key = ".".join((section, *below))
        if key in seen:
            continue
        seen.add(key)
        if item["type"] == "string_pattern_mismatch":
            reason = "no shell code here (set-up lines of shell belong into environment)"
        # TOML has no tuples.
        reason = reason.replace("valid tuple", 'list, as in ["module load python"]')
        field = (DriverOptions if below else ClusterOptions).model_fields.get(
            (below or [section])[0]
        )
        about = " ".join(str(field.description).split()) if field else _KEYS_OF_DRIVER
        yield f"{key} = {item['input']!r}: {reason[0].lower()}{reason[1:]}. {about}"

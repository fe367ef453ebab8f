"""Reading a cluster file, and saying what is wrong with one."""

import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from eigenscape.clusters.options import EXAMPLE_ADDRESS, ClusterOptions
from eigenscape.clusters.registry import KINDS
from eigenscape.errors import ClusterError, did_you_mean


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
        return parse_cluster({"kind": "existing", "address": str(path)}, "on")
    try:
        table = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ClusterError(
            f"{str(path) or repr('')}: cannot be read as a cluster file ({error}). Give a TOML file such as "
            f"cluster/local.toml, or the address of a scheduler, such as {_meant(str(path))}."
        ) from None
    return parse_cluster(table, str(path))


def _meant(path: str) -> str:
    """Return the address that somebody may have meant who left out its beginning, or an example."""
    return f"tcp://{path}" if re.fullmatch(r"[\w.-]+:\d+", path) else EXAMPLE_ADDRESS


def parse_cluster(table: Mapping[str, Any], source: str) -> ClusterOptions:
    """Check a cluster file given as `tomllib` returns it.

    Raises
    ------
    ClusterError
        A key that the kind does not know, or an impossible value; all of them are listed.
    """
    try:
        kind = KINDS.find(str(table.get("kind", "threads")))
    except ClusterError as error:
        raise ClusterError(f"{source}: kind = {error}") from None
    lines = [_unknown(key, kind) for key in table if key not in kind.model_fields]
    known = {key: value for key, value in table.items() if key in kind.model_fields}
    try:
        options = kind.model_validate(known)
    except ValidationError as error:
        lines += _explain(error, kind)
    if lines:
        raise ClusterError("\n".join(f"{source}: {line}" for line in lines))
    return options


def _unknown(key: str, kind: type[ClusterOptions]) -> str:
    own = kind.model_fields
    keys = sorted(own, key=lambda name: name not in kind.__annotations__)  # its own first
    others = [name for name, other in KINDS.all().items() if key in other.model_fields]
    meant = {"account": "project", "project": "account"}.get(key, key)
    question = did_you_mean(meant, own)
    what = f"unknown key {key}"
    if others:
        what = f"{key} is no key of kind = {own['kind'].default!r} (but of {', '.join(others)})"
    return f"{what}.{question} Keys: {', '.join(keys)}."


def _explain(error: ValidationError, kind: type[ClusterOptions]) -> Iterator[str]:
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
        table: Any = kind
        about = ""
        for name in (section, *below):
            fields = getattr(table, "model_fields", {})
            if name not in fields:
                about = f"Keys of [{section}]: {', '.join(fields)}." if fields else about
                break
            about = " ".join(table.descriptions().get(name, "").split())
            table = fields[name].annotation
        if item["type"] == "missing":
            yield f"kind = {kind.model_fields['kind'].default!r} needs {key}. {about}"
            continue
        yield f"{key} = {item['input']!r}: {reason[0].lower()}{reason[1:]}. {about}"

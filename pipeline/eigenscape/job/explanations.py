"""Messages about wrong keys and values of a job: the key, the value, and the accepted ones."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, get_args, get_origin

from pydantic import ValidationError
from pydantic.fields import FieldInfo

from eigenscape.errors import did_you_mean
from eigenscape.job.registry import MethodOptions
from eigenscape.job.scene import Options

Tables = dict[str, type[Options]]
"""The tables of a file by name."""


def tables_of(job: type[Options]) -> Tables:
    """Return the tables of a file by name, those within others as ``"graph.spatial"``."""
    found: Tables = {}
    todo: list[tuple[str, type[Options]]] = [("", job)]
    for prefix, options in todo:
        for name, field in options.model_fields.items():
            for kind in (field.annotation, *get_args(field.annotation)):
                if isinstance(kind, type) and issubclass(kind, Options):
                    found[prefix + name] = kind
                    todo.append((f"{prefix}{name}.", kind))
    return found


def keys_of(options: type[Options]) -> dict[str, FieldInfo]:
    """Return the keys of a table, of all methods where it has several."""
    found = dict(options.model_fields)
    if issubclass(options, MethodOptions):
        for kind in options.registry.all().values():
            found = {**kind.model_fields, **found}
    return found


def descriptions_of(options: type[Options]) -> dict[str, str]:
    """Return what the keys of a table mean, those of all methods where it has several."""
    found = options.descriptions()
    if issubclass(options, MethodOptions):
        for kind in options.registry.all().values():
            found = {**kind.descriptions(), **found}
    return found


def explain(error: ValidationError, tables: Tables) -> list[str]:
    """Return a sentence for each key that is wrong."""
    return [_explain(item, tables) for item in _distinct(error, tables)]


def known_keys(key: str, tables: Tables) -> str:
    """Return the question and the list to put behind "unknown key ..."."""
    section, _, name = key.rpartition(".") if "." in key else (key, "", "")
    fields = {table: keys_of(options) for table, options in tables.items()}
    if name and section in fields:
        choices, what = list(fields[section]), f"Keys of [{section}]"
        elsewhere = [f"{table}.{name}" for table, own in fields.items() if name in own]
        question = did_you_mean(name, choices, shown=f"{section}.{{}}")
        if elsewhere and not did_you_mean(name, choices, cutoff=0.8):
            question = f" Did you mean {elsewhere[0]}?"
    else:
        choices, what = list(fields), "Tables"
        question = did_you_mean(section, choices, shown="[{}]")
    return f"{question} {what}: {', '.join(choices)}."


def joined(messages: Sequence[str]) -> str:
    """Return the messages about a value, one for each branch of a union, as one part of a sentence."""
    distinct = dict.fromkeys(message.removeprefix("Value error, ") for message in messages)
    reason = ", or ".join(message[0].lower() + message[1:] for message in distinct)
    # TOML has no tuples and no dictionaries.
    reason = reason.replace("valid tuple", "list in brackets").rstrip(".")
    return reason.replace("valid dictionary", "table")


def _distinct(error: ValidationError, tables: Tables) -> Iterator[Mapping[str, Any]]:
    """One error per key: a union reports every branch that failed, the first says enough."""
    seen = set()
    for item in error.errors():
        key = _key_of(item["loc"], tables)
        if key not in seen:
            seen.add(key)
            yield {
                **item,
                "loc": key,
                # A number is the place in a list, whose value is missing and not a key.
                "in_list": isinstance(item["loc"][-1], int) if item["loc"] else False,
                "others": [
                    other["msg"] for other in error.errors() if _key_of(other["loc"], tables) == key
                ],
            }


def _key_of(loc: Sequence[int | str], tables: Tables) -> tuple[str, ...]:
    """Return table and key of an error, without the list items and branches of unions below."""
    parts = tuple(part for part in loc if isinstance(part, str))
    return parts[: 3 if ".".join(parts[:2]) in tables else 2]


def _explain(item: Mapping[str, Any], tables: Tables) -> str:
    key = ".".join(item["loc"])
    if item["type"] == "extra_forbidden":
        return f"unknown key {key}.{known_keys(key, tables)}"
    if item["type"] == "missing":
        if item["in_list"]:
            return f"{key}: {item['input']!r} has too few values.{_describe(item['loc'], tables)}"
        if key in ("scene", "scene.path"):
            return f"{key} is missing. It is the one required key: the scene to work on."
        return f"{key} is missing.{_describe(item['loc'], tables)}"
    reason = joined(item["others"])
    if key in tables and (item["type"].endswith("_type") or isinstance(item["input"], bool)):
        return (
            f"{key} = {item['input']!r}: the value is not a table.{_describe(item['loc'], tables)}"
        )
    if key in tables and item["type"] == "value_error":
        return f"[{key}] {reason}."  # of several keys, which it names itself
    return f"{key} = {item['input']!r}: {reason}.{_describe(item['loc'], tables)}"


def _describe(loc: Sequence[str], tables: Tables) -> str:
    options, name = tables.get(".".join(loc[:-1])), ".".join(loc)
    if (own := tables.get(name)) is not None:
        several = (
            options is not None and get_origin(options.model_fields[loc[-1]].annotation) is tuple
        )
        head = f"[[{name}]]" if several else f"[{name}]"
        return f" Write {head} and its keys below: {', '.join(keys_of(own))}."
    if options is None or loc[-1] not in (keys := keys_of(options)):
        return ""
    field, about = keys[loc[-1]], descriptions_of(options).get(loc[-1], "")
    value = None if field.is_required() else field.get_default(call_default_factory=True)
    shown = [*value] if isinstance(value, tuple) else value
    default = "" if value is None or value == {} else f" Default: {shown!r}."
    # A docstring of several lines becomes one: messages are read in a terminal.
    return f" {' '.join(about.split())}{default}"

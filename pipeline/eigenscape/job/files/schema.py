"""The JSON Schema of job files."""

import json
from collections.abc import Iterator
from typing import Any, Union

from pydantic import Field, create_model
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core.core_schema import ModelSchema

from eigenscape.job.choices import Choice
from eigenscape.job.explanations import tables_of
from eigenscape.job.jobfile import NO_KEYS, Job
from eigenscape.job.options import REGISTRIES, LearnOptions
from eigenscape.job.registry import MethodOptions, MethodRegistry
from eigenscape.job.relevance import READ_WITH, MethodsThat
from eigenscape.job.scene import Options


class _WithDescriptions(GenerateJsonSchema):
    def model_schema(self, schema: ModelSchema) -> JsonSchemaValue:
        table = super().model_schema(schema)
        if issubclass(schema["cls"], Options):
            for key, description in schema["cls"].descriptions().items():
                if key in table["properties"]:
                    table["properties"][key].setdefault("description", description)
        return table


def job_schema() -> str:
    """Return the JSON Schema of the job file, for editors that check and complete TOML."""
    methods: dict[str, Any] = {}
    required: list[type[MethodOptions]] = []
    for name, registry in REGISTRIES.items():
        kinds = registry.all()
        methods[name] = (Union[tuple(kinds.values())], Field(default_factory=dict))  # noqa: UP007
        required += [kind for method, kind in kinds.items() if method != registry.default]
    schema = create_model("Job", __base__=Job, **methods).model_json_schema(
        schema_generator=_WithDescriptions
    )
    for kind in required:
        # Without the key it is the default method.
        schema["$defs"][kind.__name__].setdefault("required", []).append("method")
    schema["properties"] = {
        key: value for key, value in schema["properties"].items() if key not in NO_KEYS
    }
    for registry in REGISTRIES.values():
        for kind in registry.all().values():
            _pass_over_foreign(schema["$defs"][kind.__name__], registry)
    schema["properties"]["learn"]["anyOf"].append(_left_open(schema))
    # The variants of a study choose methods themselves, and read keys that its job does not.
    schema |= {"if": {"required": ["study"]}, "else": {"allOf": [*_unread(schema["$defs"])]}}
    schema["title"] = "eigenscape job file"
    return json.dumps(schema, indent=2)


def _left_open(schema: JsonSchemaValue) -> JsonSchemaValue:
    """Return the schema of ``[learn]`` with ``method = "auto"``: no method, but what leaves it open."""
    default = REGISTRIES["learn"].find(REGISTRIES["learn"].default)
    keys = schema["$defs"][default.__name__]["properties"]
    method = {"const": "auto", "description": "Tried on the scene before the first stage."}
    shared = {key: keys[key] for key in LearnOptions.model_fields}
    table = {
        "type": "object", "properties": {**shared, "method": method}, "required": ["method"],
        "additionalProperties": False,
    }  # fmt: skip
    _pass_over_foreign(table, REGISTRIES["learn"])
    return table


def _pass_over_foreign(table: JsonSchemaValue, registry: MethodRegistry) -> None:
    """Let the table of a method have the keys of other methods; `_unread` says with which values.

    They are given as a pattern, of which editors complete nothing.
    """
    keys = {key for kind in registry.all().values() for key in kind.model_fields}
    if foreign := keys - table["properties"].keys():
        table["patternProperties"] = {f"^({'|'.join(sorted(foreign))})$": {}}


def _unread(tables: JsonSchemaValue) -> Iterator[JsonSchemaValue]:
    """Yield rules: a key has its default where another key of its table says that nothing reads it.

    Conditions on keys of other tables, and on several keys, are left to the check of the job.

    Parameters
    ----------
    tables
        Schemas of all tables, by the names of their classes.
    """
    classes = tables_of(Job)
    for name, registry in REGISTRIES.items():
        methods = registry.all()
        for key in {key: None for kind in methods.values() for key in kind.model_fields}:
            having = registry.having(key)
            if having.keys() != methods.keys():
                keys = [tables[kind.__name__]["properties"][key] for kind in having.values()]
                choice = Choice(f"{name}.method", (*having,))
                yield _rule(f"{name}.{key}", keys, choice, registry.default)
    for key, alternatives in READ_WITH.items():
        name, _, last = key.rpartition(".")
        choices = [choice for each in alternatives for choice in each]
        if len(choices) > 1 or isinstance(choices[0], MethodsThat):
            continue
        above, _, other = choices[0].key.rpartition(".")
        if above == name:
            own = tables[classes[name].__name__]["properties"]
            yield _rule(key, [own[last]], choices[0], own[other]["default"])


def _rule(key: str, own: list[JsonSchemaValue], choice: Choice, chosen: Any) -> JsonSchemaValue:
    """Return that a key has one of its defaults, unless a choice is made.

    Parameters
    ----------
    key
        The key.
    own
        Its schemas, one for each method that has it.
    choice
        Values of another key of the same table, with which it is read.
    chosen
        Value of the other key in a table without it.
    """
    *tables, name = key.split(".")
    other = choice.key.rpartition(".")[2]
    made: JsonSchemaValue = {"properties": {other: {"enum": [*choice.values]}}}
    if chosen not in choice.values:
        made["required"] = [other]
    # One without a default, which its method requires, has no place beside other methods.
    defaults = [each["default"] for each in own if "default" in each]
    distinct = [value for i, value in enumerate(defaults) if value not in defaults[:i]]
    unread = {"enum": distinct} if distinct else False
    rule: JsonSchemaValue = {"if": made, "else": {"properties": {name: unread}}}
    for table in reversed(tables):
        rule = {"properties": {table: rule}}
    return rule

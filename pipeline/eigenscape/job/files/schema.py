"""The JSON Schema of job files."""

import json
from typing import Any, Union

from pydantic import Field, create_model
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core.core_schema import ModelSchema

from eigenscape.job.jobfile import NO_KEYS, Job
from eigenscape.job.options import REGISTRIES
from eigenscape.job.registry import MethodOptions
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
    # Not a method: what leaves it open.
    left_open = {"const": "auto", "description": "Tried on the scene before the first stage."}
    schema["properties"]["learn"]["anyOf"].append(
        {"type": "object", "properties": {"method": left_open}, "required": ["method"]}
    )
    schema["title"] = "eigenscape job file"
    return json.dumps(schema, indent=2)

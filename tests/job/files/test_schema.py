import json

from eigenscape.job.files.schema import job_schema
from eigenscape.job.jobfile import Job
from eigenscape.job.options import REGISTRIES, Options

TABLES = {
    name: field.annotation
    for name, field in Job.model_fields.items()
    if isinstance(field.annotation, type) and issubclass(field.annotation, Options)
}


def test_job_schema__names_every_key_with_its_words():
    schema = json.loads(job_schema())
    assert set(schema["properties"]) == {*TABLES, "study", "preset"}
    assert schema["required"] == ["scene"]
    left_open = schema["properties"]["learn"]["anyOf"].pop()
    assert left_open["properties"]["method"]["const"] == "auto"
    for name, options in TABLES.items():
        reference = schema["properties"][name]
        kinds = [options]
        if name in REGISTRIES:
            assert set(reference) == {"anyOf", "title"}
            kinds = [*REGISTRIES[name].all().values()]
        references = reference.get("anyOf") or reference.get("allOf") or [reference]
        for kind, own in zip(kinds, references, strict=True):
            title = own["$ref"].rpartition("/")[2]
            table = schema["$defs"][title]
            keys = table["properties"]
            assert set(keys) == set(kind.model_fields)
            assert table["additionalProperties"] is False
            assert all(keys[key]["description"] for key in keys), title
            if name in REGISTRIES:
                # Without the key it is the default method.
                method = kind.model_fields["method"].default
                assert keys["method"]["const"] == method
                assert ("method" in table.get("required", [])) != (
                    method == REGISTRIES[name].default
                )

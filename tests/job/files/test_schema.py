import json
import tomllib
from pathlib import Path

import pytest

from eigenscape.errors import JobError
from eigenscape.job.files.schema import job_schema
from eigenscape.job.jobfile import Job, load_job, parse_job
from eigenscape.job.options import REGISTRIES, Options

JOBS = sorted((Path(__file__).parents[3] / "jobs").rglob("*.toml"))

TABLES = {
    name: field.annotation
    for name, field in Job.model_fields.items()
    if isinstance(field.annotation, type) and issubclass(field.annotation, Options)
}


@pytest.fixture(scope="module")
def validator():
    """What editors do with the schema."""
    kind = pytest.importorskip("jsonschema").Draft202012Validator
    schema = json.loads(job_schema())
    kind.check_schema(schema)
    return kind(schema)


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


@pytest.mark.parametrize("path", JOBS, ids=lambda path: path.stem)
def test_job_schema__accepts_every_job_of_the_repository(validator, path):
    validator.validate(tomllib.loads(path.read_text()))
    # With all keys, too.
    validator.validate(tomllib.loads(load_job(path).to_toml()))


STUDY = {"grid": {"learn": {"k": [1, 3]}}}


@pytest.mark.parametrize(
    "tables",
    [
        {"scene": {"path": ["red.tif", "nir.tif"]}},
        {"output": {"colors": {"water": "#005ce6", "7": [200, 80, 0]}}},
        {"learn": {"method": "auto", "train": 0.1, "trials": 3, "k": 3}},
        {"learn": {"train": 20}},
        {"learn": {"train": "marks.tif"}},
        # Keys of other methods, with their defaults.
        {"learn": {"method": "k-nn", "gamma": 1e-5, "assign": "cluster-qr"}},
        {"learn": {"k": 3}, "neighbors": {"method": "exact", "overlap": 0.1}},
        {"features": {"spatial": {"method": "guided", "range_sigma": 4.0, "epsilon": 2.0}}},
        {"features": {"spatial": {"range_sigma": 2.0}}},
        {"graph": {"weights": "binary", "bandwidth": "auto"}},
        {"study": {**STUDY, "measure": "error", "labels": {"learn": {"k": "k"}}}},
        {"study": {"grid": {"graph": {"spatial": {"weight": [1.0]}}, "learn.train": [0.1]}}},
        # Of a study, each variant reads other keys.
        {"study": STUDY, "learn": {"gamma": 0.5}, "graph": {"weights": "binary", "bandwidth": 0.5}},
    ],
    ids=str,
)
def test_job_schema__accepts(validator, tables):
    table = {"scene": {"path": "scene.tif"}, **tables}
    parse_job(table)
    validator.validate(table)


@pytest.mark.parametrize(
    "tables",
    [
        {"scene": {"path": ""}},
        {"scene": {"path": []}},
        {"output": {"colors": {"water": "blue"}}},
        {"output": {"colors": {"water": [0, 92, 256]}}},
        {"output": {"colors": {"water": [0, 92]}}},
        {"learn": {"method": "auto", "k": 5}},
        {"learn": {"method": "auto", "prior": "uniform"}},
        {"learn": {"method": "auto", "trails": 3}},
        {"learn": {"train": 1.5}},
        {"learn": {"train": 0}},
        {"learn": {"train": -1}},
        {"learn": {"train": ""}},
        {"learn": {"train": "10 %"}},
        {"learn": {"method": "k-nn", "gamma": 0.5}},
        {"learn": {"k": 5}},
        {"neighbors": {"method": "exact", "overlap": 0.2}},
        {"features": {"spatial": {"method": "guided", "range_sigma": 2.0}}},
        {"features": {"spatial": {"epsilon": 2.0}}},
        {"graph": {"weights": "binary", "bandwidth": 0.5}},
        {"study": {"grid": {"learn": {"k": 3}}}},
        {"study": {"grid": {"learn.k": []}}},
        {"study": {**STUDY, "measure": 1}},
    ],
    ids=str,
)
def test_job_schema__refuses(validator, tables):
    table = {"scene": {"path": "scene.tif"}, **tables}
    with pytest.raises(JobError):
        parse_job(table)
    assert not validator.is_valid(table)

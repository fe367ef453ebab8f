"""Every key of a job with values of every wrong type: what is said names key, value and what is accepted."""

import math
from typing import get_args

import pytest

from eigenscape.errors import JobError
from eigenscape.job.explanations import tables_of
from eigenscape.job.jobfile import Job, parse_job
from eigenscape.job.options import Options

WRONG = [
    "some text", "", -1, -0.5, math.nan, math.inf, 2**70, True, [], [1], ["x"], {}, {"a": 1},
]  # fmt: skip
TABLES = tables_of(Job)
KEYS = [(table, key) for table, options in TABLES.items() for key in options.model_fields]
NEEDED = {
    "scene": {"path": "a.tif"},
    "study": {"grid": {"neighbors.k": [4, 8]}},
    "study.plot": {"x": "variant"},
    "graph.potential": {"pixels": [3, 5]},
}
"""What the tables need beside the key that is tried."""

MEANT = {
    ("scene.nodata", "inf"), ("scene.nodata", "nan"), ("scene.nodata", "-1"), ("scene.nodata", "-0.5"),
    ("graph.spatial", "{}"), ("scene.nodata", str(2**70)), ("study.plot.slope", "True"),
    ("learn.train", str(2**70)), ("scene.samples", str(2**70)), ("scene.scale", str(2**70)),
    ("graph.bandwidth", str(2**70)), ("graph.spatial.bandwidth", str(2**70)),
    ("graph.spatial.weight", str(2**70)), ("study.held_out", str(2**70)),
    ("graph.potential.alpha", str(2**70)),
}  # fmt: skip
"""Odd values that are accepted: what is wrong with them only the files can say."""


def job_with(table, key, value):
    job = {"scene": {"path": "a.tif"}}
    *above, last = table.split(".")
    section = job
    for part in above:
        section = section.setdefault(part, dict(NEEDED.get(part, {})))
    if table in ("study.variants", "study.pictures"):
        section[last] = [{**({"name": "one"} if last == "variants" else {}), key: value}]
    else:
        section[last] = {**NEEDED.get(table, {}), key: value}
        if table == "graph.potential" and key in ("labels", "raster"):
            del section[last]["pixels"]
    return job


@pytest.mark.parametrize("table", TABLES)
def test_parse_job__names_key_value_and_what_is_accepted(table):
    for key, field in TABLES[table].model_fields.items():
        texts = "str" in str(field.annotation)
        for value in WRONG:
            try:
                parse_job(job_with(table, key, value))
            except JobError as error:
                message = str(error)
            else:
                kind = (str, list, dict) if texts else (bool, list, dict)
                meant = isinstance(value, kind) or (f"{table}.{key}", str(value)) in MEANT
                assert meant, f"{table}.{key} = {value!r} is accepted"
                continue
            assert message.startswith("job: "), message
            for line in message.splitlines():
                # The table alone where several keys do not go together: then they are named in the text.
                assert f"{table}.{key}" in line or f"[{table}]" in line or "[study]" in line, line
                assert len(line) > 40
                assert line.endswith("."), line
                for word in ("Options", "dictionary", "instance", "Traceback", "pydantic"):
                    assert word not in line, line


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("value", ["x", 5, [1], True], ids=str)
def test_parse_job__no_table_where_one_is_to_be(table, value):
    job = {"scene": {"path": "a.tif"}}
    *above, last = table.split(".")
    section = job
    for part in above:
        section = section.setdefault(part, dict(NEEDED.get(part, {})))
    section[last] = value
    with pytest.raises(JobError) as caught:
        parse_job(job)
    shown = 1 if value == [1] and last in ("variants", "pictures") else value
    assert f"{table} = {shown!r}: the value is not a table. Write [" in str(caught.value)
    first = next(iter(TABLES[table].model_fields))
    assert f"and its keys below: {first}" in str(caught.value)


def test_tables_of__all_options_are_reached():
    def reached(options):
        kinds = (kind for field in options.model_fields.values()
                 for kind in (field.annotation, *get_args(field.annotation)))  # fmt: skip
        found = [kind for kind in kinds if isinstance(kind, type) and issubclass(kind, Options)]
        return {options, *(inner for kind in found for inner in reached(kind))}

    assert {*TABLES.values()} == reached(Job) - {Job}


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({"learn": {"train": "10%"}}, ["learn.train = '10%'", "without quotes: learn.train = 0.1"]),
        ({"learn": {"train": "0.25"}}, ["learn.train = '0.25'", "learn.train = 0.25"]),
        ({"learn": {"train": ""}}, ["learn.train = ''", "names no file", "a share between 0 and 1"]),
        ({"limits": {"memory": 2}}, ["limits.memory = 2", 'with its unit, such as "4GiB"', "'2GiB'"]),
        ({"limits": {"memory": "2 gigs"}}, ["limits.memory = '2 gigs'", "with its unit"]),
        ({"graph": {"spatial": 5}}, ["graph.spatial = 5", "Write [graph.spatial]", "weight"]),
        ({"graph": {"spatial": {"weights": 5}}}, ["Did you mean graph.spatial.weight?"]),
        ({"neighbors": {"k": True}}, ["neighbors.k = True", "are not valid values", "Default: 12"]),
        ({"learn": {"method": "k-nn", "prior": []}}, ["learn.prior = []", "a share for each class"]),
        (
            {"graph": {"potential": {"pixels": [[999]]}}},
            ["graph.potential.pixels: [999] has too few values", "[row, column]", "the row alone"],
        ),
        ({"study": {"variants": 3}}, ["study.variants = 3", "Write [[study.variants]]", "name, set"]),
    ],
)  # fmt: skip
def test_parse_job__says_what_is_meant(table, words):
    with pytest.raises(JobError) as caught:
        parse_job({"scene": {"path": "a.tif"}, **table})
    for word in words:
        assert word in str(caught.value)

import pickle
import tomllib
from pathlib import Path

import numpy as np
import pytest

from eigenscape.errors import JobError
from eigenscape.job.jobfile import Job, load_job, parse_job
from inputs.jobtexts import SCENE, refuse, write


def test_load_job__fills_in_the_defaults_of_the_contract(tmp_path):
    job = load_job(write(tmp_path, SCENE, "indian-pines.toml"))
    assert (job.name, job.base) == ("indian-pines", tmp_path)
    assert (job.features.method, job.features.dimension) == ("random-projection", 80)
    assert (job.neighbors.method, job.neighbors.k, job.neighbors.overlap) == (
        "lanczos-bisection",
        12,
        0.1,
    )
    assert (job.graph.weights, job.graph.laplacian) == ("self-tuning", "normalized")
    assert job.graph.components == "connect"
    assert (job.spectrum.dimension, job.spectrum.solver) == (55, "auto")
    assert job.spectrum.tolerance == 1e-5
    assert (job.learn.method, job.learn.train, job.learn.trials) == ("centroid-angle", "all", 10)
    assert job.limits.memory_bytes == 2 * 2**30
    assert job.limits.threads is None


def test_load_job__is_frozen(tmp_path):
    job = load_job(write(tmp_path, SCENE))
    with pytest.raises(ValueError, match="frozen"):
        job.neighbors.k = 3


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[neighbours]\nk = 3", ["unknown key neighbours", "Did you mean [neighbors]?", "spectrum"]),
        ("[neighbors]\nkk = 3", ["unknown key neighbors.kk", "Did you mean neighbors.k?", "overlap"]),
        ("[neighbors]\ndimensions = 3", ["neighbors.dimensions", "leaf_size"]),
        ("[neighbors]\ntolerance = 1", ["neighbors.tolerance", "mean spectrum.tolerance?"]),
        ("[neighbors]\nk = 'ten'", ["neighbors.k = 'ten'", "integer", "Default: 12"]),
        ("[neighbors]\nk = 0", ["neighbors.k = 0", "greater than or equal to 1", "Default: 12"]),
        ("[neighbors]\nk = 1001", ["neighbors.k = 1001", "less than or equal to 1000"]),
        ("[neighbors]\nk = 2.5", ["neighbors.k = 2.5", "integer"]),
        ("[neighbors]\nmetric = 'cosine'", ["neighbors.metric = 'cosine'", "'angle'", "radians"]),
        ("[neighbors]\nmethod = 'radius'\nradius = -1", ["neighbors.radius = -1", "greater than 0"]),
        ("[neighbors]\nmethod = 'radius'\nradius = inf", ["neighbors.radius = inf", "finite number"]),
        ("[neighbors]\nmethod = 'radius'\nradius = nan", ["neighbors.radius = nan", "finite number"]),
        ("[neighbors]\nmethod = 'radius'\nradius = 'far'", ["neighbors.radius = 'far'", "valid number"]),
        ("[neighbors]\nrecall = 1.5", ["neighbors.recall = 1.5", "less than or equal to 1"]),
        ("[neighbors]\nrecall = 0", ["neighbors.recall = 0", "greater than 0"]),
        ("[neighbors]\nsearcher = 'gpu'", ["neighbors.searcher = 'gpu'", "'blas'", "'auto'"]),
        ("[neighbors]\nmethod = 'exakt'", ["neighbors.method = 'exakt'", 'mean exact?', "radius"]),
        ("[spectrum]\ntolerance = 1.0", ["spectrum.tolerance = 1.0", "0.01", "1e-05"]),
        ("[graph]\nbandwidth = 'wide'", ["graph.bandwidth = 'wide'", "'auto'", "number"]),
        ("[graph]\nbandwidth = -1", ["graph.bandwidth = -1", "greater than 0"]),
        ("[learn]\ntrain = true", ["learn.train = True", "share"]),
        ("[learn]\ntrain = 1.5", ["learn.train = 1.5", "between 0 and 1"]),
        ("[learn]\ntrain = 1", ["learn.train = 1", "at least 2"]),
        ("[limits]\nmemory = 'lots'", ["limits.memory = 'lots'", "4GiB"]),
        ("[limits]\nthreads = 0", ["limits.threads = 0", "greater than or equal to 1"]),
        ("[output]\nformats = ['bmp']", ["output.formats", "'geotiff'"]),
        ("[features]\nstandardize = 'perhaps'", ["features.standardize = 'perhaps'", "boolean"]),
    ],
)  # fmt: skip
def test_load_job__names_key_value_limit_and_default(tmp_path, text, words):
    message = refuse(tmp_path, SCENE + text)
    assert message.startswith(str(tmp_path / "job.toml"))
    assert "\n" not in message
    for word in words:
        assert word in message, message


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("method = 'radius'", ['method = "radius"', "needs a radius", "set neighbors.radius"]),
        ("method = 'radius'\nradius = 3.2\nmetric = 'angle'", ["radius = 3.2", "at most pi"]),
    ],
)  # fmt: skip
def test_load_job__names_keys_that_do_not_go_together(tmp_path, text, words):
    message = refuse(tmp_path, f"{SCENE}[neighbors]\n{text}")
    assert message.startswith(f"{tmp_path / 'job.toml'}: [neighbors] ")
    assert "\n" not in message
    # Neither the table as Python shows it, nor advice on how to write one.
    assert "{" not in message
    assert "It is a table" not in message
    for word in words:
        assert word in message, message


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("neighbors.radius=2.5", ["radius = 2.5", 'read only with neighbors.method = "radius"']),
        ("neighbors.method=radius", ['method = "radius"', "neighbors.radius"]),
        ("neighbors.metric=cosine", ["neighbors.metric = 'cosine'", "'euclidean' or 'angle'"]),
    ],
)
def test_load_job__wrong_neighbors_end_the_command(tmp_path, cli, override, words):
    result = cli("plan", write(tmp_path, SCENE), "--set", override)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert "Traceback" not in result.stderr
    for word in words:
        assert word in result.stderr, result.stderr


@pytest.mark.parametrize(
    "text",
    [
        "method = 'radius'\nradius = 3.14\nmetric = 'angle'",
        "method = 'radius'\nradius = 700",
        "recall = 1",
        "metric = 'angle'\nsearcher = 'pynndescent'",
    ],
)
def test_load_job__neighbors_that_go_together(tmp_path, text):
    job = load_job(write(tmp_path, f"{SCENE}[neighbors]\n{text}"))
    assert load_job(write(tmp_path, job.to_toml(), "again.toml")).neighbors == job.neighbors


def test_load_job__lists_every_mistake(tmp_path):
    message = refuse(tmp_path, SCENE + "[neighbors]\nk = 0\nleaf = 3\n[spectrum]\ndimension = 0")
    assert len(message.splitlines()) == 3
    for word in ("neighbors.k = 0", "neighbors.leaf", "spectrum.dimension = 0"):
        assert word in message


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ["scene is missing"]),
        ("[scene]", ["scene.path is missing", "required"]),
        ("scene = 'a.tif'", ["scene = 'a.tif'", "[scene]"]),
        ("[scene]\npath = ''", ["scene.path", "empty"]),
        ("[scene]\npath = []", ["scene.path", "empty"]),
        ("[scene]\npath = 3", ["scene.path = 3", "string"]),
        ("name = 'x'\n" + SCENE, ["unknown key name", "Tables: scene"]),
        ("base = 'x'\n" + SCENE, ["unknown key base", "Tables: scene"]),
        ("k = 3\n" + SCENE, ["unknown key k"]),
        ("[scene\n", ["not valid TOML", "line 1"]),
        (SCENE + "path = 'b'", ["not valid TOML", "overwrite a value"]),
    ],
)
def test_load_job__says_what_is_wrong_with_the_file(tmp_path, text, words):
    message = refuse(tmp_path, text)
    for word in words:
        assert word in message, message


def test_load_job__reads_tables_within_tables(tmp_path):
    text = SCENE + "[graph.spatial]\nneighbors = 4\n"
    job = load_job(write(tmp_path, text), ["graph.spatial.weight=2.5"])
    assert (job.graph.spatial.neighbors, job.graph.spatial.weight) == (4, 2.5)
    assert load_job(write(tmp_path, job.to_toml(), "again.toml")).graph == job.graph
    assert load_job(write(tmp_path, SCENE), ["graph.spatial.weight=3"]).graph.spatial.weight == 3
    assert load_job(write(tmp_path, SCENE)).graph.spatial is None


@pytest.mark.parametrize(
    ("text", "overrides", "words"),
    [
        ("[graph.spatial]\nneighbors = 5", [], ["graph.spatial.neighbors = 5", "4 or 8", "Default: 8"]),
        ("[graph.spatial]\nweigth = 5", [], ["unknown key graph.spatial.weigth", "graph.spatial.weight?"]),
        ("[graph.spatal]", [], ["unknown key graph.spatal", "Did you mean graph.spatial?"]),
        ("[graph]\nspatial = 8", [], ["graph.spatial = 8", "Write [graph.spatial]"]),
        ("", ["graph.spatial.weight=0"], ["graph.spatial.weight = 0", "greater than 0"]),
        ("[graph]\nspatial = 8", ["graph.spatial.weight=1"], ["graph.spatial is not a table"]),
    ],
)  # fmt: skip
def test_load_job__says_what_is_wrong_in_a_table_within_a_table(tmp_path, text, overrides, words):
    message = refuse(tmp_path, SCENE + text, *overrides)
    assert len(message.splitlines()) == 1
    for word in words:
        assert word in message, message


def test_resolve__is_relative_to_the_job_file(tmp_path, monkeypatch):
    (tmp_path / "jobs").mkdir()
    job = load_job(write(tmp_path, SCENE, "jobs/a.toml"))
    monkeypatch.chdir("/")
    assert job.resolve("a.tif") == str(tmp_path / "jobs" / "a.tif")
    assert job.resolve("../a.tif") == str(tmp_path / "a.tif")
    assert job.resolve("/data/a.tif") == "/data/a.tif"
    assert job.resolve("https://host/a.tif") == "https://host/a.tif"
    monkeypatch.setenv("HOME", "/home/somebody")
    assert job.resolve("~/a.tif") == "/home/somebody/a.tif"


def test_resolve__a_linked_job_file_stands_where_its_link_does(tmp_path):
    (tmp_path / "site").mkdir()
    write(tmp_path, SCENE)
    (tmp_path / "site" / "job.toml").symlink_to("../job.toml")
    job = load_job(tmp_path / "site" / "job.toml")
    assert job.resolve("a.tif") == str(tmp_path / "site" / "a.tif")


def test_resolve__relative_job_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path, SCENE)
    job = load_job("job.toml")
    monkeypatch.chdir("/")
    assert job.resolve("a.tif") == str(tmp_path / "a.tif")


@pytest.mark.parametrize(
    "table",
    [
        {"scene": {"path": "a.tif"}},
        {
            "scene": {"path": ["a.tif", "b.tif"], "bad_bands": [1, "3-5"], "scale": 0.1, "nodata": -1},
            "graph": {"bandwidth": 2.5},
            "learn": {"train": 0.3, "split": "blocked"},
            "limits": {"memory": "3 GiB", "threads": 4},
            "output": {"directory": "../x", "formats": []},
        },
        {"scene": {"path": 'a "quoted" \\ name\u00e9.tif'}, "learn": {"train": "marks.tif"}},
        {"scene": {"path": "a.tif"}, "learn": {"train": 30}},
    ],
)  # fmt: skip
def test_to_toml__round_trips(tmp_path, table):
    job = parse_job(table, name="copy", base=tmp_path)
    again = load_job(write(tmp_path, job.to_toml(), "copy.toml"))
    assert again == job
    # Every default is written out, but those of methods that are still to be chosen.
    assert ("leaf_size" in job.to_toml()) != job.open


def test_to_toml__nodata_that_is_no_number(tmp_path):
    job = parse_job({"scene": {"path": "a.tif", "nodata": float("nan")}}, base=tmp_path)
    text = job.to_toml()
    assert "nan" in text
    assert load_job(write(tmp_path, text)).scene.nodata != 0


def test_job__of_a_cube_names_the_function_for_it():
    with pytest.raises(JobError, match=r"Job\(list\).*eigenscape\.job_for\(scene, labels\)"):
        Job([[[0.0]]])


REFUSED = [
    {"learn": {"method": "poisson", "k": 5}},
    {"graph": {"weights": "binary", "bandwidth": 2.0}},
    {"learn": {"method": "k-nn", "areas": True}},
    {"neighbors": {"kk": 3}},
    {"neighbors": {"k": -1}},
    {"kind": 1},
    {"left_out": {"learn.k": 1}},
    {"scene": {"path": ""}},
    {"scene": "a.tif"},
]


@pytest.mark.parametrize("tables", REFUSED, ids=str)
def test_job__of_keywords_is_checked_as_its_tables_are(tables):
    tables = {"scene": {"path": "a.tif"}, **tables}
    with pytest.raises(JobError) as expected:
        parse_job(tables)
    with pytest.raises(JobError) as told:
        Job(**tables)
    assert str(told.value) == str(expected.value).replace("job: ", "Job: ", 1)


def test_job__of_keywords_is_the_job_of_its_tables(tmp_path):
    for tables in (
        {"preset": "halevy-2011"},
        {"learn": {"method": "auto"}},
        {"learn": {"method": "random-forest", "trees": np.int64(4)}},
    ):
        tables = {"scene": {"path": tmp_path / "a.tif"}, **tables}
        job = Job(**tables, name="own", base=tmp_path)
        assert job == parse_job(tables, name="own", base=tmp_path)
        assert job.open == parse_job(tables).open
        assert pickle.loads(pickle.dumps(job)) == job
    assert Job(scene={"path": "a.tif"}).base == Path.cwd()
    with pytest.raises(JobError, match=r"name = 3: input should be a valid string\."):
        Job(scene={"path": "a.tif"}, name=3)


def test_job__model_copy_checks_tables(tmp_path):
    scene = {"path": str(tmp_path / "a.tif")}
    given = {"scene": scene, "neighbors": {"k": 8}, "learn": {"method": "svm", "gamma": 0.5}}
    job = parse_job(given, name="first", base=tmp_path, strict=False)
    assert job.left_out == {"learn.gamma": 0.5}
    for neighbors in ({"k": 9}, {"method": "exact"}):
        found = job.model_copy(update={"neighbors": neighbors, "name": "second"})
        rest = {**given, "neighbors": neighbors, "learn": {"method": "svm"}}
        expected = parse_job(rest, name="second", base=tmp_path)
        assert found == expected.model_copy(update={"left_out": job.left_out})
        assert (found.base, found.open) == (tmp_path, expected.open)
    nearer = job.neighbors.model_copy(update={"k": 5})
    both = job.model_copy(update={"neighbors": nearer, "limits": {"threads": np.int64(2)}})
    assert (both.neighbors.k, both.limits.threads, both.learn.method) == (5, 2, "svm")
    assert job.model_copy() == job
    assert job.model_copy(deep=True).scene is not job.scene
    for update, words in (
        ({"neighbors": {"kk": 9}}, r"unknown key neighbors\.kk\. Did you mean neighbors\.k\?"),
        ({"neighbours": nearer}, r"unknown key neighbours\. Did you mean \[neighbors\]"),
        ({"limits": 3}, "Job.model_copy: limits = 3"),
        ({"preset": "best"}, "Job.model_copy: preset = 'best'"),
        ({"learn": {"method": "k-nn", "gamma": 1.0}}, r"learn\.gamma"),
    ):
        with pytest.raises(JobError, match=words):
            job.model_copy(update=update)


def test_job__has_a_hash_that_equal_jobs_share(tmp_path):
    tables = {
        "scene": {"path": "a.tif"},
        "output": {"colors": {"water": "#005ce6", "7": "#aabbcc"}},
    }
    job = parse_job(tables, base=tmp_path)
    tables["output"] = {"colors": dict(reversed(tables["output"]["colors"].items()))}
    other = parse_job(tables, base=tmp_path)
    assert job == other
    assert len({job, other, pickle.loads(pickle.dumps(job))}) == 1
    assert job.model_copy(update={"name": "second"}) not in {job}


@pytest.mark.parametrize("number", [7, np.int64(7), "7"])
def test_job__colors_of_class_numbers(number):
    tables = {
        "scene": {"path": "a.tif"},
        "output": {"colors": {"water": "#005ce6", number: "#aabbcc"}},
    }
    for job in (parse_job(tables), Job(**tables)):
        assert job.output.colors == {"water": "#005ce6", "7": "#aabbcc"}
        assert parse_job(tomllib.loads(job.to_toml())).output == job.output
    with pytest.raises(JobError, match=r"output\.colors"):
        parse_job({"scene": {"path": "a.tif"}, "output": {"colors": {True: "#aabbcc"}}})


@pytest.mark.parametrize("name", ["a/b", "../up", "", ".."])
def test_parse_job__refuses_a_name_that_is_no_name_of_a_directory(name):
    with pytest.raises(JobError, match="a text without slashes"):
        parse_job({"scene": {"path": "scene.tif"}}, name=name)


@pytest.mark.parametrize("split", ["blocked", "balanced"])
def test_parse_job__areas_need_a_random_sample(split):
    table = {
        "scene": {"path": "a.tif", "labels": "b.tif"},
        "learn": {"areas": True, "split": split},
    }
    with pytest.raises(JobError, match=r"need.* a random sample"):
        parse_job({**table, "learn": {"method": "k-nn", "train": 0.2, **table["learn"]}})

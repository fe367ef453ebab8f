"""Keys that no method of the job reads are refused; what they do is in tests/system/test_matrix.py."""

import itertools
from typing import get_args

import pytest

from eigenscape.errors import JobError
from eigenscape.job.choices import value_of
from eigenscape.job.jobfile import Job, load_job, parse_job
from eigenscape.job.options import REGISTRIES
from eigenscape.job.relevance import READ_WITH, unread

POTENTIAL = {"potential": {"labels": "train"}}


def parse(**tables):
    return parse_job({"scene": {"path": "a.tif"}, **tables})


@pytest.mark.parametrize(
    ("tables", "said"),
    [
        (
            {"learn": {"gamma": 0.5}},
            'learn.gamma = 0.5: has no effect with learn.method = "centroid-angle". It is read only with '
            'learn.method = "eigenfunctions" or "tikhonov". Remove learn.gamma, or change learn.method.',
        ),
        (
            {"learn": {"method": "tikhonov", "time": 3}},
            'learn.time = 3.0: has no effect with learn.kernel = "power". It is read only with learn.method '
            '= "tikhonov" and learn.kernel = "heat". Remove learn.time, or change learn.kernel.',
        ),
        (
            {"learn": {"method": "normalized-cut", "train": 0.1}},
            'learn.train = 0.1: has no effect with learn.method = "normalized-cut". It is read only with '
            'learn.method other than "normalized-cut" or "spectral-clustering", or with '
            'graph.potential.labels = "train". Remove learn.train, or change learn.method.',
        ),
        (
            {"learn": {"train": "marks.tif", "trials": 3}},
            'learn.trials = 3: has no effect with learn.train = "marks.tif". It is read only with '
            'learn.method other than "normalized-cut" or "spectral-clustering" and learn.train = '
            '"all", a share or a number and graph.potential.labels other than "train".',
        ),
        (
            {"neighbors": {"recall": 0.9, "refine": 1}},
            'neighbors.refine = 1: has no effect with neighbors.recall = 0.9. It is read only with '
            'neighbors.method = "lanczos-bisection" and no neighbors.recall.',
        ),
        (
            {"features": {"spatial": {"method": "guided", "range_sigma": 2}}},
            'features.spatial.range_sigma = 2.0: has no effect with features.spatial.method = '
            '"guided". It is read only with features.spatial.method = "bilateral".',
        ),
        ({"neighbors": {"radius": 2}}, 'read only with neighbors.method = "radius"'),
        ({"learn": {"prior": [0.5, 0.5]}}, "learn.prior = [0.5, 0.5]: has no effect"),
        ({"features": {"method": "mnf", "standardize": True}}, "features.standardize = true: has no effect"),
    ],
)  # fmt: skip
def test_parse_job__names_the_methods_that_read_a_key(tables, said):
    with pytest.raises(JobError) as caught:
        parse(**tables)
    assert said in str(caught.value)
    assert str(caught.value).startswith("job: ")


def test_parse_job__lists_all_keys_that_nothing_reads(tmp_path, cli):
    path = tmp_path / "job.toml"
    path.write_text(
        '[scene]\npath = "a.tif"\n[learn]\nk = 5\n[features]\nmethod = "pca"\nseed = 1\n'
    )
    done = cli("plan", path)
    assert done.exit_code == 2
    lines = done.stderr.splitlines()
    assert len(lines) == 2
    assert "features.seed = 1" in lines[0]
    assert f"{path}: learn.k = 5" in lines[1]


@pytest.mark.parametrize(
    "tables",
    [
        {"learn": {"method": "tikhonov", "kernel": "heat", "time": 3, "gamma": 1}},
        {"learn": {"method": "k-nn", "k": 5, "prior": "uniform", "split": "blocked", "trials": 3}},
        {"learn": {"method": "normalized-cut", "train": 0.1, "seed": 1}, "graph": POTENTIAL},
        {"learn": {"method": "spectral-clustering", "seed": 1, "clusters": 4}},
        {"learn": {"method": "k-nn", "gamma": 1e-5, "assign": "cluster-qr"}},
    ],
)
def test_parse_job__keys_that_are_read_or_have_their_defaults(tables):
    assert parse(**tables) is not None


def test_read_with__names_keys_and_values_that_there_are():
    everything = parse(
        features={"spatial": {}},
        graph={"potential": {"labels": "train"}, "spatial": {}},
        learn={"train": 0.5},
    )
    for key, alternatives in READ_WITH.items():
        section, _, name = key.rpartition(".")
        assert name in type(value_of(everything, section)).model_fields
        for choice in itertools.chain(*alternatives):
            section, _, name = choice.key.rpartition(".")
            field = type(value_of(everything, section)).model_fields[name]
            words = {word for kind in (field.annotation, *get_args(field.annotation))
                     for word in get_args(kind) or (kind,)}  # fmt: skip
            strings = {value for value in choice.values if isinstance(value, str)}
            assert strings <= words | {"train"}


@pytest.mark.parametrize("method", REGISTRIES["learn"].names())
def test_to_toml__a_job_that_says_all_keys_can_be_read_again(tmp_path, method):
    job = parse(
        learn={"method": method}, features={"method": "none"}, neighbors={"method": "exact"}
    )
    (tmp_path / "job.toml").write_text(job.to_toml())
    assert load_job(tmp_path / "job.toml").learn == job.learn


def test_load_job__an_override_of_a_method_leaves_out_what_it_does_not_read(tmp_path):
    (tmp_path / "job.toml").write_text(
        '[scene]\npath = "a.tif"\n[learn]\nmethod = "tikhonov"\ngamma = 0.5\n[features]\ndimension = 9\n'
    )
    path = tmp_path / "job.toml"
    job = load_job(path, ["learn.method=k-nn", "features.method=none"])
    assert (job.learn.method, hasattr(job.learn, "gamma"), job.features.method) == (
        "k-nn",
        False,
        "none",
    )
    assert not hasattr(job.features, "dimension")
    assert load_job(path, ["learn.power=2"]).learn.gamma == 0.5
    with pytest.raises(
        JobError, match=r"learn\.power = 3: has no effect with learn\.method = \"k-nn"
    ):
        load_job(path, ["learn.method=k-nn", "learn.power=3"])
    with pytest.raises(JobError, match=r"learn\.k = 5: has no effect"):
        load_job(path, ["learn.k=5"])
    path.write_text(path.read_text() + "seed = 3\n[neighbors]\nlandmarks = 50\n")
    with pytest.raises(JobError, match=r"neighbors\.landmarks = 50: has no effect"):
        load_job(path, ["learn.method=k-nn"])


def test_load_job__an_override_leaves_out_keys_of_tables_in_tables(tmp_path):
    path = tmp_path / "job.toml"
    path.write_text('[scene]\npath = "a.tif"\n[features.spatial]\nrange_sigma = 2\nradius = 4\n')
    job = load_job(path, ["features.spatial.method=guided"])
    assert (job.features.spatial.range_sigma, job.features.spatial.radii) == (4.0, (4,))


def test_parse_job__not_strict_takes_what_an_earlier_version_wrote():
    table = {"scene": {"path": "a.tif"}, "learn": {"gamma": 0.5}}
    job = parse_job(table, strict=False)
    assert isinstance(job, Job)
    assert list(unread(job)) == ["learn.gamma"]

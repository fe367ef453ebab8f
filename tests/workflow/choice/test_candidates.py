import pytest

from eigenscape.job.changes import changed, given_keys
from eigenscape.job.jobfile import parse_job, unknown_key
from eigenscape.workflow.choice.candidates import (
    AUTO,
    CLUSTERS,
    GRAPHLESS,
    LADDER,
    SCATTERED,
    WIDER,
    WITH_EIGENVECTORS,
    Option,
    candidate,
)
from eigenscape.workflow.choice.survey import Survey

GROUND = Survey(table=False, pixels=400, samples=400, bands=100, alike=0.1, labelled={1: 20, 2: 30})


def job_of(**tables):
    return parse_job({"scene": {"path": "scene.tif"}, **tables})


@pytest.mark.parametrize(
    "ladder", [LADDER, SCATTERED, CLUSTERS, AUTO, GRAPHLESS, WITH_EIGENVECTORS, WIDER]
)
def test_ladders__every_option_is_a_job(ladder):
    for rung in ladder.rungs:
        for option in rung.options:
            assert [key for key in option.keys if unknown_key(key)] == []
            found = candidate(job_of(), {**ladder.start, **option.keys})
            for key, value in option.keys.items():
                assert found.values[key] == value


def test_option__fits_what_the_scene_is():
    edges = Option({"graph.spatial.weight": 5.0}, ("image",))
    table = Survey(table=True, pixels=400, samples=400, bands=100, alike=None, labelled={})
    assert edges.fits(job_of(), GROUND)
    assert not edges.fits(job_of(), table)
    assert not Option({}, ("labels",)).fits(job_of(), table)
    assert Option({}, ("table",)).fits(job_of(), table)
    assert not Option({}, ("table",)).fits(job_of(), GROUND)
    noise = Option({"features.method": "mnf", "features.dimension": 10}, ("contiguous",))
    shuffled = Survey(table=False, pixels=400, samples=400, bands=100, alike=1.0, labelled={1: 3})
    assert noise.fits(job_of(), GROUND)
    assert not noise.fits(job_of(), shuffled)


def test_option__leaves_keys_of_the_job_alone():
    option = Option({"features.method": "pca", "features.dimension": 20})
    assert not option.fits(job_of(features={"method": "mnf"}), GROUND)
    assert option.fits(job_of(features={"method": "pca"}), GROUND)
    few = Survey(table=False, pixels=400, samples=400, bands=20, alike=0.1, labelled={1: 3})
    assert not option.fits(job_of(), few)


def test_option__sets_no_more_noise_fractions_than_there_are_bands():
    noise = Option({"features.method": "mnf", "features.dimension": 10}, ("contiguous",))
    few = Survey(table=False, pixels=400, samples=400, bands=6, alike=0.1, labelled={1: 3})
    assert noise.fits(job_of(), few)
    assert noise.keys_on(few) == {"features.method": "mnf", "features.dimension": 6}
    assert noise.keys_on(GROUND) == noise.keys
    assert Option({"features.method": "mnf"}).keys_on(few) == {"features.method": "mnf"}


def test_widened__adds_to_the_first_rung():
    first, *others = WIDER.rungs
    assert first.options[: len(GRAPHLESS.rungs[0].options)] == GRAPHLESS.rungs[0].options
    assert any("graph.bandwidth" in option.keys for option in first.options)
    assert others == [*GRAPHLESS.rungs[1:]]


def test_candidate__says_only_what_is_read():
    found = candidate(job_of(), {"learn.method": "k-nn", "learn.k": 5, "learn.gamma": 0.1})
    assert found.values == {"learn.method": "k-nn", "learn.k": 5}
    assert found.title == 'learn.method = "k-nn", learn.k = 5'
    assert found.job.learn.k == 5
    again = candidate(job_of(learn={"k": 7, "method": "k-nn"}), found.values)
    assert again.values == {}
    assert again.job.learn.k == 7


def test_changed__leaves_out_what_the_new_methods_do_not_read():
    job = job_of(learn={"method": "k-nn", "k": 7})
    found, left_out = changed(job, {"learn.method": "tikhonov"}, source="job")
    assert left_out == {"learn.k"}
    assert found.learn.method == "tikhonov"
    assert given_keys(found) == {"scene.path": "scene.tif", "learn.method": "tikhonov"}

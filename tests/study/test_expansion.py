import pytest

from eigenscape import load_job, parse_job
from eigenscape.errors import JobError
from eigenscape.study.expansion import expand


def values(variants):
    return [(variant.name, dict(variant.values)) for variant in variants]


def study(**table):
    return parse_job({"scene": {"path": "a.npy"}, "study": table}, name="study")


def test_expand__every_combination_that_where_leaves(write_study):
    variants = expand(load_job(write_study()))
    few = {"learn.train": 12, "learn.eigenvectors": 3}
    assert values(variants) == [
        ("eigenfunctions", few),
        ("eigenfunctions", {"learn.train": 40, "learn.eigenvectors": 3}),
        ("eigenfunctions", {"learn.train": 40, "learn.eigenvectors": 8}),
        # The condition names a key that this one drops.
        ("best k-NN", {"learn.train": 12, "learn.k": 1}),
        ("best k-NN", {"learn.train": 12, "learn.k": 3}),
        ("best k-NN", {"learn.train": 40, "learn.k": 1}),
        ("best k-NN", {"learn.train": 40, "learn.k": 3}),
    ]
    first, last = variants[0].job, variants[-1].job
    assert (first.learn.method, first.learn.train, first.learn.eigenvectors) == (
        "eigenfunctions", 12, 3,
    )  # fmt: skip
    assert (last.learn.method, last.learn.train, last.learn.k) == ("k-nn", 40, 3)
    assert not hasattr(last.learn, "eigenvectors")
    assert {variant.job.study for variant in variants} == {None}
    assert len({variant.slug for variant in variants}) == len(variants)


def test_expand__a_grid_alone_needs_no_names():
    variants = expand(study(grid={"neighbors.k": [4, 8], "graph": {"weights": ["heat"]}}))
    assert values(variants) == [
        ("", {"neighbors.k": 4, "graph.weights": "heat"}),
        ("", {"neighbors.k": 8, "graph.weights": "heat"}),
    ]
    assert variants[0].title == "neighbors.k = 4, graph.weights = heat"


def test_expand__variants_alone_need_no_grid():
    named = [{"name": "spatial", "set": {"graph.spatial.weight": 2.0}}, {"name": "spectral"}]
    spatial, spectral = expand(study(variants=named))
    assert spatial.job.graph.spatial.weight == 2.0
    assert spectral.job.graph.spatial is None


def test_expand__writes_no_maps_unless_the_file_asks_for_them():
    table = {"scene": {"path": "a.npy"}, "study": {"grid": {"neighbors.k": [4]}}}
    assert expand(parse_job(table))[0].job.output.formats == ()
    table["output"] = {"formats": ["png"]}
    assert expand(parse_job(table))[0].job.output.formats == ("png",)


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({}, ["has no variants", "[study.grid]"]),
        ({"grid": {}}, ["has no variants"]),
        ({"grid": {"learn.train": []}}, ["learn.train = []", "empty list"]),
        ({"grid": {"learn.train": 5}}, ["learn.train = 5", "give a list"]),
        ({"grid": {"learn.train": [5, 5]}}, ["5 occurs twice"]),
        ({"grid": {"learn.trian": [5]}}, ["unknown key learn.trian", "Did you mean learn.train?"]),
        ({"grid": {"lern.train": [5]}}, ["unknown key lern.train", "[learn]"]),
        ({"grid": {"neighbors.k": [4, 0]}}, ["neighbors.k = 0", "greater than or equal to 1"]),
        ({"grid": {"limits.threads": [1, 2]}}, ["limits.threads", "changes no result"]),
        (
            {"grid": {"neighbors.k": [4]}, "where": "neighbors.k > 9"},
            ["neighbors.k > 9", "leaves no variant"],
        ),
        ({"grid": {"neighbors.k": [4]}, "where": "neighbors.kk > 9"}, ["neighbors.kk", "neighbors.k?"]),
        ({"grid": {"neighbors.k": [4]}, "where": "learn.method > 9"}, ["cannot be evaluated", "str"]),
        ({"grid": {"neighbors.k": [4]}, "where": "neighbors.k >"}, ["not a condition"]),
        ({"variants": [{"name": "a"}, {"name": "a"}]}, ["'a' occurs twice"]),
        ({"variants": [{"set": {}}]}, ["study.variants.name is missing"]),
        ({"variants": [{"name": "a", "sett": {}}]}, ["study.variants.sett", "study.variants.set?"]),
        ({"variants": [{"name": "a", "drop": ["learn.k"]}]}, ["drop", "'learn.k'", "none"]),
        ({"grid": {"neighbors.k": [4]}, "measure": "eror"}, ["'eror'", "Did you mean error?"]),
        ({"grid": {"neighbors.k": [4]}, "rows": "neighbours.k"}, ["rows", "neighbors.k?"]),
        ({"grid": {"neighbors.k": [4]}, "plot": {"y": "error"}}, ["study.plot.x is missing"]),
        ({"grid": {"neighbors.k": [4]}, "plot": {"x": "size"}}, ["plot.x", "samples"]),
        (
            {"grid": {"neighbors.k": [4]}, "plot": {"x": "neighbors.k", "panels": "neighbors.kk"}},
            ["plot.panels", "neighbors.k?"],
        ),
        ({"grid": {"neighbors.k": [4]}, "tilte": "x"}, ["study.tilte", "study.title"]),
    ],
)  # fmt: skip
def test_expand__says_what_is_wrong(table, words):
    with pytest.raises(JobError) as caught:
        expand(study(**table))
    for word in words:
        assert word in str(caught.value)


# --- overrides


def test_load_job__a_list_of_the_grid_can_be_set(write_study):
    job = load_job(write_study(), ["study.grid.learn.train=[30]", "learn.trials=2"])
    assert {variant.job.learn.train for variant in expand(job)} == {30}
    assert {variant.job.learn.trials for variant in expand(job)} == {2}


def test_load_job__a_key_that_varies_cannot_be_set(write_study):
    with pytest.raises(JobError, match=r"the study varies learn.train; set study.grid.learn.train"):
        load_job(write_study(), ["learn.train=30"])


def test_load_job__small_version(write_study):
    job = load_job(write_study("big"), small=True)
    assert job.name == "big-small"
    assert {(v.job.learn.train, v.job.learn.trials) for v in expand(job)} == {(20, 2)}


def test_load_job__no_small_version(write_study):
    path = write_study(study={"grid": {"neighbors.k": [4]}})
    with pytest.raises(JobError, match=r"Add a table \[study.small\]"):
        load_job(path, small=True)


def test_expand__shared_keys_are_left_out_where_nothing_reads_them():
    table = {
        "scene": {"path": "a.npy"},
        "learn": {"gamma": 0.5, "split": "blocked"},
        "study": {"grid": {"learn.method": ["tikhonov", "k-nn", "normalized-cut"]}},
    }
    found = [variant.job.learn for variant in expand(parse_job(table, name="study"))]
    assert [getattr(learn, "gamma", None) for learn in found] == [0.5, None, None]
    assert [learn.split for learn in found] == ["blocked", "blocked", "random"]
    table["study"]["grid"]["learn.method"] = ["k-nn", "poisson"]
    with pytest.raises(
        JobError, match=r"study: in every variant, learn\.gamma = 0\.5: has no effect"
    ):
        expand(parse_job(table, name="study"))


def test_expand__raises_on_a_varied_key_that_its_variant_does_not_read():
    grid = {"learn.method": ["k-nn", "poisson"], "learn.k": [1, 3]}
    with pytest.raises(
        JobError, match=r"learn\.method = poisson, learn\.k = 1: learn\.k = 1: has no effect"
    ):
        expand(study(grid=grid))
    kept = expand(study(grid=grid, where="learn.method == 'k-nn'"))
    assert [variant.job.learn.k for variant in kept] == [1, 3]
    with pytest.raises(JobError, match=r"study, one: learn\.gamma = 0\.5: has no effect"):
        expand(study(variants=[{"name": "one", "set": {"learn.gamma": 0.5}}]))

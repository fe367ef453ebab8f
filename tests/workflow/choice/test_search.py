from dataclasses import replace

import pytest

from eigenscape.base.process.progress import Silent
from eigenscape.errors import BusyError, ClusterLostError, OutputError, TaskMemoryError
from eigenscape.job.jobfile import parse_job
from eigenscape.workflow.choice.candidates import candidate, read_ladder
from eigenscape.workflow.choice.search import Search, Unlimited
from eigenscape.workflow.choice.survey import Survey
from eigenscape.workflow.choice.trials import Scored, Trials, trial_stages
from harness import Notes

GROUND = Survey(table=False, pixels=400, samples=400, bands=100, alike=0.1, labelled={1: 20, 2: 30})

LADDER_TABLE = {
    "start": {"learn.method": "interpolated"},
    "rungs": [
        {
            "name": "k", "draws": 2, "keep": 2,
            "options": [{"keys": {"neighbors.k": k}} for k in (4, 8, 16, 32)],
        },
        {
            "name": "bandwidth", "draws": 5, "keep": 2,
            "options": [{"keys": {}}, {"keys": {"graph.bandwidth": 0.5}}],
        },
    ],
}  # fmt: skip
LADDER = read_ladder(LADDER_TABLE)


class Fake:
    """Scores jobs by a formula, and notes what it was asked for."""

    def __init__(self, failing=(), error=None):
        self.asked, self.failing = [], failing
        self.error = error or ValueError("it cannot")

    def score(self, job, trials):
        self.asked.append((job.neighbors.k, job.graph.bandwidth, trials.first, trials.last))
        if job.neighbors.k in self.failing:
            raise self.error
        accuracy = 0.5 + 0.01 * job.neighbors.k - 0.2 * (job.graph.bandwidth == "auto")
        draws = [
            {"overall_accuracy": accuracy + 0.001 * trial, "samples": 7}
            for trial in range(trials.first, trials.last)
        ]
        return Scored({"draws": draws}, 1.0)

    def finished(self, job, trials):
        return False


class Few(Unlimited):
    """Allows so many jobs."""

    def __init__(self, most):
        self.left = most

    def allows(self, calls=1):
        return self.left > 0

    def end(self, *, fresh):
        self.left -= 1


def search_of(scorer, budget=None):
    job = parse_job({"scene": {"path": "scene.npy"}, "output": {"eigenvectors": 0}})
    return Search(job, GROUND, "blocked", scorer, budget or Unlimited(), Silent())


def offline(monkeypatch):
    """Let keys of trials depend on the job alone, not on files."""
    monkeypatch.setattr(
        "eigenscape.workflow.choice.search.trial_key",
        lambda job, trials: f"{job.neighbors.k}-{job.graph.bandwidth}",
    )


def test_climb__keeps_the_best_and_scores_them_on_more_draws(monkeypatch):
    offline(monkeypatch)
    fake = Fake()
    search = search_of(fake)
    best = search.climb(LADDER)
    assert [one.candidate.values["neighbors.k"] for one in best] == [32, 16]
    assert all(one.candidate.values["graph.bandwidth"] == 0.5 for one in best)
    # Cheapest first, each draw once: those that stay are scored on the draws that they lack.
    assert fake.asked[:4] == [(k, "auto", 0, 2) for k in (4, 8, 16, 32)]
    assert sorted(fake.asked[4:], key=str) == sorted(
        [(k, *rest) for k in (16, 32) for rest in (("auto", 2, 5), (0.5, 0, 2), (0.5, 2, 5))],
        key=str,
    )
    assert len(search.tried) == 6


def test_climb__ends_where_no_labels_are_left_to_test_on(monkeypatch):
    offline(monkeypatch)

    class Untested(Fake):
        def score(self, job, trials):
            draws = super().score(job, trials).summary["draws"]
            return Scored({"draws": [{**one, "samples": 0} for one in draws]}, 1.0)

    fake = Untested()
    search = search_of(fake)
    assert not search.untested
    search.climb(LADDER)
    assert search.untested
    assert len(fake.asked) == 1


@pytest.mark.parametrize(
    ("best", "average", "slow", "chosen", "scored"),
    [
        (0.995, 0.995, False, 4, 1), (0.985, 0.985, False, 4, 10),
        # A class of less than a percent may be lost within that percent.
        (0.995, 0.5, False, 4, 10),
        # A slow job has to be ahead of a quick one, so these are tried.
        (0.995, 0.995, True, 8, 10),
    ],
)  # fmt: skip
def test_climb__ends_where_no_lead_that_matters_is_left(
    monkeypatch, best, average, slow, chosen, scored
):
    offline(monkeypatch)

    class Easy(Fake):
        def score(self, job, trials):
            super().score(job, trials)
            behind = 0 if job.neighbors.k == 4 else 0.006 + 0.0001 * job.neighbors.k
            draw = {"overall_accuracy": best - behind, "average_accuracy": average, "samples": 7}
            draws = [draw] * (trials.last - trials.first)
            return Scored({"draws": draws}, 1.0)

    first, *others = LADDER_TABLE["rungs"]
    options = [{**option, "slow": slow} for option in first["options"][:1]]
    first = {**first, "options": [*options, *first["options"][1:]]}
    search = search_of(Easy())
    search.scene, search.reporter = replace(GROUND, pixels=10**6), Notes()
    found = search.climb(read_ladder({**LADDER_TABLE, "rungs": [first, *others]}))
    assert found[0].candidate.values["neighbors.k"] == chosen
    assert len(search.scorer.asked) == scored
    said = "no other job can be ahead of it by more than 1 %: nothing more is tried"
    assert search.reporter.notes == ([said] if scored == 1 else [])


def machine_ladder(behind):
    """A job with a graph, then a machine that is behind by so much in each draw."""

    class Machines(Fake):
        def score(self, job, trials):
            self.asked.append((job.learn.method, trials.first, trials.last))
            accuracy = 0.9 - (job.learn.method == "svm") * behind
            draws = [
                {"overall_accuracy": accuracy - 0.2 * (trial > 1), "samples": 7}
                for trial in range(trials.first, trials.last)
            ]
            return Scored({"draws": draws}, 1.0)

    options = [{"keys": {}}, {"keys": {"learn.method": "svm"}, "alone": True}]
    rung = {"name": "classifier", "draws": 4, "keep": 2, "options": options}
    return Machines(), read_ladder({"start": {"learn.method": "interpolated"}, "rungs": [rung]})


def test_climb__a_machine_that_is_far_behind_is_not_scored_on_all_draws(monkeypatch):
    monkeypatch.setattr(
        "eigenscape.workflow.choice.search.trial_key", lambda job, trials: job.learn.method
    )
    fake, ladder = machine_ladder(0.08)
    search = search_of(fake)
    # By two draws it has 82 %, and the best job 80 % by four.
    assert [one.candidate.job.learn.method for one in search.climb(ladder)] == ["interpolated"]
    assert sorted(fake.asked) == [("interpolated", 0, 4), ("svm", 0, 2)]
    left = search.tried["svm"]
    assert (left.far_behind, left.ranks, left.drawn) == (True, False, 2)
    # As a finalist it is scored like any other.
    assert search.finish([left]) == [left]
    assert (left.ranks, left.drawn) == (True, 10)


def test_climb__a_machine_that_is_near_is_scored_on_all_draws(monkeypatch):
    monkeypatch.setattr(
        "eigenscape.workflow.choice.search.trial_key", lambda job, trials: job.learn.method
    )
    fake, ladder = machine_ladder(0.04)
    found = search_of(fake).climb(ladder)
    assert [one.candidate.job.learn.method for one in found] == ["interpolated", "svm"]
    assert [one.drawn for one in found] == [4, 4]


def test_finish__says_nothing_again_of_a_job_that_has_all_draws(monkeypatch):
    offline(monkeypatch)

    class Lines(Silent):
        def __init__(self):
            self.lines = []

        def stage(self, name, text):
            self.lines.append(text)

    search = search_of(Fake(failing=[8]))
    search.reporter = Lines()
    first, second, failing = (
        search.add(candidate(search.job, {"neighbors.k": k}), "") for k in (4, 16, 8)
    )
    search.steps = (0, 10)
    search.finish([first, failing])
    assert search.finish([first, second, failing]) == [second, first]
    assert [line.partition(":")[0] for line in search.reporter.lines] == [
        "finalist 1 of 2", "finalist 2 of 3"
    ]  # fmt: skip


def test_judge__one_draw_where_there_is_no_other():
    class Alone(Fake):
        def score(self, job, trials):
            draws = super().score(job, trials).summary["draws"]
            return Scored({"draws": draws[:1]}, 1.0)

    search = search_of(Alone())
    found = [candidate(search.job, {"neighbors.k": k}) for k in (4, 8)]
    assert [len(accuracies) for accuracies in search.judge(found, "blocked")] == [1, 1]
    both = search_of(Fake()).judge(found, "blocked")
    assert [len(accuracies) for accuracies in both] == [10, 10]


def test_finish__compares_by_all_draws(monkeypatch):
    offline(monkeypatch)
    search = search_of(Fake())
    ranked = search.finish(search.climb(LADDER))
    assert [one.drawn for one in ranked] == [10, 10]
    assert ranked[0].candidate.values["neighbors.k"] == 32
    assert len(ranked[0].accuracy) == 10


def test_climb__what_is_tried_once_is_added_to_the_best_job(monkeypatch):
    offline(monkeypatch)
    rungs = [
        LADDER_TABLE["rungs"][0],
        {
            "name": "once", "draws": 2, "keep": 3,
            "options": [{"keys": {}}, {"keys": {"graph.bandwidth": 0.5}, "once": True}],
        },
    ]  # fmt: skip
    search = search_of(Fake())
    search.climb(read_ladder({**LADDER_TABLE, "rungs": rungs}))
    bandwidths = [one.candidate.values for one in search.tried.values()]
    assert [values for values in bandwidths if "graph.bandwidth" in values] == [
        {"learn.method": "interpolated", "neighbors.k": 32, "graph.bandwidth": 0.5}
    ]


class Level(Fake):
    """Jobs with more neighbours are a little worse by squares, and differently at random."""

    def __init__(self, step, random, noise=0.002):
        super().__init__()
        self.step, self.random, self.noise = step, random, noise

    def score(self, job, trials):
        by_squares = 0.9 - self.step * job.neighbors.k
        accuracy = by_squares if trials.split == "blocked" else self.random[job.neighbors.k]
        draws = [
            {
                "overall_accuracy": accuracy
                + (self.noise if trials.split == "blocked" else 0.002)
                * ((trial + job.neighbors.k // 4) % 2),
                "samples": 7,
            }
            for trial in range(trials.first, trials.last)
        ]
        return Scored({"draws": draws}, 1.0)


@pytest.mark.parametrize(
    ("step", "noise", "random", "chosen"),
    [
        (1e-4, 0.002, {4: 0.7, 8: 0.9, 16: 0.8, 32: 0.7}, 8),
        (1e-4, 0.002, {4: 0.795, 8: 0.8, 16: 0.8, 32: 0.8}, 4),  # ahead at random by too little
        (1e-2, 0.002, {4: 0.7, 8: 0.9, 16: 0.8, 32: 0.7}, 4),  # behind by squares, beyond noise
        # Behind by 2 points within noise, and ahead by 20; and by 8.
        (5e-3, 0.1, {4: 0.7, 8: 0.9, 16: 0.8, 32: 0.7}, 8),
        (5e-3, 0.1, {4: 0.8, 8: 0.88, 16: 0.8, 32: 0.7}, 4),
    ],
)
def test_settle_tie__random_draws_decide_between_jobs_within_noise_by_squares(
    monkeypatch, step, noise, random, chosen
):
    offline(monkeypatch)
    search = search_of(Level(step, random, noise))
    rungs = [{**LADDER_TABLE["rungs"][0], "draws": 4, "keep": 1}]
    (best,) = search.climb(read_ladder({**LADDER_TABLE, "rungs": rungs}))
    assert best.candidate.values["neighbors.k"] == 4
    winner, said = search.settle_tie(best, search.tried.values())
    assert winner.candidate.values["neighbors.k"] == chosen
    assert bool(said) == (chosen != 4)
    if said:
        assert said.startswith(
            'within noise by squares of learn.method = "interpolated", neighbors.k = 4'
        )
        assert said.endswith("ahead of it at random, 90.1 to 70.1 %")


def test_settle_tie__squares_alone_decide_where_draws_are_not_by_squares(monkeypatch):
    offline(monkeypatch)
    search = replace(search_of(Level(0.0, dict.fromkeys((4, 8, 16, 32), 0.5))), split="random")
    best, *_ = search.climb(LADDER)
    assert search.settle_tie(best, search.tried.values()) == (best, "")


@pytest.mark.parametrize("kind", [ClusterLostError, OutputError, BusyError, OSError])
def test_climb__an_error_of_no_job_ends_the_search(monkeypatch, kind):
    offline(monkeypatch)
    with pytest.raises(kind):
        search_of(Fake(failing=(32,), error=kind("it cannot"))).climb(LADDER)


def test_climb__a_task_that_takes_too_much_memory_is_a_failure_of_its_job(monkeypatch):
    offline(monkeypatch)
    search = search_of(Fake(failing=(32,), error=TaskMemoryError("too large")))
    assert search.climb(LADDER)


def test_climb__a_job_that_fails_is_left_behind(monkeypatch):
    offline(monkeypatch)
    search = search_of(Fake(failing=(32,)))
    best = search.climb(LADDER)
    assert [one.candidate.values["neighbors.k"] for one in best] == [16, 8]
    failed = [one for one in search.tried.values() if one.error]
    assert [one.reason for one in failed] == ["ValueError: it cannot"]


def test_climb__stops_with_the_budget_and_returns_what_it_has(monkeypatch):
    offline(monkeypatch)
    fake = Fake()
    best = search_of(fake, Few(2)).climb(LADDER)
    assert len(fake.asked) == 2
    assert [one.candidate.values["neighbors.k"] for one in best] == [8, 4]


def test_climb__what_the_job_gives_is_tried_as_it_is(monkeypatch):
    offline(monkeypatch)
    job = parse_job({"scene": {"path": "scene.npy"}, "neighbors": {"k": 5}})
    search = Search(job, GROUND, "blocked", Fake(), Unlimited(), Silent())
    best = search.climb(LADDER)
    assert {one.candidate.job.neighbors.k for one in best} == {5}
    assert candidate(job, {"neighbors.k": 9}).values == {}


def test_climb__what_stands_alone_begins_anew(monkeypatch):
    offline(monkeypatch)
    rungs = [
        LADDER_TABLE["rungs"][0],
        {
            "name": "anew", "draws": 2, "keep": 3,
            "options": [{"keys": {}}, {"keys": {"graph.bandwidth": 0.5}, "alone": True}],
        },
    ]  # fmt: skip
    search = search_of(Fake())
    search.climb(read_ladder({**LADDER_TABLE, "rungs": rungs}))
    values = [one.candidate.values for one in search.tried.values()]
    assert values.count({"graph.bandwidth": 0.5}) == 1
    assert not any(len(one) > 1 and "graph.bandwidth" in one for one in values)


class Noisy(Fake):
    """Scores jobs by half a point for each neighbour, and by noise."""

    def __init__(self, noise):
        super().__init__()
        self.noise = noise

    def score(self, job, trials):
        scored = super().score(job, trials)
        for trial, draw in enumerate(scored.summary["draws"], trials.first):
            draw["overall_accuracy"] += (self.noise * (-1) ** trial - 0.005) * job.neighbors.k
        return scored


@pytest.mark.parametrize(
    ("pixels", "slow", "noise", "first"),
    [
        (400, 5, 0.0, 5),
        # Half a point ahead, a point and a half, many within the noise, many beyond it.
        (2**19, 5, 0.0, 4), (2**19, 7, 0.0, 7), (2**19, 32, 0.02, 4), (2**19, 32, 0.001, 32),
    ],
)  # fmt: skip
def test_climb__what_is_slow_has_to_be_clearly_better_in_large_scenes(
    monkeypatch, pixels, slow, noise, first
):
    offline(monkeypatch)
    options = [{"keys": {"neighbors.k": 4}}, {"keys": {"neighbors.k": slow}, "slow": True}]
    rung = {"name": "k", "draws": 4, "keep": 1, "options": options}
    search = replace(search_of(Noisy(noise)), scene=replace(GROUND, pixels=pixels))
    best = search.climb(read_ladder({**LADDER_TABLE, "rungs": [rung]}))
    assert [one.candidate.values["neighbors.k"] for one in best] == [first]
    assert len(search.tried) == 2


def test_trial_stages__end_where_the_classifier_reads():
    trials = Trials("all", "random", 0, 2)
    for method, last in {
        "svm": "features", "random-forest": "features", "k-nn": "features", "poisson": "graph",
        "eigenfunctions": "spectrum",
    }.items():  # fmt: skip
        job = parse_job({"scene": {"path": "scene.npy"}, "learn": {"method": method}})
        *_, before, scoring = trial_stages(job, trials)
        assert (before.name, scoring.follows) == (last, ("ingest", last))

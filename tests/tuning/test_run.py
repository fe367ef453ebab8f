import csv
import json
import subprocess
import sys
import time
import tomllib
from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from eigenscape import load_job, plan, tune
from eigenscape.base.files.tables import read_table
from eigenscape.errors import InputError, SceneError
from eigenscape.job.files.overrides import changed_name
from eigenscape.labels.nested import BESIDE, Nested
from eigenscape.scenes.types import Grid
from eigenscape.store.manifest import read_manifest
from eigenscape.store.run import Run
from eigenscape.tuning import run as tuning
from eigenscape.tuning.run import split_of
from eigenscape.workflow.choice import auto
from eigenscape.workflow.choice.candidates import read_ladder
from eigenscape.workflow.choice.search import Search
from eigenscape.workflow.choice.tried import Interval
from harness import Counted, Notes
from ladders import QUICK_RUNGS, RUNGS

pytestmark = pytest.mark.usefixtures("short_ladder")

UNBEATABLE = Search.unbeatable
"""The property itself, which `short_ladder` replaces."""


def table_of(tuned):
    with tuned.outputs["table"].open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def test_tune__writes_a_job_that_plans_a_table_and_a_picture(tuned):
    _, tuned, _ = tuned
    best = load_job(tuned.outputs["job"])
    assert best.learn.method == tuned.job.learn.method
    assert best.features == tuned.job.features
    assert best.graph == tuned.job.graph
    assert plan(best).samples == 36 * 30
    text = tuned.outputs["job"].read_text(encoding="utf-8")
    assert "that were not used for tuning" in text
    assert text.startswith("# Chosen by")
    rows = table_of(tuned)
    assert {row["state"] for row in rows} == {"finished"}
    assert sum("chosen" in row["candidate"] for row in rows) == 1
    assert sum("as given" in row["candidate"] for row in rows) == 1
    # A job without a graph; three kinds of features, two of which go on with three classifiers each; the job
    # as it was given.
    assert len(rows) == 1 + 3 + 4 + 1
    # It is compared by all draws, whatever the others are.
    (quick,) = [one for one in tuned.tried if one.candidate.values.get("learn.method") == "k-nn"]
    assert quick.drawn == 10
    assert tuned.outputs["plot"].read_bytes().startswith(b"\x89PNG")
    assert json.loads(json.dumps(tuned.to_json()))["chosen"] == dict(tuned.values)


def test_tune__chooses_the_best_mean_of_all_draws(tuned):
    _, tuned, _ = tuned
    finalists = [one for one in tuned.tried if one.drawn == 10]
    assert len(finalists) >= 2
    best = max(finalists, key=lambda one: np.mean(one.accuracy))
    assert best.candidate.values == tuned.values


def test_tune__judges_by_squares_that_no_draw_of_the_choice_holds(tuned):
    path, tuned, _ = tuned
    variants = sorted((tuned.path / "variants").iterdir())
    records = [Run(variant, create=False).manifest["stages"] for variant in variants]
    judged = [
        [stages[f"judging-blocked-{part}"]["summary"] for part in ("0-5", "5-10")]
        for stages in records
        if "judging-blocked-0-5" in stages
    ]
    labels = np.load(path.with_name("labels.npy"))
    row, column = np.nonzero(labels)
    job = load_job(path)
    nested = Nested(
        job.learn, "blocked", labels[row, column].astype(int) - 1, row, column, Grid(36, 30)
    )
    assert len(judged) == 2
    for halves in judged:
        assert {half["seen"] for half in halves} == {nested.seen.sum()}
        tested = [draw["samples"] for half in halves for draw in half["draws"]]
        assert tested == [(~nested.seen).sum()] * 10
    for stages in records:
        for name, stage in stages.items():
            if name.startswith("choosing"):
                for draw in stage["summary"]["draws"]:
                    assert draw["samples"] < nested.seen.sum()
    means = [
        100 * np.mean([draw["overall_accuracy"] for half in halves for draw in half["draws"]])
        for halves in judged
    ]
    both = [tuned.judged["blocked"].mean, tuned.default["blocked"].mean]
    np.testing.assert_allclose(sorted(means), sorted(both))


@pytest.mark.mostly_slow(1)
@pytest.mark.parametrize("file", ["test", "train"])
def test_tune__a_file_judges_what_was_chosen_by_all_labels_to_learn_from(write_tunable, file):
    path = write_tunable(learn={file: "file.npy"})
    labels = np.load(path.with_name("labels.npy"))
    aside = (np.arange(36) < 12)[:, None] & (labels > 0)
    np.save(path.with_name("file.npy"), np.where(aside == (file == "test"), labels, 0))
    tuned = tune(load_job(path), budget=300)
    stages = [
        (name, stage["summary"])
        for variant in (tuned.path / "variants").iterdir()
        for name, stage in Run(variant, create=False).manifest["stages"].items()
    ]
    judged = [summary for name, summary in stages if name.startswith("judging")]
    chosen = [summary for name, summary in stages if name.startswith("choosing")]
    assert 1 <= len(judged) <= 2
    for summary in judged:
        (draw,) = summary["draws"]
        assert draw["samples"] == aside.sum()
        assert summary["training"] == (labels > 0).sum() - aside.sum()
    assert {summary["seen"] for summary in chosen} == {(labels > 0).sum() - aside.sum()}
    assert all(draw["samples"] < summary["seen"] for summary in chosen for draw in summary["draws"])
    assert list(tuned.judged) == ["blocked"]
    where = "on the labels of learn.test" if file == "test" else "on the labels outside learn.train"
    assert f"Accuracy {where} that were not used for tuning: " in tuned.notes[1]
    assert tuned.notes[2] == "(one fit to all labels to learn from)."
    assert tuned.notes[3].endswith("(of one fit each, the noise is not known).")


@pytest.mark.slow
@pytest.mark.parametrize("stop_at", [3, 11])
def test_tune__killed_and_called_again_repeats_nothing(write_tunable, tuned, monkeypatch, stop_at):
    path, (_, whole, stages) = write_tunable(), tuned
    with monkeypatch.context() as patch:
        counted = Counted(patch, stop_at)
        with pytest.raises(KeyboardInterrupt):
            tune(load_job(path), budget=300)
    rows = read_table(path.parent / "runs" / f"{path.stem}-tuned" / "table.csv")
    assert {row.get("candidate", "") for row in rows} == {"", "as given"}
    assert rows[0]["state"] == "finished"
    with monkeypatch.context() as patch:
        again = Counted(patch)
        tuned = tune(load_job(path), budget=300)
    assert sorted(counted.stages + again.stages) == sorted(stages)
    assert tuned.values == whole.values
    assert tuned.judged == whole.judged
    with monkeypatch.context() as patch:
        nothing = Counted(patch)
        assert tune(load_job(path), budget=300).judged == whole.judged
    assert nothing.stages == []


def test_tune__leaves_the_keys_of_the_job_alone(write_tunable):
    job = load_job(write_tunable(features={"method": "none"}, learn={"method": "k-nn", "k": 5}))
    tuned = tune(job, budget=300)
    assert all(one.candidate.job.features.method == "none" for one in tuned.tried)
    assert all(one.candidate.job.learn.method == "k-nn" for one in tuned.tried)
    assert tomllib.loads(tuned.outputs["job"].read_text(encoding="utf-8"))["learn"]["k"] == 5


@pytest.mark.mostly_slow(1)
@pytest.mark.parametrize(("tables", "count"), [({"learn": {"method": "k-nn"}}, 1), ({}, 2)])
def test_tune__tries_nothing_beside_a_job_that_leaves_no_room(
    write_tunable, monkeypatch, tables, count
):
    monkeypatch.setattr(Search, "unbeatable", UNBEATABLE)
    tuned = tune(
        load_job(write_tunable(noise=30.0, features={"method": "none"}, **tables)), budget=300
    )
    # An open job is scored beside the quick one.
    assert [one.rung for one in tuned.tried].count("as given") == 1
    assert len(tuned.tried) == count
    assert tuned.judged["blocked"].mean > 99


def test_tune__ends_when_the_budget_is_spent(write_tunable):
    tuned = tune(load_job(write_tunable()), budget=0.001)
    tried = [one for one in tuned.tried if one.accuracy]
    assert 1 <= len(tried) <= 3
    assert tuned.judged["blocked"].draws == 5


def test_tune__the_budget_begins_anew_where_labels_have_changed(write_tunable):
    path, reporter = write_tunable(), Notes()
    first = tune(load_job(path), budget=0.001)
    clock = first.path / "tune.json"
    noted = json.loads(clock.read_text())
    clock.write_text(json.dumps({**noted, "spent_seconds": 1e6}))
    assert tune(load_job(path), budget=300, reporter=reporter).seconds > 1e6
    assert not any("begins anew" in note for note in reporter.notes)
    labels = np.load(path.with_name("labels.npy"))
    labels[:3] = 0
    np.save(path.with_name("labels.npy"), labels)
    changed = tune(load_job(path), budget=0.001, reporter=reporter)
    assert changed.path == first.path
    assert changed.seconds < 1000
    assert json.loads(clock.read_text())["key"] != noted["key"]
    (note,) = [note for note in reporter.notes if "begins anew" in note]
    assert note.startswith(f"{first.path / 'best.toml'}: was chosen for another job")


def test_tune__labels_that_change_meanwhile(write_tunable, monkeypatch):
    path = write_tunable()
    judge = tuning._judge

    def edited(*given):
        np.save(path.with_name("labels.npy"), np.roll(np.load(path.with_name("labels.npy")), 7))
        return judge(*given)

    with monkeypatch.context() as patch:
        patch.setattr(tuning, "_judge", edited)
        with pytest.raises(SceneError, match=r"labels\.npy changed while methods were chosen"):
            tune(load_job(path), budget=0.001)
    assert not (path.parent / "runs" / "ground-tuned" / "best.toml").exists()
    assert tune(load_job(path), budget=0.001).outputs["job"].exists()


def test_tune__a_job_changed_by_set_has_its_own_directory(write_tunable, cli):
    path = write_tunable(learn={"method": "k-nn"})
    for changes in ([], ["--set", "learn.k=3"], ["--set", "limits.threads=1"]):
        done = cli("tune", path, "--budget", ".001s", *changes)
        assert done.exit_code == 0, done.output
    runs = path.parent / "runs"
    other = f"{path.stem}{changed_name(['learn.k=3'])}-tuned"
    assert sorted(one.name for one in runs.iterdir()) == sorted([f"{path.stem}-tuned", other])
    assert load_job(runs / other / "best.toml").learn.k == 3
    assert cli("tune", path, "--set", "learn.k=3", "--run-dir", runs / "own").exit_code == 0
    assert (runs / "own" / "best.toml").exists()


def test_tune__refuses_labels_that_leave_nothing_to_test_on(write_tunable):
    path = write_tunable()
    labels = np.load(path.with_name("labels.npy"))
    few = np.zeros_like(labels)
    for one in np.unique(labels[labels > 0]):
        few[tuple(np.argwhere(labels == one)[0])] = one
    np.save(path.with_name("labels.npy"), few)
    with pytest.raises(
        InputError, match="3 labels of 3 classes, squares of the scene leave no labels"
    ):
        tune(load_job(path), budget=300)


def test_describe__a_verdict_without_labels(tuned):
    _, tuned, _ = tuned
    nothing = {"blocked": Interval.of([])}
    unjudged = replace(tuned, judged=nothing, default=nothing, gain=Interval.of([]))
    said = "\n".join(tuning.describe(unjudged, "blocked"))
    assert "not measured, as no labels are left for it" in said
    assert "nan" not in said
    found = json.loads(json.dumps(unjudged.to_json(), allow_nan=False))
    assert found["judged"]["blocked"] == {"mean": None, "half_interval": None, "draws": 0}


@pytest.mark.slow
def test_tune__a_table_by_pixels(write_tunable):
    tuned = tune(load_job(write_tunable(image=False)), budget=300)
    assert set(tuned.judged) == {"random"}
    assert not any("mnf" in one.candidate.title for one in tuned.tried)
    assert not any("spatial" in one.candidate.title for one in tuned.tried)


@pytest.mark.slow
def test_tune__big_scenes_on_a_part_of_them(write_tunable, monkeypatch):
    first = {**RUNGS, "rungs": RUNGS["rungs"][:1]}
    monkeypatch.setattr(tuning, "LADDER", read_ladder(first))
    monkeypatch.setattr(tuning, "MOST_PIXELS", 600)
    monkeypatch.setattr("eigenscape.workflow.choice.window.TILE", 10)
    monkeypatch.setattr(tuning, "is_scattered", lambda window, scene: False)
    tuned = tune(load_job(write_tunable()), budget=300)
    assert any("a part of the scene: 600 of 1,080 pixels" in line for line in tuned.notes)
    assert load_job(tuned.outputs["job"]).scene.mask is None
    assert np.load(tuned.path / "window.npy").sum() == 600


@pytest.mark.slow
def test_tune__labels_that_no_part_holds_in_the_whole_scene(write_tunable, monkeypatch):
    monkeypatch.setattr(tuning, "MOST_PIXELS", 300)
    monkeypatch.setattr("eigenscape.workflow.choice.window.TILE", 10)
    tuned = tune(load_job(write_tunable()), budget=300)
    assert "Tuned on the whole scene, as labels are scattered over it." in tuned.notes
    assert {one.candidate.job.scene.mask for one in tuned.tried} == {None}
    assert not (tuned.path / "window.npy").exists()
    # By eigenvectors, whatever lies near to labels; a job without a graph, too.
    methods = [one.candidate.job.learn.method for one in tuned.tried[1:]]
    assert sorted(methods) == ["eigenfunctions", "eigenfunctions", "k-nn"]


@pytest.mark.slow
def test_tune__without_labels_by_stability(write_tunable, make_scene):
    path = write_tunable(labelled=False)
    tuned = tune(load_job(path), budget=300)
    assert tuned.job.learn.method == "spectral-clustering"
    assert set(tuned.judged) == {"parts"}
    assert "Agreement of the clusters" in "\n".join(tuned.notes)
    # A run of the job would find no clusters.
    assert not any("it would choose" in note for note in tuned.notes)
    method = 'learn.method = "spectral-clustering", learn.clusters = '
    assert any(note.startswith(f"Compared with {method}") for note in tuned.notes)
    # One of the parts by hand.
    jobs = {one: (one / "job.toml").read_text() for one in (tuned.path / "variants").iterdir()}
    bands = {one: text for one, text in jobs.items() if 'method = "none"' in text}
    (whole,) = [one for one, text in bands.items() if "mask" not in text]
    (part,) = [one for one, text in bands.items() if "part-0.npy" in text]
    one, other = Run(whole, create=False), Run(part, create=False)
    kept = np.flatnonzero(np.load(tuned.path / "part-0.npy"))
    np.testing.assert_array_equal(other.open("samples/pixel")[...], kept)
    agreement = adjusted_rand_score(
        one.open("labels/class")[...][kept], other.open("labels/class")[...]
    )
    tried = next(t for t in tuned.tried if t.candidate.values.get("features.method") == "none")
    assert tried.accuracy[0] == pytest.approx(agreement)


@pytest.mark.slow
def test_tune__a_failing_candidate_does_not_stop_the_others(write_tunable, monkeypatch):
    options = [
        {"keys": {"learn.method": "eigenfunctions", "spectrum.dimension": 5000}},
        {"keys": {"learn.method": "k-nn"}},
    ]
    rungs = [{"name": "classifier", "draws": 2, "keep": 2, "options": options}]
    monkeypatch.setattr(tuning, "LADDER", read_ladder({"start": {}, "rungs": rungs}))
    path = write_tunable()
    text = path.read_text(encoding="utf-8").replace("dimension = 8\n", "")
    path.write_text(text, encoding="utf-8")
    tuned = tune(load_job(path), budget=300)
    failed, *_ = [one for one in tuned.tried if one.error]
    assert failed.candidate.values["spectrum.dimension"] == 5000
    assert "spectrum.dimension = 5000" in str(failed.error)
    assert {row["state"] for row in table_of(tuned)} == {"finished", "failed"}


def test_tune__refuses_a_study(write_tunable):
    path = write_tunable(study={"grid": {"neighbors.k": [4, 8]}})
    with pytest.raises(InputError, match="is a study"):
        tune(load_job(path))


def test_split_of__squares_unless_the_job_says_otherwise(write_tunable):
    assert split_of(load_job(write_tunable()), table=False) == "blocked"
    assert split_of(load_job(write_tunable()), table=True) == "random"
    given = load_job(write_tunable(learn={"split": "balanced"}))
    assert split_of(given, table=False) == "balanced"


SCRIPT = """
import json
import sys
from eigenscape import load_job
from eigenscape.tuning import run as tuning
from eigenscape.workflow.choice.candidates import read_ladder
from eigenscape.workflow.choice.search import Search
from eigenscape.workflow.choice.tried import Interval
tuning.LADDER = tuning.GRAPHLESS = read_ladder(json.loads(sys.argv[2]))
tuning.tune(load_job(sys.argv[1]), budget=600)
"""


def scored(path):
    """Return the finished scoring stages of all variants."""
    found = set()
    for manifest in path.glob("variants/*/manifest.json"):
        stages = read_manifest(manifest.parent)["stages"]
        found |= {(manifest.parent.name, name) for name in stages if name.startswith("choosing")}
    return found


@pytest.mark.slow
def test_tune__a_killed_process_loses_the_job_at_work_alone(write_tunable, monkeypatch):
    path = write_tunable()
    directory = path.parent / "runs" / "ground-tuned"
    process = subprocess.Popen([sys.executable, "-c", SCRIPT, str(path), json.dumps(RUNGS)])
    try:
        while len(scored(directory)) < 3:
            assert process.poll() is None, "it ended before it could be killed"
            time.sleep(0.02)
    finally:
        process.kill()
        process.wait()
    before = scored(directory)
    computed = Counted(monkeypatch)
    tuned = tune(load_job(path), budget=600)
    after = scored(directory)
    assert before < after
    choosing = [name for name in computed.stages if name.startswith("choosing")]
    assert len(choosing) == len(after - before)
    assert (directory / "best.toml").exists()
    assert tuned.judged["blocked"].draws == 10


@pytest.mark.slow
def test_tune__an_open_job_is_compared_with_what_it_would_choose(write_tunable, monkeypatch):
    monkeypatch.setattr(auto, "AUTO", read_ladder(RUNGS))
    path = write_tunable()
    path.write_text(
        'scene.path = "scene.npy"\nscene.labels = "labels.npy"\noutput.directory = "runs"\n'
    )
    tuned = tune(load_job(path), budget=300)
    assert "learn.method" in tuned.given
    assert any("without tuning, it would choose" in line for line in tuned.notes)
    assert not load_job(tuned.outputs["job"]).open
    # All draws are halved alike, as all are on the whole scene.
    assert not (tuned.path / "judging.npy").exists()


@pytest.mark.mostly_slow(1)
@pytest.mark.parametrize("image", [False, True])
def test_tune__no_choice_on_a_part_sees_labels_that_judge(write_tunable, monkeypatch, image):
    monkeypatch.setattr(auto, "AUTO", read_ladder(RUNGS))
    monkeypatch.setattr(auto, "WIDER", read_ladder(QUICK_RUNGS))
    monkeypatch.setattr(auto, "MOST_PIXELS", 400)
    monkeypatch.setattr("eigenscape.workflow.choice.survey.SMALL", 0)
    monkeypatch.setattr("eigenscape.workflow.choice.window.TILE", 10)
    path = write_tunable(image=image)
    path.write_text(
        'scene.path = "scene.npy"\nscene.labels = "labels.npy"\noutput.directory = "runs"\n'
    )
    parts = {"choosing": set(), "judging": set()}
    draw = Nested.draw

    def spied(self, part, trial):
        train, test = draw(self, part, trial)
        if self.split != BESIDE and (self.split == "blocked") == image:
            sets = train | test if part == "choosing" else test
            parts[part] |= set((1000 * self.row + self.column)[sets].tolist())
        return train, test

    monkeypatch.setattr(Nested, "draw", spied)
    tuned = tune(load_job(path), budget=0.001)
    tried = list((tuned.path / "default" / "variants").iterdir())
    assert tried, "it chose on a part"
    assert parts["judging"]
    assert not parts["choosing"] & parts["judging"]
    assert "not used for tuning" in tuned.notes[1]


@pytest.mark.slow
@pytest.mark.parametrize(("half", "kept"), [(2.0, True), (0.1, False)])
def test_tune__keeps_the_given_job_unless_another_is_ahead_beyond_noise(
    write_tunable, monkeypatch, half, kept
):
    monkeypatch.setattr(tuning, "lead", lambda *both, elsewhere: Interval(0.5, half, 10))
    monkeypatch.setattr(Search, "settle_tie", lambda self, best, among: (best, ""))
    tuned = tune(load_job(write_tunable()), budget=300)
    assert (tuned.values == tuned.tried[0].candidate.values) == kept
    said = [note for note in tuned.notes if note.startswith("Kept as given")]
    assert len(said) == kept
    if kept:
        assert "is ahead by 0.5 +- 2.0 %, which need not hold elsewhere." in said[0]
        assert tuned.gain.mean == 0

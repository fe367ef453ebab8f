import re
import shutil
import tomllib
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import tomlkit

from eigenscape import load_job, plan, run
from eigenscape.cli.overview import directory_of
from eigenscape.clusters import ClusterOptions
from eigenscape.errors import MemoryLimitError, SceneError
from eigenscape.job.jobfile import parse_job
from eigenscape.store.manifest import read_manifest
from eigenscape.store.run import Run
from eigenscape.workflow import spine
from eigenscape.workflow.choice import auto, kept
from eigenscape.workflow.choice import survey as surveying
from eigenscape.workflow.choice.auto import plan_choice
from eigenscape.workflow.choice.candidates import read_ladder
from eigenscape.workflow.choice.kept import known_choice, settled, trial_parent
from eigenscape.workflow.choice.trials import Scored
from eigenscape.workflow.choice.window import window_of
from eigenscape.workflow.directories import WIDER_FILE, WINDOW_FILE
from eigenscape.workflow.stages import stage_keys
from harness import Counted, Notes

RUNGS = {
    "start": {"learn.method": "interpolated"},
    "rungs": [
        {
            "name": "features", "draws": 2, "keep": 1,
            "options": [
                {"keys": {"features.method": "none"}},
                {"keys": {"features.method": "pca", "features.dimension": 4}},
            ],
        },
        {
            "name": "space", "draws": 2, "keep": 1,
            "options": [{"keys": {}}, {"keys": {"graph.spatial.weight": 2.0}, "needs": ["image"]}],
        },
    ],
}  # fmt: skip


@pytest.fixture
def two_lines(tmp_path, make_scene, monkeypatch):
    """Return a function that writes a job of a scene and its labels, and further tables."""
    monkeypatch.setattr(auto, "AUTO", read_ladder(RUNGS))
    monkeypatch.chdir(tmp_path)
    return writer(tmp_path, make_scene)


@pytest.fixture(scope="module")
def settling(tmp_path_factory, make_scene):
    """Return the path of an open job, its plan before it ran, what came of it and the stages; to be read."""
    folder = tmp_path_factory.mktemp("settled")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(auto, "AUTO", read_ladder(RUNGS))
        patch.chdir(folder)
        path = writer(folder, make_scene)()
        counted = Counted(patch)
        return path, plan(load_job(path)), run(load_job(path)), counted.stages


@pytest.fixture
def finished(settling, monkeypatch):
    """Return them where they were made."""
    path, *_ = settling
    monkeypatch.setattr(auto, "AUTO", read_ladder(RUNGS))
    monkeypatch.chdir(path.parent)
    return settling


def take_parts(monkeypatch):
    """Let a part of 100 pixels be compared first, as in a large scene."""
    monkeypatch.setattr(auto, "MOST_PIXELS", 100)
    monkeypatch.setattr(surveying, "SMALL", 0)


def writer(tmp_path, make_scene):
    scene = make_scene(30, 24, 10, 3, hole=False)
    noise = np.random.default_rng(1).normal(0, 4000, scene.cube.shape)
    np.save(tmp_path / "scene.npy", (scene.cube + noise).astype(np.float32))

    def write(labels=scene.labels, **tables):
        given = {"path": "scene.npy"}
        if labels is not None:
            np.save(tmp_path / "labels.npy", labels)
            given["labels"] = "labels.npy"
        path = tmp_path / "ground.toml"
        tables = {"output": {"formats": ["geotiff"]}, **tables, "scene": given}
        path.write_text(tomlkit.dumps(tables), encoding="utf-8")
        return path

    return write


# --- which jobs are open


@pytest.mark.parametrize(
    ("tables", "is_open"),
    [
        ({}, True),
        ({"learn": {"train": 0.1, "split": "blocked", "seed": 3}}, True),
        ({"output": {"eigenvectors": 3}, "limits": {"memory": "1GiB"}}, True),
        ({"neighbors": {"k": 12}}, False),
        ({"learn": {"method": "centroid-angle"}}, False),
        ({"learn": {"smoothing": 1.0, "areas": True, "test": "test.tif"}}, True),
        ({"learn": {"smoothing": 1.0, "method": "k-nn"}}, False),
        ({"preset": "halevy-2011"}, False),
        ({"preset": "auto", "neighbors": {"k": 8}}, True),
        ({"learn": {"method": "auto"}, "neighbors": {"k": 8}}, True),
        ({"study": {"grid": {"neighbors.k": [4, 8]}}}, False),
    ],
)
def test_open(tables, is_open):
    job = parse_job({"scene": {"path": "scene.tif"}, **tables})
    assert job.open == is_open
    again = parse_job(tomllib.loads(job.to_toml()))
    assert again.open == is_open


@pytest.mark.parametrize(
    ("tables", "key"),
    [
        ({"neighbors": {"k": 12}}, "neighbors.k"),
        ({"learn": {"seed": 1}, "spectrum": {"tolerance": 1e-4}}, "spectrum.tolerance"),
        ({"learn": {"smoothing": 1.0}}, ""),
        ({"learn": {"method": "k-nn"}, "neighbors": {"k": 12}}, ""),
        ({"learn": {"method": "auto"}, "neighbors": {"k": 12}}, ""),
        ({"preset": "halevy-2011", "neighbors": {"k": 12}}, ""),
        ({"learn": {"method": "normalized-cut"}, "neighbors": {"k": 12}}, ""),
    ],
)
def test_advice__names_the_key_for_which_methods_are_not_compared(tables, key):
    advice = parse_job({"scene": {"path": "scene.tif"}, **tables}).advice
    assert advice.startswith(f"the job gives {key}, so") if key else not advice


@pytest.mark.slow
def test_run_command__says_that_methods_are_not_compared(two_lines, cli):
    path = two_lines(neighbors={"k": 9})
    for verb in ("plan", "run"):
        done = cli(verb, path)
        assert done.exit_code == 0
        assert "the job gives neighbors.k, so learn.method is the default" in done.output
    assert "the job gives" not in cli("run", path, "--set", "learn.method=k-nn").output


def test_stage_keys__an_open_job_is_another_than_that_with_the_defaults(two_lines):
    path, bands = two_lines(), "scene.drop_wavelengths=none"  # which the preset keeps
    first, second = (
        stage_keys(load_job(path, [bands, *given])) for given in ((), ("preset=halevy-2011",))
    )
    assert first["export"] != second["export"]
    assert {**first, "export": ""} == {**second, "export": ""}


# --- the choice


def test_run__settles_an_open_job_and_keeps_the_choice(finished):
    path, _, result, _ = finished
    job = load_job(path)
    kept = (result.path / "job.toml").read_text(encoding="utf-8")
    assert kept.startswith("# methods chosen among 3 on the scene: ")
    assert "accuracy there" in kept
    resolved = load_job(result.path / "job.toml")
    assert not resolved.open
    assert resolved.learn.method == "interpolated"
    entry = read_manifest(result.path)["choice"]
    assert entry["values"]["learn.method"] == "interpolated"
    assert result.scores["protocol"] == "pixels held out (blocked)"
    assert not trial_parent(result.path).exists()
    assert settled(job, stage_keys(job), result.path)[0].learn.method == "interpolated"


@pytest.mark.slow
def test_run__scattered_labels_are_chosen_by_on_the_whole_scene(two_lines, monkeypatch):
    take_parts(monkeypatch)
    path = two_lines()
    labels = np.load(path.with_name("labels.npy"))
    keep = np.random.default_rng(3).random(labels.shape) < 0.15
    path = two_lines(labels=np.where(keep, labels, 0))
    assert (keep & (labels > 0)).sum() >= auto.LEAST_LABELS * 3
    result = run(load_job(path))
    entry = read_manifest(result.path)["choice"]
    assert entry["values"]["learn.method"] in ("svm", "random-forest")
    assert "on the whole scene, because a smaller part is not sufficient" in entry["said"][0]


@pytest.mark.slow
def test_run__a_part_need_not_have_labels_to_test_on(two_lines, monkeypatch):
    take_parts(monkeypatch)
    path = two_lines()
    labels = np.load(path.with_name("labels.npy"))
    aside = np.arange(labels.shape[1]) >= labels.shape[1] - 4
    np.save(path.with_name("test.npy"), np.where(aside, labels, 0))
    np.save(path.with_name("labels.npy"), np.where(aside, 0, labels))
    part_of = auto.window_of

    def part(job, path, *given):
        found = part_of(job, path, *given)
        np.save(path, np.load(path) * ~aside)
        return found

    monkeypatch.setattr(auto, "window_of", part)
    monkeypatch.setattr(auto, "_wider_part", lambda *given: None)
    notes = Notes()
    result = run(load_job(path, ["learn.test=test.npy"]), reporter=notes)
    assert result.scores["protocol"] == "disjoint test file"
    assert not [note for note in notes.notes if note.startswith("failed")]
    assert "on a part of the scene" in read_manifest(result.path)["choice"]["said"][0]


@pytest.fixture
def scored(two_lines, monkeypatch):
    """Return a function that runs a job with given accuracies, and returns its choice and what was tried."""

    def run_with(accuracies):
        take_parts(monkeypatch)
        machine = {"keys": {"learn.method": "svm"}, "alone": True}
        rung = {"name": "classifier", "draws": 2, "keep": 1, "options": [{"keys": {}}, machine]}
        ladder = read_ladder({**RUNGS, "rungs": [*RUNGS["rungs"], rung]})
        monkeypatch.setattr(auto, "AUTO", ladder)
        tried = []

        def score(self, job, trials):
            kind = (
                "part" if job.scene.mask is not None else "whole",
                "graph" if job.learn.needs_graph else "alone",
            )
            tried.append(kind)
            own = accuracies[kind]
            draws = [
                {"overall_accuracy": own[draw % len(own)], "samples": 9}
                for draw in range(trials.first, trials.last)
            ]
            return Scored({"draws": draws}, 1.0)

        monkeypatch.setattr(auto.Accuracy, "score", score)
        return read_manifest(run(load_job(two_lines())).path)["choice"], tried

    return run_with


CLEAR = {("part", "graph"): [0.9], ("part", "alone"): [0.5]}
DOUBTS = {
    "noise": {("part", "graph"): [0.9, 0.2], ("part", "alone"): [0.1, 0.1]},
    "class": CLEAR,
    "level": {("part", "graph"): [0.9], ("part", "alone"): [0.9, 0.8]},
    "alone": {("part", "graph"): [0.5], ("part", "alone"): [0.9]},
    "probe": CLEAR,
}
"""Accuracies on the part that leave a doubt: noise, a class that is lacking, no lead over jobs without a
graph, a lead of theirs, and draws in the whole scene that differ much."""


@pytest.mark.mostly_exhaustive(4)
@pytest.mark.slow
@pytest.mark.parametrize("reason", DOUBTS)
@pytest.mark.parametrize(("graph", "method"), [(0.65, False), (0.75, True)])
def test_run__a_doubtful_part_is_compared_in_the_whole_scene(
    scored, monkeypatch, reason, graph, method
):
    if reason == "class":
        lacking = partial(replace, lacking=0.02)
        monkeypatch.setattr(auto, "window_of", lambda *given: lacking(window_of(*given)))
    alone = [0.5, 0.9] if reason == "probe" else [0.7]
    whole = {("whole", "graph"): [graph], ("whole", "alone"): alone}
    entry, tried = scored({**DOUBTS[reason], **whole})
    assert "on the whole scene, because a smaller part is not sufficient" in entry["said"][0]
    assert tried[0] == ("part", "graph")
    assert {("whole", "alone"), ("whole", "graph")} <= set(tried)
    assert (entry["values"]["learn.method"] in ("interpolated", "tikhonov")) is method


@pytest.mark.slow
@pytest.mark.parametrize("scattered", [False, True])
def test_run__a_large_scene_is_compared_in_a_larger_part_that_holds_its_labels(
    scored, monkeypatch, scattered
):
    monkeypatch.setattr(auto, "MOST_WIDER", 400)
    part_of = auto.window_of

    def window(job, path, most, seed):
        found = part_of(job, path, most, seed)
        if path.name == WIDER_FILE and not scattered:
            found = replace(found, labelled=10**6, lacking=0.0)
        return found

    monkeypatch.setattr(auto, "window_of", window)
    alone = {("part", "alone"): [0.9], ("whole", "alone"): [0.9]}
    entry, tried = scored({**DOUBTS["alone"], **alone, ("whole", "graph"): [0.8]})
    assert "because a smaller part is not sufficient" in entry["said"][0]
    assert ("on the whole scene" in entry["said"][0]) is scattered
    # Graphs of a large scene take too long, but for the best job on the part.
    assert (("whole", "alone") in tried) is scattered
    assert (len(tried) - tried.index(("part", "alone")) > 8) or scattered


@pytest.mark.slow
def test_run__killed_in_the_larger_part_goes_on_and_leaves_none_of_its_files(scored, monkeypatch):
    monkeypatch.setattr(auto, "MOST_WIDER", 400)
    part_of = auto.window_of

    def killed(job, path, *given):
        found = part_of(job, path, *given)
        if path.name == WIDER_FILE:
            raise KeyboardInterrupt
        return found

    accuracies = {**DOUBTS["alone"], ("whole", "graph"): [0.8], ("whole", "alone"): [0.9]}
    with monkeypatch.context() as patch:
        patch.setattr(auto, "window_of", killed)
        with pytest.raises(KeyboardInterrupt):
            scored(accuracies)
    (trials,) = Path("runs").glob("*-choice")
    assert {path.name for path in trials.iterdir()} == {
        "lock", "variants", WINDOW_FILE, WIDER_FILE,
    }  # fmt: skip
    path = run(load_job("ground.toml")).path
    assert trial_parent(path) == trials.resolve()
    (said, *_) = read_manifest(path)["choice"]["said"]
    assert "because a smaller part is not sufficient" in said
    assert not trials.exists()


@pytest.mark.slow
def test_run__a_small_image_is_compared_as_a_whole(two_lines, monkeypatch):
    monkeypatch.setattr(auto, "MOST_PIXELS", 100)
    path = two_lines()
    assert "cross-validation on 720 of 720 pixels" in "".join(plan(load_job(path)).notes)
    (said, *_) = read_manifest(run(load_job(path)).path)["choice"]["said"]
    assert said.startswith("methods chosen among 3 on the scene: ")


@pytest.mark.mostly_slow(1)
@pytest.mark.parametrize(("graph", "wider"), [(0.97, False), (0.995, True)])
def test_run__a_part_that_leaves_no_room_for_others_is_compared_in_the_whole_scene(
    scored, graph, wider
):
    accuracies = {("part", "graph"): [graph], ("part", "alone"): [0.5], ("whole", "alone"): [0.999]}
    entry, tried = scored({**accuracies, ("whole", "graph"): [0.5]})
    assert (("part", "alone") in tried) is not wider
    assert ("on the whole scene" in entry["said"][0]) is wider
    if wider:
        # The first machine leaves no room either: it and the best job of the part are compared.
        assert "among 2 on the whole scene" in entry["said"][0]
        assert entry["values"]["learn.method"] == "svm"
        assert "; the next: 50.0 %" in entry["said"][1]


@pytest.mark.slow
def test_run__a_part_decides_where_a_graph_is_clearly_better(scored):
    entry, tried = scored({**CLEAR, ("whole", "alone"): [0.7]})
    assert "on a part of the scene" in entry["said"][0]
    # The probe alone, by two draws and two more.
    assert tried.count(("whole", "alone")) == 2


@pytest.mark.slow
def test_run__a_part_decides_where_labels_are_too_many_to_compare_in_the_whole_scene(
    two_lines, monkeypatch
):
    path = two_lines()
    take_parts(monkeypatch)
    monkeypatch.setattr(auto, "MOST_WIDER", 720)
    monkeypatch.setattr(auto, "MOST_COMPARED", 50)
    lacking = partial(replace, lacking=0.02)
    monkeypatch.setattr(auto, "window_of", lambda *given: lacking(window_of(*given)))
    (said, *_) = read_manifest(run(load_job(path)).path)["choice"]["said"]
    assert "on a part of the scene" in said


def test_run__the_better_method_is_taken(two_lines, monkeypatch):
    def score(self, job, trials):
        accuracy = (
            0.4 + 0.2 * (job.features.method == "pca") + 0.3 * (job.graph.spatial is not None)
        )
        draws = [{"overall_accuracy": accuracy, "samples": 9}] * (trials.last - trials.first)
        return Scored({"draws": draws}, 1.0)

    monkeypatch.setattr(auto.Accuracy, "score", score)
    result = run(load_job(two_lines()))
    entry = read_manifest(result.path)["choice"]
    assert entry["values"] == {
        "learn.method": "interpolated", "features.method": "pca", "features.dimension": 4,
        "graph.spatial.weight": 2.0,
    }  # fmt: skip
    told = "accuracy there with half of the labels to learn from: 90.0 % in every draw, 50.0 % in every"
    assert f"{told} draw over" in entry["said"][1]


def test_run__is_that_of_the_settled_job(finished, tmp_path):
    _, _, result, _ = finished
    alone = run(load_job(result.path / "job.toml"), run_dir=tmp_path / "alone")
    for name in ("labels/class", "labels/confidence"):
        ours, theirs = (
            np.asarray(Run(one.path, create=False).open(name)[...]) for one in (result, alone)
        )
        np.testing.assert_array_equal(ours, theirs)


def test_run__again_does_not_choose_again(finished, monkeypatch):
    path, _, first, _ = finished
    counted = Counted(monkeypatch)
    again = run(load_job(path))
    assert counted.stages == []
    assert again.path == first.path
    assert all(stage["reused"] for stage in again.stages)


@pytest.mark.slow
@pytest.mark.parametrize("stop_at", [2, 9, 13])
def test_run__killed_in_the_choice_or_after_it_goes_on(
    finished, tmp_path, make_scene, monkeypatch, stop_at
):
    *_, whole, stages = finished
    monkeypatch.chdir(tmp_path)
    path = writer(tmp_path, make_scene)()
    with monkeypatch.context() as patch:
        counted = Counted(patch, stop_at)
        with pytest.raises(KeyboardInterrupt):
            run(load_job(path))
    with monkeypatch.context() as patch:
        again = Counted(patch)
        result = run(load_job(path))
    assert sorted(counted.stages + again.stages) == sorted(stages)
    assert result.scores == whole.scores


@pytest.mark.slow
def test_run__the_choice_does_not_depend_on_where_it_is_made(finished, tmp_path):
    path, _, here, _ = finished
    on = ClusterOptions(kind="local", workers=1)
    there = run(load_job(path), on=on, run_dir=tmp_path / "there" / "run")
    ours, theirs = (read_manifest(one.path)["choice"]["values"] for one in (here, there))
    assert ours == theirs


@pytest.mark.slow
def test_run__given_keys_stay_with_an_explicit_auto(two_lines):
    job = load_job(two_lines(learn={"method": "auto"}, features={"method": "pca", "dimension": 6}))
    result = run(job)
    resolved = load_job(result.path / "job.toml")
    assert (resolved.features.method, resolved.features.dimension) == ("pca", 6)


def test_run__few_labels_try_nothing(two_lines, make_scene):
    labels = make_scene(30, 24, 10, 3, hole=False).labels
    few = np.zeros_like(labels)
    for number in (1, 2, 3):
        few.ravel()[np.flatnonzero(labels.ravel() == number)[:4]] = number
    result = run(load_job(two_lines(few)))
    assert load_job(result.path / "job.toml").learn.method == "poisson"
    assert "few labels" in read_manifest(result.path)["choice"]["said"][0]


@pytest.mark.slow
def test_run__a_scene_of_few_pixels(tmp_path, make_scene, monkeypatch):
    """Fewer pixels than the default has eigenvectors and, of another scene, neighbours."""
    monkeypatch.setattr(auto, "AUTO", read_ladder(RUNGS))
    scene = make_scene(30, 24, 10, 3, hole=False)
    for side in (5, 3):
        np.save(tmp_path / "cube.npy", scene.cube[:side, :side].astype(np.float32))
        np.save(
            tmp_path / "few.npy", np.arange(side**2, dtype=np.uint8).reshape(side, side) % 2 + 1
        )
        tables = {"scene": {"path": "cube.npy", "labels": "few.npy"}}
        job = parse_job({**tables, "output": {"directory": "runs"}}, base=tmp_path)
        result = run(job)
        settled = load_job(result.path / "job.toml")
        assert settled.spectrum.dimension == side**2 - 1
        assert settled.neighbors.k == min(12, side**2 - 1)
        assert plan(job).stages[4].peak_bytes > 0
        assert run(settled).path.exists()


def test_run__says_once_what_no_candidate_can_do(two_lines, make_scene):
    labels = make_scene(30, 24, 10, 3, hole=False).labels
    notes = Notes()
    one = load_job(two_lines((labels > 0).astype(np.uint8)))
    with pytest.raises(SceneError, match="the labels hold one class only"):
        run(one, reporter=notes)
    assert not any("failed" in line for line in notes.notes)
    small = load_job(two_lines(), ["limits.memory=90MB"])
    with pytest.raises(MemoryLimitError, match=r"Set limits\.memory to"):
        run(small, reporter=notes)
    failed = [line for line in notes.notes if line.startswith("failed: ")]
    assert failed
    assert len(failed) == len(set(failed))


def test_run__without_labels_the_defaults(two_lines):
    result = run(load_job(two_lines(None)))
    assert load_job(result.path / "job.toml").learn.method == "centroid-angle"
    assert result.scores == {}


@pytest.mark.parametrize("known", [False, True])
def test_run__labels_that_change_while_methods_are_chosen(two_lines, monkeypatch, known):
    path = two_lines()
    if known:
        run(load_job(path), run_dir="run")
    before = read_manifest(Path("run")).get("choice")
    asked = kept.known_choice if known else kept.choose

    def edited(*given):
        found = asked(*given)
        np.save("labels.npy", np.roll(np.load("labels.npy"), 7, axis=0))
        return found

    with monkeypatch.context() as patch:
        patch.setattr(kept, asked.__name__, edited)
        with pytest.raises(SceneError, match=r"^labels\.npy changed while methods were chosen"):
            run(load_job(path), run_dir="run")
    assert read_manifest(Path("run")).get("choice") == before
    assert not Path("run-choice").exists()
    again = run(load_job(path), run_dir="run")
    assert read_manifest(again.path)["choice"]["job"] == stage_keys(load_job(path))["export"]


def test_run__labels_that_change_after_the_choice_are_not_read(two_lines, monkeypatch):
    class Editor(Notes):
        def note(self, text):
            if text.startswith("methods chosen"):
                np.save("labels.npy", np.roll(np.load("labels.npy"), 7, axis=0))

    path = two_lines()
    keys = stage_keys(load_job(path))
    stages = read_manifest(run(load_job(path), reporter=Editor()).path)["stages"]
    # Those that a candidate has read.
    assert stages["ingest"]["key"] == keys["ingest"] != stage_keys(load_job(path))["ingest"]


# --- memory that a choice leaves behind


@pytest.mark.parametrize("held", [100, 4000])
def test_run__what_a_choice_has_loaded_refuses_no_job(two_lines, monkeypatch, held):
    monkeypatch.setattr(spine, "held_bytes", lambda: held * 2**20)
    path = two_lines(limits={"memory": "2GiB", "threads": 2})
    before, notes = plan(load_job(path)), Notes()
    result = run(load_job(path), reporter=notes)
    excess = [note for note in notes.notes if "may be exceeded" in note]
    assert len(excess) == (held > 2000)
    assert all("limits.memory = 2.0 GiB may be exceeded by up to 2." in note for note in excess)
    # The report shows what `plan` said, of one of the candidates.
    projected = read_manifest(result.path)["projected"]
    assert projected["ingest"] == before.peaks["ingest"]
    assert max(projected.values()) <= before.peak_bytes


# --- what is said before and after


def test_plan__says_what_would_be_tried_and_then_what_was_chosen(finished):
    path, before, result, _ = finished
    said = "\n".join(before.notes)
    assert "methods are chosen before the first stage" in said
    assert 'features.method = "pca"' in said
    assert "graph.spatial.weight = 2" in said
    after = plan(load_job(path))
    assert after.run == before.run == str(result.path)
    assert all(after.reused.values())


@pytest.mark.parametrize(("keys", "count"), [({}, 13), ({"learn.smoothing": 0.5}, 9)])
def test_plan_choice__counts_the_methods_that_a_doubtful_part_is_followed_by(
    two_lines, make_scene, monkeypatch, keys, count
):
    path = two_lines()
    # Pixels side by side are alike, as spatial filters need.
    np.save(path.parent / "scene.npy", make_scene(30, 24, 20, 3, hole=False).cube)
    job = load_job(path, [f"{key}={value}" for key, value in keys.items()])
    assert not [note for note in plan_choice(job)[1] if "further" in note]
    take_parts(monkeypatch)
    assert plan_choice(job)[1][-1] == (
        f"  if this part is not sufficient: up to {count} further methods, on all or more of the scene"
    )


@pytest.mark.parametrize("limit", ["100MiB", "220MiB"])
def test_plan__of_too_little_memory_says_what_all_that_is_compared_needs(tmp_path, limit):
    # The covariance of 1,500 bands alone does not fit into either. Pixels side by side are alike.
    rows = np.arange(12, dtype=np.float32)[:, None, None]
    noise = np.random.default_rng(0).random((12, 10, 1500), np.float32)
    np.save(tmp_path / "wide.npy", rows + 0.1 * noise)
    np.save(tmp_path / "kinds.npy", np.repeat([1, 2, 3], 40).astype(np.uint8).reshape(12, 10))
    scene = {"path": "wide.npy", "labels": "kinds.npy"}

    def refusal(memory):
        job = parse_job({"scene": scene, "limits": {"memory": memory}}, base=tmp_path)
        return plan(job).check(job.limits.memory_bytes)

    with pytest.raises(MemoryLimitError) as caught:
        refusal(limit)
    assert "features.method" not in str(caught.value)
    refusal(re.search(r"Set limits\.memory to (\w+) or more", str(caught.value))[1])


def test_directory_of__finds_the_run_of_an_open_job(finished):
    path, _, result, _ = finished
    assert directory_of(path) == result.path


def test_known_choice__of_another_scene_counts_for_nothing(finished, tmp_path):
    path, _, result, _ = finished
    path = shutil.copytree(path.parent, tmp_path / "copy") / path.name
    assert known_choice(stage_keys(load_job(path)), result.path) is not None
    np.save(path.with_name("scene.npy"), np.ones((30, 24, 4), np.float32))
    assert known_choice(stage_keys(load_job(path)), result.path) is None


@pytest.mark.slow
def test_run_batch__skips_a_scene_that_was_settled(two_lines, tmp_path):
    from eigenscape.batch.run import run_batch
    from eigenscape.batch.sources import Source

    path = two_lines()
    first = run_batch(Source(jobs=(path,)), run_dir=tmp_path / "batch")
    again = run_batch(Source(jobs=(path,)), run_dir=tmp_path / "batch")
    assert [outcome.state for outcome in first.outcomes] == ["done"]
    assert [outcome.state for outcome in again.outcomes] == ["skipped"]


def test_plan__of_a_table_speaks_of_samples_and_of_no_squares(tmp_path, rng):
    classes = np.repeat(np.arange(1, 4, dtype=np.uint8), 50)
    np.save(tmp_path / "rows.npy", rng.random((4, 12))[classes] + 0.05 * rng.random((150, 12)))
    np.save(tmp_path / "kinds.npy", classes)
    table = {"scene": {"path": "rows.npy", "labels": "kinds.npy"}, "learn": {"method": "auto"}}
    (note,) = (
        note for note in plan(parse_job(table, base=tmp_path)).notes if "chosen before" in note
    )
    assert "by cross-validation on 150 of 150 samples" in note

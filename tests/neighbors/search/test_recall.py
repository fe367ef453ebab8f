import numpy as np
import pytest

from eigenscape.neighbors.methods.pynndescent import NNDescent
from eigenscape.neighbors.search import bisection, recall
from lists import clustered, true_recall, words


@pytest.mark.parametrize(("kind", "metric"), [("dense", "euclidean"), ("sparse", "angle")])
def test_recall__equals_the_true_recall_where_all_samples_are_queried(
    find, rng, monkeypatch, kind, metric
):
    monkeypatch.setattr(recall, "QUERIES", 4000)
    monkeypatch.setattr(recall, "_ROWS", 1000)
    features = words(rng, 2000) if kind == "sparse" else clustered(rng, 2000)
    # No groups of ten equals: copies have lists, but are not among the queries.
    found = find(features, k=40, leaf_size=200, overlap=0.02, refine=0, metric=metric)
    assert found.summary["copies"] == 0
    assert 0.1 < found.summary["recall"] < 0.95
    assert found.summary["recall"] == pytest.approx(true_recall(features, found, metric), abs=1e-4)
    assert found.summary["recall_samples"] == 2000
    # There is nothing left to estimate.
    assert found.summary["recall_low"] == found.summary["recall"] == found.summary["recall_high"]


def test_recall__interval_holds_the_true_recall(find, rng, monkeypatch):
    monkeypatch.setattr(recall, "QUERIES", 500)
    features = clustered(rng, 3000)
    found = find(features, k=10, leaf_size=128, overlap=0.02, refine=0)
    low, high = found.summary["recall_low"], found.summary["recall_high"]
    assert low < true_recall(features, found) < high
    assert low < found.summary["recall"] < high
    assert 0 < high - low < 0.1
    assert found.summary["recall_samples"] == 500


def test_recall__of_equal_lists_has_no_interval_while_others_are_left(find, rng):
    found = find(clustered(rng, 1500), k=4, leaf_size=2000, refine=0).summary
    assert (found["recall"], found["recall_samples"]) == (1, 1000)
    assert found["recall_low"] is found["recall_high"] is None


def test_recall__is_of_the_samples_that_copies_leave(find, rng):
    features = clustered(rng, 3000)
    features[rng.random(3000) < 0.5] = features[0]
    found = find(features, k=8, leaf_size=128)
    left = 3000 - found.summary["copies"]
    assert 1400 < left < 1600
    assert found.summary["recall_samples"] == 1000
    assert found.summary["recall"] == pytest.approx(true_recall(features, found), abs=0.02)


@pytest.fixture
def hard(rng):
    """Neighbours in twelve dimensions are hard to tell from others."""
    return rng.standard_normal((2000, 12)).astype(np.float32)


SMALL = {"k": 8, "leaf_size": 48, "overlap": 0.05}


def of_steps(found):
    return [step["recall"] for step in found.summary["steps"]]


def names(found):
    return [step["step"] for step in found.summary["steps"]]


def test_bisection__recall_never_falls(find, hard, notes):
    found = find(hard, recall=0.9999, **SMALL)
    assert len(found.summary["steps"]) > 6
    assert of_steps(found) == sorted(of_steps(found))


@pytest.mark.parametrize("target", [0.8, 0.95, 0.98])
def test_bisection__goes_on_until_the_recall_is_reached(find, hard, notes, target):
    found = find(hard, recall=target, **SMALL)
    recalls = of_steps(found)
    # No step after the one that reached it.
    assert (np.array(recalls[:-1]) < target).all()
    assert recalls[-1] >= target
    # Lists are longer while they are measured there: cut, they are no worse.
    assert found.summary["recall"] >= target
    assert true_recall(hard, found) == pytest.approx(found.summary["recall"], abs=0.02)
    assert notes == []


def test_bisection__grows_trees_where_rounds_are_not_enough(find, hard):
    few = find(hard, name="few", recall=0.5, **SMALL)
    assert len([name for name in names(few) if name.startswith("tree")]) == 1
    more = find(hard, name="more", recall=0.97, **SMALL)
    trees = [name for name in names(more) if name.startswith("tree")]
    assert trees[:2] == ["tree 1", "tree 2"]
    assert more.summary["recall"] >= 0.97


def test_bisection__a_recall_out_of_reach_is_noted(find, hard, notes, monkeypatch):
    monkeypatch.setattr(bisection, "MOST_TREES", 2)
    found = find(hard, recall=1, **SMALL)
    assert [name for name in names(found) if name.startswith("tree")] == ["tree 1", "tree 2"]
    assert len(notes) == 1
    reached = f"{found.summary['recall']:.4f}"
    for word in ("neighbors.recall = 1", f"{reached} was reached", "overlap", '"exact"'):
        assert word in notes[0], notes[0]
    assert found.summary["recall"] < 1


def test_bisection__a_low_recall_is_noted_once(find, hard, notes):
    found = find(hard, refine=0, **SMALL)
    recall = found.summary["recall"]
    assert recall < 0.9
    assert notes == [
        f"the recall of the neighbours is {recall:.4f}: the graph lacks {100 * (1 - recall):.0f} % of the "
        "nearest ones; set neighbors.recall = 0.95, or a smaller features.dimension"
    ]


def test_bisection__no_note_where_a_low_recall_was_asked_for(find, hard, notes):
    found = find(hard, recall=0.3, **SMALL)
    assert found.summary["recall"] >= 0.3
    assert notes == []


@pytest.mark.parametrize(("recall", "noted"), [(0.8999, True), (0.9, False), (1.0, False)])
def test_judge__of_a_method_without_a_key_of_recall(recall, noted):
    said = NNDescent().judge({"recall": recall})
    assert bool(said) == noted
    assert noted == ('set neighbors.method = "exact", or a smaller features.dimension' in said)


def test_bisection__a_recall_that_one_leaf_gives_takes_one_step(find, rng, notes):
    found = find(clustered(rng, 500), k=8, recall=1)
    assert names(found) == ["tree 1"]
    assert found.summary["recall"] == 1
    assert notes == []


def test_bisection__without_refinement_has_one_step(find, hard):
    found = find(hard, refine=0, **SMALL)
    assert names(found) == ["tree 1"]
    assert found.summary["recall"] == of_steps(found)[0] < 0.6


def test_bisection__refinement_finds_more(find, hard):
    recalls = []
    for rounds in (0, 1, 3):
        found = find(hard, name=f"{rounds}", refine=rounds, **SMALL)
        assert names(found) == ["tree 1", *(f"refining, round {r + 1}" for r in range(rounds))]
        recalls.append(true_recall(hard, found))
    assert recalls == sorted(recalls)
    assert recalls[2] > recalls[0] + 0.2


@pytest.mark.parametrize("rise", [0.01, 0.05, 0.2])
def test_bisection__rounds_end_when_the_rise_is_small(find, hard, monkeypatch, rise):
    monkeypatch.setattr(bisection, "_RISE", rise)
    found = find(hard, refine=10, **SMALL)
    rises = np.diff(of_steps(found))
    assert (rises[:-1] >= rise).all()
    assert rises[-1] < rise
    assert len(rises) < 10

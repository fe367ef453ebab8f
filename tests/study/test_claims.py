"""The small version of every study, and what its documents claim, asserted on its table."""

from pathlib import Path

import numpy as np
import pytest

from eigenscape import load_job
from eigenscape.scenes.registry import registered
from eigenscape.study.expansion import expand
from eigenscape.workflow.finished.shown import Shown

pytestmark = pytest.mark.slow

STUDIES = Path(__file__).resolve().parents[2] / "jobs" / "studies"
FILES = sorted(path.stem for path in STUDIES.glob("*.toml"))


@pytest.mark.parametrize("name", FILES)
def test_studies__have_a_title_a_source_and_both_versions(name):
    for small in (False, True):
        job = load_job(STUDIES / f"{name}.toml", small=small)
        assert job.study.title
        assert job.study.source
        assert expand(job)


# --- made data: nothing has to be there


@pytest.mark.exhaustive
def test_plane_curve__more_unlabelled_points_help(run_small):
    """Belkin 2003, 3.2: they show the curve on which the few labels are far apart."""
    table = run_small("plane-curve")
    few, many = (table("error", "eigenfunctions", samples=n) for n in (100, 510))
    assert many < 15 < few
    # Nearest labels have no use for them.
    nearest = [table("error", "nearest label", samples=n) for n in (100, 510)]
    assert many < 0.5 * min(nearest)
    assert abs(nearest[0] - nearest[1]) < 5


@pytest.mark.exhaustive
def test_swiss_roll__many_neighbours_need_a_small_t(run_small):
    """Belkin 2003, 2.6.1: for small N all t are alike, for large N a small one is better."""
    table = run_small("swiss-roll")
    names = [f"t = {t}" for t in ("5", "25", "∞")]
    few, many = ([table("along", name, k=k) for name in names] for k in (5, 25))
    assert min(few) > 0.97
    assert many[0] > 0.97
    assert many[0] > many[1] + 0.1 > many[2] + 0.1


def test_bars__two_eigenvectors_separate_what_two_components_do_not(run_small):
    table = run_small("bars")
    assert table("same_class", "Laplacian eigenmap") > 80
    assert table("same_class", "PCA") < 70


def test_arc__a_barrier_isolates(run_small):
    """Halevy 2011, 3.1: the larger alpha, the farther is the sample with the potential."""
    table = run_small("arc-barrier")
    grown = [table("isolation", "barrier", alpha=alpha) for alpha in (0.1, 5)]
    assert 2 * table("isolation", "no potential") < grown[0] < 5 < grown[1]


def test_arc__identification_joins_the_ends(run_small):
    table = run_small("arc-identification")
    some, all_but = (table("mark_distance", "identification", alpha=a) for a in (0.1, 100))
    assert all_but < 2 < 50 < some < table("mark_distance", "no potential")


def test_growth_of_time__bisection_finds_the_neighbours(run_small):
    table = run_small("growth-of-time")
    for samples in (500, 1000):
        assert table("seconds_neighbors", "exact search", samples=samples) > 0
        assert table("recall", "bisection", samples=samples) > 0.98


# --- real data


@pytest.mark.exhaustive
@pytest.mark.shared_data
def test_brown_words__verbs_that_follow_one_another_nowhere_lie_together(run_small):
    """Belkin 2003, 2.6.3: words of one kind form clusters; here modal verbs and prepositions."""
    table = run_small("brown-words")
    (outcome,) = table.result.outcomes
    shown = Shown.open(outcome.variant.job, outcome.path)
    names = Path(registered("brown").locate().paths[0]).with_name("samples.txt").read_text().split()
    plane = shown.plane("eigenvectors")
    diagonal = np.hypot(*np.ptp(plane, axis=0))
    for kind in (("may", "can", "must", "will", "should"), ("of", "in", "for", "with", "by")):
        place = plane[[names.index(word) for word in kind]]
        assert np.hypot(*np.ptp(place, axis=0)) < 0.1 * diagonal


@pytest.mark.shared_data
def test_phoneme_embedding__frames_of_a_phoneme_lie_together(run_small):
    table = run_small("phoneme-embedding")
    found = table("same_class", "Laplacian eigenmap")
    assert found > 75
    assert found > table("same_class", "PCA")


@pytest.mark.exhaustive
@pytest.mark.shared_data
def test_phoneme_figure__more_unlabelled_phonemes_help(run_small):
    table = run_small("phoneme-figure-a11")
    assert table("error", "4509 phonemes", train=20) < table("error", "600 phonemes", train=20)


@pytest.mark.mostly_exhaustive(1)
@pytest.mark.shared_data
@pytest.mark.parametrize(
    ("name", "labels", "rule"), [("mnist-table-3-1", 50, 10), ("phoneme-table-3-3", 100, 20)]
)
def test_tables__a_fifth_as_many_eigenvectors_as_labels_is_near_the_best(
    run_small, name, labels, rule
):
    """Belkin 2003, 3.8.1: the rule of 20 %."""
    table = run_small(name)
    errors = [
        table("error", "eigenfunctions", train=labels, eigenvectors=number)
        for number in table.job.study.grid["learn.eigenvectors"] if number < labels
    ]  # fmt: skip
    ours = table("error", "eigenfunctions", train=labels, eigenvectors=rule)
    assert ours < min(errors) + 5
    assert ours < max(errors) - 3
    assert ours < table("error", "best k-NN", train=labels)


@pytest.mark.exhaustive
@pytest.mark.shared_data
def test_mnist_held_out__labels_of_eigenfunctions_teach_nearest_neighbours(run_small):
    """Belkin 2003, 3.8.4: better than nearest neighbours on the given labels alone."""
    table = run_small("mnist-held-out")
    found = table("held_out_error", "eigenfunctions", train=50)
    assert found < table("error", "3-NN", train=50)
    # It costs little to have seen none of these digits.
    assert found < table("error", "eigenfunctions", train=50) + 5


@pytest.mark.exhaustive
@pytest.mark.shared_data
def test_mnist_geodesic__the_graph_knows_more_than_space(run_small):
    table = run_small("mnist-geodesic")
    nearest = table("error", "best k-NN", train=100)
    assert table("error", "geodesic nearest neighbour", train=100) < nearest
    assert table("error", "eigenfunctions", train=100) < nearest


@pytest.mark.shared_data
def test_mnist_few_labels__poisson_learning_needs_one_of_each(run_small):
    table = run_small("mnist-few-labels")
    assert table("accuracy", "Poisson learning", train=10) > table(
        "accuracy", "best k-NN", train=10
    )


@pytest.mark.exhaustive
@pytest.mark.shared_data
def test_mnist_cunha__eigenfunctions_beat_three_neighbours(run_small):
    table = run_small("mnist-cunha-table-1")
    assert table("error", "1,000 points", train=50) < table("error", "3-NN", train=50)


@pytest.mark.exhaustive
@pytest.mark.shared_data
@pytest.mark.parametrize(
    ("name", "measure", "key", "low", "high"),
    [
        ("sweep-dimension", "accuracy", "dimension", 5, 10),
        ("sweep-projection", "accuracy", "dimension", 5, 20),
        ("sweep-overlap", "recall", "overlap", 0.05, 0.2),
    ],
)
def test_sweeps__what_rises_in_the_thesis_rises_here(run_small, name, measure, key, low, high):
    """Halevy 2011, 6.3."""
    table = run_small(name)
    assert table(measure, **{key: low}) < table(measure, **{key: high})

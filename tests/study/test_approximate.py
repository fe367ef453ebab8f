"""Approximate eigenmaps beside exact ones (Halevy 2011, chapters 4 to 6): small versions of the studies."""

import numpy as np
import pytest

from eigenscape.datasets.made.synthetic import synthesize
from eigenscape.job.measures import STAGE_NAMES
from eigenscape.study.measuring import trusted_share


@pytest.fixture(scope="module")
def smith(run_small, tmp_path_factory):
    """Run Table 6.3 on a scene of 6000 pixels, of which a part holds a tenth."""
    scene = tmp_path_factory.mktemp("scene") / "scene.tif"
    synthesize(scene, height=75, width=80, bands=110, classes=8, seed=1)
    return run_small(
        "smith-table-6-3", f"scene.path={scene}", f"scene.labels={scene.with_stem('scene_labels')}",
        "neighbors.leaf_size=200", "spectrum.dimension=20",
    )  # fmt: skip


def of(points, measure, variant, landmarks=""):
    (found,) = [
        point.value(measure) for point in points
        if point.row["variant"] == variant
        and point.row.get("neighbors.landmarks", "") == str(landmarks)
    ]  # fmt: skip
    return found


@pytest.mark.exhaustive
@pytest.mark.slow
def test_table_6_3__approximate_neighbours_cost_no_more_than_a_point(smith):
    points = smith.points
    exact, approximate = (
        of(points, "training_accuracy", name) for name in ("exact", "approximate")
    )
    assert exact > 60
    assert approximate > exact - 1
    assert 0.6 < of(points, "recall", "approximate") < of(points, "recall", "exact")


@pytest.mark.slow
def test_table_6_3__times_are_those_of_all_stages_whoever_ran_them(smith):
    points, result = smith.points, smith.result
    second = result.outcomes[1]
    assert "ingest" not in second.computed
    for point in points:
        stages = [point.value(f"seconds_{name}") for name in STAGE_NAMES]
        assert point.value("seconds") == pytest.approx(sum(stages), abs=0.01)
        assert point.value("seconds_ingest") > 0
    ours = of(points, "seconds", "exact") / of(points, "seconds", "approximate")
    assert of(points, "speedup", "approximate") == pytest.approx(ours, rel=0.01)
    assert of(points, "speedup", "exact") == 1
    published = {point.row["variant"]: point.theirs("speedup") for point in points}
    assert published == {"exact": 1, "approximate": pytest.approx(534.3 / 69.4, rel=0.01)}


@pytest.mark.slow
def test_table_6_3__has_its_pictures(smith):
    result = smith.result
    for name in ("classes", "class-maps", "eigenvectors", "plot"):
        assert result.outputs[name].stat().st_size > 10_000


@pytest.mark.exhaustive
@pytest.mark.slow
def test_le_lerp_nystrom__a_projection_keeps_what_landmarks_lose(run_small):
    """Halevy 2011, 4.4.1: LERP keeps neighbours as LE does, Nystrom to a much lesser extent."""
    points = run_small("le-lerp-nystrom-surface").points
    whole, projected = (of(points, "trustworthiness", name) for name in ("LE", "LERP"))
    few, many = (of(points, "trustworthiness", "Nystrom", count) for count in (50, 200))
    assert projected == pytest.approx(whole, abs=0.005)
    assert few < many - 0.002
    assert few < whole - 0.005


@pytest.mark.exhaustive
@pytest.mark.slow
def test_le_lerp_nystrom__few_landmarks_mix_the_turns_of_a_roll(run_small):
    points = run_small("le-lerp-nystrom-roll").points
    few, many = (of(points, "trustworthiness", "Nystrom", count) for count in (50, 200))
    assert few < many - 0.02
    assert few < of(points, "trustworthiness", "LE") - 0.05


@pytest.mark.exhaustive
@pytest.mark.slow
@pytest.mark.parametrize("name", ["helix", "roll"])
def test_exact_or_approximate__unrolls_alike(run_small, name):
    """Halevy 2011, 5.4: virtually indistinguishable."""
    points = run_small(f"exact-or-approximate-{name}").points
    exact, approximate = (of(points, "along", variant) for variant in ("exact", "approximate"))
    assert exact > 0.97
    assert approximate > exact - 0.03


def test_trusted_share__of_the_place_itself_and_of_chance(rng):
    place = rng.uniform(0, 1, (300, 2))
    assert trusted_share(place.astype(np.float32), place, 10) == pytest.approx(1, abs=1e-6)
    anyhow = rng.permutation(place).astype(np.float32)
    assert trusted_share(anyhow, place, 10) == pytest.approx(0.5, abs=0.05)
    unknown = np.where(np.arange(300)[:, None] < 30, np.nan, place).astype(np.float32)
    assert trusted_share(unknown, place, 10) == pytest.approx(1, abs=1e-6)

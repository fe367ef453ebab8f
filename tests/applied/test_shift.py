from itertools import pairwise

import numpy as np
import pytest
from scipy.stats import mannwhitneyu

from eigenscape.applied.shift import (
    LIMIT,
    Shift,
    draw,
    sample_size,
    usual_distances,
    verdict,
    zones_of,
)

WIDTH = 40


@pytest.fixture
def fields(rng):
    """Fields of 5 x 5 pixels, each alike in itself, of a scene of 40 x 40."""
    row, column = np.divmod(np.arange(WIDTH**2), WIDTH)
    means = rng.standard_normal((8, 8, 6))
    values = means[row // 5, column // 5] + 0.3 * rng.standard_normal((WIDTH**2, 6))
    return values.astype(np.float32)


def distances(queries, among, k=1):
    squares = ((queries[:, None].astype(float) - among[None]) ** 2).sum(axis=2)
    return np.sqrt(np.sort(squares, axis=1)[:, k - 1])


def test_zones_of__as_many_samples_each_and_apart():
    pixels = np.flatnonzero(np.random.default_rng(0).random(WIDTH**2) < 0.5)
    zones = zones_of(pixels, WIDTH)
    counts = np.bincount(zones)
    assert (len(counts), np.ptp(counts) <= 2) == (16, True)
    row, column = np.divmod(pixels, WIDTH)
    for zone in range(16):
        inside = zones == zone
        assert np.ptp(row[inside]) <= 12
        assert np.ptp(column[inside]) <= 12


def test_usual_distances__to_other_zones(fields):
    pixels = draw(WIDTH**2, 300)
    features, zones = fields[pixels], zones_of(pixels, WIDTH)
    expected = [distances(features[[i]], features[zones != zones[i]])[0] for i in range(300)]
    found = usual_distances(features, pixels, WIDTH)
    np.testing.assert_allclose(found, np.sort(expected), rtol=1e-3)
    alone = usual_distances(features, pixels, 0)
    np.testing.assert_allclose(alone, np.sort(distances(features, features, 2)), rtol=1e-3)


def test_usual_distances__leave_out_what_lies_around_a_zone(fields):
    pixels = draw(WIDTH**2, 800)
    features, zones = fields[pixels], zones_of(pixels, WIDTH)
    row, column = np.divmod(pixels, WIDTH)

    def away(place, inside):
        return np.maximum(place[inside].min() - place, place - place[inside].max())

    expected = []
    for inside in (zones == zone for zone in range(16)):
        beyond = np.maximum(away(row, inside), away(column, inside)) > 12
        if beyond.mean() >= 0.5:
            expected.append(distances(features[inside], features[beyond]))
    assert len(expected) == 12
    found = usual_distances(features, pixels, WIDTH, gap=12)
    np.testing.assert_allclose(found, np.sort(np.concatenate(expected)), rtol=1e-3)


def test_shift__is_not_known_where_a_filter_reaches_across_the_scene(fields, tmp_path):
    pixels = draw(WIDTH**2, 800)
    usual = usual_distances(fields[pixels], pixels, WIDTH, gap=25)
    assert len(usual) == 0
    shift = Shift(tmp_path)
    shift.keep(fields[pixels], usual, WIDTH**2)
    assert verdict([shift.count(fields, 0)]) is None


def test_shift__is_that_of_mann_and_whitney_whatever_the_blocks(fields, tmp_path, rng):
    shift, pixels = Shift(tmp_path), draw(WIDTH**2, 400)
    shift.keep(fields[pixels], usual_distances(fields[pixels], pixels, WIDTH), WIDTH**2)
    new = (fields + 0.5).astype(np.float32)
    usual = np.load(tmp_path / "usual.npy")
    found = np.load(tmp_path / "compared.npy")
    expected = mannwhitneyu(distances(new[found], fields[pixels]), usual).statistic
    told = [
        verdict([shift.count(new[a:b], a) for a, b in pairwise(cuts)])
        for cuts in ([0, WIDTH**2], [0, 7, 500, 501, WIDTH**2])
    ]
    assert told[0] == told[1]
    assert told[0]["farther"] == pytest.approx(expected / len(found) / len(usual), abs=1e-3)


@pytest.mark.parametrize(("moved", "differs"), [(0.0, False), (1.0, True)])
def test_shift__warns_of_another_scene_and_not_of_another_draw(
    fields, tmp_path, rng, moved, differs
):
    shift, pixels = Shift(tmp_path), np.flatnonzero(rng.random(WIDTH**2) < 0.5)
    shift.keep(fields[pixels], usual_distances(fields[pixels], pixels, WIDTH), WIDTH**2)
    told = verdict([shift.count(fields[::-1] + np.float32(moved), 0)])
    assert told["differs"] is differs
    assert (told["farther"] > LIMIT) == differs
    assert told["message"].startswith(
        "This scene differs from the one that the model learned from"[: 99 * differs]
    )


def test_shift__sparse_tables_are_not_compared(tmp_path):
    from scipy.sparse import csr_array

    assert verdict([Shift(tmp_path).count(csr_array(np.eye(3, dtype=np.float32)), 0)]) is None


def test_sample_size__takes_8_mib_at_most():
    assert [sample_size(columns) for columns in (6, 512, 2000, 10**6)] == [4096, 4096, 1048, 256]

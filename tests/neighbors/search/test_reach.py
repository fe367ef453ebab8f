"""What a sample of queries says of a radius, and what is refused by it."""

import numpy as np
import pytest

from eigenscape.errors import InputError
from eigenscape.neighbors.search import reach
from eigenscape.neighbors.search.reach import Reach, check_reach
from harness import Harness, solve
from lists import chords


def test_sample_reach__equals_comparing_all_pairs(tmp_path, rng, monkeypatch):
    monkeypatch.setattr(reach, "CHUNK_ROWS", 256)
    found = []
    monkeypatch.setattr(
        "eigenscape.neighbors.writing.check_reach", lambda *given, **_: found.append(given[1])
    )
    samples = rng.standard_normal((700, 3)).astype(np.float32)
    solve(tmp_path, samples, neighbors={"method": "radius", "radius": 0.3})
    away = chords(samples)
    np.fill_diagonal(away, np.inf)
    away.sort(axis=1)
    (said,) = found
    assert said.mean == pytest.approx((away <= 0.3).sum() / 700)
    assert said.alone == pytest.approx((away[:, 0] > 0.3).mean())
    np.testing.assert_allclose(np.sort(said.nearest), np.sort(away[:, 0]), rtol=1e-4)
    np.testing.assert_allclose(np.sort(said.near), np.sort(away[:, 29]), rtol=1e-4)


def test_check_reach__refuses_too_many_neighbours_with_a_radius_that_fits():
    said = Reach(5300.0, 0.0, np.full(100, 0.1), np.full(100, 0.25))
    with pytest.raises(
        InputError, match=r"about 5,300 .* limit is 1000 .*30 neighbours within 0\.25"
    ):
        check_reach(3.0, said, 10**6, bridged=True)


def test_check_reach__refuses_more_bridges_than_can_be_searched():
    said = Reach(0.7, 0.5, np.linspace(0, 1, 1001), np.full(1001, 2.0))
    with pytest.raises(InputError, match=r"about 80,000 of 160,000 .*radius to 0\.79\d* or more"):
        check_reach(0.5, said, 160_000, bridged=True)
    check_reach(0.5, said, 160_000, bridged=False)
    check_reach(0.5, said, 60_000, bridged=True)


def test_neighbors_stage__refuses_a_large_radius_before_it_compares_all_pairs(tmp_path, rng):
    samples = rng.random((3000, 2)).astype(np.float32)
    with pytest.raises(InputError, match="samples have about 2,999 neighbours"):
        solve(tmp_path, samples, neighbors={"method": "radius", "radius": 2.0})
    journal = next((tmp_path / "work").glob("neighbors-*")) / "journal.jsonl"
    assert "within" not in journal.read_text()
    assert Harness(tmp_path).run_directory.record("neighbors") is None

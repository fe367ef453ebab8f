import numpy as np
import pytest

import filtering
from eigenscape.errors import SceneError
from eigenscape.features.spatial.filtering import filter_blocks, filter_footprint
from eigenscape.features.spatial.filters import make_filter
from eigenscape.job.options import FilterOptions
from eigenscape.store.arrays import stored_bytes
from harness import Frail, KilledError

FILTERS = [
    {"method": "bilateral", "radius": [2, 3]},
    {"method": "guided", "radius": 2, "components": 2},
    {"method": "profiles", "radius": [1, 3], "components": 2},
]


def expected_features(found, valid, options, unit):
    """Return what loops over pixels make of the unfiltered features of a run."""
    cube = np.full((*valid.shape, found.unfiltered.shape[1]), np.nan)
    cube[valid] = found.unfiltered
    options = FilterOptions(**options)
    if options.method == "profiles":
        profiles = filtering.profile_images(cube, valid, options.radii, options.components)
        return np.concatenate([cube, profiles], axis=-1)[valid]
    return filtering.filter_image(options, cube, valid, unit, valid)[valid]


@pytest.mark.parametrize("options", FILTERS, ids=lambda options: options["method"])
def test_features_stage__filters_noise_fractions_in_their_own_unit(
    extract_pixels, cube, valid, options
):
    found = extract_pixels(cube, valid, method="mnf", dimension=3, spatial=options)
    assert found.summary["noise"] == 1
    assert found.summary["unfiltered"] == 3
    assert found.values.shape[1] == found.summary["dimension"]
    expected = expected_features(found, valid, options, 1.0)
    np.testing.assert_allclose(found.values, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("options", FILTERS[:2], ids=lambda options: options["method"])
def test_features_stage__measures_the_noise_of_other_features(extract_pixels, cube, valid, options):
    cube = 50 * cube
    found = extract_pixels(cube, valid, method="none", spatial=options)
    np.testing.assert_array_equal(found.unfiltered, cube[valid])
    pairs = [
        (cube[:, 1:] - cube[:, :-1])[valid[:, 1:] & valid[:, :-1]],
        (cube[1:] - cube[:-1])[valid[1:] & valid[:-1]],
    ]
    unit = np.sqrt((np.concatenate(pairs).astype(np.float64) ** 2).mean() / 2)
    assert found.summary["noise"] == pytest.approx(unit, rel=1e-6)
    expected = expected_features(found, valid, options, unit)
    np.testing.assert_allclose(found.values, expected, rtol=1e-4, atol=1e-3)


def test_features_stage__repeats_the_origin_for_every_column(extract_pixels, cube, valid):
    options = {"method": "profiles", "radius": 2, "components": 1}
    run = extract_pixels(cube, valid, name="a", method="none", spatial=options).harness
    assert "origin" not in run.run_directory.open("features/values").attrs
    arrays = {"values": cube[valid], "pixel": np.flatnonzero(valid), "origin": np.arange(4) + 7.5}
    run.put("samples", {f"samples/{name}": values for name, values in arrays.items()})
    run.run("features")
    kept = run.run_directory.open("features/values").attrs["origin"]
    assert kept == [7.5, 8.5, 9.5, 10.5, 7.5, 7.5]


@pytest.mark.mostly_slow(1)
@pytest.mark.parametrize("options", FILTERS, ids=lambda options: options["method"])
def test_features_stage__filters_alike_under_any_limit(extract_pixels, rng, monkeypatch, options):
    monkeypatch.setattr("eigenscape.store.arrays._CHUNK_ROWS", 4096)
    cube, valid = rng.standard_normal((280, 290, 6)), rng.random((280, 290)) < 0.9
    given = {"method": "none", "spatial": options}
    small, large = Frail(), Frail()
    first = extract_pixels(cube, valid, memory="201MiB", name="a", executor=small, **given)
    second = extract_pixels(cube, valid, name="b", executor=large, **given)
    third = extract_pixels(cube, valid, name="c", threads=2, **given)
    assert len(small.log) > len(large.log)
    np.testing.assert_array_equal(first.values, second.values)
    np.testing.assert_array_equal(first.values, third.values)


@pytest.mark.mostly_slow(2)
@pytest.mark.parametrize("noted", [False, True])
@pytest.mark.parametrize("options", FILTERS, ids=lambda options: options["method"])
def test_features_stage__goes_on_with_a_filter_after_a_kill(
    extract_pixels, rng, monkeypatch, options, noted
):
    monkeypatch.setattr("eigenscape.store.arrays._CHUNK_ROWS", 4096)
    cube, valid = rng.standard_normal((100, 130, 5)), rng.random((100, 130)) < 0.9
    given = {"method": "none", "spatial": options, "memory": "201MiB"}
    whole = Frail()
    expected = extract_pixels(cube, valid, name="whole", executor=whole, **given)
    for tasks in range(1, len(whole.log), 3):
        name, rest = f"run-{tasks}", Frail()
        with pytest.raises(KilledError):
            extract_pixels(cube, valid, name=name, executor=Frail(tasks, noted=noted), **given)
        found = extract_pixels(cube, valid, name=name, executor=rest, **given)
        np.testing.assert_array_equal(found.values, expected.values)
        assert len(rest.log) < len(whole.log) + 1


def test_features_stage__needs_neighbours_for_a_unit(extract_pixels, rng):
    valid = np.zeros((9, 8), bool)
    valid[::2, ::2] = True
    cube = rng.standard_normal((9, 8, 3))
    message = r"\[features.spatial\] counts in .* none of the 20 samples has a neighbour"
    with pytest.raises(SceneError, match=message):
        extract_pixels(cube, valid, method="none", spatial={})
    # Profiles have no unit.
    options = {"method": "profiles", "components": 1}
    found = extract_pixels(cube, valid, name="b", method="none", spatial=options)
    assert found.values.shape == (20, 9)


@pytest.mark.parametrize("options", FILTERS, ids=lambda options: options["method"])
def test_filter_footprint__counts_blocks_and_scratch(options):
    found = make_filter(FilterOptions(**options))
    small, large = (filter_footprint(found, 640_976, 15, budget) for budget in (2**25, 2**31))
    assert small.tasks >= large.tasks
    assert small.each <= large.each
    width = 4 * len(found.sources(15))
    assert large.disk == stored_bytes(640_976, width) >= 640_976 * width
    assert large.scratch >= 640_976 * 68
    assert filter_blocks(found, 100, 15, 0) == [(0, 100)]

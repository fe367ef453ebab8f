"""New samples against a dense reference, their twins, and the solution on all samples."""

import dask.array
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import xarray
from sklearn.datasets import make_moons, make_swiss_roll

import eigenscape
from eigenscape.errors import InputError, MemoryLimitError, StoreError
from eigenscape.features.kernels import orthoprojector
from eigenscape.spectrum.extension import LEAST_SHARE, nystrom
from harness import solve

KINDS = ["normalized", "random-walk", "unnormalized"]


@pytest.fixture
def solved(tmp_path):
    def run(samples, *, name="run", **options):
        return solve(tmp_path / name, samples, **options)

    return run


def make_points():
    return np.random.default_rng(20261121).uniform(1, 2, (340, 3)).astype(np.float32)


@pytest.fixture
def points():
    return make_points()


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """Solve on the first 300 points with four bands in the scene, of which the second is bad."""
    good = [True, False, True, True]
    return solve(tmp_path_factory.mktemp("plain") / "run", make_points()[:300], good=good)


def extend(harness, samples, **options):
    return eigenscape.extend(harness.run_directory.path, samples, **options)


def obvious(harness, new, *, old=None, k=8, radius=None, angle=False):
    """The formula, one sample and one neighbour after the other."""
    job, old = harness.job, (harness["features/values"] if old is None else old).astype(np.float64)
    if angle:
        old, new = (x / np.linalg.norm(x, axis=1)[:, None] for x in (old, new))

    def between(x):
        away = np.linalg.norm(old - x, axis=1)
        return 2 * np.arcsin(away / 2) if angle else away

    def reach(away):
        near = np.argsort(away)
        return near[:k] if radius is None else near[away[near] <= radius]

    lists = []
    for i, x in enumerate(old):
        away = between(x)
        away[i] = np.inf
        lists.append(away[reach(away)])
    scale = np.array([away.max(initial=0) for away in lists])
    least = 0.1 * np.median(scale[scale > 0])
    scale = np.maximum(scale, least)
    t = np.mean(np.concatenate(lists) ** 2)
    value, vector = harness["spectrum/value"], harness["spectrum/vector"].astype(np.float64)
    degree = np.zeros(len(old))
    degree[harness["graph/sample"]] = harness["graph/degree"]
    result = np.full((len(new), len(value)), np.nan)
    for i, x in enumerate(new):
        away = between(x)
        near = reach(away)
        if len(near) == 0:
            continue
        own = max(away[near].max(), least)
        weights = {
            "self-tuning": np.exp(-(away[near] ** 2) / (own * scale[near])),
            "heat": np.exp(-(away[near] ** 2) / t),
            "binary": np.ones(len(near)),
        }[job.graph.weights]
        d = weights.sum()
        for mode in range(len(value)):
            terms = [w * vector[j, mode] for w, j in zip(weights, near, strict=True)]
            if job.graph.laplacian == "normalized":
                terms = [term / np.sqrt(d * degree[j]) for term, j in zip(terms, near, strict=True)]
                result[i, mode] = sum(terms) / (1 - value[mode])
            elif job.graph.laplacian == "random-walk":
                result[i, mode] = sum(terms) / d / (1 - value[mode])
            else:
                result[i, mode] = sum(terms) / (d - value[mode])
    return result


def test_extend__equals_the_formula_written_out(solved, points):
    harness = solved(points[:300])
    tables = {"neighbors": harness.job.neighbors, "spectrum": harness.job.spectrum}
    for laplacian, weights in (
        ("normalized", "self-tuning"), ("random-walk", "self-tuning"),
        ("unnormalized", "self-tuning"), ("normalized", "heat"), ("unnormalized", "binary"),
    ):  # fmt: skip
        harness.options(**tables, graph={"laplacian": laplacian, "weights": weights})
        harness.run("graph"), harness.run("spectrum")
        harness.run_directory.path.joinpath("job.toml").write_text(harness.job.to_toml())
        found = extend(harness, points[300:])
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, obvious(harness, points[300:]), rtol=1e-4, atol=1e-6)


def test_extend__takes_a_run_of_the_whole_pipeline(tmp_path, written, write_job):
    options = {"dimension": 8, "standardize": True}
    scene = {"labels": "labels.tif", "bad_bands": [3, "7-8"]}
    job = eigenscape.load_job(write_job(scene=scene, features=options))
    run = eigenscape.run(job, run_dir=tmp_path / "done").path
    table = eigenscape.open_run(run)
    # An image of all bands, its empty corner included; and the lazy table of the samples.
    found = eigenscape.extend(run, written.cube.reshape(-1, 20))
    kept = ~written.hole.ravel()
    np.testing.assert_array_equal(found[kept], table["eigenvector"])
    np.testing.assert_array_equal(eigenscape.extend(run, table["values"]), table["eigenvector"])


def test_extend__takes_angles(solved, points):
    options = {"method": "exact", "k": 8, "metric": "angle"}
    harness = solved(points[:300], neighbors=options)
    found = extend(harness, points[300:])
    np.testing.assert_allclose(
        found, obvious(harness, points[300:], angle=True), rtol=1e-3, atol=1e-5
    )
    # Length does not count, so the double of an old sample is its twin.
    np.testing.assert_array_equal(extend(harness, 2 * points[:300]), harness["spectrum/vector"])


@pytest.mark.parametrize("weights", ["self-tuning", "heat"])
def test_extend__takes_all_within_the_radius(solved, points, weights):
    options = {"method": "radius", "radius": 0.25}
    harness = solved(points[:300], neighbors=options, graph={"weights": weights})
    new = np.concatenate([points[300:], np.full((1, 3), 9, np.float32)])
    found = extend(harness, new)
    np.testing.assert_allclose(found, obvious(harness, new, radius=0.25), rtol=1e-4, atol=1e-6)
    assert np.isnan(found[-1]).all()
    assert np.isfinite(found[:-1]).all()


@pytest.mark.mostly_slow(2)
@pytest.mark.parametrize(
    ("features", "laplacian"),
    [
        ({"method": "none"}, "random-walk"),
        ({"method": "none", "standardize": True}, "unnormalized"),
        ({"dimension": 5}, "normalized"),
        ({"dimension": 5, "standardize": True}, "random-walk"),
        ({"method": "pca", "dimension": 5, "standardize": True}, "unnormalized"),
    ],
    ids=str,
)
def test_extend__twins_share_coordinates(solved, rng, features, laplacian):
    samples = 1e3 + rng.standard_normal((250, 3)) @ rng.standard_normal((3, 12))
    harness = solved(samples, features=features, graph={"laplacian": laplacian})
    # One by one, too: products of other shapes round differently.
    for few in (samples[:250], samples[7:8], samples[100:150]):
        twins = [np.flatnonzero((samples == row).all(axis=1))[0] for row in few]
        np.testing.assert_array_equal(extend(harness, few), harness["spectrum/vector"][twins])


def test_extend__twins_of_samples_that_are_no_landmarks_share_coordinates(solved, points):
    harness = solved(points[:300], neighbors={"method": "landmarks", "landmarks": 60, "k": 8})
    np.testing.assert_array_equal(extend(harness, points[:300]), harness["spectrum/vector"])
    # Others have those of the formula.
    moved = extend(harness, points[:300] + np.float32(1e-4))
    assert 1e-6 < np.abs(moved - harness["spectrum/vector"]).max() < 0.1


def test_extend__comes_close_to_near_twins(plain, points):
    found, known = extend(plain, points[:300] + 1e-4), plain["spectrum/vector"]
    # The constant mode is the root of the degree, which a twin without incoming edges has less of.
    for mode in range(1, 5):
        assert np.corrcoef(found[:, mode], known[:, mode])[0, 1] > 0.95


@pytest.mark.mostly_slow(1)
@pytest.mark.parametrize(
    ("data", "laplacian"),
    [("roll", "normalized"), ("roll", "unnormalized"), ("moons", "random-walk")],
)
def test_extend__held_out_samples_come_where_they_belong(solved, rng, data, laplacian):
    if data == "roll":
        samples = make_swiss_roll(1000, random_state=3)[0]
    else:
        samples = make_moons(1000, noise=0.04, random_state=3)[0]
    tables = {
        "graph": {"laplacian": laplacian},
        "neighbors": {"method": "exact", "k": 12},
        "spectrum": {"dimension": 3, "solver": "dense"},
    }
    held = rng.permutation(1000) < 200
    whole = solved(samples, name="whole", **tables)["spectrum/vector"].astype(np.float64)[:, 1:]
    part = solved(samples[~held], name="part", **tables)
    known, found = part["spectrum/vector"][:, 1:], extend(part, samples[held])[:, 1:]
    # Eigenvectors may mix among near eigenvalues: aligned on the samples that both runs have.
    turn = np.linalg.lstsq(known.astype(np.float64), whole[~held], rcond=None)[0]
    expected, aligned = whole[held], found @ turn
    for mode in range(3):
        assert np.corrcoef(aligned[:, mode], expected[:, mode])[0, 1] > 0.97, mode


@pytest.mark.parametrize("laplacian", ["normalized", "unnormalized"])
def test_extend__each_component_keeps_to_itself(solved, points, laplacian):
    points[::2] += 10
    graph = {"laplacian": laplacian, "components": "each"}
    harness = solved(points[:300], graph=graph)
    found = extend(harness, points[300:])
    np.testing.assert_allclose(found, obvious(harness, points[300:]), rtol=1e-4, atol=1e-6)
    assert harness["spectrum/value"].shape == (6,)
    # The null vector of the other component is 0 here.
    assert (np.abs(found[:, :2]) > 1e-3).sum(axis=1).tolist() == [1] * 40


def test_extend__samples_outside_of_the_largest_component_have_none(solved, points):
    points[::3] += 10
    harness = solved(points[:300], graph={"components": "largest"})
    found = extend(harness, points)
    outside = np.arange(340) % 3 == 0
    assert np.isnan(found[outside]).all()
    np.testing.assert_array_equal(found[:300], harness["spectrum/vector"])
    new = np.arange(340) >= 300
    expected = obvious(harness, points[~outside & new].astype(np.float64))
    np.testing.assert_allclose(found[~outside & new], expected, rtol=1e-4, atol=1e-6)


def test_extend__many_copies_count_once(solved, points):
    crowd = np.concatenate([points[:300], np.repeat(points[:1], 100, axis=0)])
    harness = solved(crowd)
    found = extend(harness, points[:1] + np.float32(0.01))
    # Were all its neighbours copies of one sample, its coordinates would be a multiple of theirs.
    one = harness["spectrum/vector"][:1]
    share = found / one
    assert np.ptp(share) > 1e-3 * np.abs(share).max()
    np.testing.assert_array_equal(extend(harness, points[:1]), one)


def test_extend__leaves_out_bad_bands(plain, points):
    whole = np.full((40, 4), np.nan)
    whole[:, [0, 2, 3]] = points[300:]
    np.testing.assert_array_equal(extend(plain, whole), extend(plain, points[300:]))


def test_extend__same_answer_in_blocks(plain, rng):
    new = rng.uniform(1, 2, (9000, 3)).astype(np.float32)
    small = extend(plain, new, memory="75MB")
    np.testing.assert_array_equal(small, extend(plain, new, memory="4GiB"))
    with pytest.raises(MemoryLimitError, match=r"memory = 1MB: .* Give as much"):
        extend(plain, new, memory="1MB")


def test_extend__rows_that_are_not_finite_have_no_coordinates(plain, points):
    new = points[300:].astype(np.float64)
    new[3, 1], new[5, 0], new[7] = np.nan, -np.inf, 1e300
    found = extend(plain, new)
    assert np.flatnonzero(np.isnan(found).all(axis=1)).tolist() == [3, 5, 7]
    expected = extend(plain, np.delete(points[300:], [3, 5, 7], axis=0))
    np.testing.assert_allclose(np.delete(found, [3, 5, 7], axis=0), expected, rtol=1e-5)
    hidden = np.ma.masked_array(points[300:], mask=False)
    hidden[[3, 5, 7], 1] = np.ma.masked
    np.testing.assert_array_equal(extend(plain, hidden), found)
    assert np.isnan(extend(plain, np.full((2, 3), np.nan))).all()
    assert extend(plain, np.zeros((0, 3))).shape == (0, 5)


@pytest.mark.mostly_slow(1)
@pytest.mark.parametrize(
    "features",
    [{"method": "none"}, {"method": "none", "standardize": True}, {"dimension": 8}],
    ids=str,
)
def test_extend__sparse_samples(solved, rng, features):
    table = rng.uniform(1, 2, (260, 30)) * (rng.random((260, 30)) < 0.3)
    sparse, dense = sp.csr_array(table.astype(np.float32)), table.astype(np.float32)
    tables = {"features": features, "neighbors": {"method": "exact", "k": 8, "metric": "angle"}}
    projected = table
    if "standardize" in features:
        projected = (table - table[:220].mean(axis=0)) / table[:220].std(axis=0)
    elif "dimension" in features:
        projected = table @ orthoprojector(30, 8, 0)
    # A dense run takes sparse samples too.
    runs = [(dense, [sparse]), (sparse, [sparse, dense])]
    for old, others in runs if "dimension" in features else runs[1:]:
        harness = solved(old[:220], name=f"sparse-{sp.issparse(old)}", **tables)
        expected = obvious(harness, projected[220:], old=projected[:220], angle=True)
        for new in others:
            found = extend(harness, new[220:])
            np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-4)
    broken = sparse[220:]
    broken.data[0] = np.nan
    assert np.flatnonzero(np.isnan(extend(harness, broken)).all(axis=1)).tolist() == [0]


def test_extend__refuses_other_bands(plain):
    wanted = r"3 bands \(the good bands of the run's scene\) or 4 \(all of its bands\)"
    with pytest.raises(InputError, match=rf"shape \(7, 5\): .*{wanted}"):
        extend(plain, np.zeros((7, 5)))
    with pytest.raises(InputError, match=r"shape \(3,\)"):
        extend(plain, [1, 2, 3])
    with pytest.raises(InputError, match="Reshape an image"):
        extend(plain, np.zeros((4, 5, 3)))


def test_extend__takes_named_columns_whatever_their_order(tmp_path, rng):
    names = ["red", "bad", "green", "blue"]
    # Far from 0, so that the run has an origin.
    table = pd.DataFrame(5000 + rng.uniform(1, 2, (240, 4)), columns=names)
    job = eigenscape.job_for(
        table[:200], directory=tmp_path, scene={"bad_bands": [2]}, features={"method": "none"},
        spectrum={"dimension": 3},
    )  # fmt: skip
    run = eigenscape.run(job, run_dir=tmp_path / "run")
    new = table[200:].set_index(np.arange(40)[::-1] / 3)
    values = new[["red", "green", "blue"]].to_numpy()
    expected = eigenscape.extend(run, values)
    turned = new.assign(note="text")[["note", "blue", "green", "bad", "red"]]
    named = xarray.DataArray(new[names[::-1]])
    for given in (new, turned, turned.convert_dtypes(), named, named.chunk(16)):
        np.testing.assert_array_equal(eigenscape.extend(run, given), expected)
    # Without names the order counts.
    for plain in (pd.DataFrame(values), dask.array.from_array(values, chunks=16)):
        np.testing.assert_array_equal(eigenscape.extend(run, plain), expected)
    holes = new.convert_dtypes()
    holes.iloc[3, 2] = pd.NA
    assert np.flatnonzero(np.isnan(eigenscape.extend(run, holes)).all(axis=1)).tolist() == [3]
    with pytest.raises(InputError, match=r"none of the 4 columns is called 'green'.* mean Green"):
        eigenscape.extend(run, new.rename(columns={"green": "Green"}))
    with pytest.raises(InputError, match="2 of the 4 columns are called 'blue'"):
        eigenscape.extend(run, new.rename(columns={"bad": "blue"}))


def test_extend__refuses_other_directories(tmp_path, points):
    for path in (tmp_path, tmp_path / "nothing"):
        with pytest.raises(InputError, match="no run directory"):
            eigenscape.extend(path, points)


def test_extend__refuses_a_run_that_lacks_an_array(solved, points):
    harness = solved(points[:300], features={"method": "none", "standardize": True})
    path = harness.run_directory.array_path("features/shift")
    path.rename(path.with_name("lost"))
    with pytest.raises(StoreError, match=r"features/shift/c/0 is missing.*stage features again"):
        extend(harness, points[300:])


def test_extend__refuses_features_out_of_range(plain):
    with pytest.raises(InputError, match="single precision"):
        extend(plain, np.full((2, 3), 1e30))


def test_extend__refuses_eigenvalues_near_1(solved, points):
    spectrum = {"dimension": 250, "solver": "dense"}
    harness = solved(points[:300], spectrum=spectrum)
    values = harness["spectrum/value"]
    most = int((values <= 1 - LEAST_SHARE).sum()) - 1
    with pytest.raises(InputError, match=rf"eigenvalue is 1\.\d+.* spectrum.dimension to {most} "):
        extend(harness, points[300:])


def test_nystrom__divides_by_what_each_sample_has(rng):
    # Unnormalised, d(x) - lambda can be negative for a sample of small weights alone.
    weights = sp.csr_array(np.array([[0.5, 0.5, 0], [0, 1e-3, 1e-3], [0, 0, 0], [0, 0, 0.7]]))
    vectors = rng.standard_normal((3, 2)).astype(np.float32)
    pieces = [(0, vectors[:2]), (2, vectors[2:])]
    twins = np.array([-1, -1, -1, 0])
    found = nystrom(weights, twins, np.ones(3), np.array([0, 0.25]), pieces, "unnormalized")
    expected = np.full((4, 2), np.nan)
    expected[0] = vectors[:2].mean(axis=0) / [1, 0.75]
    expected[1, 0] = vectors[1:, 0].mean()
    expected[3] = vectors[0]
    np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.parametrize("laplacian", KINDS)
def test_nystrom__gives_back_an_eigenvector_of_the_graph(rng, laplacian):
    # The old samples' own rows are the eigenvector equation: nothing may change.
    points = rng.uniform(0, 1, (60, 2))
    W = np.exp(-40 * ((points[:, None] - points) ** 2).sum(axis=2))
    np.fill_diagonal(W, 0)
    W = sp.csr_array(W)
    degree = W.sum(axis=1)
    scale = degree**-0.5 if laplacian != "unnormalized" else np.ones(60)
    L = np.diag(degree) - W.toarray()
    values, vectors = np.linalg.eigh(scale[:, None] * L * scale)
    values, vectors = values[:5], vectors[:, :5]
    if laplacian == "random-walk":
        vectors = vectors * scale[:, None]
    pieces = [(0, vectors[:25]), (25, vectors[25:])]
    found = nystrom(W, np.full(60, -1), degree, values, pieces, laplacian)
    np.testing.assert_allclose(found, vectors, atol=1e-12)

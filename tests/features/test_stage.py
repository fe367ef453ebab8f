import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.decomposition import PCA
from sklearn.preprocessing import StandardScaler

from eigenscape.errors import SceneError
from eigenscape.features import projecting
from eigenscape.features.kernels import noise_fractions, orthoprojector
from eigenscape.features.methods.none import NoProjection
from eigenscape.features.methods.pca import PrincipalComponents
from eigenscape.features.methods.random_projection import RandomProjection
from eigenscape.features.projecting import stored_map
from eigenscape.scenes.types import Grid
from eigenscape.store.arrays import attach_whole
from eigenscape.store.rows import Rows, create_sparse
from harness import Frail, Harness, KilledError


def basis_of(harness):
    """Return the basis of a run, whose diagonal is stored if it has nothing else."""
    run = harness.run_directory
    if (basis := run.read("features/basis")) is not None:
        return basis
    scale = run.read("features/scale")
    return np.eye(harness["features/values"].shape[1]) if scale is None else np.diag(scale)


@pytest.fixture
def extract(tmp_path):
    """Run the features stage on given samples."""

    def run(values, *, memory="2GiB", threads=2, name="run", executor=None, **options):
        harness = Harness(tmp_path / name, features=options, limits={"memory": memory})
        if harness.run_directory.record("samples") is None:
            harness.put("samples", {"samples/values": values.astype(np.float32)})
        summary = harness.run("features", executor, threads=threads)
        return harness["features/values"], basis_of(harness), summary

    return run


@pytest.fixture
def samples(rng):
    return 1000 + 50 * rng.standard_normal((5000, 20)) @ rng.standard_normal((20, 20))


def test_features_stage__projects_by_the_orthoprojector(extract, samples):
    values, basis, summary = extract(samples, dimension=7, seed=5)
    np.testing.assert_array_equal(basis, orthoprojector(20, 7, 5).astype(np.float32))
    np.testing.assert_allclose(values, samples.astype(np.float32) @ basis, rtol=1e-4, atol=1e-2)
    assert summary == {"dimension": 7, "projected": True}


def test_features_stage__other_seeds_give_other_features(extract, samples):
    first, _, _ = extract(samples, dimension=7, name="a")
    second, _, _ = extract(samples, dimension=7, seed=1, name="b")
    assert np.abs(first - second).max() > 1


def test_features_stage__pca_equals_sklearn(extract, samples):
    values, basis, summary = extract(samples, method="pca", dimension=6)
    peer = PCA(6, svd_solver="full").fit(samples.astype(np.float32).astype(np.float64))
    expected = peer.transform(samples.astype(np.float32).astype(np.float64))
    signs = np.sign(np.sum(values * expected, axis=0))
    np.testing.assert_allclose(values * signs, expected, atol=1e-5 * np.abs(expected).max())
    np.testing.assert_allclose(basis * signs, peer.components_.T, atol=1e-6)
    expected = peer.explained_variance_ratio_.sum()
    assert summary["explained_variance"] == pytest.approx(expected, rel=1e-8)


def test_features_stage__pca_survives_an_offset_that_dwarfs_the_variance(extract, rng):
    # In single precision E[x^2] - E[x]^2 has no correct digit here.
    values = np.zeros((6000, 5))
    values[:, 2] = rng.standard_normal(6000)
    _, basis, _ = extract(values + 3e4, method="pca", dimension=1)
    np.testing.assert_allclose(np.abs(basis[:, 0]), np.eye(5)[2], atol=1e-4)


def test_features_stage__standardizes_like_sklearn(extract, samples):
    values, _, _ = extract(samples, method="none", standardize=True)
    expected = StandardScaler().fit_transform(samples.astype(np.float32).astype(np.float64))
    np.testing.assert_allclose(values, expected, atol=1e-4)


def test_features_stage__standardizes_before_it_projects(extract, samples):
    values, _, _ = extract(samples * np.geomspace(1, 1e3, 20), dimension=4, standardize=True)
    scaled = StandardScaler().fit_transform(samples * np.geomspace(1, 1e3, 20))
    np.testing.assert_allclose(values, scaled @ orthoprojector(20, 4, 0), atol=2e-3)


def test_features_stage__standardizes_before_pca(extract, samples):
    values, _, summary = extract(samples, method="pca", dimension=3, standardize=True)
    scaled = StandardScaler().fit_transform(samples.astype(np.float32).astype(np.float64))
    peer = PCA(3, svd_solver="full").fit(scaled)
    expected = peer.transform(scaled)
    signs = np.sign(np.sum(values * expected, axis=0))
    np.testing.assert_allclose(values * signs, expected, atol=1e-3)
    expected = peer.explained_variance_ratio_.sum()
    assert summary["explained_variance"] == pytest.approx(expected, rel=1e-7)


@pytest.mark.parametrize(
    "options",
    [
        {"dimension": 4, "standardize": True},
        {"method": "pca", "dimension": 4},
        {"method": "none", "standardize": True},
    ],
    ids=str,
)
def test_features_stage__stores_what_new_samples_need(extract, tmp_path, samples, options):
    values, basis, _ = extract(samples, **options)
    shift = Harness(tmp_path / "run")["features/shift"]
    np.testing.assert_allclose(shift, samples.mean(axis=0), rtol=1e-6)
    np.testing.assert_allclose((samples.astype(np.float32) - shift) @ basis, values, atol=1e-3)


def test_features_stage__stores_no_shift_of_nothing(extract, tmp_path, samples):
    extract(samples, dimension=4)
    assert not Harness(tmp_path / "run").run_directory.array_path("features/shift").exists()


@pytest.mark.parametrize("constant", [0.1, 0.0, 1e5 / 3])
def test_features_stage__a_constant_band_becomes_0(extract, samples, constant):
    samples[:, 3] = constant
    values, _, _ = extract(samples, method="none", standardize=True)
    np.testing.assert_array_equal(values[:, 3], 0)
    np.testing.assert_allclose(np.delete(values, 3, axis=1).std(axis=0), 1, rtol=1e-4)


def test_features_stage__constant_samples_pass_pca(extract):
    values, _, summary = extract(np.full((50, 6), 0.7), method="pca", dimension=2)
    np.testing.assert_array_equal(values, 0)
    assert summary["explained_variance"] == 1


@pytest.mark.parametrize("options", [{"method": "none", "dimension": 3}, {"dimension": 20}])
def test_features_stage__leaves_samples_alone(extract, samples, options):
    values, basis, summary = extract(samples, **options)
    np.testing.assert_array_equal(values, samples.astype(np.float32))
    np.testing.assert_array_equal(basis, np.eye(20))
    assert summary == {"dimension": 20, "projected": False}


def test_is_projected__never_onto_as_many_dimensions():
    options = PrincipalComponents(dimension=10)
    assert [options.is_projected(bands) for bands in (9, 10, 11)] == [False, False, True]
    assert [options.count(bands) for bands in (9, 10, 11)] == [9, 10, 10]
    assert not NoProjection().is_projected(5)


@pytest.fixture
def many(rng, monkeypatch):
    """Samples enough for blocks of several sizes, in chunks of 4096."""
    monkeypatch.setattr("eigenscape.store.arrays._CHUNK_ROWS", 4096)
    return rng.standard_normal((70_000, 30)).astype(np.float32)


@pytest.mark.mostly_slow(1)
@pytest.mark.parametrize("method", ["random-projection", "pca"])
def test_features_stage__gives_the_same_bits_under_any_limit(extract, many, method):
    options = {"method": method, "dimension": 20, "standardize": True}
    small, large = Frail(), Frail()
    first = extract(many, memory="200MiB", name="a", executor=small, **options)
    second = extract(many, memory="8GiB", name="b", executor=large, **options)
    third = extract(many, memory="8GiB", name="c", threads=2, **options)
    assert len(small.log) > len(large.log)
    for other in (second, third):
        np.testing.assert_array_equal(first[0], other[0])
        np.testing.assert_array_equal(first[1], other[1])


def test_features_stage__wide_samples_are_read_in_pieces_and_summed_in_few_parts(
    extract, many, monkeypatch
):
    options = {"method": "pca", "dimension": 20, "standardize": True}
    usual = extract(many, name="a", executor=(parts := Frail()), **options)
    monkeypatch.setattr("eigenscape.features.pieces._PIECE_BYTES", 1)
    pieces = extract(many, name="b", **options)
    np.testing.assert_array_equal(usual[0], pieces[0])
    monkeypatch.setattr("eigenscape.features.pieces._PARTIAL_BYTES", 1)
    few = extract(many, name="c", executor=(whole := Frail()), **options)
    assert len(whole.log) == len(parts.log) - 1
    np.testing.assert_allclose(few[0], usual[0], atol=1e-4)


@pytest.mark.parametrize("noted", [False, True])
def test_features_stage__goes_on_after_a_kill(extract, many, noted):
    options = {"dimension": 20, "memory": "200MiB"}
    whole, rest = Frail(), Frail()
    expected, _, _ = extract(many, name="whole", executor=whole, **options)
    with pytest.raises(KilledError):
        extract(many, executor=Frail(7, noted=noted), **options)
    values, _, _ = extract(many, executor=rest, **options)
    np.testing.assert_array_equal(values, expected)
    assert rest.log == whole.log[6 + noted :]


@pytest.fixture
def counts(rng):
    """Word counts: mostly 0, a column and some rows of nothing, a column of large numbers."""
    table = rng.poisson(0.1, (9000, 40)).astype(np.float32)
    table[:, 5], table[10:20] = 0, 0
    table[:, 8] *= 1000
    return table


@pytest.fixture
def extract_sparse(tmp_path):
    """Run the features stage on a sparse table; return its run and its summary."""

    def run(dense, *, memory="2GiB", threads=2, name="sparse", executor=None, **options):
        harness = Harness(tmp_path / name, features=options, limits={"memory": memory})
        if harness.run_directory.record("samples") is None:
            table = sp.csr_array(dense)
            workspace = harness.run_directory.workspace("samples", "given")
            paths = create_sparse(workspace, "samples/values", table.indptr, dense.shape[1])
            for path, part in zip(paths, (table.data, table.indices), strict=False):
                attach_whole(path)[...] = part
            harness._commit("samples", workspace, {})
        return harness, harness.run("features", executor, threads=threads)

    return run


@pytest.mark.parametrize(
    "options",
    [
        {"dimension": 7, "seed": 3},
        {"dimension": 7, "standardize": True},
        {"method": "pca", "dimension": 3},
        {"method": "pca", "dimension": 7, "standardize": True},
        {"method": "none", "standardize": True},
        {"dimension": 40, "standardize": True},
    ],
    ids=str,
)
def test_features_stage__sparse_equals_dense(extract, extract_sparse, counts, options):
    expected, basis, summary = extract(counts, **options)
    harness, told = extract_sparse(counts, **options)
    values = harness["features/values"]
    np.testing.assert_allclose(values, expected, rtol=1e-4, atol=2e-6 * np.abs(expected).max())
    assert told == pytest.approx(summary, rel=1e-9)
    if told["projected"]:
        found = harness["features/basis"]
        np.testing.assert_allclose(found, basis, rtol=1e-4, atol=1e-6 * np.abs(basis).max())
    else:
        # A diagonal matrix of all columns would be larger than the table.
        np.testing.assert_allclose(harness["features/scale"], np.diagonal(basis), rtol=1e-5)
        with pytest.raises(FileNotFoundError):
            harness["features/basis"]


def test_features_stage__bands_that_are_kept_have_no_matrix(tmp_path, samples):
    for name, options in {
        "plain": {"method": "none"},
        "scaled": {"method": "none", "standardize": True},
        "few": {"dimension": 80},
        "pca": {"method": "pca", "dimension": 80, "standardize": True},
    }.items():
        harness = Harness(tmp_path / name, features=options)
        harness.put("samples", {"samples/values": samples.astype(np.float32)})
        harness.run("features")
        run, method = harness.run_directory, harness.job.features
        assert not run.has("features/basis")
        assert run.has("features/scale") == options.get("standardize", False)
        found = stored_map(method, run, 20)(samples.astype(np.float32))
        np.testing.assert_array_equal(found, harness["features/values"])


def test_features_stage__sparse_constant_column_is_left_at_zero(extract_sparse, counts):
    counts[:, 3] = np.float32(0.1)
    harness, _ = extract_sparse(counts, method="none", standardize=True)
    values = harness["features/values"]
    assert (values[:, [3, 5]] == 0).all()
    others = np.delete(values, [3, 5], axis=1)
    np.testing.assert_allclose(others.std(axis=0), 1, rtol=1e-4)


@pytest.mark.parametrize(
    "options", [{"method": "none"}, {"dimension": 40}, {"method": "pca", "dimension": 90}]
)
@pytest.mark.parametrize("entries", [100, 2**22])
def test_features_stage__sparse_stays_sparse(extract_sparse, counts, monkeypatch, options, entries):
    monkeypatch.setattr(projecting, "COPY_ENTRIES", entries)
    harness, summary = extract_sparse(counts[:2000], **options)
    table = Rows(str(harness.run_directory.array_path("features/values")))
    assert table.sparse
    assert table.shape == (2000, 40)
    np.testing.assert_array_equal(table.read(0, 2000).toarray(), counts[:2000])
    assert summary == {"dimension": 40, "projected": False}
    with pytest.raises(FileNotFoundError):
        harness["features/basis"]


def test_stays_sparse():
    assert NoProjection().stays_sparse(6000)
    assert RandomProjection(dimension=30).stays_sparse(30)
    assert not RandomProjection(dimension=30).stays_sparse(31)
    assert not NoProjection(standardize=True).stays_sparse(6000)


@pytest.mark.parametrize("method", ["random-projection", "pca"])
def test_features_stage__sparse_gives_the_same_bits_under_any_limit(
    extract_sparse, counts, monkeypatch, method
):
    monkeypatch.setattr("eigenscape.store.arrays._CHUNK_ROWS", 4096)
    monkeypatch.setattr("eigenscape.store.arrays._CHUNK_BYTES", 4096)
    many = np.tile(counts, (3, 1))
    options = {"method": method, "dimension": 20, "standardize": True}
    small, large = Frail(), Frail()
    first, _ = extract_sparse(many, memory="200MiB", name="a", executor=small, **options)
    second, _ = extract_sparse(many, memory="8GiB", name="b", executor=large, **options)
    third, _ = extract_sparse(many, memory="8GiB", name="c", threads=2, **options)
    assert len(small.log) >= len(large.log)
    for other in (second, third):
        for array in ("features/values", "features/basis"):
            np.testing.assert_array_equal(first[array], other[array])


@pytest.mark.parametrize("noted", [False, True])
def test_features_stage__sparse_copy_goes_on_after_a_kill(
    extract_sparse, counts, monkeypatch, noted
):
    monkeypatch.setattr(projecting, "COPY_ENTRIES", 1000)
    whole, rest = Frail(), Frail()
    extract_sparse(counts, name="whole", executor=whole, method="none")
    with pytest.raises(KilledError):
        extract_sparse(counts, executor=Frail(7, noted=noted), method="none")
    harness, _ = extract_sparse(counts, executor=rest, method="none")
    table = Rows(str(harness.run_directory.array_path("features/values")))
    np.testing.assert_array_equal(table.read(0, len(counts)).toarray(), counts)
    assert rest.log == whole.log[6 + noted :]


@pytest.fixture
def extract_pixels(tmp_path):
    """Run the features stage on the valid pixels of a cube."""

    def run(cube, valid, *, memory="2GiB", executor=None, name="run", **options):
        harness = Harness(tmp_path / name, features=options, limits={"memory": memory})
        grid = Grid(height=cube.shape[0], width=cube.shape[1])
        harness.put("ingest", {}, grid=grid.to_json())
        arrays = {"values": cube[valid].astype(np.float32), "pixel": np.flatnonzero(valid)}
        harness.put("samples", {f"samples/{key}": value for key, value in arrays.items()})
        summary = harness.run("features", executor)
        return harness["features/values"], basis_of(harness), summary

    return run


@pytest.fixture
def noisy(rng):
    """A smooth scene in two bands, under noise that is as strong as it in four others."""
    line, column = np.mgrid[:40, :30] / 10
    signal = np.stack([np.sin(line), np.cos(column)] + 4 * [line * column], axis=-1)
    noise = np.array([0.01, 0.01, 4, 5, 6, 7]) * rng.standard_normal(signal.shape)
    return 100 + signal + noise, rng.random((40, 30)) < 0.9


def test_features_stage__mnf_equals_differences_of_all_neighbours(extract_pixels, noisy):
    cube, valid = noisy
    values, basis, summary = extract_pixels(cube, valid, method="mnf", dimension=3)
    cube = cube.astype(np.float32).astype(np.float64)
    pairs = [
        (cube[:, 1:] - cube[:, :-1])[valid[:, 1:] & valid[:, :-1]],
        (cube[1:] - cube[:-1])[valid[1:] & valid[:-1]],
    ]
    differences = np.concatenate(pairs)
    noise = differences.T @ differences / (2 * len(differences))
    _, ratio = noise_fractions(np.cov(cube[valid].T, bias=True), noise, 3)
    np.testing.assert_allclose(summary["signal_to_noise"], ratio - 1, atol=1e-3)
    np.testing.assert_allclose(basis.T @ noise @ basis, np.eye(3), atol=1e-3)
    np.testing.assert_allclose(values.mean(axis=0), 0, atol=1e-2)
    # The two clean bands lead.
    assert np.abs(basis[:2, :2]).min(axis=1).max() > 10 * np.abs(basis[2:, :2]).max()


def test_features_stage__mnf_weighs_even_all_bands(extract_pixels, noisy):
    values, basis, summary = extract_pixels(*noisy, method="mnf", dimension=80)
    assert (values.shape[1], basis.shape, summary["projected"]) == (6, (6, 6), True)


def test_features_stage__mnf_gives_the_same_bits_under_any_limit(extract_pixels, rng, monkeypatch):
    monkeypatch.setattr("eigenscape.store.arrays._CHUNK_ROWS", 4096)
    cube, valid = rng.standard_normal((300, 270, 10)), rng.random((300, 270)) < 0.9
    options = {"method": "mnf", "dimension": 4}
    small = extract_pixels(cube, valid, memory="205MiB", name="a", executor=Frail(), **options)
    large = extract_pixels(cube, valid, name="b", **options)
    np.testing.assert_array_equal(small[0], large[0])
    monkeypatch.setattr("eigenscape.features.pieces._PARTIAL_BYTES", 1)
    few = extract_pixels(cube, valid, name="c", **options)
    np.testing.assert_allclose(few[0], large[0], atol=1e-4)


@pytest.mark.parametrize(("shape", "valid"), [((50, 1, 6), np.s_[:]), ((9, 8, 6), np.s_[::2, ::2])])
def test_features_stage__mnf_needs_neighbours(extract_pixels, rng, shape, valid):
    chosen = np.zeros(shape[:2], bool)
    chosen[valid] = True
    with pytest.raises(SceneError, match=r"none of the \d+ samples has a neighbour.*\"pca\""):
        extract_pixels(rng.standard_normal(shape), chosen, method="mnf", dimension=3)

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse
from scipy.sparse.csgraph import connected_components
from scipy.spatial import cKDTree

from eigenscape.errors import InputError, MemoryLimitError
from harness import Frail, Harness, KilledError


def neighbour_graph(rng, n, *, clusters=1, k=8):
    """Self-tuned weights among the k nearest of random points, as many components as clusters."""
    points = rng.uniform(0, 1, (n, 2))
    points[:, 0] += 10 * (np.arange(n) % clusters)
    distance, index = cKDTree(points).query(points, k + 1)
    scale = distance[:, -1]
    rows = np.repeat(np.arange(n), k)
    columns = index[:, 1:].ravel()
    weights = np.exp(-(distance[:, 1:].ravel() ** 2) / (scale[rows] * scale[columns]))
    W = scipy.sparse.csr_array((weights, (rows, columns)), (n, n))
    W = scipy.sparse.csr_array(W.maximum(W.T)).astype(np.float32)
    W.sort_indices()
    return W


@pytest.fixture
def solve(tmp_path):
    """Run the spectrum stage on a weight matrix whose rows stand for given samples."""

    def run(
        W, *, name="run", sample=None, samples=None, component=None, laplacian="normalized",
        threads=2, memory="2GiB", executor=None, rows_per_block=None, **options,
    ):  # fmt: skip
        n = W.shape[0]
        sample = np.arange(n) if sample is None else sample
        samples = n if samples is None else samples
        harness = Harness(
            tmp_path / name,
            graph={"laplacian": laplacian},
            spectrum={"solver": "chebyshev", **options},
            limits={"memory": memory},
        )
        if harness.run_directory.record("graph") is None:
            harness.put("ingest", {"samples/pixel": np.arange(samples)})
            component_of = np.zeros(samples, np.int32) if component is None else component
            arrays = {
                "graph/degree": np.asarray(W.astype(np.float64).sum(axis=1)),
                "graph/sample": sample,
                "graph/component": component_of,
            }
            step = rows_per_block or n
            for number, first in enumerate(range(0, n, step)):
                part = W[first : first + step]
                arrays[f"graph/{number}/indptr"] = part.indptr.astype(np.int64)
                arrays[f"graph/{number}/indices"] = part.indices.astype(np.int32)
                arrays[f"graph/{number}/data"] = part.data
            harness.put("graph", arrays, whole=list(arrays), rows=n, connected=component is None)
        summary = harness.run("spectrum", executor, threads=threads)
        value, vector = harness["spectrum/value"], harness["spectrum/vector"]
        return value, vector, harness["spectrum/residual"], summary

    return run


def dense(W, kind):
    W = W.astype(np.float64).toarray()
    degree = W.sum(axis=1)
    L = np.diag(degree) - W
    if kind == "unnormalized":
        return L, degree
    return L / np.sqrt(np.outer(degree, degree)), degree


@pytest.fixture
def iterate(monkeypatch):
    """Let small graphs be solved by iteration too."""
    monkeypatch.setattr("eigenscape.spectrum.iteration.solvers.DENSE_ROWS", 0)


SOLVERS = ["chebyshev", "lanczos", "dense"]


@pytest.mark.mostly_slow(3)
@pytest.mark.usefixtures("iterate")
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("kind", ["normalized", "unnormalized", "random-walk"])
def test_spectrum_stage__equals_lapack(solve, rng, solver, kind):
    W = neighbour_graph(rng, 800)
    options = {"laplacian": kind, "solver": solver, "dimension": 15, "tolerance": 1e-9}
    value, vector, residual, summary = solve(W, **options)
    L, degree = dense(W, kind)
    values, vectors = np.linalg.eigh(L)
    np.testing.assert_allclose(value, values[:16], rtol=1e-8, atol=1e-10)
    assert value[0] == 0
    if kind == "random-walk":
        D = np.diag(degree)
        generalized = dense(W, "unnormalized")[0]
        np.testing.assert_allclose(generalized @ vector, D @ vector * value, atol=1e-4)
        np.testing.assert_allclose(vector.T @ D @ vector, np.eye(16), atol=1e-5)
        np.testing.assert_allclose(vector[:, 0], vector[0, 0], rtol=1e-6)
        vector = vector * np.sqrt(degree)[:, None]
    signs = np.sign(np.sum(vectors[:, :16] * vector, axis=0))
    np.testing.assert_allclose(vector * signs, vectors[:, :16], atol=1e-5)
    assert summary["solver"] == solver
    assert summary["precision"] == "double"
    assert summary["converged"]
    assert summary["null_vectors"] == 1
    assert summary["max_residual"] == residual.max() <= 1e-9 * summary["unit"]
    np.testing.assert_allclose(summary["values"], value)


@pytest.mark.usefixtures("iterate")
def test_spectrum_stage__is_single_by_default(solve, rng):
    W = neighbour_graph(rng, 1500)
    value, vector, residual, summary = solve(W, dimension=30)
    L, _ = dense(W, "normalized")
    values, vectors = scipy.linalg.eigh(L, subset_by_index=[0, 33])
    assert summary["precision"] == "single"
    np.testing.assert_allclose(value, values[:31], atol=1e-5)
    np.testing.assert_allclose(vector.T @ vector, np.eye(31), atol=1e-5)
    found = L @ vector - vector * value
    assert np.linalg.norm(found, axis=0).max() < 1.5e-5
    assert residual.max() <= 1e-5
    assert scipy.linalg.subspace_angles(vector[:, :11], vectors[:, :11]).max() < 1e-2


@pytest.mark.usefixtures("iterate")
@pytest.mark.parametrize("solver", SOLVERS)
def test_spectrum_stage__fixes_signs_by_the_largest_entry(solve, rng, solver):
    _, vector, _, _ = solve(neighbour_graph(rng, 600), solver=solver, dimension=10, tolerance=1e-8)
    largest = np.abs(vector).argmax(axis=0)
    assert (vector[largest, np.arange(11)] > 0).all()


@pytest.mark.usefixtures("iterate")
def test_spectrum_stage__puts_rows_back_to_their_samples(solve, rng):
    W = neighbour_graph(rng, 500)
    sample = rng.permutation(500)
    options = {"dimension": 6, "tolerance": 1e-9}
    first = solve(W, name="a", **options)
    second = solve(W, name="b", sample=sample, **options)
    np.testing.assert_array_equal(first[0], second[0])
    np.testing.assert_array_equal(second[1][sample], first[1])


@pytest.mark.mostly_slow(3)
@pytest.mark.usefixtures("iterate")
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("kind", ["normalized", "random-walk", "unnormalized"])
def test_spectrum_stage__each_component_has_its_null_vector(solve, rng, solver, kind):
    W = neighbour_graph(rng, 600, clusters=3)
    count, labels = connected_components(W)
    assert count == 3
    sample = rng.permutation(600)
    component = np.empty(600, np.int32)
    component[sample] = labels
    value, vector, residual, summary = solve(
        W, sample=sample, component=component, solver=solver, laplacian=kind,
        dimension=9, tolerance=1e-8,
    )  # fmt: skip
    assert summary["null_vectors"] == 3
    assert value.shape == (12,)
    values = np.linalg.eigvalsh(dense(W, kind)[0])
    np.testing.assert_allclose(value, values[:12], rtol=1e-7, atol=1e-10)
    np.testing.assert_array_equal(value[:3], 0)
    assert value[3] > 1e-4
    for part in range(3):
        inside = component == part
        assert (vector[inside, part] > 0).all()
        np.testing.assert_array_equal(vector[~inside, part], 0)
        if kind != "normalized":
            assert np.ptp(vector[inside, part]) < 1e-6 * vector[inside, part].max()
    assert residual.max() <= 1e-8 * summary["unit"]


@pytest.mark.parametrize("kind", ["normalized", "random-walk", "unnormalized"])
def test_spectrum_stage__takes_shift_invert_for_thin_graphs(solve, kind):
    n = 2000
    W = scipy.sparse.diags_array([2.0, 2.0], offsets=[-1, 1], shape=(n, n), format="csr")
    value, _, residual, summary = solve(
        W.astype(np.float32), solver="auto", laplacian=kind, dimension=9
    )
    assert summary["solver"] == "shift-invert"
    assert summary["converged"]
    exact = 4 - 4 * np.cos(np.pi * np.arange(10) / n)
    if kind != "unnormalized":
        exact = 1 - np.cos(np.pi * np.arange(10) / (n - 1))
    np.testing.assert_allclose(value, exact, rtol=1e-7, atol=1e-14)
    assert residual.max() < 1e-12


def test_spectrum_stage__refuses_factors_that_do_not_fit(solve, rng):
    W = neighbour_graph(rng, 6000)
    with pytest.raises(
        MemoryLimitError, match=r"spectrum.solver = 'shift-invert': the factors of a"
    ):
        solve(W, solver="shift-invert", dimension=9, memory="220MiB")


@pytest.mark.usefixtures("iterate")
def test_spectrum_stage__samples_outside_the_graph_have_no_coordinates(solve, rng):
    sample = np.sort(rng.choice(700, 500, replace=False))
    _, vector, _, _ = solve(neighbour_graph(rng, 500), sample=sample, samples=700, dimension=5)
    outside = np.setdiff1d(np.arange(700), sample)
    assert np.isnan(vector[outside]).all()
    assert np.isfinite(vector[sample]).all()


@pytest.mark.parametrize("solver", SOLVERS)
def test_spectrum_stage__finds_as_many_as_there_are(solve, rng, solver):
    W = neighbour_graph(rng, 40)
    value, vector, _, _ = solve(W, solver=solver, dimension=39, tolerance=1e-8)
    values, _ = np.linalg.eigh(dense(W, "normalized")[0])
    np.testing.assert_allclose(value, values, atol=1e-9)
    np.testing.assert_allclose(vector.T @ vector, np.eye(40), atol=1e-5)


@pytest.mark.parametrize("solver", SOLVERS)
def test_spectrum_stage__refuses_more_than_there_are(solve, rng, solver):
    # The largest component, or many components, leave fewer than the scene has samples.
    W = neighbour_graph(rng, 60, clusters=3)
    component = connected_components(W)[1].astype(np.int32)
    options = {"component": component, "solver": solver, "tolerance": 1e-8}
    with pytest.raises(InputError, match="at most 57 eigenvectors"):
        solve(W, dimension=58, **options)
    value, _, _, _ = solve(W, name="most", dimension=57, **options)
    np.testing.assert_allclose(value, np.linalg.eigvalsh(dense(W, "normalized")[0]), atol=1e-8)


@pytest.mark.usefixtures("iterate")
def test_spectrum_stage__gives_the_same_bits_for_any_threads_and_limit(solve, rng, monkeypatch):
    monkeypatch.setattr("eigenscape.store.arrays._CHUNK_ROWS", 4096)
    W = neighbour_graph(rng, 9000)
    first = solve(W, name="a", threads=1, memory="8GiB", dimension=20)
    second = solve(W, name="b", threads=2, memory="200MiB", dimension=20)
    for one, other in zip(first[:3], second[:3], strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.mostly_exhaustive(4)
@pytest.mark.slow
@pytest.mark.usefixtures("iterate")
@pytest.mark.parametrize("noted", [False, True])
@pytest.mark.parametrize("step", ["start", "Filter", "Gram", "Rotate", "Residuals", "_write_block"])
def test_spectrum_stage__goes_on_after_a_kill(solve, rng, monkeypatch, step, noted):
    monkeypatch.setattr("eigenscape.spectrum.iteration.kernels.columns._TILE_BYTES", 1)
    monkeypatch.setattr("eigenscape.store.arrays._CHUNK_ROWS", 4096)
    W = neighbour_graph(rng, 5000)
    options = {"dimension": 20, "tolerance": 1e-7, "rows_per_block": 2000}
    whole = Frail()
    expected = solve(W, name="whole", executor=whole, **options)
    steps = [name for name, _ in whole.log]
    assert steps.count("Filter") > 2
    places = np.flatnonzero(np.array(steps) == step)
    tasks = int(places[(len(places) - 1) // 2]) + 1
    with pytest.raises(KilledError):
        solve(W, executor=Frail(tasks, noted=noted), **options)
    rest = Frail()
    found = solve(W, executor=rest, **options)
    for one, other in zip(found[:3], expected[:3], strict=True):
        np.testing.assert_array_equal(one, other)
    lasting = [entry for entry in whole.log[: tasks - (not noted)] if entry[0] != "Gram"]
    again = [entry for entry in rest.log if entry[0] != "Gram"]
    assert lasting + again == [entry for entry in whole.log if entry[0] != "Gram"]


@pytest.mark.usefixtures("iterate")
def test_spectrum_stage__few_samples_without_convergence_are_solved_by_lapack(
    solve, rng, monkeypatch
):
    monkeypatch.setattr("eigenscape.spectrum.iteration.chebyshev.MOST_PASSES", 1)
    W = neighbour_graph(rng, 800)
    value, _, _, summary = solve(W, dimension=10, tolerance=1e-10)
    assert summary["converged"]
    np.testing.assert_allclose(value, np.linalg.eigvalsh(dense(W, "normalized")[0])[:11], atol=1e-9)


@pytest.mark.usefixtures("iterate")
def test_spectrum_stage__says_when_it_did_not_converge(solve, rng, monkeypatch):
    monkeypatch.setattr("eigenscape.spectrum.iteration.chebyshev.MOST_PASSES", 1)
    monkeypatch.setattr("eigenscape.spectrum.iteration.solvers.INERTIA_ROWS", 500)
    W = neighbour_graph(rng, 800)
    value, vector, residual, summary = solve(W, dimension=10, tolerance=1e-10)
    assert not summary["converged"]
    assert summary["passes"] == 1
    assert summary["max_residual"] == residual.max() > 1e-10
    # What is there is kept: rough, but not wrong.
    values = np.linalg.eigvalsh(dense(W, "normalized")[0])[:11]
    np.testing.assert_allclose(value, values, atol=0.05)
    assert np.isfinite(vector).all()

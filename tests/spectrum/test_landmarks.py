"""Eigenvectors extended from landmarks: dense references, the whole graph, kills, what is refused."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.spatial.distance import cdist

import eigenscape
from eigenscape.errors import InputError
from harness import Frail, KilledError, solve

KINDS = ["normalized", "random-walk", "unnormalized"]


def nystrom(path, samples, *, landmarks=80, k=8, dimension=4, **tables):
    tables = {
        "neighbors": {"method": "landmarks", "k": k, "landmarks": landmarks},
        "spectrum": {"dimension": dimension},
        **tables,
    }
    return solve(path, samples, **tables)


@pytest.fixture(scope="module")
def points():
    """Return 400 samples of a strip, so that no two of its lowest eigenvalues coincide."""
    rng = np.random.default_rng(3)
    return (rng.uniform(0, 1, (400, 3)) * [4, 1, 0.2]).astype(np.float32)


@pytest.fixture(scope="module")
def plain(tmp_path_factory, points):
    return nystrom(tmp_path_factory.mktemp("landmarks") / "run", points)


def written_out(harness, samples, k=8):
    """The same by dense matrices: eigenvectors of the landmarks, then the formula for each sample."""
    landmark, kind = harness["neighbors/landmark"], harness.job.graph.laplacian
    away = cdist(samples.astype(np.float64), samples[landmark].astype(np.float64))
    away[landmark, np.arange(len(landmark))] = np.inf
    near = np.argsort(away, axis=1)[:, :k]
    length = np.take_along_axis(away, near, axis=1)
    scale = np.maximum(length[:, -1], 0.1 * np.median(length[:, -1]))
    W = np.zeros(away.shape)
    rows = np.arange(len(samples))[:, None]
    if harness.job.graph.weights == "binary":
        W[rows, near] = 1
    elif harness.job.graph.weights == "heat":
        W[rows, near] = np.exp(-(length**2) / np.mean(length**2))
    else:
        W[rows, near] = np.exp(-(length**2) / (scale[:, None] * scale[landmark][near]))
    own = np.maximum(W[landmark], W[landmark].T)
    d = own.sum(axis=1)
    W[landmark] = own
    total = W.sum(axis=1)
    if kind == "unnormalized":
        value, vector = np.linalg.eigh(np.diag(d) - own)
    else:
        value, vector = np.linalg.eigh(np.eye(len(d)) - own / np.sqrt(np.outer(d, d)))
    value, vector = value[:5], vector[:, :5]
    if kind == "unnormalized":
        extended = W @ vector / (total[:, None] - value)
    else:
        extended = (W / np.sqrt(np.outer(total, d))) @ vector / (1 - value)
    extended[landmark] = vector
    extended /= np.linalg.norm(extended, axis=0)
    extended *= np.sign(extended[np.abs(extended).argmax(axis=0), np.arange(5)])
    return value, extended / np.sqrt(total)[:, None] if kind == "random-walk" else extended


@pytest.mark.parametrize(
    ("kind", "weights"),
    [
        *((kind, "self-tuning") for kind in KINDS),
        ("normalized", "heat"),
        ("unnormalized", "binary"),
    ],
)
def test_landmark_spectrum__equals_the_formula_written_out(tmp_path, points, kind, weights):
    graph = {"laplacian": kind, "weights": weights}
    harness = nystrom(tmp_path / "run", points, graph=graph)
    value, vector = written_out(harness, points)
    np.testing.assert_allclose(harness["spectrum/value"], value, atol=1e-5)
    np.testing.assert_allclose(harness["spectrum/vector"], vector, rtol=1e-3, atol=2e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_landmark_spectrum__of_all_samples_is_that_of_their_graph(tmp_path, points, kind):
    # Copies of one sample, too: they are landmarks as all others are.
    samples = np.concatenate([points, np.repeat(points[:1], 12, axis=0)])
    every = nystrom(tmp_path / "all", samples, landmarks=1000, graph={"laplacian": kind})
    exact = solve(tmp_path / "exact", samples, graph={"laplacian": kind})
    summary = every.run_directory.record("spectrum").summary
    assert summary["landmarks"] == len(samples)
    assert summary["max_residual"] < 1e-6
    for name in ("value", "vector"):
        found, expected = every[f"spectrum/{name}"], exact[f"spectrum/{name}"]
        np.testing.assert_allclose(found, expected, atol=1e-5 * np.abs(expected).max())


@pytest.mark.parametrize("kind", KINDS)
def test_landmark_spectrum__says_how_far_from_eigenvectors_they_are(tmp_path, points, kind):
    harness = nystrom(tmp_path / "run", points, graph={"laplacian": kind})
    summary = harness.run_directory.record("spectrum").summary
    parts = [harness[f"graph/0/{name}"] for name in ("data", "indices", "indptr")]
    W = sp.csr_array(tuple(parts), (400, 400)).toarray().astype(np.float64)
    d = W.sum(axis=1)
    vector, value = harness["spectrum/vector"].astype(np.float64), harness["spectrum/value"]
    vector = vector[harness["graph/sample"]]
    L = np.diag(d) - W if kind == "unnormalized" else np.eye(400) - W / np.sqrt(np.outer(d, d))
    if kind == "random-walk":
        place = np.isin(harness["graph/sample"], harness["neighbors/landmark"])
        vector *= np.sqrt(np.where(place, W[:, place].sum(axis=1), d))[:, None]
    away = np.linalg.norm(L @ vector - value * vector, axis=0)
    np.testing.assert_allclose(harness["spectrum/residual"], away, rtol=1e-3, atol=1e-5)
    assert summary["max_residual"] == pytest.approx(away.max(), rel=1e-3)
    # The landmarks' own problem is solved, so nobody is told that it has not converged.
    assert summary["converged"]
    assert summary["landmark_residual"] < 1e-5 < summary["max_residual"]


def test_landmark_spectrum__is_the_same_on_any_blocks(tmp_path, points, plain, monkeypatch):
    # Blocks of the graph, and of samples, of 64 instead of all.
    monkeypatch.setattr("eigenscape.graph.stage._BLOCK_ENTRIES", 8 * 64)
    monkeypatch.setattr("eigenscape.graph.stage.ROW_TILE", 64)
    monkeypatch.setattr("eigenscape.store.arrays.ROW_TILE", 64)
    monkeypatch.setattr("eigenscape.store.arrays._CHUNK_ROWS", 64)
    other = nystrom(tmp_path / "run", points, limits={"memory": "256MiB", "threads": 1})
    assert other.run_directory.array_path("graph/5/data").exists()
    for name in ("value", "vector", "residual"):
        np.testing.assert_allclose(
            other[f"spectrum/{name}"], plain[f"spectrum/{name}"], rtol=1e-6, atol=1e-7
        )


def test_landmark_spectrum__goes_on_after_a_kill(tmp_path, points, plain):
    harness = nystrom(tmp_path / "run", points)
    tasks = Frail()
    harness.run("spectrum", tasks)
    for number in range(0, len(tasks.log)):
        with pytest.raises(KilledError):
            harness.run("spectrum", Frail(number, noted=False) if number else Frail(0))
        harness.run("spectrum")
        for name in ("value", "vector", "residual"):
            np.testing.assert_array_equal(harness[f"spectrum/{name}"], plain[f"spectrum/{name}"])


def test_landmark_spectrum__takes_any_solver(tmp_path, points, plain):
    harness = nystrom(tmp_path / "run", points, spectrum={"dimension": 4, "solver": "lanczos"})
    assert harness.run_directory.record("spectrum").summary["solver"] == "lanczos"
    found, expected = harness["spectrum/vector"], plain["spectrum/vector"]
    np.testing.assert_allclose(found, expected, atol=1e-3 * np.abs(expected).max())


def apart(points):
    """Two strips far from each other, the second one smaller."""
    return np.concatenate([points, points[:120] + np.float32([100, 0, 0])])


def test_landmark_spectrum__leaves_smaller_components_without_coordinates(tmp_path, points):
    harness = nystrom(tmp_path / "run", apart(points), graph={"components": "largest"})
    known = np.isfinite(harness["spectrum/vector"]).all(axis=1)
    np.testing.assert_array_equal(known, np.arange(520) < 400)


def test_landmark_spectrum__of_connected_components_tells_them_apart(tmp_path, points):
    harness = nystrom(tmp_path / "run", apart(points))
    assert harness.run_directory.record("graph").summary["bridges"] == 1
    first = harness["spectrum/vector"][:, 1]
    assert np.isfinite(first).all()
    assert 0 < harness["spectrum/value"][1] < 0.01
    assert (np.sign(first[:400]) == -np.sign(first[-1])).all()


def test_extend__takes_new_samples_from_the_landmarks(points, plain):
    others = np.setdiff1d(np.arange(400), plain["neighbors/landmark"])
    # Samples of the run by the formula, and a little beside them.
    for new in (points, points + np.float32(1e-3)):
        found = eigenscape.extend(plain.run_directory.path, new)
        cosine = (found * plain["spectrum/vector"]).sum(axis=0)
        cosine /= np.linalg.norm(found, axis=0)
        assert (cosine > 0.98).all()
    same = eigenscape.extend(plain.run_directory.path, points[others])
    np.testing.assert_allclose(same, plain["spectrum/vector"][others], rtol=1e-3, atol=1e-5)


def test_landmark_spectrum__refuses_more_than_landmarks_have(tmp_path, points):
    with pytest.raises(InputError, match=r"dimension = 80: 80 landmarks.* to 79 or less"):
        nystrom(tmp_path / "run", points, dimension=80)
    # Eigenvalues near 1, by which the formula would divide.
    with pytest.raises(InputError, match=r"dimension = 79: the eigenvalues .* or less, or raise"):
        nystrom(tmp_path / "high", points, dimension=79)


def test_landmark_spectrum__refuses_vectors_that_do_not_extend_to_all(tmp_path):
    rng = np.random.default_rng(0)
    samples = rng.standard_normal((2500, 3)).astype(np.float32)
    with pytest.raises(
        InputError, match=r'"unnormalized": .* of 2,500 samples have no coordinates'
    ):
        nystrom(
            tmp_path / "run", samples, landmarks=60, graph={"laplacian": "unnormalized"},
            spectrum={"dimension": 10},
        )  # fmt: skip

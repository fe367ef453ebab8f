from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

from eigenscape.errors import InputError
from eigenscape.graph.kernels.weights import WEIGHT_FLOOR
from eigenscape.graph.spatial import _OFFSETS, adjacent, spatial_bandwidth
from eigenscape.job.options import SpatialOptions
from eigenscape.scenes.types import Grid
from eigenscape.store.run import Run
from graphs import brute_lists, build_graph, clumps, expected_weights
from harness import Frail, KilledError

GRID = Grid(14, 11)


def scene(rng, share=0.8):
    """Return the valid pixels of a scene with holes, and their features."""
    pixels = np.flatnonzero(rng.random(GRID.size) < share)
    return pixels, rng.standard_normal((len(pixels), 3)).astype(np.float32)


def beside(pixels, features, count, grid=GRID):
    """Return the distances between neighbouring pixels, pair by pair; NaN for all others."""
    distance = np.full((len(pixels), len(pixels)), np.nan)
    for i, p in enumerate(pixels):
        for j, q in enumerate(pixels):
            down, right = (
                abs(p // grid.width - q // grid.width),
                abs(p % grid.width - q % grid.width),
            )
            if max(down, right) == 1 and (count == 8 or down + right == 1):
                distance[i, j] = np.linalg.norm(features[i].astype(float) - features[j])
    return distance


@given(
    height=st.integers(1, 9), width=st.integers(2, 9), count=st.sampled_from([4, 8]),
    share=st.floats(0.1, 1), cut=st.floats(0, 1), seed=st.integers(0, 99),
)  # fmt: skip
def test_adjacent__finds_the_pixels_that_touch(height, width, count, share, cut, seed):
    grid = Grid(height, width)
    rng = np.random.default_rng(seed)
    pixels = np.flatnonzero(rng.random(grid.size) < share)
    if not len(pixels):
        pixels = np.array([0])
    block = (int(cut * (len(pixels) - 1)), len(pixels))
    near, found = adjacent(pixels, grid, block, count)
    expected = np.isfinite(beside(pixels, np.zeros((len(pixels), 1)), count, grid))
    for row, sample in enumerate(range(*block)):
        assert sorted(near[row, found[row]]) == np.flatnonzero(expected[sample]).tolist()


@pytest.mark.mostly_slow(3)
@pytest.mark.parametrize("count", [4, 8])
@pytest.mark.parametrize("bandwidth", ["auto", 0.7])
@pytest.mark.parametrize("block_entries", [300, 2**21])
def test_graph_stage__adds_edges_between_neighbouring_pixels(
    tmp_path, rng, monkeypatch, count, bandwidth, block_entries
):
    monkeypatch.setattr("eigenscape.graph.stage._BLOCK_ENTRIES", block_entries)
    monkeypatch.setattr("eigenscape.graph.stage.ROW_TILE", 16)
    pixels, features = scene(rng)
    lists = brute_lists(features, 5)
    graph = build_graph(
        tmp_path / "run", features, lists, pixels=pixels, grid=GRID,
        spatial={"neighbors": count, "weight": 3.0, "bandwidth": bandwidth},
    )  # fmt: skip
    assert (len(graph.blocks) > 1) == (block_entries == 300)
    distance = beside(pixels, features, count)
    squares = distance[np.isfinite(distance)] ** 2
    t = 2 * np.median(squares) if bandwidth == "auto" else bandwidth
    spatial = np.nan_to_num(np.maximum(np.exp(-(distance**2) / t), WEIGHT_FLOOR))
    spectral = expected_weights(lists, lambda d, s, t: np.exp(-d * d / (s * t)))
    expected = spectral + 3.0 * spectral.sum() / spatial.sum() * spatial
    np.testing.assert_allclose(graph.by_sample(len(pixels)).toarray(), expected, rtol=2e-5)


@pytest.mark.parametrize("count", [4, 8])
@pytest.mark.parametrize("most", [700, 1500, 3000])
def test_spatial_bandwidth__of_some_pairs_sees_all_directions(monkeypatch, rng, count, most):
    monkeypatch.setattr("eigenscape.graph.spatial._MEDIAN_ENTRIES", most)
    # Columns differ by stripes, rows hardly.
    across = np.array([right != 0 for _, right in _OFFSETS[:count]])
    distance = np.tile(np.where(across, 3.0, 1.0), 1000) + rng.uniform(-0.1, 0.1, 1000 * count)
    lists = SimpleNamespace(
        entries=len(distance), distance=lambda: distance, index=lambda: np.zeros(len(distance))
    )
    found = spatial_bandwidth(lists, SpatialOptions(neighbors=count))
    assert found == pytest.approx(2 * np.median(distance**2), rel=0.1 if count == 8 else 0.9)
    if count == 4:
        # As many of either direction: the median is between them.
        assert 2 * 1.2 < found < 2 * 8


def test_graph_stage__finds_pixels_beside_those_of_other_chunks(tmp_path, rng, monkeypatch):
    # Scenes of more than 131,072 pixels have several chunks of pixel numbers.
    pixels, features = scene(rng)
    lists = brute_lists(features, 5)
    one = build_graph(tmp_path / "one", features, lists, pixels=pixels, grid=GRID, spatial={})
    for name in ("store.arrays.ROW_TILE", "store.arrays._CHUNK_ROWS", "base.memory.ROW_TILE"):
        monkeypatch.setattr(f"eigenscape.{name}", 16)
    many = build_graph(tmp_path / "many", features, lists, pixels=pixels, grid=GRID, spatial={})
    stored = Run(tmp_path / "many", create=False).open("samples/pixel")
    assert stored.chunks[0] == 16 < len(pixels)
    np.testing.assert_array_equal(many.W.toarray(), one.W.toarray())


def test_graph_stage__counts_components_with_the_edges_in_space(tmp_path, rng):
    # Two clouds of features that no list joins, but pixels side by side do.
    features = clumps(rng, [60, 94]).astype(np.float32)
    lists, pixels = brute_lists(features, 5), np.arange(154)
    options = {"pixels": pixels, "grid": GRID, "spatial": {"bandwidth": 1e4}}
    for components in ("connect", "largest", "each"):
        graph = build_graph(
            tmp_path / components, features, lists, components=components, **options
        )
        assert graph.summary["components"] == 1
        assert graph.summary["bridges"] == 0
        assert graph.W.shape == (154, 154)
    apart = build_graph(tmp_path / "apart", features, lists)
    assert apart.summary["components"] == 2


def test_graph_stage__keeps_the_edges_in_space_of_the_largest_component(tmp_path, rng):
    # Two pieces of the scene that nothing joins: neither lists nor neighbouring pixels.
    pixels = np.concatenate([np.arange(0, 44), np.arange(77, 154)])
    features = clumps(rng, [44, 77]).astype(np.float32)
    graph = build_graph(
        tmp_path / "run", features, brute_lists(features, 5), pixels=pixels, grid=GRID,
        components="largest", spatial={"neighbors": 4, "weight": 1.0},
    )  # fmt: skip
    assert graph.summary["components"] == 2
    assert sorted(graph.sample) == list(range(44, 121))
    own = np.isfinite(beside(pixels[44:], features[44:], 4))
    W = graph.by_sample(121).toarray()[44:, 44:]
    assert (W[own] > 0).all()


def test_graph_stage__takes_sparse_features_and_angles_in_space(tmp_path, rng):
    pixels, features = scene(rng, 1)
    features[np.abs(features) < 0.3] = 0
    features[:, 0] += 2
    lists = brute_lists(features, 5)
    graphs = [
        build_graph(
            tmp_path / f"run-{number}", values, lists, pixels=pixels, grid=GRID,
            neighbors={"metric": "angle"}, spatial={},
        )
        for number, values in enumerate((features, scipy.sparse.csr_array(features)))
    ]  # fmt: skip
    dense, sparse = (graph.by_sample(154).toarray() for graph in graphs)
    np.testing.assert_allclose(sparse, dense, rtol=1e-4)
    unit = features / np.linalg.norm(features, axis=1)[:, None]
    chord = beside(pixels, unit, 8)
    angle = 2 * np.arcsin(chord / 2)
    weights = np.exp(-(angle**2) / (2 * np.nanmedian(angle**2)))
    spectral = expected_weights(lists, lambda d, s, t: np.exp(-d * d / (s * t)))
    alone = np.isfinite(angle) & (spectral == 0)
    ratio = dense[alone] / weights[alone]
    np.testing.assert_allclose(ratio, ratio[0], rtol=1e-3)


def test_graph_stage__bears_a_scene_of_one_spectrum(tmp_path):
    features = np.ones((154, 3), np.float32)
    lists = brute_lists(features, 5)
    graph = build_graph(
        tmp_path / "run", features, lists, pixels=np.arange(154), grid=GRID, spatial={}
    )
    assert np.isfinite(graph.W.data).all()


def test_graph_stage__refuses_edges_in_space_for_a_table(tmp_path, rng):
    features = rng.standard_normal((50, 3))
    with pytest.raises(InputError, match=r"\[graph.spatial\].*table of 50 samples"):
        build_graph(
            tmp_path / "run", features, brute_lists(features, 3), pixels=np.arange(50),
            grid=Grid(50, 1), spatial={},
        )  # fmt: skip


@pytest.mark.slow
def test_graph_stage__goes_on_after_a_kill_among_edges_in_space(tmp_path, rng, monkeypatch):
    monkeypatch.setattr("eigenscape.graph.stage._BLOCK_ENTRIES", 300)
    monkeypatch.setattr("eigenscape.graph.stage.ROW_TILE", 16)
    pixels, features = scene(rng)
    lists = brute_lists(features, 5)

    def build(name, executor):
        return build_graph(
            tmp_path / name, features, lists, pixels=pixels, grid=GRID, executor=executor,
            spatial={},
        )  # fmt: skip

    whole = Frail()
    expected = build("whole", whole)
    names = [name for name, _ in whole.log]
    assert "_measure" in names
    for number, step in enumerate(("_measure", "_unite", "join_rows", "join_rows")):
        done = names.index(step) + 1 + (number == 3)
        with pytest.raises(KilledError):
            build(f"killed-{number}", Frail(done, noted=number != 1))
        graph = build(f"killed-{number}", Frail())
        assert (graph.W != expected.W).nnz == 0
        np.testing.assert_array_equal(graph.degree, expected.degree)


def test_graph_stage__pixels_that_do_not_touch_have_no_edges_in_space(tmp_path, rng):
    row, column = np.divmod(np.arange(GRID.size), GRID.width)
    pixels = np.flatnonzero((row + column) % 2 == 0)
    features = rng.standard_normal((len(pixels), 3)).astype(np.float32)
    lists = brute_lists(features, 5)
    options = {"pixels": pixels, "grid": GRID, "spatial": {"neighbors": 4}}
    found, alone = (
        build_graph(tmp_path / "a", features, lists, **options),
        build_graph(tmp_path / "b", features, lists),
    )
    assert (found.by_sample(len(pixels)) != alone.by_sample(len(pixels))).nnz == 0


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_spatial_bandwidth__is_that_of_pixels_that_differ(tmp_path, rng, scale):
    """More than half of the pairs are equal, as in quantised scenes: their median is 0."""
    features = np.repeat(rng.standard_normal((GRID.height, 1, 2)), GRID.width, axis=1)
    features = (scale * features.reshape(-1, 2)).astype(np.float32)
    graph = build_graph(
        tmp_path / "run", features, brute_lists(features + rng.normal(size=(GRID.size, 2)), 5),
        pixels=np.arange(GRID.size), grid=GRID, spatial={"neighbors": 8, "weight": 1.0},
    )  # fmt: skip
    W = graph.by_sample(GRID.size).toarray()
    across = W[np.arange(GRID.width, GRID.size), np.arange(GRID.size - GRID.width)]
    along = W[np.arange(GRID.size - 1), np.arange(1, GRID.size)][: GRID.width - 1]
    # Those of equal pixels are the largest, and some of the others are far from it and from none.
    assert across.min() < 0.8 * np.median(along)
    assert across.max() > 1e-3 * np.median(along)

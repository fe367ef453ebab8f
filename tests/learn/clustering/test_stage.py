import shutil

import numpy as np
import pytest
from sklearn.cluster import SpectralClustering
from sklearn.metrics import (
    adjusted_rand_score,
    confusion_matrix,
    normalized_mutual_info_score,
)

from eigenscape.errors import InputError
from eigenscape.scenes.types import Grid
from graphs import Graph, brute_lists
from harness import Frail, Harness, KilledError, Notes

GRID = Grid(30, 40)
SIZES = (500, 400, 300)
METHODS = [
    {"method": "spectral-clustering"},
    {"method": "spectral-clustering", "assign": "k-means"},
    {"method": "normalized-cut"},
]
NEAR = {"neighbors": {"k": 10}}
IDS = ["cluster-qr", "k-means", "normalized-cut"]


def without_labels(grid):
    return {"grid": grid.to_json(), "class_names": {}, "labelled": {}}


def put_lists(harness, features, rng):
    """Commit exact neighbour lists, the samples in any order."""
    k = harness.job.neighbors.k
    lists = brute_lists(features, k)
    order = rng.permutation(len(features))
    harness.put(
        "neighbors",
        {
            "neighbors/index": lists.index,
            "neighbors/distance": lists.distance,
            "neighbors/order": order,
        },
        whole=["neighbors/order"],
    )


@pytest.fixture(scope="module")
def scene():
    """Three clouds of different sizes, and the cloud of each sample."""
    rng = np.random.default_rng(7)
    truth = rng.permutation(np.repeat(np.arange(3), SIZES))
    centers = np.array([[0.0, 0, 0], [5.2, 0, 0], [0, 5.2, 0]])
    return truth, (centers[truth] + rng.normal(size=(GRID.size, 3))).astype(np.float32)


@pytest.fixture(scope="module")
def prepared(tmp_path_factory, scene):
    """Return runs whose graph and spectrum are finished: one for each [graph]."""
    _, features = scene
    made = {}

    def prepare(graph, dimension):
        key = str((graph, dimension))
        if key not in made:
            made[key] = tmp_path_factory.mktemp("prepared")
            harness = Harness(made[key], graph=graph, spectrum={"dimension": dimension}, **NEAR)
            harness.put("ingest", {"samples/pixel": np.arange(GRID.size)}, **without_labels(GRID))
            put_lists(harness, features, np.random.default_rng(2))
            harness.run("graph")
            harness.run("spectrum")
        return made[key]

    return prepare


@pytest.fixture
def cluster(tmp_path, prepared):
    def run(
        name="run", executor=None, *, given=None, graph=None, dimension=8, memory="2GiB",
        threads=2, reporter=None, **learn,
    ):  # fmt: skip
        graph = graph or {}
        if not (tmp_path / name).exists():
            shutil.copytree(prepared(graph, dimension), tmp_path / name)
        harness = Harness(
            tmp_path / name, graph=graph, spectrum={"dimension": dimension}, learn=learn,
            limits={"memory": memory}, **NEAR,
        )  # fmt: skip
        if given is not None:
            labelled = {str(n): int((given == n).sum()) for n in np.unique(given[given > 0])}
            harness.put(
                "ingest", {"samples/pixel": np.arange(GRID.size), "labels/given": given},
                grid=GRID.to_json(), class_names={"20": "water"}, labelled=labelled,
            )  # fmt: skip
        return harness, harness.run("learn", executor, threads=threads, reporter=reporter)

    return run


def weights_of(harness):
    graph = Graph(harness, harness.run_directory.record("graph").summary)
    return graph.by_sample(GRID.size).toarray().astype(float)


@pytest.mark.mostly_slow(1)
@pytest.mark.parametrize("learn", METHODS, ids=IDS)
def test_cluster_stage__without_labels_as_scikit_learn(cluster, scene, learn):
    truth, _ = scene
    harness, summary = cluster(**learn)
    found = harness["labels/class"]
    # Three by the gap of the eigenvalues, numbered by size.
    scores = summary["scores"]
    assert scores["clusters"] == 3
    assert "relative gap" in scores["reason"]
    assert adjusted_rand_score(truth, found) > 0.95
    sizes = np.bincount(found)[1:]
    assert (np.diff(sizes) <= 0).all()
    assert [row["samples"] for row in scores["per_cluster"]] == sizes.tolist()
    W = weights_of(harness)
    reference = SpectralClustering(
        3, affinity="precomputed", assign_labels="cluster_qr", random_state=0
    )
    assert adjusted_rand_score(reference.fit_predict(W), found) > 0.95
    confidence = harness["labels/confidence"]
    assert 0 <= confidence.min() < confidence.max() <= 1
    wrong = (found - 1) != np.argsort(np.argsort(-np.bincount(truth)))[truth]
    assert confidence[wrong].mean() < confidence[~wrong].mean()
    # The cuts are those of the weights.
    member = np.eye(3)[found - 1]
    between = member.T @ W @ member
    volume = between.sum(axis=1)
    cut = volume - np.diag(between)
    np.testing.assert_allclose([row["cut"] for row in scores["per_cluster"]], cut, rtol=1e-5)
    assert scores["ncut"] == pytest.approx((cut / volume).sum(), rel=1e-5)
    assert 0 < scores["ncut_at_least"] < scores["ncut"]
    assert scores["two_way"]["bounds"]["holds"]
    assert scores["agreement"] is None
    assert summary["names"]["3"] == "cluster 3"


@pytest.mark.parametrize("learn", METHODS, ids=IDS)
def test_cluster_stage__agreement_with_labels(cluster, scene, learn):
    truth, _ = scene
    rng = np.random.default_rng(3)
    given = np.where(rng.random(GRID.size) < 0.5, 10 * (truth + 1), 0).astype(np.uint16)
    harness, summary = cluster(given=given, **learn)
    scores, found = summary["scores"], harness["labels/class"]
    assert (scores["clusters"], scores["reason"]) == (3, "the classes of the labels")
    known = given > 0
    agreed = scores["agreement"]
    assert agreed["ari"] == pytest.approx(adjusted_rand_score(given[known], found[known]))
    assert agreed["nmi"] == pytest.approx(normalized_mutual_info_score(given[known], found[known]))
    table = confusion_matrix(given[known] // 10, found[known])
    assert agreed["contingency"] == table.tolist()
    assert agreed["classes"] == [10, 20, 30]
    assert agreed["matches"] == [10, 20, 30]
    assert agreed["best_match_accuracy"] == pytest.approx(np.trace(table) / known.sum())
    names = [row["best_match"] for row in scores["per_cluster"]]
    assert names == ["class 10", "water", "class 30"]
    assert [row["matched"] for row in scores["per_cluster"]] == np.diag(table).tolist()


@pytest.mark.mostly_slow(1)
@pytest.mark.parametrize("learn", METHODS, ids=IDS)
def test_cluster_stage__block_size_and_threads_change_nothing(cluster, monkeypatch, learn):
    expected, summary = cluster("one", **learn)
    monkeypatch.setattr("eigenscape.base.blocks.BASE_BYTES", 2**31 - 2**21)
    other, again = cluster("other", threads=3, **learn)
    assert again == summary
    for name in ("labels/class", "labels/confidence"):
        np.testing.assert_array_equal(other[name], expected[name])


@pytest.mark.mostly_slow(1)
@pytest.mark.parametrize("learn", METHODS, ids=IDS)
def test_cluster_stage__goes_on_after_a_kill(cluster, learn):
    whole = Frail()
    expected, summary = cluster("whole", whole, clusters=4, **learn)
    tasks = len(whole.log)
    assert tasks >= 6
    for left in range(1, tasks, 2):
        with pytest.raises(KilledError):
            cluster(f"{left}", Frail(left, noted=left % 4 == 1), clusters=4, **learn)
        harness, again = cluster(f"{left}", clusters=4, **learn)
        assert again == summary
        for name in ("labels/class", "labels/confidence"):
            np.testing.assert_array_equal(harness[name], expected[name])


def test_cluster_stage__ncut_decides_how_many(cluster, scene):
    truth, _ = scene
    harness, summary = cluster(method="normalized-cut", ncut=0.03)
    scores = summary["scores"]
    assert scores["clusters"] == 3
    assert scores["reason"] == "as many as learn.ncut allows"
    assert adjusted_rand_score(truth, harness["labels/class"]) > 0.8
    _, summary = cluster("none", method="normalized-cut", ncut=1e-6)
    assert summary["scores"]["clusters"] == 1


def test_cluster_stage__eigenvectors_end_what_ncut_allows(cluster):
    notes = Notes()
    harness, summary = cluster(method="normalized-cut", ncut=1.9, reporter=notes)
    scores = summary["scores"]
    assert scores["clusters"] == len(harness.run_directory.record("spectrum").summary["values"])
    assert scores["reason"] == "as many as there are eigenvectors"
    (note,) = [note for note in notes.notes if "learn.ncut may allow more splits" in note]
    assert "Raise spectrum.dimension" in note


@pytest.mark.mostly_slow(2)
@pytest.mark.parametrize("laplacian", ["random-walk", "unnormalized"])
@pytest.mark.parametrize("learn", METHODS, ids=IDS)
def test_cluster_stage__of_every_laplacian(cluster, scene, learn, laplacian):
    truth, _ = scene
    harness, summary = cluster(graph={"laplacian": laplacian}, clusters=3, **learn)
    assert adjusted_rand_score(truth, harness["labels/class"]) > 0.9
    scores = summary["scores"]
    # The bounds are those of the normalised Laplacian.
    assert (scores["ncut_at_least"] is None) == (laplacian == "unnormalized")
    assert (scores["two_way"]["bounds"] is None) == (laplacian == "unnormalized")


@pytest.mark.mostly_slow(1)
@pytest.mark.parametrize("learn", METHODS, ids=IDS)
def test_cluster_stage__graph_in_pieces(tmp_path, learn):
    rng = np.random.default_rng(5)
    truth = rng.permutation(np.repeat(np.arange(3), (90, 70, 40)))
    features = (40.0 * truth[:, None] + rng.normal(size=(200, 2))).astype(np.float32)
    for components in ("each", "largest"):
        harness = Harness(
            tmp_path / components, learn={"clusters": 3, **learn}, spectrum={"dimension": 4},
            neighbors={"k": 5}, graph={"components": components},
        )  # fmt: skip
        harness.put("ingest", {"samples/pixel": np.arange(200)}, **without_labels(Grid(20, 10)))
        put_lists(harness, features, rng)
        harness.run("graph")
        harness.run("spectrum")
        summary = harness.run("learn")
        found = harness["labels/class"]
        if components == "each":
            assert adjusted_rand_score(truth, found) == 1
            assert summary["scores"]["ncut"] == 0
            assert summary["scores"]["two_way"]["cheeger"]["cut"] == 0
            assert summary["scores"]["two_way"]["bounds"]["holds"]
        else:
            # Samples outside of the largest component get no cluster.
            np.testing.assert_array_equal(found > 0, truth == 0)
            assert not harness["labels/confidence"][truth > 0].any()
            assert set(found[truth == 0]) == {1, 2, 3}


def test_cluster_stage__refuses_more_clusters_than_eigenvectors(cluster):
    with pytest.raises(InputError, match=r"learn.clusters = 6: .*spectrum.dimension to 5"):
        cluster(method="normalized-cut", clusters=6, dimension=4)

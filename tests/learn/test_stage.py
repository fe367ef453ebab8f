import shutil

import networkx as nx
import numpy as np
import pytest
import scipy.linalg
from sklearn.metrics import accuracy_score
from sklearn.neighbors import KNeighborsClassifier

from eigenscape.base.shares import counted
from eigenscape.errors import InputError
from eigenscape.job.options import REGISTRIES
from eigenscape.labels import splits
from eigenscape.learn.classify import coordinates
from eigenscape.learn.decide.calibration import calibration_error
from eigenscape.learn.decide.kernels.decisions import evidence
from eigenscape.learn.decide.queries import exploration, posterior
from eigenscape.learn.methods.centroid_angle import CentroidAngle
from eigenscape.learn.propagate import fields
from eigenscape.scenes.types import Grid
from graphs import Graph, brute_lists
from harness import Frail, Harness, KilledError, Notes

GRID = Grid(40, 30)
METHODS = [
    method for method, kind in REGISTRIES["learn"].all().items() if not kind.unsupervised
]  # fmt: skip


@pytest.fixture
def scene(rng):
    """Eigenvectors in which three classes lie in different directions, and sparse labels."""
    classes = (np.arange(GRID.size) // 7) % 3
    vectors = np.zeros((GRID.size, 6), np.float32)
    vectors[:, 0] = 1
    vectors[:, 1:] = 0.4 * rng.standard_normal((GRID.size, 5))
    vectors[np.arange(GRID.size), 1 + classes] += 1
    given = np.where(rng.random(GRID.size) < 0.4, 10 * (classes + 1), 0).astype(np.uint16)
    return classes, vectors, given


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    """Return where the stages before learn are kept, as long as they are the same."""
    return tmp_path_factory.mktemp("graph") / "run"


@pytest.fixture
def learn(tmp_path, scene, graph):
    _, vectors, given = scene

    def run(
        name="run", executor=None, *, values=vectors, nulls=1, memory="2GiB", grid=GRID,
        scene=None, **options,
    ):  # fmt: skip
        tables = {"learn": options, "limits": {"memory": memory}}
        usual = values is vectors and nulls == 1 and memory == "2GiB" and grid is GRID
        if usual and graph.exists() and not (tmp_path / name).exists():
            shutil.copytree(graph, tmp_path / name)
        harness = Harness(tmp_path / name, **tables, **({"scene": scene} if scene else {}))
        if harness.run_directory.record("ingest") is None:
            arrays = {"samples/pixel": np.arange(GRID.size), "labels/given": given}
            harness.put("ingest", arrays, grid=grid.to_json(), labelled=int((given > 0).sum()))
            # They are no eigenpairs of the graph below: systems that start from them end right.
            pairs = {"spectrum/vector": values, "spectrum/value": np.arange(values.shape[1]) / 8}
            harness.put("spectrum", pairs, whole=["spectrum/value"], null_vectors=nulls)
            features = np.where(np.isfinite(values), values, 0)[:, :6]
            harness.put("features", {"features/values": features})
            lists = brute_lists(features, 5)
            arrays = {"neighbors/index": lists.index, "neighbors/distance": lists.distance}
            order = np.random.default_rng(2).permutation(GRID.size)
            harness.put(
                "neighbors", {**arrays, "neighbors/order": order}, whole=["neighbors/order"]
            )
            harness.run("graph")
            if usual and not graph.exists():
                shutil.copytree(tmp_path / name, graph)
        return harness, harness.run("learn", executor)

    return run


def lstsq_classes(vectors, classes, train, count):
    C = np.where(classes[train, None] == np.arange(3), 1.0, -1.0)
    weights = np.linalg.lstsq(vectors[train, :count].astype(float), C, rcond=None)[0]
    return (vectors[:, :count] @ weights).argmax(axis=1)


@pytest.mark.parametrize("count", [5, 3, "auto"])
def test_learn_stage__eigenfunctions_equal_lstsq(learn, scene, count):
    classes, vectors, given = scene
    harness, summary = learn(method="eigenfunctions", eigenvectors=count, trials=3, seed=4)
    labelled = np.flatnonzero(given)
    train = np.zeros(GRID.size, bool)
    train[labelled] = True
    # The constant one comes on top.
    p = 6 if count == "auto" else 1 + count
    expected = lstsq_classes(vectors, classes, train, p)
    np.testing.assert_array_equal(harness["labels/class"], 10 * (expected + 1))
    confidence = harness["labels/confidence"]
    assert confidence.min() >= 0
    assert confidence.max() <= 1
    # The trials, drawn as the splits say, each scored on what it did not learn from.
    accuracies = []
    for trial in range(3):
        chosen = splits.random_split(
            splits.Strata.of(classes[labelled]), 0.1, np.random.default_rng([4, trial, False])
        )
        train = np.zeros(GRID.size, bool)
        train[labelled[chosen]] = True
        called = lstsq_classes(vectors, classes, train, p)
        held = labelled[~chosen]
        accuracies.append(accuracy_score(classes[held], called[held]))
    found = summary["scores"]["held_out"]["random"]
    assert found["overall_accuracy"] == pytest.approx(np.mean(accuracies))
    assert found["trials"] == 3


@pytest.mark.parametrize(("gamma", "power"), [(0.1, 2), (30.0, 1)])
def test_learn_stage__smooth_eigenfunctions_equal_a_penalised_solve(learn, scene, gamma, power):
    classes, vectors, given = scene
    harness, _ = learn(method="eigenfunctions", gamma=gamma, power=power, trials=1)
    labelled = np.flatnonzero(given)
    X = vectors[labelled].astype(float)
    # Eigenvalues of the harness; the last one counts as 1, as there are few.
    penalty = gamma * (X[:, 1:] ** 2).sum(axis=0).mean() * (np.arange(6) / 5) ** power
    C = np.where(classes[labelled, None] == np.arange(3), 1.0, -1.0)
    expected = vectors @ np.linalg.solve(X.T @ X + np.diag(penalty), X.T @ C)
    np.testing.assert_array_equal(harness["labels/class"], 10 * (expected.argmax(axis=1) + 1))


def weights_of(harness):
    """The weights of the graph stage, rows and columns in the order of the samples."""
    graph = Graph(harness, harness.run_directory.record("graph").summary)
    return graph.by_sample(GRID.size).toarray().astype(float)


def expected_field(method, W, rows, Y):
    """Dense solves of the equations, one column for each class."""
    L = np.diag(W.sum(axis=1)) - W
    free = np.setdiff1d(np.arange(len(W)), rows)
    field = np.zeros((len(W), Y.shape[1]))
    if method == "interpolated":
        field[rows] = Y
        field[free] = -np.linalg.solve(L[np.ix_(free, free)], L[np.ix_(free, rows)] @ Y)
    elif method == "tikhonov":
        known = np.isin(np.arange(len(W)), rows)
        field[rows] = Y - Y.mean(axis=0)
        field = np.linalg.solve(np.diag(known.astype(float)) + 0.3 * len(rows) * L, field)
    else:
        field[rows] = Y - Y.mean(axis=0)
        field = np.linalg.lstsq(L, field, rcond=1e-10)[0]
        degree = W.sum(axis=1)
        field -= degree @ field / degree.sum()
    return field


@pytest.mark.mostly_slow(2)
@pytest.mark.parametrize("memory", ["2GiB", "201MiB"])
@pytest.mark.parametrize("method", ["interpolated", "tikhonov", "poisson"])
def test_learn_stage__spread_labels_equal_dense_solves(learn, scene, method, memory):
    classes, _, given = scene
    harness, summary = learn(method=method, gamma=0.3, trials=6, memory=memory)
    W = weights_of(harness)
    labelled = np.flatnonzero(given)
    field = expected_field(method, W, labelled, np.eye(3)[classes[labelled]])
    best = np.sort(field, axis=1)
    clear = best[:, -1] - best[:, -2] > 1e-2 * np.abs(field).max()
    called = harness["labels/class"]
    np.testing.assert_array_equal(called[clear], 10 * (field.argmax(axis=1)[clear] + 1))
    assert clear.mean() > 0.8
    confidence = harness["labels/confidence"]
    assert confidence.min() >= 0
    assert confidence.max() <= 1
    # Three classes of 13 fits take more than one group: a fit may lie across two of them.
    chosen = splits.random_split(
        splits.Strata.of(classes[labelled]), 0.1, np.random.default_rng([0, 5, False])
    )
    rows = labelled[chosen]
    field = expected_field(method, W, rows, np.eye(3)[classes[rows]])
    held = labelled[~chosen]
    right = (field.argmax(axis=1) == classes)[held].mean()
    spread = summary["scores"]["held_out"]["random"]
    assert abs(spread["overall_accuracy"] - right) < 4 * spread["overall_accuracy_std"] + 0.02


def test_learn_stage__poisson_mbo_keeps_the_shares_of_the_classes(learn, scene):
    classes, _, given = scene
    harness, _ = learn(method="poisson-mbo", trials=1)
    shares = np.bincount(classes[given > 0], minlength=3) / (given > 0).sum()
    sizes = np.bincount(harness["labels/class"] // 10 - 1, minlength=3)
    np.testing.assert_allclose(sizes, shares * GRID.size, atol=2)


LEARNED = {}


@pytest.fixture
def learned(learn):
    """Return a function that gives classes, confidences and summary of a method, learned once."""

    def work(method):
        if method not in LEARNED:
            harness, summary = learn(method, method=method, train=0.2, trials=4)
            arrays = harness["labels/class"], harness["labels/confidence"]
            LEARNED[method] = *arrays, summary
        return LEARNED[method]

    return work


@pytest.mark.slow
def test_learn_stage__every_method_draws_the_same_training_sets(learned):
    results = [learned(method)[2]["scores"]["held_out"] for method in METHODS]
    for split in ("random", "blocked"):
        sets = [np.array(result[split]["confusion"]).sum(axis=1) for result in results]
        for other in sets[1:]:
            np.testing.assert_array_equal(other, sets[0])


@pytest.mark.slow
def test_learn_stage__says_what_its_classes_follow_from(learned):
    told = {name: learned(name)[2]["reads"] for name in ("centroid-angle", "tikhonov", "svm")}
    assert told == {"centroid-angle": "eigenvectors", "tikhonov": "graph", "svm": "features"}


@pytest.mark.mostly_slow(1)
@pytest.mark.parametrize("method", ["centroid-angle", "eigenfunctions"])
def test_learn_stage__samples_without_coordinates_get_no_class(learn, scene, method):
    classes, vectors, _ = scene
    vectors = vectors.copy()
    vectors[::50] = np.nan
    harness, summary = learn(method=method, values=vectors)
    assert not harness["labels/class"][::50].any()
    assert not harness["labels/confidence"][::50].any()
    known = np.isfinite(vectors[:, 0])
    right = harness["labels/class"][known] == 10 * (classes[known] + 1)
    assert right.mean() > 0.8
    assert summary["scores"]["overall_accuracy"] > 0.75


def test_learn_stage__names_a_method_whose_scores_have_another_shape(learn, monkeypatch):
    monkeypatch.setattr(CentroidAngle, "estimate", lambda self, X, model: X[:, :1])
    with pytest.raises(
        TypeError, match=r"CentroidAngle.estimate returned an array of shape \(\d+, 1\)"
    ):
        learn(method="centroid-angle")


@pytest.mark.parametrize("k", [1, 5])
def test_learn_stage__k_nn_equals_scikit_learn(learn, scene, k):
    classes, vectors, given = scene
    harness, _ = learn(method="k-nn", k=k)
    labelled = np.flatnonzero(given)
    expected = KNeighborsClassifier(k).fit(vectors[labelled], classes[labelled]).predict(vectors)
    agree = harness["labels/class"] == 10 * (expected + 1)
    # Of a tie scikit-learn takes the smaller class, we the nearer one.
    assert agree.mean() == 1 if k == 1 else agree.mean() > 0.9


def test_learn_stage__geodesic_nn_equals_networkx(learn, scene):
    classes, vectors, given = scene
    harness, _ = learn(method="geodesic-nn")
    lists, graph = brute_lists(vectors, 5), nx.Graph()
    graph.add_nodes_from(range(GRID.size))
    for row, (near, lengths) in enumerate(lists.rows()):
        graph.add_weighted_edges_from(
            (row, int(j), float(d)) for j, d in zip(near, lengths, strict=True)
        )
    labelled = np.flatnonzero(given)
    _, paths = nx.multi_source_dijkstra(graph, set(labelled.tolist()))
    reached = np.array(sorted(paths))
    expected = [classes[paths[row][0]] for row in reached]
    np.testing.assert_array_equal(harness["labels/class"][reached], 10 * (np.array(expected) + 1))
    assert (harness["labels/class"] > 0).all()


@pytest.mark.mostly_exhaustive(4)
@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_learn_stage__goes_on_after_a_kill(learn, monkeypatch, method):
    monkeypatch.setattr("eigenscape.base.memory.ROW_TILE", 128)
    monkeypatch.setattr("eigenscape.store.arrays._CHUNK_ROWS", 256)
    whole = Frail()
    expected, summary = learn("whole", whole, method=method, trials=2)
    for tasks in range(1, len(whole.log), max(1, len(whole.log) // 4)):
        with pytest.raises(KilledError):
            learn(f"{tasks}", Frail(tasks), method=method, trials=2)
        harness, again = learn(f"{tasks}", method=method, trials=2)
        assert again == summary
        for name in ("labels/class", "labels/confidence", "labels/entropy"):
            np.testing.assert_array_equal(harness[name], expected[name])


@pytest.mark.slow
def test_learn_stage__many_eigenvectors_are_read_a_part_at_a_time(learn, scene, monkeypatch):
    """A chunk of the map is all samples here, and with their eigenvectors more than has room."""
    monkeypatch.setattr("eigenscape.base.memory.ROW_TILE", 128)
    rows = []
    scores = coordinates.ByTiles.scores

    def watched(self, number, block):
        rows.append(block[1] - block[0])
        return scores(self, number, block)

    monkeypatch.setattr(coordinates.ByTiles, "scores", watched)
    values = np.concatenate([scene[1], np.zeros((GRID.size, 3000), np.float32)], axis=1)
    chosen = {"method": "centroid-angle", "trials": 1, "values": values}
    expected, _ = learn("whole", **chosen)
    assert rows == [GRID.size]
    rows.clear()
    harness, _ = learn("parts", memory="256MiB", **chosen)
    assert len(rows) > 1
    assert sum(rows) == GRID.size
    for name in ("labels/class", "labels/confidence", "labels/entropy"):
        np.testing.assert_array_equal(harness[name], expected[name])


@pytest.mark.mostly_slow(2)
@pytest.mark.parametrize("train", [0.2, 60])
@pytest.mark.parametrize("split", ["uniform", "balanced"])
def test_learn_stage__draws_as_the_split_says(learn, scene, split, train):
    classes, _, given = scene
    _, summary = learn(split=split, train=train, trials=4)
    labelled = int((given > 0).sum())
    size = train if train == 60 else round(0.2 * labelled)
    held = summary["scores"]["held_out"]
    assert list(held) == ["blocked", split]
    assert summary["scores"]["protocol"] == "pixels held out (blocked)"
    assert summary["scores"]["overall_accuracy"] == held["blocked"]["overall_accuracy"]
    assert list(summary["scores"])[-1] == "training_pixels"
    drawn = np.bincount(classes[given > 0]) - np.array(held[split]["confusion"]).sum(axis=1) / 4
    if split == "uniform":
        assert drawn.sum() == size
    else:
        np.testing.assert_array_equal(drawn, round(size / 3))
    again = learn("again", method="k-nn", split=split, train=train, trials=4)[1]
    other = np.array(again["scores"]["held_out"][split]["confusion"]).sum(axis=1)
    np.testing.assert_array_equal(other, np.array(held[split]["confusion"]).sum(axis=1))


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"split": "balanced", "train": 61}, "learn.train to 63, the next multiple of 3"),
        ({"split": "balanced", "train": 900}, "the smallest class has"),
        ({"split": "uniform", "train": 2}, "a number from 3 to"),
        ({"split": "uniform", "train": 5000}, "labelled pixels of 3 classes"),
        (
            {"method": "k-nn", "prior": (0.4, 0.6)},
            "learn.prior has 2 shares, and the labels 3 classes: 10, 20",
        ),
    ],
)
def test_learn_stage__refuses_what_the_labels_do_not_allow(learn, options, problem):
    with pytest.raises(InputError, match=problem):
        learn(trials=1, **options)


@pytest.mark.slow
def test_learn_stage__a_table_has_no_squares(learn):
    table = Grid(GRID.size, 1)
    _, summary = learn(grid=table, trials=2)
    assert list(summary["scores"]["held_out"]) == ["random"]
    with pytest.raises(InputError, match="table of 1200 samples"):
        learn("blocked", grid=table, split="blocked")
    with pytest.raises(InputError, match=r"learn.smoothing = 2: .* is a table"):
        learn("smoothed", grid=table, smoothing=2.0, trials=1)


def test_learn_stage__probabilities_are_calibrated(learn, scene):
    classes, _, given = scene
    harness, summary = learn(method="eigenfunctions", train=0.3, trials=10)
    calibration = summary["scores"]["calibration"]
    for name in ("expected_calibration_error", "log_loss", "brier"):
        before, after = (calibration[when]["random"][name] for when in ("before", "after"))
        assert after < before
    assert set(calibration["after"]) == {"random", "blocked"}
    # What is said of pixels that nobody labelled comes true.
    right = harness["labels/class"] == 10 * (classes + 1)
    unseen = given == 0
    assert abs(right[unseen].mean() - harness["labels/confidence"][unseen].mean()) < 0.05
    entropy = harness["labels/entropy"]
    assert entropy[right].mean() < entropy[~right].mean()


def test_learn_stage__class_mass_normalisation_equals_dense(learn, scene):
    classes, _, given = scene
    shares = (0.2, 0.5, 0.3)
    harness, _ = learn(method="interpolated", prior=shares, trials=1)
    labelled = np.flatnonzero(given)
    field = expected_field(
        "interpolated", weights_of(harness), labelled, np.eye(3)[classes[labelled]]
    )
    field *= shares / field[given == 0].sum(axis=0)
    field /= field.sum(axis=1, keepdims=True)
    best = np.sort(field, axis=1)
    clear = best[:, -1] - best[:, -2] > 1e-2
    expected = 10 * (field.argmax(axis=1) + 1)
    np.testing.assert_array_equal(harness["labels/class"][clear], expected[clear])
    assert clear.mean() > 0.8


@pytest.mark.mostly_slow(2)
@pytest.mark.parametrize(
    "method", ["interpolated", "poisson", "poisson-mbo", "eigenfunctions", "k-nn"]
)
def test_learn_stage__a_prior_moves_the_shares(learn, method):
    sizes = []
    for number, prior in enumerate([(0.9, 0.05, 0.05), (0.05, 0.05, 0.9)]):
        harness, _ = learn(f"{number}", method=method, prior=prior, trials=1, k=9)
        sizes.append(np.bincount(harness["labels/class"] // 10, minlength=4)[1:])
    assert sizes[0][0] > sizes[1][0]
    assert sizes[0][2] < sizes[1][2]


def pixel_laplacian(harness, values):
    """The Laplacian of neighbouring pixels, weighed by how alike they are; by loops."""
    graph, row, column = nx.Graph(), *np.divmod(np.arange(GRID.size), GRID.width)
    for i in range(GRID.size):
        for down, right in ((0, 1), (1, 0), (1, 1), (1, -1)):
            r, c = row[i] + down, column[i] + right
            if r < GRID.height and 0 <= c < GRID.width:
                j = r * GRID.width + c
                graph.add_edge(
                    i, j, weight=float(((values[i] - values[j]).astype(float) ** 2).sum())
                )
    squares = np.array([d for *_, d in graph.edges(data="weight")])
    for *_, data in graph.edges(data=True):
        data["weight"] = np.exp(-data["weight"] / (2 * np.median(squares)))
    return nx.laplacian_matrix(graph, range(GRID.size)).toarray()


@pytest.mark.mostly_slow(1)
@pytest.mark.parametrize("memory", ["2GiB", "201MiB"])
def test_learn_stage__smoothing_equals_a_dense_solve(learn, scene, memory):
    classes, vectors, given = scene
    labelled = np.flatnonzero(given)
    harness, summary = learn(
        method="eigenfunctions", eigenvectors=6, smoothing=3.0, trials=2, memory=memory
    )
    weights = np.linalg.lstsq(
        vectors[labelled].astype(float), 2 * np.eye(3)[classes[labelled]] - 1, rcond=None
    )[0]
    p = np.exp(evidence((1 + vectors @ weights) / 2))
    p /= p.sum(axis=1, keepdims=True)
    smooth = np.linalg.solve(np.eye(GRID.size) + 3 * pixel_laplacian(harness, vectors), p)
    best = np.sort(smooth, axis=1)
    clear = best[:, -1] - best[:, -2] > 1e-3
    expected = 10 * (smooth.argmax(axis=1) + 1)
    np.testing.assert_array_equal(harness["labels/class"][clear], expected[clear])
    assert clear.mean() > 0.98
    unsmoothed = learn("plain", method="eigenfunctions", eigenvectors=6, trials=2)[1]["scores"]
    assert summary["scores"]["unsmoothed"] == {
        split: held["overall_accuracy"] for split, held in unsmoothed["held_out"].items()
    }
    changed = summary["scores"]["held_out"]["random"]["overall_accuracy"]
    assert changed != unsmoothed["held_out"]["random"]["overall_accuracy"]


@pytest.mark.slow
@pytest.mark.parametrize("method", ["interpolated", "k-nn", "geodesic-nn"])
def test_learn_stage__smooths_any_method_and_proposes_pixels_after_a_kill(learn, method):
    options = {"method": method, "smoothing": 1.0, "queries": 7, "trials": 2}
    whole = Frail()
    expected, summary = learn("whole", whole, **options)
    for tasks in range(1, len(whole.log), max(1, len(whole.log) // 4)):
        with pytest.raises(KilledError):
            learn(f"{tasks}", Frail(tasks), **options)
        harness, again = learn(f"{tasks}", **options)
        assert again == summary
        for name in ("class", "entropy", "query", "query_runner_up"):
            np.testing.assert_array_equal(harness[f"labels/{name}"], expected[f"labels/{name}"])


def test_learn_stage__holes_stay_holes_when_smoothed(learn, scene):
    _, vectors, _ = scene
    vectors = vectors.copy()
    vectors[::50] = np.nan
    harness, _ = learn(values=vectors, smoothing=2.0, trials=1, queries=30)
    assert not harness["labels/class"][::50].any()
    assert np.isnan(harness["labels/entropy"][::50]).all()
    assert not (harness["labels/query"] % 50 == 0).any()


def test_learn_stage__queries_are_uncertain_unlabelled_and_apart(learn, scene):
    given = scene[2]
    harness, summary = learn(method="eigenfunctions", trials=1, queries=25)
    query = harness["labels/query"]
    assert summary["queries"] == len(set(query.tolist())) == 25
    assert not given[query].any()
    entropy = harness["labels/entropy"]
    assert entropy[query].mean() > np.quantile(entropy[given == 0], 0.5)
    called, second = harness["labels/class"][query], harness["labels/query_runner_up"]
    assert (called != second).all()


def test_learn_stage__queries_follow_from_eigenvectors_of_variance_1(learn, scene):
    """Those of the random-walk Laplacian have another length."""
    _, vectors, _ = scene
    options = {"method": "interpolated", "queries": 12, "trials": 1}
    expected, _ = learn("unit", values=vectors, **options)
    other, _ = learn("short", values=vectors / 32, **options)
    np.testing.assert_array_equal(other["labels/query"], expected["labels/query"])


@pytest.mark.parametrize(
    "options",
    [
        {"method": "poisson"}, {"method": "poisson", "prior": "uniform"}, {"method": "poisson-mbo"},
        {"method": "tikhonov"}, {"method": "interpolated"}, {"method": "geodesic-nn"},
        {"method": "interpolated", "prior": "training"}, {"method": "centroid-angle"},
        {"method": "eigenfunctions"}, {"method": "eigenfunctions", "prior": (0.2, 0.5, 0.3)},
        {"method": "poisson-mbo", "smoothing": 1.0},
    ],
    ids=lambda options: "-".join(str(value) for value in options.values()),
)  # fmt: skip
def test_learn_stage__components_without_labels_get_guesses(tmp_path, scene, options):
    _, vectors, given = scene
    far = np.arange(GRID.size) >= GRID.size - 200
    given = np.where(far, 0, given)
    features = np.where(far, 50, 0)[:, None] + vectors
    harness = Harness(
        tmp_path / "run", learn={"trials": 2, "queries": 5, **options},
        graph={"components": "each"}, neighbors={"method": "exact", "k": 8},
        spectrum={"dimension": 8, "solver": "dense"},
    )  # fmt: skip
    arrays = {"samples/pixel": np.arange(GRID.size), "labels/given": given}
    harness.put("ingest", arrays, grid=GRID.to_json(), labelled=int((given > 0).sum()))
    harness.put("features", {"features/values": features.astype(np.float32)})
    for stage in ("neighbors", "graph", "spectrum"):
        harness.run(stage)
    count = len(np.unique(harness["graph/component"][far]))
    notes = Notes()
    summary = harness.run("learn", reporter=notes)
    assert summary["scores"]["unreached"] == {"samples": 200, "components": count}
    told = f"200 pixels lie in {counted(count, 'component')} of the graph without training labels"
    assert sum(told in note for note in notes.notes) == 1
    assert far[harness["labels/query"]].any()
    confidence = harness["labels/confidence"]
    if "smoothing" not in options:
        np.testing.assert_allclose(confidence[far], 1 / 3, rtol=1e-6)
        np.testing.assert_allclose(harness["labels/entropy"][far], 1, rtol=1e-6)
    assert confidence[far].mean() < confidence[~far].mean()


def test_learn_stage__queries_of_scores_without_ambiguity_lie_where_least_is_known(learn, scene):
    """Poisson-MBO is sure of every sample: neither rows of the graph nor numbers of samples order them."""
    _, vectors, given = scene
    harness, summary = learn(method="poisson-mbo", trials=1, queries=12)
    query = harness["labels/query"]
    assert summary["queries"] == 12
    rows = (vectors / np.sqrt(np.square(vectors, dtype=float).mean(axis=0))).astype(np.float32)
    known = rows[given > 0].astype(float)
    explored = exploration(rows, posterior(np.arange(6) / 8, known.T @ known))
    assert explored[query].min() > np.quantile(explored[given == 0], 0.8)


@pytest.mark.slow
def test_learn_stage__the_heat_kernel_equals_a_dense_solve(learn, scene):
    classes, _, given = scene
    harness, _ = learn(method="tikhonov", kernel="heat", time=0.3, gamma=0.01, trials=1)
    W, labelled = weights_of(harness), np.flatnonzero(given)
    kernel = scipy.linalg.expm(-0.3 * (np.diag(W.sum(axis=1)) - W))
    Y = np.eye(3)[classes[labelled]]
    penalty = 0.01 * len(labelled) * np.eye(len(labelled))
    a = np.linalg.solve(kernel[np.ix_(labelled, labelled)] + penalty, Y - Y.mean(axis=0))
    field = kernel[:, labelled] @ a
    best = np.sort(field, axis=1)
    clear = best[:, -1] - best[:, -2] > 1e-2 * np.abs(field).max()
    expected = 10 * (field.argmax(axis=1) + 1)
    np.testing.assert_array_equal(harness["labels/class"][clear], expected[clear])
    assert clear.mean() > 0.7


@pytest.mark.mostly_slow(3)
@pytest.mark.parametrize("method", METHODS)
def test_learn_stage__no_class_is_less_probable_than_average(learned, method):
    classes, confidence, summary = learned(method)
    assert (classes > 0).all()
    assert confidence.min() >= 1 / 3
    # Pixels of a scene are near labels or far from them; each is calibrated by itself.
    assert len(summary["calibration"]["factors"]) == 2
    assert {"random", "blocked"} == set(summary["scores"]["calibration"]["after"])


def test_learn_stage__warns_of_fields_that_have_not_converged(learn, monkeypatch):
    _, summary = learn(method="interpolated", trials=1)
    assert "warning" not in summary
    monkeypatch.setattr(fields, "_DOUBTFUL", 1e-12)
    _, summary = learn("other", method="interpolated", trials=1)
    assert "not converged" in summary["warning"]


@pytest.mark.parametrize("method", ["poisson", "eigenfunctions"])
def test_learn_stage__smoothing_by_next_to_nothing_changes_no_class(learn, method):
    plain, _ = learn("plain", method=method, trials=1)
    smooth, _ = learn("smooth", method=method, trials=1, smoothing=1e-7)
    assert (plain["labels/class"] != smooth["labels/class"]).mean() < 0.002


@pytest.fixture
def tested(scene, tmp_path):
    """Test labels on a third of the pixels, in a file."""
    classes, *_ = scene
    values = np.where(np.arange(GRID.size) % 3 == 0, 10 * (classes + 1), 0).astype(np.uint16)
    np.save(tmp_path / "test.npy", values.reshape(GRID.height, GRID.width))
    np.save(tmp_path / "scene.npy", np.ones((GRID.height, GRID.width, 2)))
    return values


def test_learn_stage__scores_are_those_of_the_test_file(learn, scene, tested, tmp_path):
    classes, vectors, given = scene
    options = {"method": "eigenfunctions", "eigenvectors": 5, "trials": 2, "areas": True}
    path = {"path": str(tmp_path / "scene.npy")}
    harness, summary = learn(test=str(tmp_path / "test.npy"), scene=path, **options)
    train = (given > 0) & (tested == 0)
    expected = 10 * (lstsq_classes(vectors, classes, train, 6) + 1)
    np.testing.assert_array_equal(harness["labels/class"], expected)
    scores, chosen = summary["scores"], tested > 0
    assert scores["protocol"] == "disjoint test file"
    assert list(scores["held_out"]) == ["test"]
    share = accuracy_score(tested[chosen], expected[chosen])
    assert scores["overall_accuracy"] == pytest.approx(share)
    low, high = scores["intervals"]["overall_accuracy"]
    assert low <= share <= high
    assert scores["training_pixels"]["samples"] == train.sum()
    assert list(scores)[-1] == "training_pixels"
    # The draws make the confidence; the file only measures it.
    assert set(scores["calibration"]["after"]) == {"random", "blocked", "test"}
    assert scores["calibration"]["pixels"] < 4 * train.sum()
    right = (expected == tested)[chosen]
    error = calibration_error(harness["labels/confidence"][chosen].astype(float), right)
    found = scores["calibration"]["after"]["test"]["expected_calibration_error"]
    assert found == pytest.approx(error, abs=1e-6)
    assert summary["test"]["not_learned_from"] == ((given > 0) & chosen).sum()
    # The reference sees every third pixel: areas are those of the scene within their errors.
    areas = scores["areas"]
    assert areas["unit"] == "pixels"
    assert np.sum(areas["mapped"]) == GRID.size
    away = np.abs(np.array(areas["area"]) - np.bincount(classes))
    assert (away < 4 * np.array(areas["area_se"]) + 1).all()


def test_learn_stage__areas_need_a_test_file_with_classes_of_the_map_alone(learn, tested, tmp_path):
    """What is left without a class is no sample of the scene: areas of the others would be too large."""
    values = np.where(np.arange(GRID.size) % 30 == 0, 999, tested).astype(np.uint16)
    np.save(tmp_path / "test.npy", values.reshape(GRID.height, GRID.width))
    path = {"path": str(tmp_path / "scene.npy")}
    _, summary = learn(test=str(tmp_path / "test.npy"), scene=path, areas=True)
    areas = summary["scores"]["areas"]
    count = (values == 999).sum()
    assert (
        f"{count} of the test pixels are of classes that the map does not have" in areas["skipped"]
    )
    assert set(areas["area"]) == set(areas["proportion"]) == {None}


def test_learn_stage__names_classes_that_are_never_found(learn, scene):
    _, vectors, given = scene
    # A few pixels of the last class, like all the others: no fit calls a pixel so.
    given[np.flatnonzero(given == 30)[6:]] = 0
    blind = vectors.copy()
    blind[:, 3] = 0
    _, summary = learn(values=blind, method="k-nn", k=15, trials=3, train=0.5)
    held = summary["scores"]["never_found"]
    assert held == {"30": sum(summary["scores"]["confusion"][2])}
    assert held["30"] > 0


def test_learn_stage__areas_count_what_has_no_class(learn, scene, tested, tmp_path, rng):
    classes, vectors, _ = scene
    # Most of the first class lies there, so that its area is what is left without one.
    holes = (classes == 0) & (rng.random(GRID.size) < 0.85)
    vectors = np.where(holes[:, None], np.nan, vectors)
    options = {"scene": {"path": str(tmp_path / "scene.npy")}, "areas": True, "trials": 1}
    harness, summary = learn(values=vectors, test=str(tmp_path / "test.npy"), **options)
    areas, called = summary["scores"]["areas"], harness["labels/class"]
    assert areas["mapped"] == [(called == number).sum() for number in (10, 20, 30, 0)]
    assert areas["sample"][-1] == [((tested > 0) & holes).sum(), 0, 0]
    assert np.sum(areas["area"]) == pytest.approx(GRID.size)
    away = np.abs(np.array(areas["area"]) - np.bincount(classes))
    assert (away < 4 * np.array(areas["area_se"]) + 1).all()
    assert "skipped" not in areas
    np.save(tmp_path / "test.npy", np.where(holes, 0, tested).reshape(GRID.height, GRID.width))
    _, summary = learn("apart", values=vectors, test=str(tmp_path / "test.npy"), **options)
    areas = summary["scores"]["areas"]
    assert "has the class 0 (pixels without a class), and no label lies there" in areas["skipped"]
    assert set(areas["area"]) == {None}


def test_learn_stage__draws_of_a_share_on_a_test_file(learn, tested, tmp_path):
    path = {"path": str(tmp_path / "scene.npy")}
    _, summary = learn(test=str(tmp_path / "test.npy"), scene=path, train=0.2, trials=3)
    held = summary["scores"]["held_out"]["test"]
    assert held["trials"] == 3
    assert np.sum(held["confusion"]) == 3 * (tested > 0).sum()
    assert held["overall_accuracy_std"] > 0

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse
from scipy.spatial import cKDTree

import eigenscape
from eigenscape import load_job, parse_job, plan, run
from eigenscape.errors import InputError, JobError
from eigenscape.scenes.types import Grid
from eigenscape.scenes.views.draws import Subset
from eigenscape.store.run import Run
from eigenscape.workflow.stages import stage_keys
from harness import Frail, Harness, KilledError

GRID = Grid(20, 30)


def neighbour_graph(rng, n=600, clusters=1):
    points = rng.uniform(0, 1, (n, 2))
    points[:, 0] += 10 * (np.arange(n) % clusters)
    distance, index = cKDTree(points).query(points, 9)
    weights = np.exp(-((distance[:, 1:] / distance[:, -1:]) ** 2)).ravel()
    entries = (weights, (np.repeat(np.arange(n), 8), index[:, 1:].ravel()))
    W = scipy.sparse.csr_array(entries, (n, n))
    return scipy.sparse.csr_array(W.maximum(W.T)).astype(np.float32)


@pytest.fixture
def solve(tmp_path, rng):
    """Run the spectrum stage with a potential; samples are the pixels of a scene with holes."""

    def run(
        W, potential, *, name="run", kind="normalized", labels=None, pixels=None, learn=None,
        component=None, sample=None, grid=GRID, executor=None, threads=2, memory="2GiB",
        rows_per_block=None, dimension=10, tolerance=1e-8, solver="chebyshev",
    ):  # fmt: skip
        rows = W.shape[0]
        sample = np.arange(rows) if sample is None else sample
        harness = Harness(
            tmp_path / name,
            graph={"laplacian": kind, "potential": potential},
            spectrum={"solver": solver, "dimension": dimension, "tolerance": tolerance},
            learn=learn or {},
            limits={"memory": memory},
        )
        harness.job = harness.job.model_copy(update={"base": tmp_path})
        if harness.run_directory.record("graph") is None:
            samples = rows if pixels is None else len(pixels)
            arrays = {"samples/pixel": np.arange(samples) if pixels is None else pixels}
            if labels is not None:
                arrays["labels/given"] = labels.astype(np.uint16)
            labelled = {} if labels is None else {"1": 1}
            harness.put("ingest", arrays, grid=grid.to_json(), labelled=labelled)
            arrays = {
                "graph/degree": np.asarray(W.astype(np.float64).sum(axis=1)),
                "graph/sample": sample,
                "graph/component": np.zeros(samples, np.int32) if component is None else component,
            }
            for number, first in enumerate(range(0, rows, rows_per_block or rows)):
                part = W[first : first + (rows_per_block or rows)]
                arrays[f"graph/{number}/indptr"] = part.indptr.astype(np.int64)
                arrays[f"graph/{number}/indices"] = part.indices.astype(np.int32)
                arrays[f"graph/{number}/data"] = part.data
            harness.put("graph", arrays, whole=list(arrays), rows=rows, connected=component is None)
        summary = harness.run("spectrum", executor, threads=threads)
        return harness["spectrum/value"], harness["spectrum/vector"], summary

    return run


def dense(W, kind, V):
    """L + V as the thesis writes it, and the matrix on the right-hand side."""
    W = W.astype(np.float64).toarray()
    degree = W.sum(axis=1)
    L = np.diag(degree) - W
    if kind == "normalized":
        L /= np.sqrt(np.outer(degree, degree))
    return L + V, np.diag(degree) if kind == "random-walk" else None


def scatter(classes):
    """V of an identification: 2 / m for every pair of a class of m samples."""
    V = np.zeros((len(classes), len(classes)))
    for number in np.unique(classes[classes > 0]):
        inside = (classes == number).astype(float)
        V += 2 * (np.diag(inside) - np.outer(inside, inside) / inside.sum())
    return V


def check(found, W, kind, V):
    value, vector, _ = found
    A, D = dense(W, kind, V)
    values = scipy.linalg.eigh(A, D, eigvals_only=True, subset_by_index=[0, len(value) - 1])
    np.testing.assert_allclose(value, values, atol=1e-8)
    D = np.eye(len(A)) if D is None else D
    np.testing.assert_allclose(A @ vector, D @ vector * value, atol=3e-6 * np.abs(A).max())


KINDS = ["normalized", "random-walk", "unnormalized"]


@pytest.fixture
def classes(rng):
    return np.where(rng.random(600) < 0.3, rng.integers(1, 4, 600), 0)


@pytest.mark.mostly_slow(4)
@pytest.mark.parametrize("rows", ["dense", "chebyshev"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("potential", ["barrier", "identification"])
def test_spectrum_stage__adds_a_potential(solve, rng, monkeypatch, classes, kind, potential, rows):
    if rows == "chebyshev":
        monkeypatch.setattr("eigenscape.spectrum.iteration.solvers.DENSE_ROWS", 0)
    W = neighbour_graph(rng)
    options = {"kind": potential, "labels": "all", "alpha": 0.3}
    found = solve(W, options, kind=kind, labels=classes)
    V = 0.3 * (np.diag(classes > 0) if potential == "barrier" else scatter(classes))
    check(found, W, kind, V)
    constant = potential == "identification" and kind != "normalized"
    assert found[2]["null_vectors"] == int(constant)
    said = {"samples": (classes > 0).sum(), "factor": 0.3}
    assert found[2]["potential"] == said | ({"clusters": 3} if potential != "barrier" else {})


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("potential", ["barrier", "identification"])
def test_spectrum_stage__alpha_may_be_relative_to_the_traces(solve, rng, classes, kind, potential):
    W = neighbour_graph(rng)
    options = {"kind": potential, "labels": "all", "alpha": 17.78, "relative": True}
    found = solve(W, options, kind=kind, labels=classes)
    V = np.diag((classes > 0).astype(float)) if potential == "barrier" else scatter(classes)
    L = dense(W, kind, 0 * V)[0]
    check(found, W, kind, 17.78 * np.trace(L) / np.trace(V) * V)


def test_spectrum_stage__chooses_among_the_classes(solve, rng, classes):
    W = neighbour_graph(rng)
    options = {"labels": "all", "classes": [1, 3]}
    found = solve(W, options, labels=classes)
    check(found, W, "normalized", np.diag(np.isin(classes, [1, 3])))


def test_spectrum_stage__takes_the_training_pixels_of_the_first_fit(solve, rng, classes):
    W = neighbour_graph(rng)
    options = {"kind": "identification", "labels": "train"}
    found = solve(W, options, labels=classes, learn={"train": 0.2, "seed": 5})
    wanted = sum(round(0.2 * (classes == number).sum()) for number in (1, 2, 3))
    assert found[2]["potential"]["samples"] == wanted
    other = solve(W, options, labels=classes, learn={"train": 0.2, "seed": 6}, name="other")
    assert np.abs(other[0] - found[0]).max() > 1e-6
    with pytest.raises(InputError, match=r'labels = "train": learn.train is "all"'):
        solve(W, options, labels=classes, name="all")


def test_spectrum_stage__takes_pixels_by_row_and_column(solve, rng):
    # A scene with holes, of which the graph has only some samples, in another order.
    pixels = np.sort(rng.choice(GRID.size, 500, replace=False))
    sample = rng.permutation(500)[:450]
    W = neighbour_graph(rng, 450)
    rows = [3, 70, 200]
    places = [[int(p) // 30, int(p) % 30] for p in pixels[sample[rows]]]
    barrier = np.zeros(450)
    barrier[rows] = 2
    value, vector, summary = solve(
        W, {"pixels": places, "alpha": 2.0}, pixels=pixels, sample=sample
    )
    check((value, vector[sample], summary), W, "normalized", np.diag(barrier))
    outside = np.setdiff1d(np.arange(500), sample)
    place = divmod(int(pixels[outside[0]]), 30)
    with pytest.raises(InputError, match="none of the 1 chosen samples is in the graph"):
        solve(W, {"pixels": [place]}, pixels=pixels, sample=sample, name="outside")
    hole = divmod(int(np.setdiff1d(np.arange(GRID.size), pixels)[0]), 30)
    with pytest.raises(InputError, match=rf"no valid pixel at \[{hole[0]}, {hole[1]}\]"):
        solve(W, {"pixels": [hole]}, pixels=pixels, sample=sample, name="hole")


def test_spectrum_stage__takes_rows_of_a_table(solve, rng):
    W = neighbour_graph(rng)
    classes = np.zeros(600, int)
    classes[[5, 17, 402]] = 1
    options = {"kind": "identification", "pixels": [5, [17, 0], 402], "alpha": 0.5}
    found = solve(W, options, grid=Grid(600, 1))
    check(found, W, "normalized", 0.5 * scatter(classes))


def test_spectrum_stage__takes_a_raster_of_values(solve, rng, tmp_path):
    pixels = np.sort(rng.choice(GRID.size, 500, replace=False))
    W = neighbour_graph(rng, 500)
    V = np.maximum(rng.standard_normal((20, 30)), 0)
    np.save(tmp_path / "v.npy", V)
    found = solve(W, {"raster": "v.npy", "alpha": 2.0}, pixels=pixels)
    check(found, W, "normalized", 2 * np.diag(V.ravel()[pixels]))


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (-1.0, "holds -1.0 at row 4, column 7"),
        (np.nan, "holds nan at row 4"),
        (np.inf, "holds inf at row 4"),
        (0.0, "V is 0 at all 600 samples"),
    ],
)
def test_spectrum_stage__refuses_a_raster_that_is_no_potential(
    solve, rng, tmp_path, value, message
):
    V = np.zeros((20, 30))
    V[4, 7] = value
    np.save(tmp_path / "v.npy", V)
    with pytest.raises(InputError, match=message):
        solve(neighbour_graph(rng), {"raster": "v.npy"})


def test_spectrum_stage__refuses_a_raster_of_another_size(solve, rng, tmp_path):
    np.save(tmp_path / "v.npy", np.ones((30, 20)))
    with pytest.raises(InputError, match=r"graph.potential.raster has the size 30 x 20"):
        solve(neighbour_graph(rng), {"raster": "v.npy"})


@pytest.mark.parametrize(
    ("potential", "labels", "message"),
    [
        ({"pixels": [[20, 0]]}, None, r"\[20, 0\] is outside of the scene of 20 x 30 pixels"),
        ({"pixels": [[0, 30]]}, None, r"\[0, 30\] is outside"),
        ({"labels": "all"}, None, 'labels = \'all\': the scene has no labels'),
        ({"labels": "all", "classes": [9]}, np.arange(600) % 3, "has the class 9. There are 1, 2"),
        (
            {"kind": "identification", "labels": "all"}, np.arange(600) == 7,
            "of 1 chosen samples in the graph no two have the same class",
        ),
    ],
)  # fmt: skip
def test_spectrum_stage__refuses_what_cannot_be_chosen(solve, rng, potential, labels, message):
    with pytest.raises(InputError, match=message):
        solve(neighbour_graph(rng), potential, labels=labels)


@pytest.mark.parametrize("kind", KINDS)
def test_spectrum_stage__each_component_with_a_potential(solve, rng, kind):
    W = neighbour_graph(rng, clusters=3)
    component = (np.arange(600) % 3).astype(np.int32)
    classes = np.zeros(600, int)
    classes[[0, 3, 300, 601 - 300]] = 1  # in the first two components
    assert set(component[classes > 0]) == {0, 1}
    for potential in ("barrier", "identification"):
        V = np.diag((classes > 0).astype(float)) if potential == "barrier" else scatter(classes)
        found = solve(
            W, {"kind": potential, "labels": "all"}, kind=kind, labels=classes,
            component=component, name=potential,
        )  # fmt: skip
        check(found, W, kind, V)
        joined = potential == "identification" and kind != "normalized"
        assert found[2]["null_vectors"] == (2 if joined else 0)
        # Constants of the third component, and of the first two together.
        assert (np.abs(found[0]) < 1e-9).sum() == {"barrier": 1}.get(
            potential, 2 if kind != "normalized" else 1
        )


@pytest.mark.mostly_slow(1)
@pytest.mark.parametrize("alpha", [1.0, 1e3])
@pytest.mark.parametrize("potential", ["barrier", "identification"])
def test_spectrum_stage__same_bits_with_a_potential(
    solve, rng, monkeypatch, classes, potential, alpha
):
    monkeypatch.setattr("eigenscape.spectrum.iteration.solvers.DENSE_ROWS", 0)
    W = neighbour_graph(rng)
    options = {"kind": potential, "labels": "all", "alpha": alpha}
    first = solve(W, options, labels=classes, name="a", threads=1)
    second = solve(
        W, options, labels=classes, name="b", threads=2, memory="200MiB", rows_per_block=100
    )
    np.testing.assert_array_equal(first[0], second[0])
    np.testing.assert_array_equal(first[1], second[1])


@pytest.mark.parametrize("noted", [False, True])
def test_spectrum_stage__with_a_potential_goes_on_after_a_kill(
    solve, rng, monkeypatch, classes, noted
):
    monkeypatch.setattr("eigenscape.spectrum.iteration.solvers.DENSE_ROWS", 0)
    W = neighbour_graph(rng)
    options = {"kind": "identification", "labels": "all", "alpha": 1e3}
    whole = Frail()
    expected = solve(W, options, labels=classes, name="whole", executor=whole)
    steps = [name for name, _ in whole.log]
    tasks = steps.index("Residuals") + 1
    with pytest.raises(KilledError):
        solve(W, options, labels=classes, executor=Frail(tasks, noted=noted))
    found = solve(W, options, labels=classes, executor=Frail())
    for one, other in zip(found[:2], expected[:2], strict=True):
        np.testing.assert_array_equal(one, other)


# --- the arc of Halevy 2011, figures 3.1 to 3.3


@pytest.fixture
def embed(tmp_path):
    """Return the first two eigenvectors beyond the lowest of an arc of 100 points, as a job does."""
    angle = np.linspace(0, np.pi, 100)
    arc = np.column_stack([np.cos(angle), np.zeros(100), np.sin(angle)])

    def run(**potential):
        harness = Harness(
            tmp_path / f"{potential}",
            neighbors={"method": "exact", "k": 4},
            graph={"weights": "binary", "laplacian": "random-walk", "potential": potential},
            spectrum={"dimension": 3, "tolerance": 1e-10},
        )
        harness.put(
            "ingest", {"samples/pixel": np.arange(100)}, grid=Grid(100, 1).to_json(), labelled={}
        )
        harness.put("features", {"features/values": arc.astype(np.float32)})
        for stage in ("neighbors", "graph", "spectrum"):
            harness.run(stage)
        X = harness["spectrum/vector"][:, 1:3].astype(np.float64)
        # In units of the mean distance from the middle: the length of a vector means nothing.
        return X / np.linalg.norm(X - X.mean(axis=0), axis=1).mean()

    return run


@pytest.mark.mostly_slow(1)
@pytest.mark.parametrize("point", [0, 50])
def test_barrier__separates_a_point_of_the_arc(embed, point):
    distance = []
    for alpha in (0.05, 0.1, 0.5, 5):
        X = embed(kind="barrier", pixels=[point], alpha=alpha)
        distance.append(np.linalg.norm(np.delete(X, point, 0) - X[point], axis=1).min())
    assert (np.diff(distance) > 0).all()
    assert distance[-1] > 5 * distance[0]


def test_identification__draws_the_ends_of_the_arc_together(embed):
    distance = []
    for alpha in (0.01, 0.05, 0.1, 1):
        X = embed(kind="identification", pixels=[0, 99], alpha=alpha)
        distance.append(np.linalg.norm(X[0] - X[99]))
    assert (np.diff(distance) < 0).all()
    # Nearly as far apart as two points can be at first, as near as neighbours of neighbours at last.
    assert distance[0] > 1.9
    assert distance[-1] < 0.4


def test_spectrum_stage__takes_rows_of_the_table_of_which_samples_are_drawn(tmp_path, rng):
    np.save(tmp_path / "table.npy", rng.standard_normal((200, 4)).astype(np.float32))
    rows = Subset(200, 80, 3).rows

    def job(row):
        table = {"path": str(tmp_path / "table.npy"), "samples": 80, "seed": 3}
        potential = {"kind": "barrier", "pixels": [row], "alpha": 1e4}
        return {
            "scene": table,
            "features": {"method": "none"},
            "graph": {"potential": potential},
            "spectrum": {"dimension": 4},
        }

    result = run(job(int(rows[50])), run_dir=tmp_path / "run")
    first = np.abs(np.asarray(Run(result.path).open("spectrum/vector")[...])[:, 0])
    assert first.argmin() == 50
    assert first[50] < 0.1 * np.median(first)
    left = int(np.setdiff1d(np.arange(200), rows)[0])
    with pytest.raises(InputError, match=f"row {left} is not among the 80 of 200 rows that"):
        plan(parse_job(job(left)))
    with pytest.raises(InputError, match="no row 200 in a table of 200 samples"):
        plan(parse_job(job(200)))


# --- whole jobs


@pytest.fixture
def job(written, write_job):
    """Load a job of the small labelled scene with a potential."""

    def load(potential, **tables):
        graph = {} if potential is None else {"graph": {"potential": potential}}
        tables = {"scene": {"labels": "labels.tif"}, "learn": {"train": 0.2}, **tables}
        return load_job(write_job(**tables, **graph))

    return load


def values(result):
    return np.asarray(Run(result.path).open("spectrum/value")[...])


def test_run__of_the_training_pixels_makes_one_fit(job):
    potential = {"kind": "identification", "labels": "train", "alpha": 0.1}
    result = run(job(potential))
    assert result.scores["held_out"].keys() == {"random"}
    assert result.scores["held_out"]["random"]["trials"] == 1
    training = result.scores["held_out"]["random"]["training_pixels"]
    assert result.spectrum["potential"]["samples"] == training


@pytest.mark.slow
def test_run__a_raster_of_the_labels_is_as_good_as_the_labels(job):
    found = run(job({"labels": "labels.tif"})), run(job({"labels": "all"}))
    np.testing.assert_array_equal(values(found[0]), values(found[1]))
    assert values(found[0])[0] > 0


def test_stage_keys__a_potential_leaves_the_graph_as_it_is(job, small, write_tif):
    def changed(one, other):
        return {name for name in one if one[name] != other[name]}

    later = {"spectrum", "learn", "export"}
    keys = stage_keys(job(None))
    potential = {"labels": "labels.tif"}
    first = stage_keys(job(potential))
    assert changed(keys, first) == later
    assert changed(first, stage_keys(job({**potential, "alpha": 2.0}))) == later
    assert changed(first, stage_keys(job({**potential, "labels": "all"}))) == later
    by_pixels = stage_keys(job({"pixels": [[20, 20]]}))
    train = [stage_keys(job({"labels": "train"}, learn={"train": 0.2, "seed": s})) for s in (0, 1)]
    assert changed(*train) == later
    seeds = [stage_keys(job(potential, learn={"train": 0.2, "seed": s})) for s in (0, 1)]
    assert changed(*seeds) == {"learn", "export"}
    write_tif("labels.tif", small.labels * 2)
    assert changed(first, stage_keys(job(potential))) == later | {"ingest"}
    assert changed(by_pixels, stage_keys(job({"pixels": [[20, 20]]}))) == {
        "ingest", "learn", "export",
    }  # fmt: skip


def test_plan__refuses_what_the_scene_or_the_job_rules_out(job):
    with pytest.raises(InputError, match=r"\[30, 0\] is outside of the scene of 30 x 40 pixels"):
        plan(job({"pixels": [[30, 0]]}))
    with pytest.raises(InputError, match=r"labels = \"train\": learn.train is \"all\""):
        plan(job({"labels": "train"}, learn={"train": "all"}))
    with pytest.raises(InputError, match=r"graph.potential.raster = 'v.tif': no such file"):
        plan(job({"raster": "v.tif"}))
    with pytest.raises(
        InputError, match=r"classes: no chosen sample has the class 9. There are 1, 2"
    ):
        plan(job({"labels": "all", "classes": [1, 9]}))


def test_run__refuses_a_class_without_labels_after_ingest(job, monkeypatch):
    monkeypatch.setattr("eigenscape.scenes.preview.MOST_COUNTED", 1)
    asked = job({"labels": "all", "classes": [9]})
    plan(asked)
    with pytest.raises(InputError, match="no chosen sample has the class 9"):
        run(asked)
    (directory,) = (asked.base / "runs").iterdir()
    assert set(Run(directory).manifest["stages"]) == {"ingest"}


@pytest.mark.parametrize(
    ("potential", "message"),
    [
        ({}, "nothing is given: choose the samples by exactly one of labels, pixels and raster"),
        ({"labels": "all", "pixels": [1]}, "labels and pixels is given"),
        ({"kind": "identification", "raster": "v.tif"}, "give these as labels"),
        ({"kind": "identification", "pixels": [[3, 4]]}, "one alone cannot be identified"),
        ({"classes": [1], "pixels": [1]}, "classes choose among labels"),
        ({"labels": "all", "alpha": 0}, "graph.potential.alpha = 0: input should be greater than 0"),
        ({"pixels": [[-1, 0]]}, "graph.potential.pixels"),
        ({"kind": "wall", "labels": "all"}, "graph.potential.kind = 'wall'"),
        ({"label": "all"}, "Did you mean graph.potential.labels?"),
    ],
)  # fmt: skip
def test_parse_job__says_what_is_wrong_with_a_potential(potential, message):
    with pytest.raises(JobError) as caught:
        parse_job({"scene": {"path": "scene.tif"}, "graph": {"potential": potential}})
    assert message in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize(
    ("pixels", "message"),
    [
        (
            (10, 20),
            r"10 is a row alone, which names a sample of a table; .* Give pairs, .* \[\[10, 0\]\]",
        ),
        (((10, 40),), r"\[10, 40\] is outside of the scene of 20 x 30 pixels"),
    ],
)
def test_spectrum_stage__refuses_places_that_are_none(solve, rng, pixels, message):
    """One pair of brackets too few names two pixels, not one."""
    with pytest.raises(InputError, match=message):
        solve(neighbour_graph(rng), {"pixels": pixels})


def test_run__a_row_alone_names_a_sample_of_a_table(tmp_path, rng):
    X = rng.normal(size=(150, 4)).astype(np.float32)
    values = []
    for number, pixels in enumerate(([3, 5], [[3, 0], [5, 0]])):
        job = eigenscape.job_for(
            X, directory=tmp_path / str(number), spectrum={"dimension": 5},
            graph={"potential": {"pixels": pixels}},
        )  # fmt: skip
        values.append(eigenscape.open_run(eigenscape.run(job))["eigenvalue"].values)
    np.testing.assert_array_equal(*values)
    assert values[0][0] > 0

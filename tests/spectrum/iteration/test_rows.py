"""The row layout gives the bits of the column layout, whatever the parts, the order and what is lost."""

import itertools
import os
import random
import signal
import threading
import time
from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
import scipy.sparse
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from scipy.sparse.csgraph import connected_components

from eigenscape.clusters import Serial, Threads, Workers
from eigenscape.clusters.workers.executors import one_blas_thread
from eigenscape.context import Loop
from eigenscape.spectrum.iteration import rows, tasks
from eigenscape.spectrum.iteration.chebyshev import solve
from eigenscape.spectrum.iteration.halos import Cut, fill_outbox, find_halo
from eigenscape.spectrum.iteration.kernels.filter import FilterPlan
from eigenscape.spectrum.iteration.layout import Layout
from eigenscape.spectrum.iteration.rowparts import RowParts
from eigenscape.spectrum.iteration.rows import Part, Stored
from eigenscape.spectrum.kernels.gather import WIDTH
from eigenscape.spectrum.kernels.ties import Ties
from harness import KilledError

loop = Loop(Serial())
TILE = 16


def quiet(text):
    pass


@pytest.fixture(autouse=True)
def small_tiles(monkeypatch):
    monkeypatch.setattr("eigenscape.spectrum.kernels.tiles.ROW_TILE", TILE)


def weights(rng, n, pieces=1, degree=4):
    """Return a symmetric random graph of some components, in an order that mixes them a little."""
    ends = [np.arange(n), (np.arange(n) + pieces) % n]
    for _ in range(degree):
        ends[0] = np.concatenate([ends[0], np.arange(n)])
        ends[1] = np.concatenate([ends[1], (np.arange(n) + pieces * rng.integers(0, 9, n)) % n])
    keep = ends[0] % pieces == ends[1] % pieces
    place = (ends[0][keep], ends[1][keep])
    W = scipy.sparse.coo_array((rng.uniform(0.2, 1, keep.sum()), place), (n, n)).tocsr()
    W = W + W.T
    W.setdiag(0)
    W.eliminate_zeros()
    W.sort_indices()
    return W


def filled(problem, name, groups, seed=0):
    vectors = problem.named(name, range(groups))
    rng = np.random.default_rng(seed)
    vectors.write(slice(None), rng.standard_normal((vectors.rows, vectors.columns)))
    return vectors


def left_behind(problem):
    return [path.name for path in problem.directory.iterdir() if path.name.startswith("work-")]


numbers = itertools.count()


@pytest.mark.slow
@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    n=st.integers(40, 180), pieces=st.integers(1, 3), parts=st.integers(1, 12),
    blocks=st.integers(1, 4), degree=st.integers(1, 11), kind=st.sampled_from(["normalized", "unnormalized"]),
    dtype=st.sampled_from([np.float32, np.float64]), barrier=st.booleans(),
    budget=st.sampled_from([0, 2**14, 2**30]),
)  # fmt: skip
@example(
    n=100, pieces=1, parts=5, blocks=3, degree=40, kind="normalized", dtype=np.float32,
    barrier=False, budget=2**30,
)  # fmt: skip
def test_row_parts__give_the_bits_of_the_columns(
    make_problem, n, pieces, parts, blocks, degree, kind, dtype, barrier, budget
):
    rng = np.random.default_rng(n * 100 + pieces)
    W = weights(rng, n, pieces)
    count, component = connected_components(W)
    potential = rng.uniform(0, 1, n) if barrier else None
    name = f"p{next(numbers)}"
    problem = make_problem(
        W, kind=kind, dtype=dtype, count=blocks, name=name, potential=potential,
        component=component.astype(np.int32) if count > 1 else None,
    )  # fmt: skip
    X, values = filled(problem, "x", 3), rng.uniform(0, 1, 3 * WIDTH)
    values[5] = np.inf
    plan = FilterPlan(degree, 0.3, problem.operator.bound, 0.0)
    by_columns = [problem.named(f"{part}-columns", range(3)) for part in ("filtered", "image")]
    by_rows = [problem.named(f"{part}-rows", range(3)) for part in ("filtered", "image")]
    columns = tasks.Filter(problem, X, by_columns[0], plan, values, np.zeros(len(values)))
    norms = tasks.Residuals(problem, X, values)
    expected = []
    for group in range(3):
        columns(group)
        tasks.Image(problem, X, by_columns[1])(group)
        expected.append(norms(group))
    found = RowParts.prepare(problem, loop, Layout("rows", parts, budget), parts)
    assert found.cut.parts == min(parts, -(-n // TILE))
    found.filter("filter", X, by_rows[0], plan, "filter")
    found.image("image", X, by_rows[1], "image")
    for one, other in zip(by_columns, by_rows, strict=True):
        np.testing.assert_array_equal(one.read(slice(None)), other.read(slice(None)))
    np.testing.assert_array_equal(found.residuals("residual", X, values, "residuals"), expected)
    assert not left_behind(problem)
    assert not rows._states


@pytest.fixture
def grid(make_problem):
    """Return a problem, vectors, a filter and what it is to give."""
    W = nx.adjacency_matrix(nx.grid_2d_graph(20, 15)).astype(float)
    problem = make_problem(W, kind="normalized", dtype=np.float32, count=2)
    X, expected = filled(problem, "x", 2), problem.named("expected", range(2))
    plan = FilterPlan(21, 0.3, 2.0, 0.0)
    for group in range(2):
        tasks.Filter(problem, X, expected, plan, *np.zeros((2, 2 * WIDTH)))(group)
    return problem, X, plan, expected.read(slice(None))


def test_find_halo__numbers_columns_anew(grid, tmp_path):
    problem = grid[0]
    A = problem.operator.open().matrix()
    cut = Cut.of(300, 4, tmp_path)
    cut.folder.mkdir()
    assert cut.bounds == (0, 64, 144, 224, 300)
    found = [find_halo(problem.operator, cut, part) for part in range(4)]
    sent = [fill_outbox(cut, part) for part in range(4)]
    # Rows of a grid of 15 columns: each part names the 15 rows on either side, less where it ends.
    assert [each["halo"] for each in found] == sent == [15, 30, 30, 15]
    assert [each["owners"] for each in found] == [[1], [0, 2], [1, 3], [2]]
    rng = np.random.default_rng(1)
    X = rng.standard_normal((300, WIDTH)).astype(np.float32)
    for number in range(4):
        part, own = Part.open(Stored.of(problem), cut, number), cut.rows(number)
        local = np.concatenate([X[own], X[part.halo]])
        image = np.zeros_like(local)
        part.step(local, image, 1.0, 0.0, 0.0)
        np.testing.assert_allclose(image[: part.own], (A @ X)[own], atol=1e-5)
        for sender in part.senders:
            other = Part.open(Stored.of(problem), cut, sender.part)
            mail = X[cut.rows(sender.part)][other.outbox]
            count = sender.halo.stop - sender.halo.start
            np.testing.assert_array_equal(
                mail[sender.first : sender.first + count], X[part.halo[sender.halo]]
            )


class Forgetful(Serial):
    """Loses the vectors that a process holds, and does tasks twice, now and then."""

    def __init__(self, seed, share):
        self.random, self.share = random.Random(seed), share

    def run(self, function, items, on_done, order=None):
        def task(item):
            for _ in range(1 + (self.random.random() < self.share)):
                if self.random.random() < self.share:
                    rows.forget()
                result = function(item)
            return result

        super().run(task, items, on_done, order)


@pytest.mark.mostly_slow(3)
@pytest.mark.parametrize("share", [0.05, 0.3, 1.0])
@pytest.mark.parametrize("every", [1, 4, 8])
def test_steps__repeat_what_a_lost_process_held(grid, monkeypatch, share, every):
    problem, X, plan, expected = grid
    monkeypatch.setattr("eigenscape.spectrum.iteration.rowparts._KEEP_STEPS", (every, every))
    found = RowParts.prepare(problem, Loop(Forgetful(1, share)), Layout("rows", 3), 3)
    result = problem.named("result", range(2))
    found.filter("filter", X, result, plan, "filter")
    np.testing.assert_array_equal(result.read(slice(None)), expected)
    assert not left_behind(problem)


def test_steps__write_over_files_of_the_same_bytes(grid):
    """A worker that was given up may still write what others read."""
    problem, X, plan, _ = grid

    class Late(Serial):
        def run(self, function, items, on_done, order=None):
            items, last = [*items], {}

            def task(item):
                result = function(item)
                if order is not None and item[0] > 0:
                    held = dict(rows._states)
                    function(last[item[1:]])
                    rows._states.update(held)
                if order is not None:
                    last[item[1:]] = item
                return result

            super().run(task, items, on_done, order)

    layout = Layout("rows", 3)
    found = RowParts.prepare(problem, Loop(Late()), layout, 3)
    result = problem.named("result", range(2))
    found.filter("filter", X, result, replace(plan, degree=6), "filter")
    again = problem.named("again", range(2))
    RowParts.prepare(problem, loop, layout, 3).filter(
        "filter", X, again, replace(plan, degree=6), "filter"
    )
    np.testing.assert_array_equal(result.read(slice(None)), again.read(slice(None)))


@pytest.mark.parametrize("threads", [1, 4])
def test_filter__on_threads(grid, threads):
    problem, X, plan, expected = grid
    found = RowParts.prepare(problem, Loop(Threads(threads)), Layout("rows", 4), 4)
    result = problem.named("result", range(2))
    found.filter("filter", X, result, plan, "filter")
    np.testing.assert_array_equal(result.read(slice(None)), expected)


class FrailMap:
    """Notes results as `Context.map` does, and is killed after some tasks."""

    def __init__(self, left=None):
        self.noted, self.left, self.done = {}, left, 0

    def __call__(self, step, function, items, *, label=None, keep=True, order=None):
        results = []
        for item in items:
            name = f"{step}/{item}"
            if not (keep and name in self.noted):
                if self.left is not None and self.done >= self.left:
                    rows.forget()
                    raise KilledError
                with one_blas_thread():
                    self.noted[name] = function(item)
                self.done += 1
            results.append(self.noted[name])
        return results


@pytest.mark.slow
def test_solve__goes_on_after_a_kill_in_the_row_layout(make_problem):
    W = weights(np.random.default_rng(3), 600)
    layout, whole = Layout("rows", 4), FrailMap()
    problems = [make_problem(W, kind="normalized", dtype=np.float32, name=f"{i}") for i in range(8)]
    expected = solve(problems[0], 20, 1e-4, loop, quiet)
    found = solve(problems[1], 20, 1e-4, whole, quiet, layout)
    np.testing.assert_array_equal(found.values, expected.values)
    for number, problem in enumerate(problems[2:], 1):
        frail = FrailMap(whole.done * number // 7)
        with pytest.raises(KilledError):
            solve(problem, 20, 1e-4, frail, quiet, layout)
        frail.left = None
        # The other process has other workers, or none.
        other = [layout, Layout("rows", 3), Layout()][number % 3]
        solution = solve(problem, 20, 1e-4, frail, quiet, other)
        np.testing.assert_array_equal(solution.values, expected.values)
        np.testing.assert_array_equal(solution.residuals, expected.residuals)
        np.testing.assert_array_equal(
            solution.vectors.read(slice(None)), expected.vectors.read(slice(None))
        )
        assert not left_behind(problem)


def test_layout__columns_where_there_are_enough(make_problem, monkeypatch):
    problem = make_problem(weights(np.random.default_rng(0), 640))
    large = replace(problem, operator=replace(problem.operator, entries=10**9))
    assert Layout("auto", 2).parts(large, 4) == 0
    assert Layout("auto", 2).parts(large, 1) == 2
    # The mail grows with the parts: eight workers gain too little over four groups of columns.
    assert Layout("auto", 8).parts(large, 4) == 0
    assert Layout("auto", 24).parts(large, 4) == 24
    assert Layout("auto", 1).parts(large, 1) == 0
    assert Layout("columns", 8).parts(large, 1) == 0
    # Tasks of a small graph take less time than it takes to give them out.
    assert Layout("auto", 8).parts(problem, 4) == 0
    assert Layout("rows", 3).parts(problem, 4) == 3
    # No more parts than tiles; so many that two vectors of one fit.
    assert Layout("rows", 100).parts(problem, 4) == 40
    assert Layout("rows", 2, 2**16).parts(problem, 4) == 8
    # Pages that no memory holds are read from the disk in every step.
    monkeypatch.setattr("os.sysconf", lambda name: 2**10)
    assert Layout("auto", 2).parts(large, 4) == 2


def test_layout__columns_where_rows_do_not_serve(make_problem):
    W = weights(np.random.default_rng(0), 120)
    ties = Ties(np.arange(4), np.array([0, 4]), np.ones(4))
    assert Layout("rows", 2).parts(make_problem(W, ties=ties, name="tied"), 1) == 0
    # A component of its own for nearly every row.
    lonely = scipy.sparse.coo_array((np.ones(2), ([0, 1], [1, 0])), (400, 400)).tocsr()
    _, component = connected_components(lonely)
    problem = make_problem(lonely, component=component.astype(np.int32), name="lonely")
    assert RowParts.prepare(problem, loop, Layout("rows", 2), 2) is None


def test_row_parts__say_what_a_step_moves(grid):
    problem, said = grid[0], []
    RowParts.prepare(problem, loop, Layout("rows", 4, note=said.append), 4)
    assert said == [
        "4 parts of the rows: halos of 90 rows, 30.0% of all; 22.5 KiB written and read in a step of "
        "32 columns"
    ]


@pytest.mark.slow
def test_filter__when_a_worker_is_lost_between_two_steps(make_problem, monkeypatch):
    from distributed import Client, LocalCluster

    # As the workers have it.
    monkeypatch.setenv("EIGENSCAPE_CHUNK_ROWS", "256")
    monkeypatch.setattr("eigenscape.spectrum.kernels.tiles.ROW_TILE", 256)
    problem = make_problem(weights(np.random.default_rng(2), 3000), kind="normalized")
    X, plan = filled(problem, "x", 2), FilterPlan(60, 0.3, 2.0, 0.0)
    expected, result = (problem.named(name, range(2)) for name in ("expected", "result"))
    for group in range(2):
        tasks.Filter(problem, X, expected, plan, *np.zeros((2, 2 * WIDTH)))(group)
    lost = []

    def end_one(pids):
        while not lost:
            if [*problem.directory.glob("work-*-mail-21-*")]:
                lost.append(pids[0])
                os.kill(pids[0], signal.SIGKILL)
            time.sleep(0.001)

    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, host="127.0.0.1",
            dashboard_address="127.0.0.1:0", memory_limit=0, silence_logs=50,
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):  # fmt: skip
        pids = sorted(client.run(os.getpid).values())
        executor = Workers(client)
        found = RowParts.prepare(problem, Loop(executor), Layout("rows", 4), 4)
        killer = threading.Thread(target=end_one, args=(pids,))
        killer.start()
        found.filter("filter", X, result, plan, "filter")
        killer.join()
        there = sorted(client.run(os.getpid).values())
        executor.close()
    assert lost[0] not in there
    np.testing.assert_array_equal(result.read(slice(None)), expected.read(slice(None)))
    assert not left_behind(problem)

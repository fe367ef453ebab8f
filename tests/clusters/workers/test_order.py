"""Tasks that wait for others, and belong to a place: on one thread, on threads, on worker processes."""

import os
import random
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eigenscape.clusters.workers.dask import Workers, _Homes, _Waiting
from eigenscape.clusters.workers.executors import Order, Serial, Threads


def order_of(rng, count, places):
    """Return an order in which each item waits for some of those before it."""
    after = [rng.sample(range(item), min(item, rng.randrange(4))) for item in range(count)]
    return Order(after, [rng.randrange(places) for _ in range(count)])


@given(seed=st.integers(0, 10**6), count=st.integers(0, 40))
def test_waiting__gives_each_item_once_and_in_time(seed, count):
    rng = random.Random(seed)
    order, done = order_of(rng, count, 3), []
    waiting = _Waiting(order, count)
    ready = waiting.first()
    while ready:
        item = ready.pop(rng.randrange(len(ready)))
        assert {*order.after[item]} <= {*done}
        done.append(item)
        ready += waiting.after(item)
    assert sorted(done) == [*range(count)]


def test_waiting__without_an_order_all_are_ready():
    waiting = _Waiting(None, 3)
    assert waiting.first() == [0, 1, 2]
    assert waiting.after(1) == []


def test_homes__stay_until_a_worker_is_lost():
    homes = _Homes(Order([()] * 6, [0, 1, 2, 3, 4, 5]))
    assert [homes.of(place, ["b", "a", "c"]) for place in range(6)] == [
        ["a"], ["a"], ["b"], ["b"], ["c"], ["c"],
    ]  # fmt: skip
    # One that comes takes over nothing but what another leaves.
    assert homes.of(1, ["a", "b", "c", "d"]) == ["a"]
    assert homes.of(2, ["a", "c", "d"]) == ["d"]
    assert homes.of(3, ["a", "c", "d"]) == ["d"] or homes.of(3, ["a", "c", "d"]) == ["a"]
    assert homes.of(0, []) is None


@pytest.mark.parametrize("executor", [Serial(), Threads(1), Threads(4)])
def test_run__in_an_order(executor):
    rng = random.Random(5)
    order, lock, done, results = order_of(rng, 60, 3), threading.Lock(), set(), {}

    def task(item):
        with lock:
            assert {*order.after[item]} <= done
        with lock:
            done.add(item)
        return -item

    executor.run(task, range(60), lambda index, result, _: results.update({index: result}), order)
    assert results == {item: -item for item in range(60)}


@pytest.mark.slow
def test_workers__keep_places_and_outlive_one_of_them(tmp_path):
    from distributed import Client, LocalCluster

    def work(item):
        """Leave a file; the process ends once in the midst of the second place."""
        folder, place, step, needs = item
        for other in needs:
            assert os.path.exists(f"{folder}/{other}")
        if (place, step) == (1, 3) and not os.path.exists(f"{folder}/ended"):
            with open(f"{folder}/ended", "w"):
                pass
            os._exit(1)
        with open(f"{folder}/{place}-{step}", "w"):
            pass
        return os.getpid()

    items, after, position = [], [], {}
    for step in range(8):
        for place in range(3):
            before = [(other, step - 1) for other in range(3)] if step else []
            position[place, step] = len(items)
            items.append((str(tmp_path), place, step, [f"{p}-{s}" for p, s in before]))
            after.append([position[each] for each in before])
    order, found = Order(after, [item[1] for item in items]), {}
    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, host="127.0.0.1",
            dashboard_address="127.0.0.1:0", memory_limit=0, silence_logs=50,
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):  # fmt: skip
        executor = Workers(client)
        executor.run(work, items, lambda index, pid, _: found.update({index: pid}), order)
        executor.close()
    assert len(found) == len(items)
    pids = [[found[position[place, step]] for step in range(8)] for place in range(3)]
    # Place 2 has a worker of its own; that of 0 and 1 was lost at step 3.
    assert len({*pids[2]}) == 1
    for place in (0, 1):
        assert len({*pids[place][:3]}) == 1
        assert len({*pids[place]}) == 2
        assert pids[place][0] != pids[2][0]

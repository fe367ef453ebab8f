"""The simulated cluster of tests/bench/simulation: batches whose seconds are known, a recorded run."""

import math
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import rasterio

import eigenscape

SIMULATION = Path(__file__).parents[1] / "bench" / "simulation"


@pytest.fixture(autouse=True)
def on_path(monkeypatch):
    monkeypatch.syspath_prepend(SIMULATION)
    yield
    # Their names are those of scripts, and common.
    for name in [name for name, module in sys.modules.items() if _is_of_bench(module)]:
        del sys.modules[name]


def _is_of_bench(module):
    return str(getattr(module, "__file__", None) or "").startswith(str(SIMULATION))


def batch_of(tasks, **more):
    from recording import Batch

    return Batch("stage", "step", "work", tasks=tasks, **more)


def seconds_of(tasks, cluster, **more):
    from model import batch_seconds

    return batch_seconds(batch_of(tasks, **more), cluster)


def test_batch_seconds__of_equal_and_of_uneven_tasks():
    from model import Cluster
    from recording import Task

    equal = [Task(3.0)] * 4
    assert seconds_of(equal, Cluster(1)) == 12
    assert seconds_of(equal, Cluster(2)) == 6
    assert seconds_of(equal, Cluster(1, threads=2)) == 6
    assert seconds_of(equal, Cluster(3)) == 6
    assert seconds_of(equal, Cluster(50)) == 3
    # In their order: 1 + 4 beside 2 + 3, then the last.
    uneven = [Task(1.0), Task(2.0), Task(4.0), Task(3.0), Task(7.0)]
    assert seconds_of(uneven, Cluster(2)) == 12
    assert seconds_of([], Cluster(2)) == 0


def test_batch_seconds__end_where_the_driver_hands_out_no_faster():
    from model import Cluster
    from recording import Task

    many = [Task(0.01)] * 1000
    assert seconds_of(many, Cluster(50, driver_s=0.01)) == pytest.approx(10, rel=0.01)
    assert seconds_of(many, Cluster(1, driver_s=0.001, worker_s=0.01)) == pytest.approx(
        20, rel=0.01
    )
    # The journal is the driver's as well.
    noted = [replace(task, driver=0.005) for task in many]
    assert seconds_of(noted, Cluster(50)) == pytest.approx(5, rel=0.01)


def test_batch_seconds__are_bound_by_network_file_system_and_cores():
    from model import Cluster
    from recording import Task

    moving = [Task(0.0, read=6 * 10**8, written=4 * 10**8)] * 8
    assert seconds_of(moving, Cluster(2, link=1e9)) == pytest.approx(4)
    assert seconds_of(moving, Cluster(8, link=1e9)) == pytest.approx(1)
    assert seconds_of(moving, Cluster(8, link=1e9, files=2e9)) == pytest.approx(4)
    working = [Task(3.0)] * 4
    assert seconds_of(working, Cluster(4, cores=2)) == 6
    assert seconds_of(working, Cluster(4, worker_s=1.0, cores=2)) == 8


def test_batch_seconds__of_an_order_wait_for_the_tasks_before():
    from model import Cluster
    from recording import Task

    # Two steps of two parts, each of which waits for both: as many seconds as steps, and their delays.
    order = {"after": [[], [], [0, 1], [0, 1]], "places": [0, 1, 0, 1]}
    tasks = [Task(1.0), Task(3.0), Task(1.0), Task(3.0)]
    assert seconds_of(tasks, Cluster(2), **order) == 6
    assert seconds_of(tasks, Cluster(1), **order) == 8
    assert seconds_of(tasks, Cluster(2, delay=0.5), **order) == 8
    # What a place has mapped once stays in the memory of its worker.
    mapping = [replace(task, mapped=10**9) for task in tasks]
    assert seconds_of(mapping, Cluster(2, link=1e9), **order) == 7


def test_stage_seconds__run_pinned_steps_on_one_machine():
    from model import Cluster, stage_seconds
    from recording import Task

    tasks = [Task(2.0, read=10**9, driver=0.5)] * 4
    batches = [batch_of(tasks, pinned=True, before=3.0), batch_of([], before=1.0)]
    found = stage_seconds(batches, Cluster(50, link=1e9))["stage"]
    assert (found.driver, found.pinned, found.tasks, found.whole) == (4, 14, 0, 18)
    local = stage_seconds(batches, Cluster(4, one_machine=True, loads={"stage": 1.5}))["stage"]
    assert local.pinned == 0
    # Driver and workers load, one after the other.
    assert local.driver == 5.5
    assert local.tasks == pytest.approx(1.5 + 2 + 4 * 0.5)


@pytest.fixture
def recorded(written, write_job, tmp_path):
    from recording import record

    job = eigenscape.load_job(write_job(scene={"labels": "labels.tif"}))
    return job, record(job, tmp_path / "recorded", 3)


@pytest.mark.slow
def test_record__leaves_the_map_of_a_run_and_charges_its_tasks(recorded, tmp_path):
    from recording import Recording

    job, found = recorded
    eigenscape.run(job, run_dir=tmp_path / "alone")
    maps = []
    for name in ("recorded", "alone"):
        with rasterio.open(tmp_path / name / "outputs" / "class_map.tif") as source:
            maps.append(source.read(1))
    np.testing.assert_array_equal(*maps)
    assert found.stages == [
        "ingest", "features", "neighbors", "graph", "spectrum", "learn", "export",
    ]  # fmt: skip
    assert [batch.step for batch in found.batches if batch.pinned] == ["reorder"]
    read = [batch for batch in found.batches if batch.function == "_read_group"]
    size = (tmp_path / "scene.tif").stat().st_size
    assert sum(task.written for batch in read for task in batch.tasks) >= size / 4
    assert all(task.seconds > 0 and task.sent > 0 for batch in read for task in batch.tasks)
    assert all(batch.files for batch in found.batches)
    found.save(tmp_path / "found.json")
    assert Recording.load(tmp_path / "found.json") == found


def test_growth__continues_what_was_recorded():
    from growth import Growth, Recordings
    from recording import Batch, Recording, Task

    def recording(rows, tasks, seconds):
        each = Task(seconds / tasks, read=rows)
        batch = Batch("stage", "round 1", "work", before=rows / 1e6, tasks=[each] * tasks)
        return Recording(rows, 2, [batch])

    wave = Batch("spectrum", "filter", "Steps", tasks=[Task(1.0, read=8)], items=[[1, 0, 0, 1]])
    note = "{} parts of the rows: halos of {} rows, {}% of all"
    parts = [
        Recording(10**6, number, [wave], [note.format(number, share * 10**4, share)])
        for number, share in ((8, 20), (50, 50))
    ]
    small, large = recording(10**6, 8, 1.0), recording(4 * 10**6, 8, 4.0)
    growth = Growth(Recordings(small, large, parts, 2**31, 20.0))
    grown = growth.batch(large.batches[0], 4 * 10**6, 4 * 10**8)
    # A hundred times the rows: 100 times the seconds, in tasks of the most rows.
    assert sum(task.seconds for task in grown.tasks) == pytest.approx(400)
    assert grown.before == pytest.approx(400)
    assert len(grown.tasks) == math.ceil(4 * 10**8 / 2**20)
    # Tasks that grew with the rows go on to do so.
    large = recording(4 * 10**6, 32, 4.0)
    grown = Growth(Recordings(small, large, parts, 2**31, 20.0)).batch(
        large.batches[0], 4 * 10**6, 4 * 10**8
    )
    assert len(grown.tasks) == 3200
    fixed = replace(large.batches[0], function="Gram")
    assert len(growth.batch(fixed, 4 * 10**6, 4 * 10**8).tasks) == 32


def test_wave__has_the_steps_of_a_filter_of_more_rows():
    from growth import Growth, Recordings
    from recording import Batch, Recording, Task

    from eigenscape.spectrum.iteration.layout import Layout

    def filtered(parts, seconds):
        items = [[step, part, 0, 1] for step in range(3) for part in range(parts)]
        after = [[(step - 1) * parts + part] if step else [] for step, part, *_ in items]
        tasks = [Task(seconds / len(items), read=10**6)] * len(items)
        wave = Batch("spectrum", "filter, degree 2", "Steps", tasks=tasks)
        wave.items, wave.after, wave.places = items, after, [item[1] for item in items]
        note = f"{parts} parts of the rows: halos of {parts * 1000} rows, {parts}.0% of all"
        return Recording(10**5, parts, [wave], [note])

    few, many = filtered(5, 90.0), filtered(50, 90.0)
    plain = Recording(10**5, 2, [])
    growth = Growth(Recordings(plain, plain, (few, many), 2**34, 20.0))
    by_columns = Batch("spectrum", "filter, degree 2", "Filter", tasks=[Task(60.0)])
    wave = growth.wave(many.batches[0], by_columns, 10, Layout("rows", 50, 2**34))
    assert {tuple(item) for item in wave.items} == {
        (step, part, 0, 1) for step in range(3) for part in range(50)
    }
    assert all(
        len(after) == 1 for item, after in zip(wave.items, wave.after, strict=True) if item[0]
    )
    # Ten times the products; mail that grows with the rows as long as there are no more parts, by a power
    # of one that is 1 here: none is left of it.
    halo = 50_000 * 10 * (1 / 10)
    assert sum(task.read for task in wave.tasks) == pytest.approx(3 * halo * 128, rel=0.01)
    assert sum(task.seconds for task in wave.tasks) > 600

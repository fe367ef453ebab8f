"""A random subset of a table: the same rows and labels as of the whole, however they are read."""

import json
import pickle

import numpy as np
import pytest
import scipy.sparse

from eigenscape import load_job
from eigenscape.errors import SceneError
from eigenscape.workflow.stages import stage_keys


@pytest.fixture
def table(tmp_path, rng):
    """Write 500 samples of 4 columns, some missing, and their labels, as dense and sparse files."""
    values = rng.integers(1, 100, (500, 4)).astype(np.float32)
    np.save(tmp_path / "table.npy", values[:, np.newaxis])
    np.save(tmp_path / "labels.npy", np.arange(500, dtype=np.uint16)[:, np.newaxis] % 7)
    scipy.sparse.save_npz(tmp_path / "table.npz", scipy.sparse.csr_array(values))
    return values


@pytest.mark.parametrize("name", ["table.npy", "table.npz"])
def test_samples__are_rows_in_order(table, scene, labels, name):
    drawn = scene(name, samples=60, seed=3)
    rows = np.sort(np.random.default_rng([3]).choice(500, 60, replace=False, shuffle=False))
    assert (drawn.grid.height, drawn.grid.width) == (60, 1)
    values, valid = drawn.read(0, 60)
    dense = values.toarray() if scipy.sparse.issparse(values) else values[:, 0]
    np.testing.assert_array_equal(dense, table[rows])
    assert valid.shape == (60, 1)
    assert valid.all()
    given = labels(name, labels="labels.npy", samples=60, seed=3)
    np.testing.assert_array_equal(given.read(0, 60)[:, 0], rows % 7)


@pytest.mark.parametrize("name", ["table.npy", "table.npz"])
@pytest.mark.parametrize("step", [1, 7, 59])
def test_samples__do_not_depend_on_the_window(table, scene, labels, name, step):
    drawn = pickle.loads(pickle.dumps(scene(name, samples=60, seed=3)))
    given = labels(name, labels="labels.npy", samples=60, seed=3)
    whole, numbers = drawn.read(0, 60)[0], given.read(0, 60)
    for start in range(0, 60, step):
        stop = min(60, start + step)
        part = drawn.read(start, stop)[0]
        assert abs(part - whole[start:stop]).max() == 0
        np.testing.assert_array_equal(given.read(start, stop), numbers[start:stop])


def test_samples__all_of_them_is_the_table(table, scene):
    np.testing.assert_array_equal(scene("table.npy", samples=500).read(0, 500)[0][:, 0], table)


def test_samples__differ_with_the_seed(table, scene):
    first, same, other = (
        scene("table.npy", samples=60, **keys).read(0, 60)[0]
        for keys in ({}, {"seed": 0}, {"seed": 1})
    )
    np.testing.assert_array_equal(first, same)
    assert (first != other).any()


def test_samples__windows_stay_small(table, scene):
    drawn = scene("table.npy", samples=20, seed=0)
    lengths = []

    class Recorder:
        row_step = 1

        def read(self, start, stop):
            lengths.append(stop - start)
            return drawn.scene.read(start, stop)

    type(drawn)(Recorder(), drawn.subset).read(5, 9)
    assert lengths
    assert max(lengths) <= 4


def test_samples__missing_values_stay_missing(table, scene, tmp_path):
    table[::3, 1] = np.nan
    np.save(tmp_path / "table.npy", table[:, np.newaxis])
    drawn = scene("table.npy", samples=60, seed=3)
    np.testing.assert_array_equal(drawn.read(0, 60)[1][:, 0], drawn.subset.rows % 3 != 0)


def test_samples__more_than_there_are(table, scene):
    with pytest.raises(SceneError, match=r"scene.samples = 501: .*table.npy has 500 samples"):
        scene("table.npy", samples=501)


def test_samples__of_an_image_are_refused(write, cube, scene):
    write("scene.tif", cube)
    with pytest.raises(SceneError, match=r"scene.samples = 5: .* image of 20 x 13 pixels.*mask"):
        scene("scene.tif", samples=5)


def test_seed__alone_means_nothing_to_a_file(table, scene):
    with pytest.raises(SceneError, match=r"scene.seed = 5: .*table.npy is not made with a seed"):
        scene("table.npy", seed=5)


def test_plan__of_a_subset_has_its_size(table, cli, write_job):
    job = write_job(scene={"path": "table.npy", "labels": "labels.npy", "samples": 120})
    planned = json.loads(cli("plan", job, "--json").stdout)
    assert planned["samples"] == 120
    keys = [
        stage_keys(load_job(job, [f"scene.{key}"]))["samples"]
        for key in ("samples=120", "samples=121", "seed=1", "seed=2")
    ]
    assert len(set(keys)) == 4

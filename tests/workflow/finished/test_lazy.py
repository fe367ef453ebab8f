import pickle
import shutil

import dask
import numpy as np
import pytest
import zarr

from eigenscape.errors import InputError
from eigenscape.workflow.finished.lazy import lazy_array, still_there


@pytest.fixture
def stored(tmp_path):
    """Path of an array of five chunks."""
    path = tmp_path / "run" / "store.zarr" / "values"
    array = zarr.create_array(path, shape=(50, 3), chunks=(10, 3), dtype="f4")
    array[...] = np.arange(150).reshape(50, 3)
    return path


def test_lazy_array__reads_the_chunks_that_are_asked_for(stored):
    lazy = lazy_array(stored)
    assert lazy.chunks == ((10,) * 5, (3,))
    np.testing.assert_array_equal(lazy, np.arange(150).reshape(50, 3))
    np.testing.assert_array_equal(lazy[12:15, 1], [37, 40, 43])
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(lazy)), lazy)
    assert lazy_array(stored).name == lazy.name


@pytest.mark.parametrize("scheduler", ["sync", "threads"])
def test_lazy_array__of_a_run_that_was_moved_is_an_error(stored, scheduler):
    lazy = lazy_array(stored)
    run = stored.parents[1]
    run.rename(run.with_name("moved"))
    with (
        dask.config.set(scheduler=scheduler),
        pytest.raises(
            InputError, match=r"run/store\.zarr/values: this array is gone.*Open it again"
        ),
    ):
        lazy.compute()
    assert not run.exists(), "zarr makes the directories of an array that it reads"
    run.with_name("moved").rename(run)
    assert lazy.sum().compute() == 149 * 75


def test_still_there__of_a_directory_that_goes_while_it_is_read(stored):
    def read():
        shutil.rmtree(stored)
        return (stored / "zarr.json").read_bytes()

    with pytest.raises(InputError, match="this array is gone") as caught, still_there(stored):
        read()
    assert isinstance(caught.value.__context__, FileNotFoundError)

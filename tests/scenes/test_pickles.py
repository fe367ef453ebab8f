"""Files with a pickle in every place that could hold one: it is never loaded."""

import io
import json
import pickle
import struct
import zipfile

import numcodecs.pickles
import numpy as np
import pyarrow as pa
import pytest
import scipy.io
import scipy.sparse
import zarr
from pyarrow import parquet

from eigenscape.clusters import ClusterOptions
from eigenscape.errors import EigenscapeError, MemoryLimitError, SceneError
from eigenscape.job.jobfile import parse_job
from eigenscape.store.arrays import open_array
from eigenscape.workflow.plan import project_plan

CUBE = np.arange(24, dtype="float32").reshape(4, 3, 2)


class Trap:
    """What makes a file when it is unpickled."""

    def __init__(self, marker):
        self.marker = str(marker)

    def __reduce__(self):
        return open, (self.marker, "w")


@pytest.fixture
def marker(tmp_path, monkeypatch):
    """The file that a pickle would make; nothing has made it at the end of the test."""
    # The guard of newer versions of numcodecs: readers must do without.
    monkeypatch.setattr(numcodecs.pickles, "ALLOW_UNSAFE_PICKLE_DECODE", True, raising=False)
    path = tmp_path / "ran"
    pickle.loads(pickle.dumps(Trap(path))).close()
    assert path.exists()
    path.unlink()
    yield path
    assert not path.exists()


def npy(array):
    stream = io.BytesIO()
    np.save(stream, array, allow_pickle=True)
    return stream.getvalue()


def write_npy(path, marker):
    path.write_bytes(npy(np.full((4, 3, 2), Trap(marker))))
    return {}


def write_bare_pickle(path, marker):
    path.write_bytes(pickle.dumps(Trap(marker)))
    return {}


def write_npz(path, marker):
    np.savez(path, cube=np.full((4, 3, 2), Trap(marker)))
    return {"variable": "cube"}


def write_npz_beside(path, marker):
    np.savez(path, other=np.full((4, 3, 2), Trap(marker)), bare=CUBE[..., 0])
    return {"variable": "other"}


def write_sparse(path, marker):
    table = scipy.sparse.csr_array(CUBE[..., 0])
    scipy.sparse.save_npz(path, table)
    with np.load(path) as stored:
        parts = dict(stored)
    np.savez(path, **parts | {"format": np.array(Trap(marker), object)})
    return {}


def write_sparse_data(path, marker):
    table = scipy.sparse.csr_array(CUBE[..., 0])
    scipy.sparse.save_npz(path, table)
    with np.load(path) as stored:
        parts = dict(stored)
    np.savez(path, **parts | {"indices": np.full(len(table.indices), Trap(marker))})
    return {}


def write_mat(path, marker):
    trap = np.frombuffer(pickle.dumps(Trap(marker)), "uint8")
    scipy.io.savemat(path, {"cube": np.array([[trap, "x"]], object), "pickle": trap})
    return {"variable": "cube"}


def zarr_v2(dtype, filters, compressor):
    def write(path, marker):
        path.mkdir()
        about = {
            "zarr_format": 2, "shape": [4, 3, 2], "chunks": [4, 3, 2], "dtype": dtype, "fill_value": 0,
            "order": "C", "filters": filters, "compressor": compressor,
        }  # fmt: skip
        (path / ".zarray").write_text(json.dumps(about))
        (path / "0.0.0").write_bytes(pickle.dumps(Trap(marker)))
        return {}

    return write


def zarr_v3(*codecs):
    def write(path, marker):
        array = zarr.create_array(path, shape=CUBE.shape, dtype="f4", chunks=CUBE.shape)
        array[...] = CUBE
        about = json.loads((path / "zarr.json").read_text())
        about["codecs"] = [{"name": name, "configuration": {}} for name in codecs]
        (path / "zarr.json").write_text(json.dumps(about))
        [chunk] = [file for file in (path / "c").rglob("*") if file.is_file()]
        chunk.write_bytes(pickle.dumps(Trap(marker)))
        return {}

    return write


PICKLE, TEXT = {"id": "pickle"}, {"id": "vlen-utf8"}
ZARRS = [
    zarr_v2("|O", [PICKLE], None), zarr_v2("<f4", [PICKLE], None), zarr_v2("<f4", None, PICKLE),
    zarr_v2("|O", [TEXT, PICKLE], None), zarr_v2("|O", [TEXT], PICKLE),
    zarr_v2("<f4", [{"id": "shuffle", "elementsize": 4}, PICKLE], None),
    zarr_v3("numcodecs.pickle"), zarr_v3("bytes", "pickle"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "write"),
    [("a.npy", write_npy), ("a.npy", write_bare_pickle), ("a.npz", write_bare_pickle),
     ("a.npz", write_npz), ("a.npz", write_npz_beside), ("a.npz", write_sparse),
     ("a.npz", write_sparse_data), ("a.mat", write_mat), ("a.mat", write_bare_pickle),
     ("a.tif", write_bare_pickle), ("a.csv", write_bare_pickle), ("a.parquet", write_bare_pickle),
     *[("a.zarr", one) for one in ZARRS]],
)  # fmt: skip
def test_open_scene__a_pickle_is_never_loaded(scene, tmp_path, marker, name, write):
    keys = write(tmp_path / name, marker)
    with pytest.raises(SceneError, match=r"a\.(npy|npz|mat|tif|csv|parquet|zarr)"):
        scene(name, **keys).read(0, 4)


@pytest.mark.parametrize(("name", "make"), [("l.npy", write_npy), ("l.zarr", ZARRS[3])])
def test_open_labels__a_pickle_is_never_loaded(labels, tmp_path, marker, name, make):
    np.save(tmp_path / "scene.npy", CUBE)
    make(tmp_path / name, marker)
    with pytest.raises(SceneError, match=r"l\.(npy|zarr)"):
        labels("scene.npy", labels=name)


def test_open_scene__types_that_a_parquet_file_brings_are_not_made(scene, tmp_path, marker):
    about = {
        b"ARROW:extension:name": b"arrow.py_extension_type",
        b"ARROW:extension:metadata": pickle.dumps(Trap(marker)),
    }
    fields = [pa.field("a", pa.float32(), metadata=about), pa.field("b", pa.float32())]
    table = pa.table([pa.array([1.0, 2.0], pa.float32())] * 2, schema=pa.schema(fields))
    parquet.write_table(table, tmp_path / "a.parquet")
    np.testing.assert_array_equal(scene("a.parquet").read(0, 2)[0][:, 0], [[1, 1], [2, 2]])


@pytest.mark.parametrize("write", ZARRS)
def test_open_array__arrays_of_a_run_are_numbers(tmp_path, marker, write):
    write(tmp_path / "a", marker)
    with pytest.raises((EigenscapeError, ValueError, FileNotFoundError)):
        _ = open_array(tmp_path / "a")[...]


@pytest.mark.mostly_exhaustive(1)
@pytest.mark.slow
@pytest.mark.parametrize("name", ["a.npz", "a.mat"])
def test_project_plan__a_small_file_that_would_unpack_to_much(tmp_path, name):
    header = b"{'descr': '<f4', 'fortran_order': False, 'shape': (100, 100, 20000)}"
    content = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header) + 1) + header + b"\n"
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("cube.npy", content)
    scipy.io.savemat(tmp_path / "a.mat", {"cube": np.zeros((100, 100, 5000))}, do_compression=True)
    assert (tmp_path / name).stat().st_size < 10**6
    job = parse_job(
        {"scene": {"path": str(tmp_path / name)}, "limits": {"memory": "700MiB", "threads": 1}}
    )
    plan = project_plan(job, ClusterOptions())
    assert plan.stages[0].name == "ingest"
    assert plan.stages[0].peak_bytes > 800e6
    with pytest.raises(MemoryLimitError, match="is projected to need"):
        plan.check(job.limits.memory_bytes)

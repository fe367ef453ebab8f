"""Choice of the array that is the scene: the one of most bands, unfolded by the file's own numbers."""

import json

import h5py
import numpy as np
import pytest
import zarr
from scipy.io import savemat

from eigenscape.errors import SceneError
from eigenscape.job.jobfile import load_job
from eigenscape.scenes.describe import describe_scene

ROWS, COLUMNS, BANDS = 9, 7, 12


@pytest.fixture
def cube(rng):
    return rng.normal(size=(ROWS, COLUMNS, BANDS))


def unmix(path, cube, **others):
    """Save a cube as the public files of hyperspectral unmixing do: bands x pixels, by columns."""
    flat = cube.transpose(2, 1, 0).reshape(cube.shape[2], -1)
    numbers = {"nRow": cube.shape[0], "nCol": cube.shape[1], "nBand": cube.shape[2]}
    arrays = {"V": flat, **numbers, **others}
    if path.suffix == ".mat":
        savemat(path, arrays)
        return
    with h5py.File(path.with_suffix(".mat"), "w", userblock_size=512) as file:
        for name, array in arrays.items():
            file[name] = np.atleast_2d(array).T


@pytest.mark.parametrize("ending", ["mat", "h5"])
@pytest.mark.parametrize("turned", [False, True])
def test_bands_x_pixels_are_unfolded_by_the_numbers_of_the_file(
    tmp_path, scene, cube, ending, turned
):
    abundances = np.ones((ROWS, COLUMNS, 3))
    unmix(tmp_path / f"s.{ending}", cube, A=abundances, B=np.ones((3, ROWS * COLUMNS)))
    if turned:
        pixels = cube.transpose(1, 0, 2).reshape(-1, BANDS)
        savemat(tmp_path / "s.mat", {"Y": pixels, "nrow": ROWS, "ncol": COLUMNS, "A": abundances})
    opened = scene("s.mat")
    assert (opened.grid.height, opened.grid.width, opened.bands.count) == (ROWS, COLUMNS, BANDS)
    for start, stop in ((0, ROWS), (3, 4)):
        values, valid = opened.read(start, stop)
        np.testing.assert_array_equal(values, cube[start:stop].astype(np.float32))
        assert valid.all()
    said = describe_scene(opened)[1]
    order = "63 x 12 float64, pixels x bands" if turned else "12 x 63 float64, bands x pixels"
    assert f"array {'Y' if turned else 'V'} of s.mat: {order}" in said
    assert (
        f"{ROWS} rows x {COLUMNS} columns by the file's own numbers; taken column by column" in said
    )
    assert "for A" in said


def test_arrays_of_numpy_are_unfolded_row_by_row(tmp_path, scene, cube):
    np.savez(tmp_path / "s.npz", V=cube.reshape(-1, BANDS).T, H=ROWS, W=COLUMNS)
    opened = scene("s.npz")
    np.testing.assert_array_equal(opened.read(2, 5)[0], cube[2:5].astype(np.float32))
    assert "taken row by row" in describe_scene(opened)[1]
    assert scene("s.npz", layout="table").grid.is_table
    group = zarr.open_group(tmp_path / "s.zarr", mode="w")
    for name, array in {"V": cube.reshape(-1, BANDS), "height": [ROWS], "width": [COLUMNS]}.items():
        group.create_array(name, data=np.asarray(array))
    np.testing.assert_array_equal(scene("s.zarr").read(0, 2)[0], cube[:2].astype(np.float32))


def test_numbers_that_fit_nothing_leave_tables_as_they_are(tmp_path, scene, cube):
    for number, size in enumerate(((8, 8), (0, 3), (9.5, 7), (-9, -7))):
        path = tmp_path / f"{number}.mat"
        savemat(path, {"V": cube.reshape(-1, BANDS), "nRow": size[0], "nCol": size[1]})
        assert scene(path.name).grid.is_table


def test_the_most_bands_are_taken_and_said(tmp_path, scene, cube):
    np.savez(tmp_path / "s.npz", few=cube[..., :3], all=cube, one=np.ones((1, 1, 90)), k=3.0)
    opened = scene("s.npz")
    assert opened.bands.count == BANDS
    assert describe_scene(opened)[1] == (
        "array all of s.npz: 9 x 7 x 12 float64, rows x columns x bands (the most bands; for few set "
        "scene.variable)"
    )
    assert scene("s.npz", variable="few").bands.count == 3
    np.savez(tmp_path / "two.npz", one=cube, two=cube)
    with pytest.raises(SceneError, match=r"2 that could be a cube.*scene\.variable"):
        scene("two.npz")


def test_abundances_beside_spectra_that_nothing_orients_are_refused(tmp_path, scene, cube):
    savemat(tmp_path / "s.mat", {"A": cube[..., :3], "V": cube.reshape(-1, BANDS).T})
    with pytest.raises(SceneError, match=r"2 that could be a cube.*A \(9 x 7 x 3.*V \(12 x 63"):
        scene("s.mat")
    assert scene("s.mat", variable="A").bands.count == 3


def test_the_array_is_named_in_plan_log_and_job(tmp_path, cli, write_job, cube):
    unmix(tmp_path / "s.mat", cube, A=cube[..., :3])
    labels = np.zeros((ROWS, COLUMNS), np.uint8)
    labels[:3], labels[6:] = 1, 2
    np.save(tmp_path / "gt.npy", labels)
    job = write_job(
        scene={"path": "s.mat", "labels": "gt.npy"},
        spectrum={"dimension": 3}, output={"formats": ["geotiff"]},
    )  # fmt: skip
    planned = cli("plan", job)
    assert planned.exit_code == 0, planned.stderr
    assert "array V of s.mat: 12 x 63 float64, bands x pixels" in planned.stdout
    done = cli("run", job, "--run-dir", tmp_path / "run", "--json")
    assert done.exit_code == 0, done.stderr
    assert "array V of s.mat" in (tmp_path / "run" / "log.jsonl").read_text()
    assert load_job(tmp_path / "run" / "job.toml").scene.variable == "V"
    # The same job with the array named is the same run.
    again = cli("run", tmp_path / "run" / "job.toml", "--run-dir", tmp_path / "run", "--json")
    assert all(stage["reused"] for stage in json.loads(again.stdout)["stages"])

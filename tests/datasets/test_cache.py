import json
import threading

import numpy as np
import pytest

from eigenscape.datasets import cache
from eigenscape.datasets.cache import data_directory, file_hash, find_form, prepared, prepared_key
from eigenscape.datasets.catalog import DATA_SETS
from eigenscape.errors import OutputError, SceneError

ROLL, MNIST = DATA_SETS["swiss-roll"], DATA_SETS["mnist"]


def test_data_directory__follows_the_variable(data_home, monkeypatch, tmp_path):
    assert data_directory() == data_home
    monkeypatch.delenv("EIGENSCAPE_DATA")
    assert data_directory() == tmp_path / "cache" / "eigenscape" / "data"


def test_find_form__looks_in_both_directories(data_home, tmp_path):
    assert find_form(MNIST) is None
    fetched = tmp_path / "cache" / "eigenscape" / "data" / "mnist" / "mnist.npz"
    for path in (fetched, data_home / "mnist" / "mnist.npz"):
        path.parent.mkdir(parents=True)
        path.touch()
        found = find_form(MNIST)
        assert found is not None
        assert found[1] == (path,)


def test_find_form__needs_every_file(data_home):
    salinas = DATA_SETS["salinas"]
    (data_home / "salinas").mkdir(parents=True)
    (data_home / "salinas" / "Salinas_corrected.mat").touch()
    assert find_form(salinas) is None
    (data_home / "salinas" / "Salinas_gt.mat").touch()
    assert find_form(salinas) is not None


@pytest.mark.parametrize(
    ("files", "form"),
    [
        (["urban.img", "urban.hdr"], ("urban.img",)),
        (["urban.mat", "urban_labels.tif"], ("urban.mat", "urban_labels.tif")),
    ],
)
def test_find_form__scenes_that_users_have(data_home, files, form):
    (data_home / "urban").mkdir(parents=True)
    for name in files:
        (data_home / "urban" / name).touch()
    found = find_form(DATA_SETS["urban"])
    assert found is not None
    assert found[0].files == form


def test_prepared__is_made_once(data_home):
    folder = prepared(ROLL, (), 50, 1)
    made = (folder / "values.npy").stat().st_mtime_ns
    assert prepared(ROLL, (), 50, 1) == folder
    assert (folder / "values.npy").stat().st_mtime_ns == made
    assert len({folder, prepared(ROLL, (), 51, 1), prepared(ROLL, (), 50, 2)}) == 3
    assert np.load(folder / "values.npy").shape == (50, 1, 3)


def test_prepared_key__follows_the_content_of_the_source(data_home, tmp_path):
    one, two = tmp_path / "one.npz", tmp_path / "two.npz"
    one.write_bytes(b"abc")
    two.write_bytes(b"abc")
    key = prepared_key(MNIST, (one,), 0, 0)
    assert prepared_key(MNIST, (two,), 0, 0) == key
    two.write_bytes(b"abd")
    assert prepared_key(MNIST, (two,), 0, 0) != key


def test_file_hash(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"abc")
    expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"  # FIPS 180
    assert file_hash(path) == expected


def test_prepared__a_failure_leaves_nothing(data_home, tmp_path):
    damaged = tmp_path / "mnist.npz"
    damaged.write_bytes(b"not a zip file")
    with pytest.raises(SceneError, match=r"mnist\.npz: cannot be read"):
        prepared(MNIST, (damaged,), 0, 0)
    assert list((tmp_path / "cache" / "eigenscape" / "prepared").iterdir()) == []


def test_prepared__several_at_once_agree(data_home):
    found = []
    threads = [
        threading.Thread(target=lambda: found.append(prepared(ROLL, (), 500, 3))) for _ in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 6
    (folder,) = set(found)
    assert [path.name for path in folder.parent.iterdir()] == [folder.name]
    assert {path.name for path in folder.iterdir()} == {"values.npy", "parameters.npy"}


def test_prepared__cache_that_cannot_be_written(data_home, tmp_path):
    (tmp_path / "cache").write_text("a file")
    with pytest.raises(OutputError, match="XDG_CACHE_HOME"):
        prepared(ROLL, (), 50, 1)


def test_code__names_files_that_exist():
    root = cache.Path(cache.__file__).parents[1]
    assert all((root / name).is_file() for name in cache._CODE)


def test_data_list__tells_what_is_here(data_home, cli):
    listed = {item["name"]: item for item in json.loads(cli("data", "list", "--json").stdout)}
    assert listed.keys() == DATA_SETS.keys()
    assert listed["mnist"]["installed"] is False
    assert listed["mnist"]["how"] == "fetch"
    assert listed["mnist"]["place"] == str(data_home / "mnist")
    assert listed["salinas"]["how"] == "by hand"
    assert listed["swiss-roll"]["installed"] is True
    assert listed["swiss-roll"]["keys"] == ["samples", "seed"]
    assert listed["urban-like"]["keys"] == ["seed"]
    (data_home / "mnist").mkdir(parents=True)
    (data_home / "mnist" / "mnist.npz").touch()
    shown = cli("data", "list").stdout
    assert re_row(shown, "mnist").split("│")[4].strip() == "yes"
    assert re_row(shown, "brown").split("│")[4].strip() == "fetch"


def test_data_list__takes_a_directory(data_home, cli, tmp_path, monkeypatch):
    (tmp_path / "mine" / "mnist").mkdir(parents=True)
    (tmp_path / "mine" / "mnist" / "mnist.npz").touch()
    listed = json.loads(cli("data", "list", "--json", "--data-dir", tmp_path / "mine").stdout)
    assert next(item for item in listed if item["name"] == "mnist")["installed"] is True
    monkeypatch.setenv("EIGENSCAPE_DATA", str(data_home))
    listed = json.loads(cli("--data-dir", tmp_path / "mine", "data", "list", "--json").stdout)
    assert next(item for item in listed if item["name"] == "mnist")["installed"] is True


def re_row(table, name):
    return next(line for line in table.splitlines() if line.startswith(f"│ {name} "))

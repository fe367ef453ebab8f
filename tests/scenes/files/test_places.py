"""What a job names must be a file or a directory: a reader would wait for ever for anything else."""

import gzip
import os
import socket
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pytest

from eigenscape.errors import JobError, SceneError
from eigenscape.job.jobfile import load_job, parse_job
from eigenscape.job.options import SceneOptions
from eigenscape.scenes.files.places import check_exists, told_missing
from eigenscape.scenes.open import open_scene

KINDS = {
    "a named pipe": os.mkfifo,
    "a device": lambda path: os.symlink("/dev/zero", path),
    "a socket": lambda path: socket.socket(socket.AF_UNIX).bind(str(path)),
}


@pytest.fixture
def special(tmp_path, monkeypatch):
    """Make something that is no file; the paths of sockets are short."""
    monkeypatch.chdir(tmp_path)
    return lambda name, kind: KINDS[kind](name)


@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["scene.tif", "scene.npy", "scene.csv", "scene.hdr", "source.tif"])
def test_what_is_no_file_is_refused(tmp_path, special, write, kind, name):
    image = np.ones((2, 8, 9), "int16")
    scene = tmp_path / name
    if name == "scene.hdr":
        scene = tmp_path / "scene.img"
        image.tofile(scene)
    elif name == "source.tif":
        scene = tmp_path / "scene.vrt"
        scene.write_text(
            '<VRTDataset rasterXSize="9" rasterYSize="8"><VRTRasterBand dataType="Int16" band="1">'
            '<SimpleSource><SourceFilename relativeToVRT="1">source.tif</SourceFilename>'
            "</SimpleSource></VRTRasterBand></VRTDataset>"
        )
    special(name, kind)
    words = f"{name}', which is not a file here" if name == "source.tif" else f"{name}: is {kind}"
    with pytest.raises(SceneError, match=words):
        check_exists(str(scene))


def test_what_is_no_file_is_refused_by_every_key(written, special, cli, write_job, tmp_path):
    special("pipe.tif", "a named pipe")
    keys = {"path": "pipe.tif"}, {"labels": "pipe.tif"}, {"mask": "pipe.tif"}
    jobs = [write_job(f"job{number}", scene=scene) for number, scene in enumerate(keys)]
    jobs.append(write_job("train", scene={"labels": "labels.tif"}, learn={"train": "pipe.tif"}))
    for job in jobs:
        result = cli("plan", job)
        assert result.exit_code == 2
        assert "pipe.tif: is a named pipe" in result.stderr
    special("pipe.toml", "a named pipe")
    with pytest.raises(JobError, match=r"pipe\.toml: is not a regular file"):
        load_job(tmp_path / "pipe.toml")


def test_loops_and_links_to_nothing(tmp_path, cli, write_job):
    (tmp_path / "scene.tif").symlink_to("other.tif")
    (tmp_path / "other.tif").symlink_to("scene.tif")
    result = cli("plan", write_job())
    assert result.exit_code == 2
    assert "symbolic link" in result.stderr
    (tmp_path / "other.tif").unlink()
    result = cli("plan", write_job())
    assert result.exit_code == 2
    assert "scene.tif: cannot be opened (No such file or directory)" in result.stderr


@pytest.mark.slow
def test_a_directory_is_not_read_through(tmp_path, written, cli, write_job):
    for scene in ({"path": "/"}, {"labels": "/"}, {"mask": "."}):
        result = cli("plan", write_job(scene=scene))
        assert result.exit_code == 2
        assert "is a directory" in result.stderr


def test_paths_that_no_system_has():
    assert parse_job({"scene": {"path": "~nobody-of-that-name/x.tif"}}).resolve("~?/x")
    with pytest.raises(JobError, match="null character"):
        parse_job({"scene": {"path": "a"}}).resolve("a\0b")


def test_brackets_without_end(tmp_path):
    (tmp_path / "job.toml").write_text("[scene]\npath = " + "[" * 20_000)
    with pytest.raises(JobError, match="nested too deeply"):
        load_job(tmp_path / "job.toml")


def test_told_missing__says_what_exists_and_a_likely_name(tmp_path):
    (tmp_path / "scenes").mkdir()
    (tmp_path / "scenes" / "flight.tif").touch()
    told = told_missing(str(tmp_path / "scenes" / "fligth.tif"))
    assert told == (
        f" The folder {tmp_path}/scenes exists, fligth.tif in it does not. Did you mean flight.tif?"
    )
    told = told_missing(str(tmp_path / "scene" / "a" / "flight.tif"))
    assert told == f" The folder {tmp_path} exists, scene in it does not. Did you mean scenes?"
    told = told_missing(str(tmp_path / "scenes" / "flight.tif" / "b.tif"))
    assert told == f" {tmp_path}/scenes/flight.tif is a file, no folder."


@pytest.mark.parametrize("kind", ["zip", "tar", "gz"])
def test_told_packed__names_a_path_that_is_read(tmp_path, write, cube, scene, kind):
    path = write("s.tif", cube)
    packed = f"{tmp_path}/p.{kind}"
    if kind == "zip":
        with zipfile.ZipFile(packed, "w") as archive:
            archive.write(path, "in/s.tif")
    elif kind == "tar":
        with tarfile.open(packed, "w") as archive:
            archive.add(path, "in/s.tif")
    else:
        Path(packed).write_bytes(gzip.compress(Path(path).read_bytes()))
    member = "" if kind == "gz" else "/in/s.tif"
    prefix = {"zip": "/vsizip/", "tar": "/vsitar/", "gz": "/vsigzip/"}[kind]
    shown = "/MEMBER" if kind == "tar" else member
    with pytest.raises(SceneError, match=rf"Unpack it \(.*{prefix}{packed}{shown}$"):
        scene(packed)
    opened = open_scene(SceneOptions(path=f"{prefix}{packed}{member}"), str)
    np.testing.assert_array_equal(opened.read(0, 20)[0], cube.transpose(1, 2, 0))

"""What a job names must be a file or a directory: a reader would wait for ever for anything else."""

import os
import socket

import numpy as np
import pytest

from eigenscape.errors import JobError, SceneError
from eigenscape.job.jobfile import load_job, parse_job
from eigenscape.scenes.files.places import check_exists

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
    words = f"{name}', which is no file here" if name == "source.tif" else f"{name}: is {kind}"
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
    assert "no such file" in result.stderr


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

import json
import threading

import pytest

import eigenscape
from eigenscape.cli import following
from eigenscape.clusters import Threads
from eigenscape.job.jobfile import load_job
from harness import Frail, KilledError


@pytest.fixture
def job(written, write_job):
    return write_job(
        scene={"path": "scene.tif", "labels": "labels.tif"},
        learn={"method": "eigenfunctions", "trials": 2},
        output={"formats": ["geotiff", "report"]},
    )


class Held(Threads):
    """Threads that wait at the third step until they are let go."""

    def __init__(self):
        super().__init__(2)
        self.steps, self.reached, self.go = 0, threading.Event(), threading.Event()

    def run(self, function, items, on_done):
        self.steps += 1
        if self.steps == 3:
            self.reached.set()
            assert self.go.wait(60)
        super().run(function, items, on_done)


def test_follow__ends_with_the_run(job, tmp_path, cli, monkeypatch):
    monkeypatch.setattr(following, "_QUIET_S", 0.3)
    monkeypatch.setattr(following, "_LOOK_S", 0.05)
    held, directory = Held(), tmp_path / "run"
    work = threading.Thread(
        target=eigenscape.run,
        args=(load_job(job),),
        kwargs={"run_dir": directory, "executor": held},
    )
    work.start()
    try:
        assert held.reached.wait(60)
        threading.Timer(1.0, held.go.set).start()
        result = cli("status", directory, "--follow", "--json")
    finally:
        held.go.set()
        work.join()
    assert result.exit_code == 0, result.stderr
    assert json.loads(result.stdout)["state"] == "finished"
    for line in ("features: running", "spectrum: running", "export: "):
        assert line in result.stderr


def test_follow__a_run_that_nobody_works_on(job, tmp_path, cli):
    with pytest.raises(KilledError):
        eigenscape.run(load_job(job), run_dir=tmp_path / "run", executor=Frail(3))
    result = cli("status", tmp_path / "run", "--follow")
    assert result.exit_code == 1
    assert "stopped by an error: KilledError" in result.stdout
    result = cli("status", tmp_path, "--follow")
    assert result.exit_code == 2
    assert "--follow needs one" in result.stderr


def test_open__and_report(job, tmp_path, cli, monkeypatch):
    path = tmp_path / "run"
    assert cli("run", job, "--run-dir", path).exit_code == 0
    files = dict(line.split(maxsplit=1) for line in cli("open", path).stdout.splitlines())
    assert files["report"] == str(path / "outputs" / "report.html")
    assert files["class_map"] == str(path / "outputs" / "class_map.tif")
    opened = []
    monkeypatch.setattr("webbrowser.open", lambda url: opened.append(url) or True)
    assert cli("open", path, "--browser").exit_code == 0
    assert opened == [(path / "outputs" / "report.html").as_uri()]
    written = cli("report", path, "--output", tmp_path / "page.html").stdout.strip()
    assert written == str(tmp_path / "page.html")
    # The directory of the run is one of many runs.
    assert cli("report", tmp_path).stdout.strip() == str(tmp_path / "report.html")
    index = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert 'href="run/outputs/report.html"' in index
    assert "data:image/png;base64," in index
    refused = cli("open", tmp_path / "nothing")
    assert refused.exit_code == 2

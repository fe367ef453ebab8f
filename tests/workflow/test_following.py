import json
import time
from types import SimpleNamespace

import pytest
from rich.console import Console

from eigenscape.base.process.progress import Logged, Silent
from eigenscape.cli.following import picture
from eigenscape.store.manifest import write_manifest
from eigenscape.workflow.following import Followed

NAMES = ("ingest", "graph", "spectrum")


@pytest.fixture
def told(tmp_path):
    """A run directory whose job and manifest are there, and who writes its log."""
    projected = dict.fromkeys(NAMES, 300 * 2**20)
    write_manifest(
        tmp_path, {"format": 3, "stages": {}, "order": list(NAMES), "projected": projected}
    )
    (tmp_path / "job.toml").write_text('[limits]\nmemory = "2GiB"\n')
    logged = Logged(Silent(), tmp_path / "log.jsonl", every=0.0)
    logged.surroundings = lambda: {"memory": 200 * 2**20, "tasks": 2, "workers": 1}
    return SimpleNamespace(path=tmp_path, log=logged)


def shown(followed, width=100):
    console = Console(width=width, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    with console.file:
        console.print(picture(followed, time.time()))
        return console.export_text()


def test_followed__stages_step_and_residuals(told):
    followed = Followed(told.path)
    assert followed.refresh() == []
    assert [stage.state for stage in followed.stages.values()] == ["to do"] * 3
    told.log.stage("ingest", "reused")
    told.log.stage("graph", "running")
    told.log.stage("graph", "1.2 s, peak 150.0 MiB")
    told.log.stage("spectrum", "running")
    told.log.note(
        "pass 1: degree 12, 128 columns, largest residual 4.4e-03 (tolerance 1e-05), 0 of 55 pairs converged"
    )
    told.log.note(
        "pass 2: degree 65, 128 columns, largest residual 8.1e-06 (tolerance 1e-05), 55 of 55 pairs converged"
    )
    told.log.begin("filter", 8, 2)
    told.log.advance()
    told.log.advance()
    followed.refresh()
    assert [stage.state for stage in followed.stages.values()] == ["reused", "finished", "running"]
    assert followed.stages["graph"].text == "1.2 s, peak 150.0 MiB"
    assert followed.residuals == [(1, 4.4e-3, 1e-5), (2, 8.1e-6, 1e-5)]
    step = followed.step
    assert (step.label, step.done, step.total, step.before) == ("filter", 4, 8, 2)
    step.began, step.told = 100.0, 110.0
    assert step.left(112.0) == pytest.approx(18.0)
    assert not followed.done
    text = shown(followed)
    for part in (
        "filter: 4 of 8 blocks", "4.4e-03 > 8.1e-06", "memory 200.0 MiB of 2.0 GiB", "1 worker, 2 tasks",
        "projected peak 300.0 MiB",
    ):  # fmt: skip
        assert part in text


def test_followed__a_new_attempt_begins_anew(told):
    followed = Followed(told.path)
    for name in NAMES:
        told.log.stage(name, "1.0 s, peak 1 B")
    followed.refresh()
    assert followed.done
    told.log.stage("ingest", "running")
    followed.refresh()
    assert [stage.state for stage in followed.stages.values()] == ["running", "to do", "to do"]


def test_followed__lines_that_are_not_whole_wait(told):
    followed = Followed(told.path)
    told.log.stage("ingest", "running")
    with (told.path / "log.jsonl").open("a") as stream:
        stream.write('{"time": "2026-01-01T00:00:00+0000", "event": "sta')
    assert len(followed.refresh()) == 1
    assert followed.refresh() == []
    with (told.path / "log.jsonl").open("a") as stream:
        stream.write('ge", "stage": "ingest", "text": "2.0 s"}\n{broken\n')
    assert len(followed.refresh()) == 1
    assert followed.stages["ingest"].text == "2.0 s"


def test_progress_entries__are_few(tmp_path):
    logged = Logged(Silent(), tmp_path / "log.jsonl")
    logged.begin("step", 1000, 0)
    for _ in range(1000):
        logged.advance()
    lines = (tmp_path / "log.jsonl").read_text().splitlines()
    events = [json.loads(line)["event"] for line in lines]
    assert events == ["step", "progress"]


def test_followed__a_clock_that_was_set_back_stands_still(told):
    followed = Followed(told.path)
    entries = [
        ("10:00:00", {"event": "step", "step": "filter", "blocks": 8, "finished_before": 0}),
        ("10:00:20", {"event": "progress", "step": "filter", "done": 2, "blocks": 8}),
        ("09:00:10", {"event": "progress", "step": "filter", "done": 3, "blocks": 8}),
        ("09:00:20", {"event": "progress", "step": "filter", "done": 4, "blocks": 8}),
    ]
    lines = [
        json.dumps({"time": f"2026-11-28T{clock}+0000", **entry}) + "\n" for clock, entry in entries
    ]
    (told.path / "log.jsonl").write_text("".join(lines))
    followed.refresh()
    step = followed.step
    # 30 s that are known of, for four blocks.
    assert step.left(step.told) == pytest.approx(30.0)
    assert step.left(step.told - 3600.0) == pytest.approx(30.0)

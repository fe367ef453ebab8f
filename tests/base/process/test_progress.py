import json
import logging
from pathlib import Path

import pytest

from eigenscape.base.process import progress
from eigenscape.base.process.bars import Bars
from eigenscape.base.process.progress import (
    Logged,
    LogLines,
    PlainLines,
    Silent,
    console_reporter,
)


class Recorder:
    """Keeps the calls it gets."""

    def __init__(self):
        self.calls = []

    def __getattr__(self, name):
        return lambda *arguments: self.calls.append((name, *arguments))


def play(reporter, blocks=3):
    reporter.stage("graph", "running")
    reporter.begin("building", blocks + 1, 1)
    for _ in range(blocks):
        reporter.advance()
    reporter.end()
    reporter.note("a note")
    reporter.stage("graph", "1.0 s")


@pytest.fixture
def clock(monkeypatch):
    """A clock that moves on by ten seconds at every look."""
    now = iter(range(0, 10**6, 10))
    monkeypatch.setattr(progress.time, "monotonic", lambda: float(next(now)))


def test_plain_lines__go_to_stderr_with_an_estimate(capsys, clock):
    play(PlainLines())
    captured = capsys.readouterr()
    assert captured.out == ""
    lines = [line.split(" ", 1)[1] for line in captured.err.splitlines()]
    # Begun at 20 s; 10 s for each block: after the first of three, 20 s are left.
    assert lines == [
        "graph: running",
        "  building: 2 of 4 blocks, 20 s left",
        "  building: 3 of 4 blocks, 10 s left",
        "  a note",
        "graph: 1.0 s",
    ]


def test_plain_lines__are_few(capsys, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    lines = PlainLines(every=5)
    lines.begin("step", 1000, 0)
    for _ in range(1000):
        now[0] += 0.02
        lines.advance()
    lines.end()
    assert len(capsys.readouterr().err.splitlines()) == 3


def test_plain_lines__blocks_of_an_earlier_attempt_do_not_shorten_the_estimate(capsys, clock):
    lines = PlainLines()
    lines.begin("step", 100, 90)
    lines.advance()
    assert "91 of 100 blocks, 90 s left" in capsys.readouterr().err


def test_logged__keeps_json_lines_and_passes_everything_on(tmp_path):
    inner, expected = Recorder(), Recorder()
    play(Logged(inner, tmp_path / "log.jsonl"))
    play(expected)
    assert inner.calls == expected.calls
    entries = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert [entry["event"] for entry in entries] == [
        "stage", "step", "progress", "note", "stage",
    ]  # fmt: skip
    assert entries[1] | {"time": ""} == {
        "time": "", "event": "step", "step": "building", "blocks": 4, "finished_before": 1,
    }  # fmt: skip
    assert all(entry["time"][4] == "-" for entry in entries)


def test_logged__appends(tmp_path):
    for _ in range(2):
        Logged(Silent(), tmp_path / "log.jsonl").note("größer\nthan one line")
    lines = (tmp_path / "log.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["text"] for line in lines] == ["größer\nthan one line"] * 2


def test_silent__says_nothing(capsys):
    play(Silent())
    assert capsys.readouterr() == ("", "")


def test_log_lines__messages_of_the_logger_and_nothing_else(caplog, capsys, clock):
    with caplog.at_level("INFO", logger="eigenscape"):
        play(LogLines())
    assert capsys.readouterr() == ("", "")
    assert {record.name for record in caplog.records} == {"eigenscape"}
    assert {record.levelname for record in caplog.records} == {"INFO"}
    assert caplog.messages[0] == "graph: running"
    assert caplog.messages[1].startswith("building: 2 of 4 blocks, ")
    assert caplog.messages[-2:] == ["a note", "graph: 1.0 s"]


def test_log__has_a_handler_that_drops_what_nobody_asked_for():
    assert any(isinstance(h, logging.NullHandler) for h in logging.getLogger("eigenscape").handlers)


@pytest.mark.parametrize(("terminal", "kind"), [("1", Bars), (None, PlainLines)])
def test_console_reporter__bars_on_a_terminal_only(monkeypatch, terminal, kind):
    for name in ("FORCE_COLOR", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)
    if terminal:
        monkeypatch.setenv("FORCE_COLOR", terminal)
    assert isinstance(console_reporter(), kind)


def test_logged__a_full_disk_does_not_end_the_run(tmp_path):
    inner, expected = Recorder(), Recorder()
    play(Logged(inner, Path("/dev/full")))
    play(expected)
    assert inner.calls == expected.calls

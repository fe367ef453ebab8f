"""Progress in the cell of a notebook, and cards of objects: HTML that needs nothing else."""

import re
import sys
from html.parser import HTMLParser
from types import SimpleNamespace

import pytest

from eigenscape.base import html
from eigenscape.base.process.progress import (
    LogLines,
    NotebookBars,
    PlainLines,
    default_reporter,
    shown_reporter,
)


class Balanced(HTMLParser):
    """Every tag that begins ends, and nothing is loaded."""

    def __init__(self, text):
        super().__init__()
        self.open, self.text = [], ""
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag, attrs):
        assert tag not in ("script", "style", "link", "img")
        for name, value in attrs:
            assert name in ("style", "href")
            assert name != "href" or value.startswith("file:///")
            assert "url(" not in value
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


class Cell:
    """What a notebook shows: the last state of each output."""

    def __init__(self):
        self.outputs = []

    def show(self, content, *, raw, display_id):
        assert raw
        assert display_id
        self.outputs.append(content)
        return SimpleNamespace(update=lambda content, raw: self.outputs.append(content))


def test_notebook_bars__one_output_that_changes():
    cell = Cell()
    bars = NotebookBars(cell.show, every=0.0)
    bars.stage("ingest", "1.0 s, peak 115 MiB")
    bars.stage("features", "running")
    bars.begin("projecting <all>", 4, 1)
    bars.advance()
    told = Balanced(cell.outputs[-1]["text/html"])
    assert "2 of 4" in told.text
    assert "projecting <all>" in told.text
    assert "s left" in told.text
    assert "width:50.0%" in cell.outputs[-1]["text/html"]
    bars.note("a & b")
    bars.end()
    bars.stage("features", "0.3 s, peak 120 MiB")
    told = Balanced(cell.outputs[-1]["text/html"])
    assert "a & b" in told.text
    assert "0.3 s" in told.text
    assert "of 4" not in told.text
    assert cell.outputs[-1]["text/plain"].splitlines()[1] == "features: 0.3 s, peak 120 MiB"
    # The next variant of a study begins anew.
    bars.stage("ingest", "running")
    assert "features" not in cell.outputs[-1]["text/html"]


def test_notebook_bars__not_more_often_than_is_wanted():
    cell = Cell()
    bars = NotebookBars(cell.show, every=1000.0)
    bars.stage("ingest", "running")
    bars.begin("reading", 10_000, 0)
    for _ in range(10_000):
        bars.advance()
    assert len(cell.outputs) == 1


@pytest.mark.parametrize("kernel", [None, object()])
def test_reporters__a_notebook_is_found_by_its_kernel(monkeypatch, kernel):
    shells = SimpleNamespace(get_ipython=lambda: SimpleNamespace(kernel=kernel))
    monkeypatch.setitem(sys.modules, "IPython.core.getipython", shells)
    monkeypatch.setitem(sys.modules, "IPython.display", SimpleNamespace(display=print))
    inside = kernel is not None
    assert type(default_reporter()) is (NotebookBars if inside else LogLines)
    assert type(shown_reporter()) is (NotebookBars if inside else PlainLines)


def test_reporters__without_ipython(monkeypatch):
    monkeypatch.delitem(sys.modules, "IPython.core.getipython", raising=False)
    assert type(default_reporter()) is LogLines


def test_card__escapes_everything():
    nasty = '<script>alert("&")</script>'
    text = html.card(
        nasty, nasty, html.facts({nasty: nasty, "none": None, "link": html.link(nasty, nasty)}),
        html.table((nasty,), [(nasty, 0)]), html.folded(nasty, html.code(nasty)), html.lines([nasty]),
    )  # fmt: skip
    told = Balanced(text.replace("file://&lt;", "file:///&lt;"))
    assert told.text.count(nasty) == 10
    assert "none" not in told.text
    # The colours are the notebook's.
    assert not re.search(r"[;\"](color|background):(?!none|inherit|rgba|#3b82c4)", text)
    assert html.table((), []) == ""

import io

from rich.console import Console

from eigenscape.base.process.bars import Bars


def test_bars__write_to_their_console():
    console = Console(file=io.StringIO(), force_terminal=True, width=80)
    bars = Bars(console)
    bars.stage("graph", "running")
    bars.begin("building", 4, 1)
    for _ in range(3):
        bars.advance()
    bars.end()
    bars.note("a note")
    bars.stage("graph", "1.0 s")
    text = console.file.getvalue()
    for word in ("graph", "running", "building", "4/4", "a note", "1.0 s"):
        assert word in text


def test_bars__keep_brackets():
    console = Console(file=io.StringIO(), force_terminal=True, width=80)
    Bars(console).note("pip install 'eigenscape[vectors]'")
    assert "'eigenscape[vectors]'" in console.file.getvalue()


def test_bars__end_without_begin():
    console = Console(file=io.StringIO())
    bars = Bars(console)
    bars.advance()
    bars.end()
    assert not console.file.getvalue()

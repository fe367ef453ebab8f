"""Honest progress: bars on a terminal, plain lines with an estimate elsewhere, and a log file."""

import json
import logging
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

from markupsafe import Markup

from eigenscape.base import html
from eigenscape.base.shares import counted

LOG = logging.getLogger("eigenscape")
"""Logger of library calls without a reporter; users add a handler to see its messages."""
LOG.addHandler(logging.NullHandler())


class Reporter(Protocol):
    """The interface of progress reports."""

    def stage(self, name: str, text: str) -> None:
        """Report that a stage starts, ends or is reused."""
        ...

    def begin(self, label: str, total: int, done: int) -> None:
        """Begin a step of `total` blocks, `done` of which an earlier attempt finished."""
        ...

    def advance(self) -> None:
        """Report that one more block of the step is finished."""
        ...

    def end(self) -> None:
        """End the step."""
        ...

    def note(self, text: str) -> None:
        """Report a message for the user."""
        ...


class Silent:
    """Says nothing."""

    def stage(self, name: str, text: str) -> None:
        pass

    def begin(self, label: str, total: int, done: int) -> None:
        pass

    def advance(self) -> None:
        pass

    def end(self) -> None:
        pass

    def note(self, text: str) -> None:
        pass


class PlainLines:
    """Lines on stderr, at most one every few seconds for each step, each with an estimate."""

    def __init__(self, every: float = 5.0) -> None:
        self._every = every
        self._began = self._said = time.monotonic()
        self._label, self._total, self._done, self._fresh = "", 0, 0, 0

    def stage(self, name: str, text: str) -> None:
        self._say(f"{name}: {text}")

    def begin(self, label: str, total: int, done: int) -> None:
        self._label, self._total, self._done, self._fresh = label, total, done, 0
        self._began = self._said = time.monotonic()

    def advance(self) -> None:
        self._done += 1
        self._fresh += 1
        now = time.monotonic()
        if now - self._said >= self._every and self._done < self._total:
            self._said = now
            left = (now - self._began) / self._fresh * (self._total - self._done)
            self._say(f"  {self._label}: {self._done} of {self._total} blocks, {left:.0f} s left")

    def end(self) -> None:
        pass

    def note(self, text: str) -> None:
        self._say(f"  {text}")

    @staticmethod
    def _say(text: str) -> None:
        print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


class LogLines(PlainLines):
    """The same lines as messages of the logger ``eigenscape``: for library use."""

    @staticmethod
    def _say(text: str) -> None:
        LOG.info(text.strip())


class NotebookBars:
    """A table of stages and a bar in the output of a notebook's cell, which stay with the notebook.

    Rich and tqdm need ipywidgets for a bar that moves there, and leave nothing in a notebook that is
    saved; an output that is updated needs neither.

    Parameters
    ----------
    show
        `IPython.display.display`.
    every
        Least seconds between two updates.
    """

    def __init__(self, show: Callable[..., Any], every: float = 0.2) -> None:
        self._show, self._every = show, every
        self._handle: Any = None
        self._stages: dict[str, str] = {}
        self._notes: list[str] = []
        self._label, self._total, self._done = "", 0, 0
        self._began = self._drawn = 0.0

    def stage(self, name: str, text: str) -> None:
        if text == "running" and name in self._stages and self._stages[name] != "running":
            # Another run of the same reporter: of a study, or of trials.
            self._stages.clear()
        self._stages[name] = text
        self._draw()

    def begin(self, label: str, total: int, done: int) -> None:
        self._label, self._total, self._done = label, total, done
        self._began = time.monotonic()
        self._draw(lazily=True)

    def advance(self) -> None:
        self._done += 1
        self._draw(lazily=True)

    def end(self) -> None:
        self._total = 0

    def note(self, text: str) -> None:
        self._notes.append(text)
        self._draw(lazily=True)

    def _draw(self, *, lazily: bool = False) -> None:
        now = time.monotonic()
        if lazily and now - self._drawn < self._every:
            return
        self._drawn = now
        content = {"text/html": self._html(now), "text/plain": self._text()}
        if self._handle is None:
            self._handle = self._show(content, raw=True, display_id=True)
        else:
            self._handle.update(content, raw=True)

    def _html(self, now: float) -> str:
        rows: list[tuple[object, ...]] = []
        for name, text in self._stages.items():
            taken, _, peak = text.partition(", ")
            if text == "running" and self._total:
                left = (now - self._began) / max(self._done, 1) * (self._total - self._done)
                taken = Markup(
                    f"{html.bar(self._done / self._total)} {self._done} of {self._total}"
                )
                peak = f"{self._label}, {left:.0f} s left" if self._done else self._label
            rows.append((name, taken, peak))
        notes = html.folded(counted(len(self._notes), "note"), html.lines(self._notes))
        return html.card("eigenscape", "", html.table((), rows), notes if self._notes else "")

    def _text(self) -> str:
        return "\n".join(f"{name}: {text}" for name, text in self._stages.items())


class Relay:
    """Passes everything on to another reporter."""

    def __init__(self, inner: Reporter) -> None:
        self._inner = inner

    def stage(self, name: str, text: str) -> None:
        self._inner.stage(name, text)

    def begin(self, label: str, total: int, done: int) -> None:
        self._inner.begin(label, total, done)

    def advance(self) -> None:
        self._inner.advance()

    def end(self) -> None:
        self._inner.end()

    def note(self, text: str) -> None:
        self._inner.note(text)


class Logged(Relay):
    """Passes everything on to another reporter and keeps it as JSON lines, for those who follow the run.

    Progress is logged at most once every few seconds.

    Parameters
    ----------
    inner
        The other reporter.
    path
        The log.
    every
        Seconds between two entries about the progress of a step.

    Attributes
    ----------
    surroundings
        Called for what an entry about progress says beside it: memory, workers.
    """

    def __init__(self, inner: Reporter, path: Path, every: float = 2.0) -> None:
        super().__init__(inner)
        self._path, self._every = path, every
        self._step, self._done, self._total, self._told = "", 0, 0, 0.0
        self.surroundings: Callable[[], Mapping[str, Any]] = dict

    def _log(self, event: str, **fields: Any) -> None:
        entry = {"time": time.strftime("%Y-%m-%dT%H:%M:%S%z"), "event": event, **fields}
        # A full disk ends the run where a result is written, with a message; the log is not needed.
        with suppress(OSError), self._path.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(entry) + "\n")

    def stage(self, name: str, text: str) -> None:
        self._log("stage", stage=name, text=text)
        super().stage(name, text)

    def begin(self, label: str, total: int, done: int) -> None:
        self._step, self._done, self._total = label, done, total
        self._log("step", step=label, blocks=total, finished_before=done)
        super().begin(label, total, done)

    def advance(self) -> None:
        self._done += 1
        if time.monotonic() - self._told >= self._every:
            self._told = time.monotonic()
            fields = {"done": self._done, "blocks": self._total, **self.surroundings()}
            self._log("progress", step=self._step, **fields)
        super().advance()

    def note(self, text: str) -> None:
        self._log("note", text=text)
        super().note(text)

    def error(self, text: str) -> None:
        """Log why the run ends; the caller gets the error as well."""
        self._log("error", text=text)


def console_reporter() -> Reporter:
    """Return bars where stderr is a terminal, plain lines otherwise."""
    # Programs that use the library need no rich.
    from rich.console import Console

    from eigenscape.base.process.bars import Bars

    console = Console(stderr=True)
    return Bars(console) if console.is_terminal else PlainLines()


def notebook_reporter() -> Reporter | None:
    """Return bars for the cell of a notebook that runs now; None anywhere else."""
    shells = sys.modules.get("IPython.core.getipython")
    shell = None if shells is None else shells.get_ipython()
    # IPython on a terminal has no kernel; a thread or a worker of a notebook has no cell.
    if getattr(shell, "kernel", None) is None:
        return None
    from IPython.display import display

    return NotebookBars(display)


def default_reporter() -> Reporter:
    """Return bars in a notebook, and elsewhere lines to the logger ``eigenscape``: for library use."""
    return notebook_reporter() or LogLines()


def shown_reporter() -> Reporter:
    """Return bars in a notebook or on a terminal, and elsewhere plain lines: for who asks to see them."""
    return notebook_reporter() or console_reporter()

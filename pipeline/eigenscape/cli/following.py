"""``eigenscape status --follow``: a run that another process works on, until it ends."""

import json
import math
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from eigenscape.base.commands import command_line
from eigenscape.base.memory import format_bytes
from eigenscape.base.shares import counted
from eigenscape.cli.kinds import TUNING, kind_of
from eigenscape.cli.overview import list_runs
from eigenscape.cli.printing.runs import print_status
from eigenscape.errors import InputError
from eigenscape.store.lock import lock_holder
from eigenscape.workflow.directories import status
from eigenscape.workflow.following import Followed, Step, left_of

_LOOK_S, _QUIET_S, _SAY_S, _REPEAT_S = 0.5, 3.0, 5.0, 60.0
_WIDTH = 34
_MARKS = {"finished": "green", "reused": "green", "running": "bold cyan", "to do": "dim"}


def follow_and_print(path: Path, *, as_json: bool = False) -> int:
    """Show the progress of a run until it is finished, or until no process works on it.

    Parameters
    ----------
    path
        Run directory.
    as_json
        Whether stdout ends with the status as one JSON object; the progress goes to stderr in any case.

    Returns
    -------
    int
        Exit status: 0 if it is finished, 1 if not.

    Raises
    ------
    InputError
        There is no run in that directory, or there are many.
    """
    kind = kind_of(path)
    if list_runs(path) if kind is None else kind.rows:
        raise InputError(
            f"{path}: contains several runs, and --follow needs one. `{command_line('status', path)}` lists "
            "them."
        )
    if kind is TUNING:
        raise InputError(
            f"{path}: is the directory of a tuning, and --follow needs a run. "
            f"`{command_line('status', path)}` prints the progress of the tuning."
        )
    status(path)  # Refuses what is no run.
    followed, console = Followed(path), Console(stderr=True)
    if console.is_terminal:
        with Live(console=console, refresh_per_second=4, transient=True) as live:
            for _ in _looks(followed):
                live.update(picture(followed, time.time()))
    else:
        lines = _Lines(console)
        for entries in _looks(followed):
            lines.say(followed, entries)
    found = status(path)
    print(json.dumps(found)) if as_json else print_status(found)
    return 0 if found["state"] == "finished" else 1


def _looks(followed: Followed) -> Iterator[list[dict[str, Any]]]:
    """Look at the log again and again; yield its new entries until the run ends."""
    heard, asked = time.monotonic(), -math.inf
    while True:
        entries = followed.refresh()
        yield entries
        now = time.monotonic()
        heard = now if entries else heard
        quiet = followed.done or now - heard >= _QUIET_S
        # A first look at once: who looks at a run that has ended need not wait.
        if (quiet or asked == -math.inf) and now - asked >= _QUIET_S:
            asked = now
            if not _at_work(followed.path):
                yield followed.refresh()
                return
        time.sleep(_LOOK_S)


def _at_work(path: Path) -> bool:
    """Return whether a process works on a run, or its driver waits in a queue."""
    if lock_holder(path) is not None:
        return True
    driver = status(path)["driver"]
    return driver is not None and (driver["at_work"] or driver["job"] not in ("gone", "unknown"))


class _Lines:
    """Prints plain lines about a run if stderr is not a terminal."""

    def __init__(self, console: Console) -> None:
        self._console, self._said, self._last = console, 0.0, ("", 0)

    def say(self, followed: Followed, entries: list[dict[str, Any]]) -> None:
        for entry in entries:
            clock = entry["time"][11:19]
            if entry["event"] == "stage":
                self._print(f"{clock} {entry['stage']}: {entry['text']}")
            elif entry["event"] == "note":
                self._print(f"{clock}   {entry['text']}")
        step = followed.step
        if step is None or step.done >= step.total:
            return
        # A step without progress is printed less often.
        quiet = _SAY_S if (step.label, step.done) != self._last else _REPEAT_S
        if time.monotonic() - self._said >= quiet:
            self._said, self._last = time.monotonic(), (step.label, step.done)
            self._print("           " + ", ".join([_step(step, time.time()), *_around(followed)]))

    def _print(self, text: str) -> None:
        self._console.print(text, highlight=False, markup=False, soft_wrap=True)


def picture(followed: Followed, now: float) -> RenderableType:
    """Return the progress of a run for a terminal: stages, current step, residuals, memory, notes.

    Parameters
    ----------
    followed
        The run.
    now
        Seconds since 1970.
    """
    table = Table.grid(padding=(0, 2))
    for stage in followed.stages.values():
        done = stage.state in ("finished", "reused")
        share = 1.0 if done else 0.0
        if stage.state == "running" and followed.step is not None:
            share = followed.step.done / max(followed.step.total, 1)
        text = stage.text or stage.state
        if stage.state == "running" and stage.projected is not None:
            text += f", projected peak {format_bytes(stage.projected)}"
        table.add_row(
            Text(stage.name, style=_MARKS[stage.state]),
            ProgressBar(
                total=1.0,
                completed=share,
                width=_WIDTH,
                complete_style="cyan",
                finished_style="green",
            ),
            Text(text, style="" if stage.state == "running" else "dim"),
        )
    parts: list[RenderableType] = [Text(followed.path.name, style="bold"), table]
    if followed.step is not None:
        parts.append(Text(_step(followed.step, now)))
    if followed.residuals:
        parts.append(Text(_residuals(followed.residuals)))
    if around := _around(followed):
        parts.append(Text(", ".join(around)))
    parts += [Text(f"  {note}", style="dim") for note in followed.notes]
    return Group(*parts)


def _step(step: Step, now: float) -> str:
    left = left_of(step.left(now))
    return f"{step.label}: {step.done} of {step.total} blocks" + (f", {left}" if left else "")


def _residuals(passes: list[tuple[int, float, float]]) -> str:
    """Return the largest residual of the last passes."""
    shown = " > ".join(f"{residual:.1e}" for _, residual, _ in passes[-6:])
    return f"largest residual {shown} (tolerance {passes[-1][2]:.0e}, pass {passes[-1][0]})"


def _around(followed: Followed) -> list[str]:
    """Return memory, workers and dashboard, as far as they are known."""
    around, found = followed.around, []
    if "memory" in around:
        limit = "" if followed.limit is None else f" of {format_bytes(followed.limit)}"
        found.append(f"memory {format_bytes(around['memory'])}{limit}")
    if "workers" in around:
        workers, tasks = counted(around["workers"], "worker"), counted(around["tasks"], "task")
        found.append(f"{workers}, {tasks} at a time")
    elif "tasks" in around:
        found.append(counted(around["tasks"], "thread"))
    if "dashboard" in around:
        found.append(f"dashboard {around['dashboard']}")
    return found

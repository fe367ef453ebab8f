"""Progress as bars on a terminal."""

from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.text import Text


class Bars:
    """Bars on a terminal, on stderr."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._progress: Progress | None = None
        self._task: Any = None

    def stage(self, name: str, text: str) -> None:
        self._console.print(Text.assemble((f"{name:<10}", "bold"), f" {text}"))

    def begin(self, label: str, total: int, done: int) -> None:
        self._progress = Progress(
            TextColumn("           {task.description:<28}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            console=self._console,
            transient=True,
        )
        self._progress.start()
        self._task = self._progress.add_task(label, total=total, completed=done)

    def advance(self) -> None:
        if self._progress is not None:
            self._progress.advance(self._task)

    def end(self) -> None:
        if self._progress is not None:
            self._progress.stop()
            self._progress = None

    def note(self, text: str) -> None:
        self._console.print(Text(f"           {text}", style="dim"))

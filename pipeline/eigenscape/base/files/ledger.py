"""What is written while a stage works, and its checksums: noted where it is written.

`eigenscape.store.arrays` and `eigenscape.base.files.whole` report each write: the file and the byte
range. Where this is noted depends on the thread: in the ledger of a task, whose notes travel
back with its result; in the journal of the workspace, between the tasks of a stage; or nowhere.

::

    task       write -> Notes      -> result --+
    driver     write --------------------------+-> journal.jsonl -> checked when the stage is resumed
"""

import os
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from eigenscape.base.files.sums import crc_of, file_sum, range_sum, whole_sum
from eigenscape.base.process.namedpoints import reached

_here = threading.local()

Sums = dict[str, list[str]]
"""Checksums of files, by their path below a workspace: see `eigenscape.base.files.sums`."""


class Ledger(Protocol):
    """Called after each write."""

    def wrote(self, path: str, start: int, data: Any) -> None:
        """Record that bytes from `start` on of a file are now `data`."""

    def replacing(self, path: str, source: Path) -> AbstractContextManager[None]:
        """Surround the renaming of a file to `path`."""

    def complete(self, path: str) -> None:
        """Record that a file was written, and is whole."""

    def opened(self, path: str) -> None:
        """Record that a file was mapped for writing."""

    def removing(self, paths: Iterable[str]) -> None:
        """Record that files are about to be deleted, or their content to be given up."""


def _ledger() -> Ledger | None:
    return getattr(_here, "ledger", None)


@contextmanager
def recorded_by(ledger: Ledger | None) -> Iterator[None]:
    """Record what this thread writes in the block in a ledger."""
    before = _ledger()
    _here.ledger = ledger
    try:
        yield
    finally:
        _here.ledger = before


def wrote(path: str | Path, start: int, data: Any) -> None:
    """Report that bytes from `start` on of a file are now `data`: bytes, or a contiguous array."""
    if ledger := _ledger():
        ledger.wrote(str(path), start, data)


def replacing(path: str | Path, source: Path) -> AbstractContextManager[None]:
    """Surround the renaming of `source`, which is whole, to `path`."""
    ledger = _ledger()
    return nullcontext() if ledger is None else ledger.replacing(str(path), source)


def opened(path: str | Path) -> None:
    """Report that a file was mapped for writing."""
    if ledger := _ledger():
        ledger.opened(str(path))


def removing(paths: Iterable[str | Path]) -> None:
    """Report that files are about to be deleted, or their content to be given up."""
    if ledger := _ledger():
        ledger.removing(map(str, paths))


def is_recording() -> bool:
    """Whether what this thread writes is noted anywhere."""
    return _ledger() is not None


def complete(path: str | Path) -> None:
    """Report that a file was written, and is whole."""
    if ledger := _ledger():
        ledger.complete(str(path))


@dataclass
class Notes:
    """What one task has written below a directory.

    Attributes
    ----------
    root
        The directory.
    sums
        Of each file.
    open
        Files that were mapped for writing, with no further record.
    """

    root: str
    sums: Sums = field(default_factory=dict)
    open: set[str] = field(default_factory=set)
    _last: dict[str, tuple[int, int, int]] = field(default_factory=dict)

    def wrote(self, path: str, start: int, data: Any) -> None:
        """See `Ledger`."""
        name = relative(path, self.root)
        if name is None or not size_of(data):
            return
        first, end, crc = self._last.get(name, (start, start, 0))
        totals = self.sums.setdefault(name, [])
        if totals and end == start:
            totals.pop()  # goes on where the last write ended: one range
        else:
            first, crc = start, 0
        self._last[name] = first, start + size_of(data), crc_of(data, crc)
        totals.append(range_sum(*self._last[name]))

    def replacing(self, path: str, source: Path) -> AbstractContextManager[None]:
        """See `Ledger`."""
        self._note_whole(path, source)
        return nullcontext()

    def complete(self, path: str) -> None:
        """See `Ledger`."""
        self._note_whole(path, Path(path))

    def _note_whole(self, path: str, file: Path) -> None:
        name = relative(path, self.root)
        if name is not None:
            self.sums[name] = [file_sum(file)]
            self._last.pop(name, None)

    def opened(self, path: str) -> None:
        """See `Ledger`."""
        name = relative(path, self.root)
        if name is not None:
            self.open.add(name)

    def removing(self, paths: Iterable[str]) -> None:
        """See `Ledger`."""
        for path in paths:
            name = relative(path, self.root)
            if name is not None:
                self.sums.pop(name, None)
                self._last.pop(name, None)
                self.open.discard(name)

    def settled(self) -> "Noted":
        """Return what there is to say at the end of the task."""
        # Scratch of the task alone is gone by now.
        there = {name for name in {*self.sums, *self.open} if os.path.exists(self._place(name))}
        sums = {name: totals for name, totals in self.sums.items() if name in there}
        for name, (start, stop, crc) in self._last.items():
            whole = name in there and start == 0 and len(sums[name]) == 1
            if whole and os.path.getsize(self._place(name)) == stop:
                sums[name] = [whole_sum(stop, crc)]
        return Noted(sums, tuple(sorted(there - sums.keys())))

    def _place(self, name: str) -> str:
        return os.path.join(self.root, name)


@dataclass(frozen=True)
class Noted:
    """Files written by a task: see `Notes`."""

    sums: Sums
    open: tuple[str, ...]


@dataclass(frozen=True)
class Recorded:
    """A task that returns its result with what it has written below a directory."""

    func: Callable[[Any], Any]
    root: str

    def __call__(self, item: Any) -> tuple[Any, Noted]:
        """Do the task."""
        notes = Notes(self.root)
        with recorded_by(notes):
            result = self.func(item)
        reached("task ends", item)
        return result, notes.settled()


def relative(path: str, root: str) -> str | None:
    """Return a path below a directory as seen from there, None if it is not below."""
    return path[len(root) + 1 :] if path.startswith(root + "/") else None


def size_of(data: Any) -> int:
    """Return the bytes of an array, or of bytes."""
    return int(getattr(data, "nbytes", len(data)))

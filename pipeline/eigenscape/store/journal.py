"""The journal of a workspace: which blocks are finished, and checksums of what they have written.

One line for each entry, its checksum in front. The journal ends where a line is not whole: with the
line that a killed process had begun, or where the file was damaged. What lies in the workspace is then
compared with it: files without an entry were left by a killed task and are deleted; a file that
differs from its entry makes the whole workspace void.

An entry is written before its file is replaced or deleted. So a file may be what the last entry about it
says, or the one before: that is all that a kill leaves open.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from eigenscape.base.files.ledger import Sums, relative, size_of
from eigenscape.base.files.sums import crc_of, damaged, file_sum, is_range, range_sum, whole_sum
from eigenscape.base.process.namedpoints import reached

_FILE = "journal.jsonl"


class Journal:
    """Entries about one workspace; see `eigenscape.base.files.ledger.Ledger`.

    Parameters
    ----------
    root
        The workspace.

    Attributes
    ----------
    blocks
        Results of the blocks that are finished, by their names.
    """

    def __init__(self, root: Path) -> None:
        self.root, self.file = root, root / _FILE
        self.blocks: dict[str, Any] = {}
        # Of each file its ranges, by their place, or what the whole is now and was before.
        self._sums: dict[str, dict[str, str]] = {}
        self._end = 0
        self._read()

    def damage(self) -> list[str]:
        """Return the files that differ from their entries."""
        sums = {name: list(known.values()) for name, known in self._sums.items()}
        return damaged(self.root, sums)

    def tidy(self) -> None:
        """Delete files without an entry, and all text behind the last whole line."""
        keep = {self.root / name for name in self._sums} | {self.file}
        for path in self.root.rglob("*"):
            if path not in keep and path.is_file():
                path.unlink()
        if self.file.exists():
            with self.file.open("r+b") as stream:
                stream.truncate(self._end)

    def finish(self, blocks: Mapping[str, Any], sums: Sums) -> None:
        """Note that blocks are finished, with their results and the checksums of their files."""
        self._append({"blocks": dict(blocks), "wrote": sums} if sums else {"blocks": dict(blocks)})

    def sum_now(self, names: Iterable[str]) -> Sums:
        """Return the sums of files as they are now."""
        return {name: [file_sum(self.root / name)] for name in names}

    def sum_of(self, name: str) -> str:
        """Return the sum of a file: as noted, if that is of all of it."""
        return self._sums.get(name, {}).get("now") or file_sum(self.root / name)

    def wrote(self, path: str, start: int, data: Any) -> None:
        """See `eigenscape.base.files.ledger.Ledger`."""
        name = relative(path, str(self.root))
        if name is not None and size_of(data):
            stop = start + size_of(data)
            crc = crc_of(data)
            whole = start == 0 and Path(path).stat().st_size == stop
            total = whole_sum(stop, crc) if whole else range_sum(start, stop, crc)
            self._append({"wrote": {name: [total]}})

    @contextmanager
    def replacing(self, path: str, source: Path) -> Iterator[None]:
        """See `eigenscape.base.files.ledger.Ledger`."""
        name = relative(path, str(self.root))
        if name is None:
            yield
            return
        total = file_sum(source)
        if name in self._sums:
            self._vouch(name, total)
            yield
        else:
            yield
            self._vouch(name, total)

    def complete(self, path: str) -> None:
        """See `eigenscape.base.files.ledger.Ledger`."""
        name = relative(path, str(self.root))
        if name is not None:
            self._vouch(name, file_sum(path))

    def opened(self, path: str) -> None:
        """See `eigenscape.base.files.ledger.Ledger`: between tasks, what is mapped is written anew."""

    def removing(self, paths: Iterable[str]) -> None:
        """See `eigenscape.base.files.ledger.Ledger`."""
        names = [relative(path, str(self.root)) for path in paths]
        known = [name for name in names if name in self._sums]
        if known:
            self._append({"removed": known})

    def _vouch(self, name: str, total: str) -> None:
        if self._sums.get(name, {}).get("now") != total:
            self._append({"wrote": {name: [total]}})

    def _append(self, entry: dict[str, Any]) -> None:
        with self.file.open("ab") as stream:
            if not stream.tell():
                # Another run's journal is none of this workspace, and results of blocks name files by
                # their whole paths: what was moved is not gone on with.
                stream.write(_line({"of": str(self.root)}))
            stream.write(_line(entry))
        reached("entry written", self.root)
        self._take(entry)

    def _read(self) -> None:
        if not self.file.exists():
            return
        with self.file.open("rb") as stream:
            for number, line in enumerate(stream):
                entry = _entry(line)
                if entry is None or (number == 0) != ("of" in entry):
                    return
                if number == 0 and entry["of"] != str(self.root):
                    return
                self._take(entry)
                self._end += len(line)

    def _take(self, entry: dict[str, Any]) -> None:
        self.blocks |= entry.get("blocks", {})
        for name, totals in entry.get("wrote", {}).items():
            for total in totals:
                self._take_sum(name, total)
        for name in entry.get("removed", ()):
            self._sums.pop(name, None)

    def _take_sum(self, name: str, total: str) -> None:
        known = self._sums.setdefault(name, {})
        if is_range(total):
            known.pop("before", None)
            known.pop("now", None)
            known[total.partition(":")[0]] = total
        else:
            before = known.get("now", total)
            known.clear()
            known |= {"before": before, "now": total}


def _line(entry: dict[str, Any]) -> bytes:
    text = json.dumps(entry).encode()
    return f"{crc_of(text):08x} ".encode() + text + b"\n"


def _entry(line: bytes) -> dict[str, Any] | None:
    """Return the entry of a line, None if that is not whole."""
    total, _, text = line.removesuffix(b"\n").partition(b" ")
    if not line.endswith(b"\n") or total != f"{crc_of(text):08x}".encode():
        return None
    entry: dict[str, Any] = json.loads(text)
    return entry

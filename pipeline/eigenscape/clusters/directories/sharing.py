"""Test of a shared directory: each machine must read what others have written.

::

    turn        one machine                       all others
    1 ... n     writes files anew, in five ways   read them; fill a range each of one more file
    next                                          read what all of them have filled

A run needs close-to-open consistency: what a file holds when it is opened is what was written before
it was closed elsewhere. NFS has it; mounts that keep attributes, names or pages for a while do not,
and then tasks compute with what was there before, without any error. This module tests for it beforehand.
"""

import errno
import math
import mmap
import os
import secrets
import shutil
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from eigenscape.base.files.whole import explain_write_errors, written_whole
from eigenscape.clusters.directories.mounts import Mount, mount_of
from eigenscape.errors import ClusterError

_MOST_TURNS = 255
"""The content of a file is the number of the turn, a byte."""
_QUICK = 3
"""Number of turns so quick that what was kept from the turn before is still kept. One alone may see
what is new by chance."""
_CACHED_S = 0.8
"""From the start of one reading to the end of the next: mounts that keep names and attributes do so for
a second by default."""
_PATIENCE_S = 8.0
"""On a machine under load few turns are quick, and they are not waited for any longer."""
_LAG_S = 3.0
"""Seconds for which a file may be missing; tasks try again for longer."""
_PAUSE_S = 0.05
"""Between reading and writing anew: two times of change that are told apart on every file system."""
_FEW, _MANY = 100, 2**17
_RANGE = 2**16
"""Bytes: ranges of whole pages, as tasks fill them."""

_WAYS = {
    "rewritten": "a file that {} wrote again",
    "replaced": "a file that {} put in the place of another",
    "recreated": "a file that {} deleted and made again",
    "mapped": "a file that {} filled again through a mapping",
    "created": "a file that {} made",
    "filled": "a file that several machines filled a range each of",
}
_HERE = "this machine"


@dataclass(frozen=True)
class _Fault:
    """What was seen instead of what had been written.

    Attributes
    ----------
    name
        Of `_WAYS`.
    seen
        In words.
    mount
        What the directory is on there.
    """

    name: str
    seen: str
    mount: Mount


class Shared:
    """Directories that machines share, probed with each machine once.

    Parameters
    ----------
    client
        Connected to the scheduler.
    """

    def __init__(self, client: Any) -> None:
        self._client = client
        self._directories: dict[int, Path] = {}
        self._probed: set[str] = set()
        # Batches are at work in several threads.
        self._lock = threading.Lock()

    def add(self, directory: Path) -> None:
        """Add a directory; one of each file system stands for all."""
        with self._lock:
            if (device := directory.stat().st_dev) not in self._directories:
                self._directories[device] = directory
                self._probed.clear()

    def probe(self, hosts: Mapping[str, str]) -> None:
        """Probe the directories with the machines that have not been there before.

        Parameters
        ----------
        hosts
            Address of each worker -> its host. Those on the loopback interface are this machine, which
            sees what it has written.

        Raises
        ------
        ClusterError
            A machine reads something else than another has written before.
        """
        with self._lock:
            fresh = {host: address for address, host in hosts.items() if host not in self._probed}
            away = {
                address: f"the worker on {host}"
                for host, address in fresh.items()
                if not host.startswith("127.")
            }
            if away:
                for directory in self._directories.values():
                    probe_sharing(self._client, directory, away)
            if self._directories:
                self._probed |= set(fresh)


def probe_sharing(client: Any, directory: Path, hosts: Mapping[str, str]) -> None:
    """Let machines write and read files in turns, and refuse the directory if one reads stale data.

    It takes about twenty round trips, more on machines under load, and leaves nothing there.

    Parameters
    ----------
    client
        Connected to the scheduler.
    directory
        Where runs will be.
    hosts
        Address of one worker for each machine -> name of that machine.

    Raises
    ------
    ClusterError
        A machine reads something else than another has written before.
    """
    # A second writer: this machine may be the server, whose own files the others see at once.
    for writer in (None, *list(hosts)[:1]):
        folder = directory / f".shared.tmp-{secrets.token_hex(8)}"
        with explain_write_errors(directory):
            folder.mkdir()
        try:
            _take_turns(client, folder, writer, hosts)
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def _take_turns(client: Any, folder: Path, writer: str | None, hosts: Mapping[str, str]) -> None:
    readers = [address for address in (None, *hosts) if address != writer]
    places = {address or _HERE: place for place, address in enumerate(readers)}
    names = {address: hosts.get(address or "", _HERE) for address in (None, *hosts)}

    def ask(addresses: Sequence[str | None], function: Callable[..., Any], turn: int) -> None:
        answers: dict[str | None, Any] = {}
        if elsewhere := [address for address in addresses if address is not None]:
            answers = client.run(
                function, str(folder), turn, places, workers=elsewhere, on_error="return"
            )
        if None in addresses:
            answers[None] = function(str(folder), turn, places)
        for address, fault in answers.items():
            # Of a worker that went while it was asked an error comes, and that is for others to mend.
            if isinstance(fault, _Fault):
                raise ClusterError(_describe(folder.parent, names[address], names[writer], fault))

    end, quick, started = time.monotonic() + _PATIENCE_S, 0, -math.inf
    for turn in range(1, _MOST_TURNS + 1):
        ask([writer], _write, turn)
        before, started = started, time.monotonic()
        ask(readers, _read, turn)
        read = time.monotonic()
        quick += read - before < _CACHED_S
        if quick == _QUICK or read > end:
            break
        time.sleep(_PAUSE_S)
    ask(readers, _read_filled, turn)


def _describe(directory: Path, reader: str, writer: str, fault: _Fault) -> str:
    what = _WAYS[fault.name].format(writer)
    return (
        f"{directory}: {reader} does not see there what others have written: {what} was {fault.seen}. It "
        f"is on {fault.mount}. A run needs a file system on which opening a file shows what another "
        f"machine has closed before. {fault.mount.advice} Or set output.directory or --run-dir to "
        "another file system that all machines share (cluster/README.md, Shared directories)."
    )


def _write(folder: str, turn: int, places: Mapping[str, int]) -> _Fault | None:
    """Write all files anew, for one turn."""
    own = Path(folder)
    name = "created"
    try:
        (own / f"created-{turn}").write_bytes(_content(turn, _FEW))
        with (own / f"filled-{turn}").open("wb") as stream:
            os.posix_fallocate(stream.fileno(), 0, _RANGE * len(places))
        name = "rewritten"
        with (own / name).open("wb" if turn == 1 else "r+b") as stream:
            stream.write(_content(turn, _FEW))
        name = "replaced"
        with written_whole(own / name) as temporary:
            temporary.write_bytes(_content(turn, _FEW))
        name = "recreated"
        (own / name).unlink(missing_ok=True)
        (own / name).write_bytes(_content(turn, _MANY))
        name = "mapped"
        if turn == 1:
            (own / name).write_bytes(bytes(_MANY))
        _fill(own / name, 0, _content(turn, _MANY))
    except OSError as error:
        return _Fault(name, f"not written at all ({error.strerror})", mount_of(folder))
    return None


def _read(
    folder: str, turn: int, places: Mapping[str, int], dask_worker: Any = None
) -> _Fault | None:
    """Read all files of a turn, fill a range of one, and read what was filled in the turn before."""
    own = Path(folder)
    for name, file_name, size in (
        ("created", f"created-{turn}", _FEW),
        ("rewritten", "rewritten", _FEW),
        ("replaced", "replaced", _FEW),
        ("recreated", "recreated", _MANY),
        ("mapped", "mapped", _MANY),
    ):
        if seen := _differs(own / file_name, turn, size):
            return _Fault(name, seen, mount_of(folder))
    place = places[_HERE if dask_worker is None else dask_worker.address]
    file = own / f"filled-{turn}"
    if seen := _differs(file, turn, _RANGE * len(places), compare=False):
        return _Fault("filled", seen, mount_of(folder))
    try:
        _fill(file, _RANGE * place, _content(turn, _RANGE))
    except OSError as error:
        return _Fault("filled", f"not mapped ({error.strerror})", mount_of(folder))
    return _read_filled(folder, turn - 1, places) if turn > 1 else None


def _read_filled(folder: str, turn: int, places: Mapping[str, int]) -> _Fault | None:
    """Read what all have filled in one turn."""
    seen = _differs(Path(folder) / f"filled-{turn}", turn, _RANGE * len(places))
    return _Fault("filled", seen, mount_of(folder)) if seen else None


def _content(turn: int, size: int) -> bytes:
    return bytes([turn]) * size


def _fill(file: Path, start: int, content: bytes) -> None:
    with file.open("r+b") as stream, mmap.mmap(stream.fileno(), 0) as mapped:
        mapped[start : start + len(content)] = content


def _differs(file: Path, turn: int, size: int, *, compare: bool = True) -> str | None:
    """Return what a file is read as, if that is not what a turn has written.

    Missing files and too short ones are looked for again, as tasks do. Wrong bytes are not
    read again, because a task could not detect them.
    """
    end = time.monotonic() + _LAG_S
    while True:
        try:
            with file.open("rb") as stream:
                if os.fstat(stream.fileno()).st_size == size:
                    with mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
                        found = np.unique(np.frombuffer(mapped[:], np.uint8)).tolist()
                    return _name_bytes(found, turn) if compare and found != [turn] else None
                seen = (
                    f"read with another size ({os.fstat(stream.fileno()).st_size} B, not {size} B)"
                )
        except OSError as error:
            if error.errno not in (errno.ENOENT, errno.ESTALE):
                return f"not read ({error.strerror})"
            seen = f"not found ({error.strerror})"
            with suppress(OSError):
                os.listdir(file.parent)
        if time.monotonic() > end:
            return seen
        time.sleep(0.05)


def _name_bytes(found: list[int], turn: int) -> str:
    if found == [0]:
        return "read as zeros"
    if all(0 < number < turn for number in found):
        return "read as it had been before"
    return "read in part as it had been before"

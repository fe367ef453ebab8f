"""A command of its own under a limit of memory that is enforced from outside.

What counts is what the process holds that no file backs. Pages of mapped files are the system's to
take back: the kernel drops them, or writes them out first, rather than kill anybody. Two ways hold a
command to that, and the first that this machine allows is taken:

    cgroup     a control group below this process's own, or beside it (version 2, or the memory
               controller of version 1), with `limit` as its memory.max. It counts anonymous memory,
               pages of files and what the kernel keeps for the processes; where files alone are too
               much it takes pages back, and where that is not enough it kills. It takes the right to
               make one: root, or a delegated group whose controller is switched on.
    watcher    this process samples the anonymous memory (RssAnon) of the command and its children and
               kills them all above the limit. Works everywhere on Linux, and misses peaks that are
               shorter than `_EVERY_S`.

Not RLIMIT_DATA: it counts what is reserved too (stacks of threads, buffers of BLAS), which no one
holds, and refuses memory that the limit allows. Not RLIMIT_AS: it counts mapped files.
"""

import os
import secrets
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import psutil

_ROOT = Path("/sys/fs/cgroup")
_EVERY_S = 0.005
_CHILDREN_EVERY = 40
_LIMITS = {"v2": "memory.max", "v1": "memory.limit_in_bytes"}
_SWAP = {"v2": "memory.swap.max", "v1": "memory.memsw.limit_in_bytes"}
_EVENTS = {"v2": "memory.events", "v1": "memory.oom_control"}
_ANONYMOUS = {"v2": "anon", "v1": "rss"}

Way = Literal["cgroup", "watcher"]


@dataclass(frozen=True)
class Outcome:
    """What became of a command.

    Attributes
    ----------
    way
        How the limit was enforced.
    killed
        Whether the limit ended it.
    status
        Exit status; negative for a signal.
    peak
        Largest anonymous memory that was sampled, of all its processes together, in bytes.
    seconds
        It took.
    output, errors
        What it printed.
    """

    way: Way
    killed: bool
    status: int
    peak: int
    seconds: float
    output: str
    errors: str


@dataclass(frozen=True)
class _Group:
    """A control group of this process's making."""

    path: Path
    version: Literal["v1", "v2"]

    @property
    def killed(self) -> bool:
        """Whether the kernel has killed anything in it for want of memory."""
        return self._numbers(_EVENTS[self.version]).get("oom_kill", 0) > 0

    @property
    def anonymous(self) -> int:
        """Anonymous memory of its processes, in bytes."""
        return self._numbers("memory.stat")[_ANONYMOUS[self.version]]

    def _numbers(self, name: str) -> dict[str, int]:
        pairs = (line.split() for line in (self.path / name).read_text().splitlines())
        return {key: int(value) for key, value in pairs}


def run_confined(
    command: Sequence[str],
    limit: int,
    *,
    way: Way | None = None,
    environment: Mapping[str, str] | None = None,
) -> Outcome:
    """Run a command that may hold no more than `limit` bytes.

    Parameters
    ----------
    command
        Program and arguments.
    limit
        In bytes.
    way
        How to enforce it; the best that works here by default.
    environment
        Variables to set beside those of this process.
    """
    with _group(limit) as group:
        if way == "watcher":
            group = None
        elif way == "cgroup" and group is None:
            raise PermissionError("no control group can be made here")
        return _run(command, limit, group, {**os.environ, **(environment or {})})


def can_make_groups() -> bool:
    """Whether control groups with a limit can be made here."""
    with _group(2**30) as group:
        return group is not None


def _run(
    command: Sequence[str], limit: int, group: _Group | None, environment: Mapping[str, str]
) -> Outcome:
    if group is not None:
        # The command is in its group from its first page on.
        enter = 'echo $$ > "$0" && exec "$@"'
        command = ["sh", "-c", enter, str(group.path / "cgroup.procs"), *command]
    with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as errors:
        start = time.perf_counter()
        process = subprocess.Popen(
            command, stdout=output, stderr=errors, start_new_session=True, env=environment
        )
        peak, killed = 0, False
        try:
            tree = _Tree(process.pid)
            while process.poll() is None:
                now = tree.anonymous() if group is None else group.anonymous
                peak = max(peak, now)
                if group is None and now > limit:
                    killed = True
                    os.killpg(process.pid, signal.SIGKILL)
                time.sleep(_EVERY_S)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        seconds = time.perf_counter() - start
        texts = [stream.seek(0) or stream.read() for stream in (output, errors)]
    return Outcome(
        "watcher" if group is None else "cgroup",
        killed if group is None else group.killed,
        process.returncode, peak, seconds, texts[0], texts[1],
    )  # fmt: skip


class _Tree:
    """A process and its children, which are looked for now and then."""

    def __init__(self, pid: int) -> None:
        self._pid, self._all, self._count = pid, [pid], 0

    def anonymous(self) -> int:
        """Return what all of them hold, in bytes."""
        self._count += 1
        if self._count % _CHILDREN_EVERY == 0:
            try:
                children = psutil.Process(self._pid).children(recursive=True)
            except psutil.NoSuchProcess:
                children = []
            self._all = [self._pid, *(child.pid for child in children)]
        return sum(map(anonymous_bytes, self._all))


def anonymous_bytes(pid: int) -> int:
    """Return the anonymous memory of a process, 0 if it has ended."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    found = [line.split()[1] for line in status.splitlines() if line.startswith("RssAnon")]
    return 1024 * int(found[0]) if found else 0


@contextmanager
def _group(limit: int) -> Iterator[_Group | None]:
    """Make a control group with a limit where that is allowed; None elsewhere."""
    found = next(filter(None, (_make(path, version, limit) for path, version in _places())), None)
    try:
        yield found
    finally:
        if found is not None:
            _remove(found.path)


def _places() -> Iterator[tuple[Path, Literal["v1", "v2"]]]:
    """Yield where a control group could be made: below this process's own, then beside it."""
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, own = line.split(":", 2)
        if "memory" in controllers.split(","):
            yield _ROOT / "memory" / own.lstrip("/"), "v1"
        elif not controllers and (_ROOT / "cgroup.controllers").exists():
            yield _ROOT / own.lstrip("/"), "v2"
            if own != "/":
                # A group of version 2 that has processes hands no controllers down.
                yield (_ROOT / own.lstrip("/")).parent, "v2"


def _make(parent: Path, version: Literal["v1", "v2"], limit: int) -> _Group | None:
    path = parent / f"confined-{os.getpid()}-{secrets.token_hex(4)}"
    try:
        path.mkdir()
    except OSError:
        return None
    try:
        (path / _LIMITS[version]).write_text(str(limit))
        if (path / _SWAP[version]).exists():
            (path / _SWAP[version]).write_text("0" if version == "v2" else str(limit))
        # Whether it lets processes in: one that ends at once.
        enter = f"echo $$ > {path / 'cgroup.procs'}"
        subprocess.run(["sh", "-c", enter], check=True, stderr=subprocess.DEVNULL)
    except (OSError, subprocess.CalledProcessError):
        _remove(path)
        return None
    return _Group(path, version)


def _remove(path: Path) -> None:
    for _ in range(100):
        try:
            path.rmdir()
            return
        except FileNotFoundError:
            return
        except OSError:
            # Its last process is just ending.
            time.sleep(0.02)

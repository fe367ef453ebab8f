"""Python commands as forks of one process that has loaded eigenscape; to load it takes each of them seconds.

`serving` starts the process, which loads when it is first asked. `Fork` gives it a command, as
`subprocess.Popen` would give it to an interpreter: `-m MODULE` or `-c CODE`, and arguments. The command has
its own arguments, directory, environment, search path, files and session, and it leaves the interpreter as
any other does: with an exit status, a traceback, or the signal that ended it. Where Python, BLAS or numba
would have read other variables when they were loaded, or another eigenscape is on the path, an
interpreter of its own works on it. It ends when the process that gave it is gone.

As a program, this file is the process, or, with its socket and a command, a client that hands the command
over: a shell gives commands so, by the programs that `write_program` writes.
"""

import atexit
import gc
import importlib
import importlib.machinery
import json
import os
import pkgutil
import runpy
import selectors
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import types
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, NamedTuple

VARIABLE = "EIGENSCAPE_TEST_FORKS"
"""Name of the variable with the socket of the process, for all processes of the tests."""

MOST = 2**17
"""Bytes that a command may have with its environment."""

READ_WHEN_LOADED = ("PYTHON", "OPENBLAS_", "OMP_", "MKL_", "NUMBA_", "LD_", "EIGENSCAPE_CHUNK_ROWS")
"""How the names of variables begin that a fork reads too late, but for the search path."""


ROOMS = ("scenes", "features", "neighbors", "graph", "spectrum", "learn", "export")
"""What stages load when they begin."""


class Fork:
    """A command at work; what tests use of `subprocess.Popen` with text.

    Parameters
    ----------
    arguments
        What an interpreter is given.
    cwd, env
        Directory and environment; None for those of this process.
    stdin, stdout, stderr
        `subprocess.PIPE` (not for stdin), `subprocess.DEVNULL`, a file, or None for that of this process.
    address
        Socket of the process; None for the one that `VARIABLE` names.
    """

    def __init__(
        self,
        arguments: Sequence[object],
        *,
        cwd: object = None,
        env: Mapping[str, str] | None = None,
        stdin: Any = subprocess.DEVNULL,
        stdout: Any = None,
        stderr: Any = None,
        address: str | None = None,
    ) -> None:
        self.stdout: IO[str] | None = None
        self.stderr: IO[str] | None = None
        self.returncode: int | None = None
        given, own = [], []
        for number, file in enumerate((stdin, stdout, stderr)):
            if file == subprocess.PIPE:
                reading, file = os.pipe()
                own.append(file)
                setattr(self, ["stdin", "stdout", "stderr"][number], os.fdopen(reading))
            elif file == subprocess.DEVNULL:
                file = os.open(os.devnull, os.O_RDWR)
                own.append(file)
            elif file is None:
                file = number
            given.append(file if isinstance(file, int) else file.fileno())
        self._line = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._line.connect(address or os.environ[VARIABLE])
        asked = [
            [*map(str, arguments)],
            str(cwd or Path.cwd()),
            dict(os.environ if env is None else env),
        ]
        socket.send_fds(self._line, [json.dumps(asked).encode()], given)
        for descriptor in own:
            os.close(descriptor)
        self.pid = int(self._line.recv(MOST))

    def poll(self) -> int | None:
        """Return the exit status, negative for a signal; None while it works."""
        with suppress(TimeoutError):
            self.wait(0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end; return the exit status."""
        if self.returncode is None:
            self._line.settimeout(timeout)
            try:
                said = self._line.recv(MOST)
            except BlockingIOError:
                raise TimeoutError from None
            self.returncode = int(said)
            self._line.close()
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send a signal, unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """End it by SIGKILL."""
        self.send_signal(signal.SIGKILL)

    def close(self) -> None:
        """Leave the command to itself: it is killed if it has not ended."""
        self._line.close()
        for stream in (self.stdout, self.stderr):
            if stream is not None:
                stream.close()

    def __enter__(self) -> "Fork":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def communicate(self, timeout: float | None = None) -> tuple[str | None, str | None]:
        """Return what is left of stdout and stderr, once it has ended; kill it where that takes too long."""
        with ThreadPoolExecutor(2) as pool:
            reading = [
                None if stream is None else pool.submit(stream.read)
                for stream in (self.stdout, self.stderr)
            ]
            try:
                self.wait(timeout)
            except TimeoutError:
                self.kill()
                raise
            out, err = (None if one is None else one.result() for one in reading)
        self.close()
        return out, err


def fork_python(
    *arguments: object, timeout: float | None = 300, **files: Any
) -> "subprocess.CompletedProcess[str]":
    """Give a command and wait for its end, as `subprocess.run` does; what it says is kept."""
    fork = Fork(arguments, **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **files})
    out, err = fork.communicate(timeout)
    assert fork.returncode is not None
    return subprocess.CompletedProcess([*arguments], fork.returncode, out or "", err or "")


def write_program(path: Path, *arguments: object) -> Path:
    """Write a program that gives a command with these arguments and its own."""
    words = shlex.join(
        map(str, (sys.executable, "-S", "-E", __file__, os.environ[VARIABLE], *arguments))
    )
    path.write_text(f'#!/bin/sh\nexec {words} "$@"\n', encoding="utf-8")
    path.chmod(0o755)
    return path


@contextmanager
def serving() -> Iterator[str]:
    """Start the process; it ends with the block. Return its socket."""
    # Not below a directory of the tests: the paths of sockets are short.
    with tempfile.TemporaryDirectory(prefix="forks-") as folder:
        address = str(Path(folder) / "socket")
        server = subprocess.Popen(
            [sys.executable, __file__, address], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        with server:
            assert server.stdout is not None
            assert server.stdin is not None
            assert server.stdout.readline() == b"ready\n"
            try:
                yield address
            finally:
                server.stdin.close()


def load() -> None:
    """Import what commands import, and load the kernels that are compiled; start no thread."""
    import numba.core.dispatcher

    import eigenscape.cli.app
    import eigenscape.workflow.spine  # noqa: F401

    with suppress(ImportError):  # of the extra docs
        importlib.import_module("ipykernel.kernelapp")
    for room in ROOMS:
        package = importlib.import_module(f"eigenscape.{room}")
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            with suppress(ImportError):  # of an extra that is not here
                importlib.import_module(module.name)
    kernels = {
        id(value): value
        for name, module in [*sys.modules.items()]
        if name.startswith("eigenscape.")
        for value in vars(module).values()
        if isinstance(value, numba.core.dispatcher.Dispatcher)
    }
    for kernel in kernels.values():
        file = getattr(kernel._cache, "_cache_file", None)
        for key in file._load_index() if file is not None else ():
            # Not those of another machine.
            if key == kernel._cache._index_key(key[0], kernel.targetctx.codegen()):
                kernel.compile(key[0])
    # What is loaded by now stays: every stage looks through what may be freed.
    gc.collect()
    gc.freeze()


class Asked(NamedTuple):
    """What a fork is to do."""

    arguments: list[str]
    cwd: str
    env: dict[str, str]
    files: list[int]


def serve(address: str) -> Asked:
    """Fork for each command until stdin ends; return in each fork."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listener.bind(address)
    listener.listen(64)
    print("ready", flush=True)
    waiting = selectors.DefaultSelector()
    waiting.register(0, selectors.EVENT_READ)
    waiting.register(listener, selectors.EVENT_READ)
    lines: dict[int, socket.socket] = {}  # by process
    ends: dict[int, int] = {}  # processes by the descriptor of their end
    while True:
        for key, _ in waiting.select():
            if waiting.get_map().get(key.fd) is not key:
                continue  # closed on an event before; another has its number by now
            if key.fd == 0:
                for pid in lines:
                    _end(pid)
                os._exit(0)
            elif key.fd == listener.fileno():
                line, _ = listener.accept()
                message, files, _, _ = socket.recv_fds(line, MOST, 3)
                if "eigenscape.cli.app" not in sys.modules:
                    load()
                pid = os.fork()
                if not pid:
                    for own in (waiting, listener, line, *lines.values()):
                        own.close()
                    for end in ends:
                        os.close(end)
                    os.setsid()
                    return Asked(*json.loads(message), files)
                for file in files:
                    os.close(file)
                _say(line, pid)
                lines[pid] = line
                end = os.pidfd_open(pid)
                ends[end] = pid
                waiting.register(line, selectors.EVENT_READ, pid)
                waiting.register(end, selectors.EVENT_READ)
            elif key.fd in ends:
                pid = ends.pop(key.fd)
                waiting.unregister(key.fd)
                os.close(key.fd)
                status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
                if line := lines.pop(pid, None):
                    waiting.unregister(line)
                    _say(line, status)
                    line.close()
            else:  # who gave it is gone
                waiting.unregister(lines.pop(key.data))
                _end(key.data)


def _say(line: socket.socket, number: int) -> None:
    """Tell a number to who gave a command, unless that is gone: it may end at the same time as its fork."""
    with suppress(ConnectionError):
        line.send(str(number).encode())


def _end(pid: int) -> None:
    """Kill a fork and what it has started."""
    # It has no session yet if it has just begun.
    for kill in (os.killpg, os.kill):
        with suppress(ProcessLookupError):
            kill(pid, signal.SIGKILL)


def work(asked: Asked, around: dict[str, str]) -> None:
    """Work on a command as an interpreter does that has just been started with it."""
    for number, file in enumerate(asked.files):
        os.dup2(file, number)
        os.close(file)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.chdir(asked.cwd)
    os.environ.clear()
    os.environ.update(asked.env)
    kind, what, *arguments = asked.arguments
    old, new = (each.get("PYTHONPATH", "").split(os.pathsep) for each in (around, asked.env))
    # The first is the folder of a script.
    rest = [path for path in sys.path[1:] if path not in old]
    sys.path[:] = ["" if kind == "-c" else asked.cwd, *filter(None, new), *rest]
    found = importlib.machinery.PathFinder.find_spec("eigenscape")
    if (
        any(
            around.get(name) != asked.env.get(name)
            for name in around.keys() | asked.env.keys()
            if name.startswith(READ_WHEN_LOADED) and name != "PYTHONPATH"
        )
        or found is None
        or found.origin != sys.modules["eigenscape"].__file__
    ):
        os.execv(sys.executable, [sys.executable, *asked.arguments])
    # The descriptors stay open when a command puts other streams in their places.
    sys.stdin = sys.__stdin__ = os.fdopen(0, closefd=False)
    sys.stdout = sys.__stdout__ = os.fdopen(1, "w", closefd=False)
    sys.stderr = sys.__stderr__ = os.fdopen(
        2, "w", errors="backslashreplace", buffering=1, closefd=False
    )
    sys.argv = [kind, *arguments]
    if kind == "-m":
        runpy.run_module(what, run_name="__main__", alter_sys=True)
    else:
        sys.modules["__main__"] = types.ModuleType("__main__")
        exec(compile(what, "<string>", "exec"), vars(sys.modules["__main__"]))


def leave(status: int) -> None:
    """End as an interpreter does, without freeing what all modules hold, which takes 0.3 seconds."""
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status & 0xFF)


def hand_over(address: str, arguments: list[str]) -> None:
    """Give a command as a shell would, with the files of this process; end as it ends."""
    fork = Fork(arguments, stdin=0, stdout=1, stderr=2, address=address)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, _: os.kill(fork.pid, number))
    status = fork.wait()
    if status < 0:
        signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    sys.exit(status)


if __name__ == "__main__":
    if sys.argv[2:]:
        hand_over(sys.argv[1], sys.argv[2:])
    else:
        status: object = 0
        try:
            work(serve(sys.argv[1]), dict(os.environ))
        except SystemExit as end:
            status = end.code or 0
            if not isinstance(status, int):
                raise
        leave(status)

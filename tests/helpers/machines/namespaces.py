"""Namespaces of Linux for tests: processes with a loopback, mounts and numbers of their own (root only)."""

import os
import shlex
import shutil
import socket
import subprocess
import time
from pathlib import Path
from typing import Any

import psutil

# The first process of a namespace of processes stays a shell, which takes leave of the dead.
_FIRST = (
    'ip link set lo up && mount --bind "$0/hosts" /etc/hosts && touch "$0/$1.up" && sleep infinity'
)
_FURTHER = 'touch "$0/$1.up" && exec sleep infinity'


def why_not() -> str | None:
    """Return why namespaces cannot be made here, None if they can."""
    if os.geteuid() != 0:
        return "needs root, for namespaces of its own"
    missing = [name for name in ("unshare", "nsenter", "ip") if shutil.which(name) is None]
    if missing:
        return f"needs {', '.join(missing)}: apt-get install util-linux iproute2"
    tried = subprocess.run(
        ["unshare", "-m", "-n", "-p", "-f", "true"], capture_output=True, text=True, check=False
    )
    return f"needs namespaces: {tried.stderr.strip()}" if tried.returncode else None


def host_name() -> str:
    """Return the name of this machine, without its domain."""
    return socket.gethostname().partition(".")[0]


class Namespace:
    """A process that holds namespaces; whatever is started in them ends with it.

    Parameters
    ----------
    base
        Directory for what it needs.
    name
        Of the namespace, within that directory.
    parent
        Another one whose loopback and process numbers it shares; only its mounts are its own then.
    """

    def __init__(self, base: Path, name: str, parent: "Namespace | None" = None) -> None:
        self.base, self.name, self.parent = base, name, parent
        self._holder: subprocess.Popen[bytes] | None = None
        self.environment = {"PATH": os.environ["PATH"]}

    def start(self) -> None:
        """Make the namespaces. The host's name is the first that 127.0.0.1 has in them."""
        (self.base / "hosts").write_text(f"127.0.0.1 {host_name()} localhost\n", encoding="ascii")
        command = ["unshare", "-m", "--propagation", "private"]
        if self.parent is None:
            command += ["-n", "-p", "-f", "--kill-child", "--mount-proc", "sh", "-c", _FIRST]
        else:
            command = [*self.parent.command(), *command, "sh", "-c", _FURTHER]
        self._holder = subprocess.Popen([*command, self.base, self.name], stdin=subprocess.DEVNULL)
        end = time.monotonic() + 20
        while not (self.base / f"{self.name}.up").exists():
            assert self._holder.poll() is None, f"namespace {self.name}: {self._holder.returncode}"
            assert time.monotonic() < end, self.name
            time.sleep(0.02)

    @property
    def pid(self) -> int:
        """The process that holds it."""
        assert self._holder is not None, "started"
        # `unshare -f` and `nsenter -p` wait for their child, which is inside.
        return int(psutil.Process(self._holder.pid).children()[0].pid)

    def command(self) -> list[str]:
        """Return what stands before a command that is to run inside, in the directory /."""
        return ["nsenter", "-t", str(self.pid), "-m", "-n", "-p", "--"]

    def _inside(self, arguments: tuple[Any, ...], options: dict[str, Any]) -> list[str]:
        here = options.pop("cwd", "/")
        words = [str(argument) for argument in arguments]
        return [*self.command(), "sh", "-c", 'cd "$0" && exec "$@"', str(here), *words]

    def popen(self, *arguments: Any, **options: Any) -> subprocess.Popen[Any]:
        """Start a command inside; options as of `subprocess.Popen`."""
        command = self._inside(arguments, options)
        environment = {**os.environ, **self.environment, **options.pop("env", {})}
        return subprocess.Popen(command, env=environment, **options)

    def run(
        self, *arguments: Any, timeout: float = 120, **options: Any
    ) -> subprocess.CompletedProcess[str]:
        """Run a command inside to its end; return status and what it printed."""
        command = self._inside(arguments, options)
        environment = {**os.environ, **self.environment, **options.pop("env", {})}
        return subprocess.run(
            command, env=environment, capture_output=True, text=True, check=False,
            timeout=timeout, **options,
        )  # fmt: skip

    def wrap(self, folder: Path, *programs: str) -> None:
        """Write programs of the same names that run inside, for the PATH of this process."""
        folder.mkdir(exist_ok=True)
        exports = "".join(
            f"export {key}={shlex.quote(value)}\n" for key, value in self.environment.items()
        )
        for program in programs:
            found = shutil.which(program)
            assert found is not None, program
            path = folder / program
            path.write_text(
                f"#!/bin/sh\n{exports}exec {' '.join(self.command())} "
                f'sh -c \'cd "$0" && exec "$@"\' "$PWD" {found} "$@"\n'
            )
            path.chmod(0o755)

    def stop(self) -> None:
        """End the process that holds it, and with it all that runs inside."""
        if self._holder is None:
            return
        psutil.Process(self.pid).kill()
        self._holder.wait(timeout=30)

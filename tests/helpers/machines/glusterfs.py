"""A real network file system with several caches for the tests: GlusterFS on one machine (root only).

Debian's packages glusterfs-server and glusterfs-client. One volume on the loopback of a namespace,
mounted once in each of several namespaces of mounts: each has a client of its own, with its own
cache, as so many machines have.
"""

import shutil
import subprocess
import sys
import time
from pathlib import Path

from machines.namespaces import Namespace, host_name
from machines.namespaces import why_not as namespaces_why_not

PROGRAMS = ("glusterd", "gluster", "glusterfs")
ADDRESSES = ("10.99.0.1", "10.99.0.2", "10.99.0.3")
"""One for each machine, all on the one loopback interface."""

# What opening a file shows is what was closed elsewhere before: nothing is kept past that.
CLOSE_TO_OPEN = ("--attribute-timeout=0", "--entry-timeout=0", "--fopen-keep-cache=off")
_TRANSLATORS = (
    "quick-read", "stat-prefetch", "open-behind", "write-behind", "read-ahead", "io-cache", "readdir-ahead",
)  # fmt: skip
# Where it keeps itself, its logs and sockets.
_PRIVATE = ("/var/lib/glusterd", "/var/log/glusterfs", "/run")


def why_not() -> str | None:
    """Return why no GlusterFS can be mounted here, None if one can."""
    if missing := [name for name in PROGRAMS if shutil.which(name) is None]:
        return (
            f"needs GlusterFS ({', '.join(missing)} absent): apt-get install glusterfs-server "
            "glusterfs-client"
        )
    if not Path("/dev/fuse").exists():
        return "needs /dev/fuse, which mounts of GlusterFS go through"
    return namespaces_why_not()


class GlusterFS:
    """A volume that machines mount, each at the same path.

    Parameters
    ----------
    base
        An empty directory; the volume is seen in its directory ``shared``.
    close_to_open
        Whether to mount it so that nothing is kept past the opening of a file; as it comes if not.
    """

    def __init__(self, base: Path, *, close_to_open: bool) -> None:
        self.base, self.close_to_open = base, close_to_open
        self.shared = base / "shared"
        self._started: list[subprocess.Popen[bytes]] = []
        server = Namespace(base, "a")
        self.machines = [server, Namespace(base, "b", server), Namespace(base, "c", server)]

    def start(self) -> None:
        """Start the server, make the volume and mount it on every machine."""
        for part in ("brick", "shared", "private"):
            (self.base / part).mkdir()
        server = self.machines[0]
        server.start()
        for number, path in enumerate(_PRIVATE):
            own = self.base / "private" / str(number)
            (own / "gluster").mkdir(parents=True)
            self._do("mount", "--bind", own, path)
        for address in ADDRESSES:
            self._do("ip", "address", "add", f"{address}/32", "dev", "lo")
        self._daemon(server, "glusterd", f"--pid-file={self.base}/glusterd.pid")
        self._until("gluster", "--mode=script", "volume", "list")
        gluster = ("gluster", "--mode=script", "volume")
        self._do(*gluster, "create", "vol", f"{host_name()}:{self.base}/brick", "force")
        if self.close_to_open:
            for translator in _TRANSLATORS:
                self._do(*gluster, "set", "vol", f"performance.{translator}", "off")
        self._do(*gluster, "start", "vol")
        # All before the first mount, which a later one would begin with.
        for machine in self.machines[1:]:
            machine.start()
        for machine in self.machines:
            self._daemon(
                machine, "glusterfs", "-s", host_name(), "--volfile-id=vol",
                f"--log-file={self.base}/mount-{machine.name}.log",
                *(CLOSE_TO_OPEN if self.close_to_open else ()), self.shared,
            )  # fmt: skip
        for machine in self.machines:
            self._until("mountpoint", "-q", self.shared, machine=machine)

    def stop(self) -> None:
        """End it and all that runs on its machines."""
        for machine in reversed(self.machines):
            machine.stop()
        for process in self._started:
            process.wait(timeout=30)
        shutil.rmtree(self.base, ignore_errors=True)

    def start_workers(self) -> str:
        """Start a scheduler on the first machine and a worker on each other; return its address."""
        self._dask(0, "dask_scheduler", "--port", "8786", "--no-dashboard")
        address = f"tcp://{ADDRESSES[0]}:8786"
        for number in (1, 2):
            self._dask(
                number, "dask_worker", address, "--nthreads", "1", "--memory-limit", "2GiB",
                "--no-nanny", "--no-dashboard",
            )  # fmt: skip
        return address

    @property
    def dask_log(self) -> str:
        """What scheduler and workers have said so far."""
        return (self.base / "dask.log").read_text(encoding="utf-8")

    def _dask(self, number: int, command: str, *arguments: str) -> None:
        with (self.base / "dask.log").open("a", encoding="utf-8") as log:
            started = self.machines[number].popen(
                sys.executable, "-m", f"distributed.cli.{command}", *arguments,
                "--host", ADDRESSES[number], cwd=self.base, stdout=log, stderr=log,
            )  # fmt: skip
        self._started.append(started)

    def _do(self, *command: object) -> None:
        done = self.machines[0].run(*command)
        assert done.returncode == 0, (command, done.stdout, done.stderr)

    def _daemon(self, machine: Namespace, *command: object) -> None:
        # A daemon keeps its output open, so it goes nowhere.
        options = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL}
        started = machine.popen(*command, stderr=subprocess.DEVNULL, **options)
        assert started.wait(timeout=60) == 0, command

    def _until(self, *command: object, machine: Namespace | None = None) -> None:
        end = time.monotonic() + 30
        while (done := (machine or self.machines[0]).run(*command)).returncode != 0:
            assert time.monotonic() < end, (command, done.stdout, done.stderr)
            time.sleep(0.1)

"""Trying a cluster with one worker: ``eigenscape cluster check``."""

import os
import secrets
import socket
import tempfile
import time
from contextlib import closing, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from eigenscape.base.files.whole import explain_write_errors
from eigenscape.clusters.directories.mounts import mount_of
from eigenscape.clusters.directories.sharing import probe_sharing
from eigenscape.clusters.options import ClusterOptions, Say
from eigenscape.clusters.start import wait_of
from eigenscape.clusters.versions import differences, versions
from eigenscape.clusters.workers.dask import host_of, lacks_eigenscape, print_nothing
from eigenscape.clusters.workers.task import describe_differences, describe_unseen
from eigenscape.clusters.workers.watch import Watch
from eigenscape.errors import ClusterError

_SEEN_S = 60.0
_BYTES = 2**26
_MIB = 2**20


@dataclass(frozen=True)
class Findings:
    """Results of a cluster check.

    Attributes
    ----------
    kind
        Kind of the cluster.
    host
        Machine of the worker.
    start_s
        Seconds until the worker came, its time in the queue included.
    versions
        By package: here and there.
    file_system
        What the directory is on there, and how it is mounted.
    seen_there_s, seen_here_s
        Seconds until a file that was written here was seen by the worker, and the other way.
    threads, memory_limit, memory_total, memory_available
        Tasks at a time of the worker; bytes that it may take, its machine has, and has free.
    shared_write, shared_read, scratch_write, scratch_read
        MiB/s of the worker in the run directory's file system and in its own scratch.
    network
        MiB/s of an array from here to the worker and back.
    """

    kind: str
    host: str
    start_s: float
    versions: dict[str, tuple[str, str]]
    file_system: str
    seen_there_s: float
    seen_here_s: float
    threads: int
    memory_limit: int
    memory_total: int
    memory_available: int
    shared_write: float
    shared_read: float
    scratch_write: float
    scratch_read: float
    network: float

    def to_json(self) -> dict[str, Any]:
        """Return them as JSON."""
        return asdict(self)


def check_cluster(
    options: ClusterOptions, directory: Path, memory_limit: int, say: Say = print_nothing
) -> Findings:
    """Start one worker, try what a run needs of it, and stop it.

    Parameters
    ----------
    options
        The cluster file.
    directory
        Where runs will be: a file is written there and removed.
    memory_limit
        ``[limits] memory`` in bytes.
    say
        Called with what is waited for.

    Raises
    ------
    ClusterError
        No worker comes, it has other versions, it does not see the directory, or it reads there what
        was before others wrote.
    """
    if options.in_process:
        raise ClusterError(f"kind = {options.kind!r} has no workers to check: it is this process.")
    begin = time.monotonic()
    with (
        options.for_check().open_client(None, memory_limit, say) as (client, supply),
        closing(Watch(client, supply, say)) as watch,
    ):
        watch.await_worker(wait_of(options))
        start_s = time.monotonic() - begin
        address, worker = next(iter(watch.workers.items()))
        there = _ask(client, address, versions)
        if wrong := differences(versions(), there):
            raise ClusterError(describe_differences(host_of(address), wrong))
        seen_there, seen_here = _share(client, address, directory)
        probe_sharing(client, directory, {address: f"the worker on {host_of(address)}"})
        machine = _ask(client, address, _describe)
        shared_write, shared_read = _ask(client, address, _time_files, str(directory))
        scratch_write, scratch_read = _ask(client, address, _time_files, None)
        return Findings(
            kind=options.kind,
            host=str(machine["host"]),
            start_s=round(start_s, 2),
            versions={
                package: (version, there[package]) for package, version in versions().items()
            },
            file_system=_ask(client, address, _file_system, str(directory)),
            seen_there_s=seen_there,
            seen_here_s=seen_here,
            threads=int(worker["nthreads"]),
            memory_limit=int(worker["memory_limit"]),
            memory_total=int(machine["total"]),
            memory_available=int(machine["available"]),
            shared_write=shared_write,
            shared_read=shared_read,
            scratch_write=scratch_write,
            scratch_read=scratch_read,
            network=_time_network(client, address),
        )


def _ask(client: Any, address: str, function: Any, *arguments: Any) -> Any:
    answer = client.run(function, *arguments, workers=[address], on_error="return")[address]
    if isinstance(answer, BaseException):
        if lacks_eigenscape(answer):
            raise ClusterError(describe_differences(host_of(address), [str(answer)]))
        if isinstance(answer, OSError):
            raise ClusterError(
                f"the worker on {host_of(address)} cannot use its files: {answer}. Check the directories "
                "that the cluster file names, and the disk of that machine."
            ) from answer
        raise answer
    return answer


def _share(client: Any, address: str, directory: Path) -> tuple[float, float]:
    """Return how long files take to be seen over there, and over here."""
    stem = f".check.tmp-{secrets.token_hex(4)}"
    ours, theirs = directory / f"{stem}-here", directory / f"{stem}-there"
    try:
        with explain_write_errors(directory):
            directory.mkdir(parents=True, exist_ok=True)
            ours.write_text(stem, encoding="ascii")
        seen_there = _ask(client, address, _await_text, str(ours), stem)
        if seen_there is None:
            raise ClusterError(describe_unseen(str(directory), host_of(address)))
        _ask(client, address, _write_text, str(theirs), stem)
        seen_here = _await_text(str(theirs), stem)
        if seen_here is None:
            raise ClusterError(
                f"{directory}: what the worker on {host_of(address)} writes there is not seen here "
                f"within {_SEEN_S:g} s. The directory must be on a file system that all machines share."
            )
    finally:
        for path in (ours, theirs):
            with suppress(OSError):
                path.unlink()
    return seen_there, seen_here


def _await_text(path: str, text: str) -> float | None:
    """Return the seconds until a file holds a text, None if it is too long."""
    begin = time.monotonic()
    while (waited := time.monotonic() - begin) < _SEEN_S:
        with suppress(OSError):
            if Path(path).read_text(encoding="ascii") == text:
                return round(waited, 4)
        if not Path(path).parent.is_dir():
            return None
        time.sleep(0.02)
    return None


def _write_text(path: str, text: str) -> None:
    Path(path).write_text(text, encoding="ascii")


def _file_system(directory: str) -> str:
    return str(mount_of(directory))


def _describe() -> dict[str, Any]:
    memory = psutil.virtual_memory()
    return {"host": socket.gethostname(), "total": memory.total, "available": memory.available}


def _time_files(directory: str | None, dask_worker: Any = None) -> tuple[float, float]:
    """Return MiB/s of writing a file down to the disk and of reading it; None for the scratch."""
    directory = directory or dask_worker.local_directory
    block = np.random.default_rng(0).bytes(_MIB)
    with tempfile.TemporaryDirectory(prefix=".check.tmp-", dir=directory) as folder:
        path = Path(folder) / "block"
        begin = time.perf_counter()
        with path.open("wb") as stream:
            for _ in range(_BYTES // _MIB):
                stream.write(block)
            stream.flush()
            os.fsync(stream.fileno())
        written = time.perf_counter()
        with path.open("rb") as stream:
            # Pages cached in memory would hide the speed of the disk.
            os.posix_fadvise(stream.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            while stream.read(_MIB):
                pass
        read = time.perf_counter()
    return tuple(round(_BYTES / _MIB / s, 1) for s in (written - begin, read - written))  # type: ignore[return-value]


def _time_network(client: Any, address: str) -> float:
    block = np.random.default_rng(0).integers(0, 255, _BYTES // 4, dtype=np.uint8)
    begin = time.perf_counter()
    client.run(_echo, block, workers=[address])
    return round(2 * block.nbytes / _MIB / (time.perf_counter() - begin), 1)


def _echo(block: np.ndarray) -> np.ndarray:
    return block

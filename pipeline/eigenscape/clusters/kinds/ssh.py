"""Workers on machines that are reached by ssh."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from eigenscape.base.memory import parse_bytes
from eigenscape.clusters.network import (
    Certificates,
    certificate_files,
    http_settings,
    interface_of,
    scheduler_options,
    security_of,
)
from eigenscape.clusters.options import NetworkKeys, ProcessOptions, Say, Word
from eigenscape.clusters.shellwords import python_word
from eigenscape.clusters.workers.supply import ExternalSupply, Supply
from eigenscape.errors import ClusterError, MissingExtraError


class SshOptions(NetworkKeys, ProcessOptions):
    """Scheduler in this process, workers on machines that are reached by ssh."""

    kind: Literal["ssh"] = "ssh"
    needs = ("asyncssh", "asyncssh", "ssh")

    hosts: Annotated[tuple[Word, ...], Field(min_length=1)]
    """Machines on which workers are started."""
    username: Word | None = None
    """User name on these machines; by default that of the ssh configuration."""
    port: Annotated[int, Field(ge=1, le=65535)] | None = None
    """Port of the ssh servers; 22 by default."""
    private_key: str | None = None
    """File of the private key; by default the keys of the user and of the ssh agent."""
    known_hosts: str | None = None
    """File of the host keys of the machines; by default that of the user."""

    @contextmanager
    def start(
        self, threads: int | None, memory_limit: int, say: Say
    ) -> Iterator[tuple[Any, Supply]]:
        """Start them."""
        with ssh_cluster(self, memory_limit) as cluster:
            yield cluster, ExternalSupply("Can the machines reach this one on its interface?")


@contextmanager
def ssh_cluster(options: SshOptions, memory_limit: int) -> Iterator[Any]:
    """Start a scheduler in this process and workers on every machine of a cluster file.

    distributed's own `SSHCluster` starts the scheduler by ssh, too, on all interfaces of the first
    machine; its workers are those here.

    Raises
    ------
    ClusterError
        A machine cannot be reached, or its worker does not start.
    MissingExtraError
        asyncssh is not installed.
    """
    try:
        import asyncssh
    except ImportError:
        raise MissingExtraError("asyncssh", "ssh", "A cluster of kind 'ssh'") from None
    import dask
    from distributed.deploy.spec import SpecCluster
    from distributed.deploy.ssh import Worker
    from distributed.scheduler import Scheduler

    from eigenscape.clusters.workers.process import SETTINGS

    interface = interface_of(options)
    security = security_of(options.certificates, options.tls)
    scheduler = scheduler_options(options, interface) | {"security": security}
    if security is not None:
        scheduler["protocol"] = "tls://"
    with certificate_files(security, options) as certificates:
        each = {
            "cls": Worker,
            "options": {
                "connect_options": _connect_options(options),
                "kwargs": worker_options(options, memory_limit) | _encryption(certificates),
                "worker_class": "distributed.Nanny",
                "remote_python": python_word(options.python),
            },
        }
        workers = {
            number: {**each, "options": each["options"] | {"address": host}}
            for number, host in enumerate(options.hosts)
        }
        try:
            # The machines take over the configuration that holds here.
            with dask.config.set(SETTINGS | http_settings(options)):
                start = partial(
                    SpecCluster,
                    workers=workers,
                    scheduler={"cls": Scheduler, "options": scheduler},
                    security=security,
                    silence_logs=50,
                )
                try:
                    cluster = start()
                except asyncssh.ConnectionLost:
                    # A busy machine can close a connection before it is made.
                    cluster = start()
        except (OSError, asyncssh.Error, RuntimeError) as error:
            raise ClusterError(_unreachable(options, error)) from None
        except Exception as error:
            # What distributed raises when the command there ends at once.
            if "failed to start" not in str(error):
                raise
            raise ClusterError(_unreachable(options, error)) from None
        with cluster:
            yield cluster


def worker_options(options: SshOptions, memory_limit: int) -> dict[str, Any]:
    """Return what the workers of one machine are started with; distributed sends it as JSON."""
    processes = options.processes or 1
    memory = parse_bytes(options.memory) if options.memory else 2 * memory_limit * processes
    found: dict[str, Any] = {
        "n_workers": processes,
        "nthreads": (options.cores or 1) // processes,
        "memory_limit": memory // processes,
        # No address of HTTP: it takes that of the worker, on the same interface.
        "interface": interface_of(options),
        "dashboard": False,
        "death_timeout": 60,
    }
    if options.local_directory:
        found["local_directory"] = options.local_directory
    return found


def _encryption(certificates: Certificates | None) -> dict[str, Any]:
    if certificates is None:
        return {}
    names = ("tls_ca_file", "tls_worker_cert", "tls_worker_key")
    files = dict(zip(names, certificates, strict=True))
    if wrong := [path for path in certificates if "'" in path]:
        # distributed puts all of it between such quotes.
        raise ClusterError(
            f"{wrong[0]}: a quote in the path of a certificate cannot be sent by ssh. Set tls_directory, "
            "or the tls_ keys, to a path without one."
        )
    return {"protocol": "tls", "security": files | {"require_encryption": True}}


def _connect_options(options: SshOptions) -> dict[str, Any]:
    keys = {
        "username": options.username,
        "port": options.port,
        "client_keys": options.private_key and [str(Path(options.private_key).expanduser())],
        "known_hosts": options.known_hosts and str(Path(options.known_hosts).expanduser()),
    }
    return {key: value for key, value in keys.items() if value}


def _unreachable(options: SshOptions, error: Exception) -> str:
    hosts = ", ".join(options.hosts)
    return (
        f"hosts = {hosts}: no worker starts there ({error}). `ssh HOST PYTHON -c 'import eigenscape'` "
        "must work without a question for each of them: see username, port, private_key, "
        "known_hosts and python in cluster/README.md."
    )

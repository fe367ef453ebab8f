"""Workers on machines that are reached by ssh."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import dask

from eigenscape.base.memory import parse_bytes
from eigenscape.clusters.kinds.arguments import interface_of
from eigenscape.clusters.kinds.network import (
    Certificates,
    certificate_files,
    http_settings,
    scheduler_options,
    security_of,
)
from eigenscape.clusters.options import ClusterOptions
from eigenscape.clusters.words import python_word
from eigenscape.clusters.workers.process import SETTINGS
from eigenscape.errors import ClusterError, MissingExtraError


@contextmanager
def ssh_cluster(options: ClusterOptions, memory_limit: int) -> Iterator[Any]:
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
    from distributed.deploy.spec import SpecCluster
    from distributed.deploy.ssh import Worker
    from distributed.scheduler import Scheduler

    security, interface = security_of(options), interface_of(options)
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
            for number, host in enumerate(options.hosts or ())
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


def worker_options(options: ClusterOptions, memory_limit: int) -> dict[str, Any]:
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


def _connect_options(options: ClusterOptions) -> dict[str, Any]:
    keys = {
        "username": options.username,
        "port": options.port,
        "client_keys": options.private_key and [str(Path(options.private_key).expanduser())],
        "known_hosts": options.known_hosts and str(Path(options.known_hosts).expanduser()),
    }
    return {key: value for key, value in keys.items() if value}


def _unreachable(options: ClusterOptions, error: Exception) -> str:
    hosts = ", ".join(options.hosts or ())
    return (
        f"hosts = {hosts}: no worker starts there ({error}). `ssh HOST PYTHON -c 'import eigenscape'` "
        "must work without a question for each of them: see username, port, private_key, "
        "known_hosts and python in cluster/README.md."
    )

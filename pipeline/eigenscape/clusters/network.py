"""Addresses that ports are opened on, and encryption of Dask's own traffic."""

import copy
import os
import secrets
import socket
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import platformdirs
import psutil

from eigenscape.clusters.options import DashboardKey, NetworkKeys
from eigenscape.errors import ClusterError, did_you_mean

Certificates = tuple[str, str, str]
"""Files of the authority, the certificate and its key."""


def address_of(interface: str) -> str:
    """Return the IPv4 address of a network interface of this machine.

    Raises
    ------
    ClusterError
        This machine has no such interface.
    """
    found = {
        name: [address.address for address in addresses if address.family == socket.AF_INET]
        for name, addresses in psutil.net_if_addrs().items()
    }
    if not found.get(interface):
        names = sorted(name for name, addresses in found.items() if addresses)
        raise ClusterError(
            f"interface = {interface!r}: {socket.gethostname()} has no such network interface with an "
            f"IPv4 address.{did_you_mean(interface, names)} It has: {', '.join(names)}. Where the names "
            "on the nodes and here differ, set scheduler_interface too."
        )
    return str(found[interface][0])


def interface_of(options: Any) -> str:
    """Return the network interface on the nodes."""
    interface = options.interface or options.configured("interface", None)
    if interface is None:
        raise ClusterError(
            f"interface is missing. A cluster of kind {options.kind!r} opens ports on the interface "
            'that its file names: one that all nodes share, such as "ib0" or "eth0" (`ip -brief address` '
            'lists them), or "lo" where everything runs on one machine.'
        )
    return str(interface)


def scheduler_options(options: NetworkKeys, interface: str) -> dict[str, Any]:
    """Return what a scheduler in this process is started with: ports on one interface alone.

    Parameters
    ----------
    options
        The cluster file.
    interface
        The network interface of the nodes.
    """
    host = address_of(options.scheduler_interface or interface)
    return {
        "host": host,
        "port": options.scheduler_port,
        # Without a dashboard, too: the port is opened all the same, and would be on every interface.
        "dashboard_address": f"{host}:{options.dashboard_port or 0}",
        "dashboard": options.dashboard_port is not None,
    }


def http_settings(options: DashboardKey) -> dict[str, Any]:
    """Return Dask's settings of what the scheduler's own HTTP port answers: nothing, or a dashboard."""
    return {} if options.dashboard_port is not None else {"distributed.scheduler.http.routes": []}


def security_of(certificates: Certificates | None, encrypted: bool) -> Any:
    """Return distributed's `Security` that a cluster file asks for, None for plain traffic.

    Parameters
    ----------
    certificates
        Files that it names.
    encrypted
        Whether certificates are made for this run where it names none.

    Raises
    ------
    ClusterError
        A file of it is not there.
    """
    from distributed.security import Security

    if certificates is not None:
        for path in certificates:
            if not os.access(path, os.R_OK):
                raise ClusterError(
                    f"{path}: no such file, or it cannot be read (TLS of the cluster)."
                )
        authority, certificate, key = (str(Path(path).resolve()) for path in certificates)
        roles = ("scheduler", "worker", "client")
        return Security(
            require_encryption=True,
            tls_ca_file=authority,
            **{f"tls_{role}_cert": certificate for role in roles},
            **{f"tls_{role}_key": key for role in roles},
        )
    return Security.temporary() if encrypted else None


def private_directory(options: NetworkKeys) -> str:
    """Return a directory that the workers see and nobody else can read, for keys on their way.

    Raises
    ------
    ClusterError
        It cannot be made, belongs to somebody else, or its file system has no permissions.
    """
    path = _private_path(options)
    fix = "Set tls_directory to another directory that the workers see."
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.chmod(0o700)
        state = path.stat()
    except OSError as error:
        raise ClusterError(
            f"{path}: cannot be made a directory for keys ({error.strerror}). {fix}"
        ) from None
    if state.st_uid != os.geteuid() or stat.S_IMODE(state.st_mode) & 0o077:
        raise ClusterError(
            f"{path}: others could read the keys there (owner {state.st_uid}, mode "
            f"{stat.S_IMODE(state.st_mode):o}). {fix}"
        )
    return str(path)


def _private_path(options: NetworkKeys) -> Path:
    if options.tls_directory:  # which others may use for something else
        return Path(options.tls_directory).expanduser().resolve() / f"eigenscape-{os.geteuid()}"
    return platformdirs.user_state_path("eigenscape") / "private"


def shown_security(certificates: Certificates | None, options: NetworkKeys) -> Any:
    """Return a `Security` for a script that is only shown: names stand for files that a run makes."""
    if certificates is not None or not options.tls:
        return security_of(certificates, encrypted=False)
    from distributed.security import Security

    files = [str(_private_path(options) / f"{name}.pem") for name in ("CA", "CERTIFICATE", "KEY")]
    return Security(tls_ca_file=files[0], tls_worker_cert=files[1], tls_worker_key=files[2])


@contextmanager
def certificate_files(security: Any, options: NetworkKeys) -> Iterator[Certificates | None]:
    """Yield files of authority, certificate and key for workers; those made for this run go with it.

    Parameters
    ----------
    security
        From `security_of`.
    options
        The cluster file, for `private_directory`.
    """
    if security is None:
        yield None
        return
    values = list(_worker_certificates(security))
    made = []
    try:
        for number, text in enumerate(values):
            if "\n" in text:  # not the name of a file but what would be in it
                path = Path(private_directory(options)) / f"{secrets.token_hex(8)}.pem"
                made.append(path)
                with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
                    file.write(text)
                values[number] = str(path)
        yield values[0], values[1], values[2]
    finally:
        for path in made:
            path.unlink(missing_ok=True)


@contextmanager
def worker_security(security: Any, options: NetworkKeys) -> Iterator[Any]:
    """Yield a `Security` whose worker takes its certificates from files; see `certificate_files`."""
    with certificate_files(security, options) as files:
        if files is not None:
            security = copy.copy(security)
            security.tls_ca_file, security.tls_worker_cert, security.tls_worker_key = files
        yield security


def certificate_arguments(security: Any) -> list[str]:
    """Return the arguments of ``dask worker`` for a `Security` of `worker_security`."""
    if security is None:
        return []
    names = ("--tls-ca-file", "--tls-cert", "--tls-key")
    pairs = zip(names, _worker_certificates(security), strict=True)
    return [word for pair in pairs for word in pair]


def _worker_certificates(security: Any) -> Certificates:
    found = security.get_tls_config_for_role("worker")
    return found["ca_file"], found["cert"], found["key"]

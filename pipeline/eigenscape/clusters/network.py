"""Addresses that ports are opened on, and encryption of Dask's own traffic."""

import copy
import os
import secrets
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import platformdirs
import psutil

from eigenscape.clusters.options import ClusterOptions
from eigenscape.errors import ClusterError, MissingExtraError, did_you_mean

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


def scheduler_options(options: ClusterOptions, interface: str) -> dict[str, Any]:
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
        "dashboard_address": f"{host}:{options.dashboard_port}",
        "dashboard": True,
    }


def security_of(options: ClusterOptions) -> Any:
    """Return distributed's `Security` that a cluster file asks for, None for plain traffic.

    Raises
    ------
    ClusterError
        A file of it is not there.
    MissingExtraError
        Certificates are to be made, and the package that makes them is not installed.
    """
    from distributed.security import Security

    if options.tls_ca_file and options.tls_cert and options.tls_key:
        paths = (options.tls_ca_file, options.tls_cert, options.tls_key)
        for path in paths:
            if not os.access(path, os.R_OK):
                raise ClusterError(
                    f"{path}: no such file, or it cannot be read (TLS of the cluster)."
                )
        authority, certificate, key = (str(Path(path).resolve()) for path in paths)
        roles = ("scheduler", "worker", "client")
        return Security(
            require_encryption=True,
            tls_ca_file=authority,
            **{f"tls_{role}_cert": certificate for role in roles},
            **{f"tls_{role}_key": key for role in roles},
        )
    if not options.tls:
        return None
    try:
        return Security.temporary()
    except ImportError:
        raise MissingExtraError("cryptography", "hpc", "tls = true") from None


def private_directory() -> str:
    """Return a directory below the user's home that nobody else can read, for keys on their way."""
    path = platformdirs.user_state_path("eigenscape") / "private"
    path.mkdir(parents=True, exist_ok=True)
    path.chmod(0o700)
    return str(path)


@contextmanager
def certificate_files(security: Any, folder: str) -> Iterator[Certificates | None]:
    """Yield files of authority, certificate and key for workers; those made for this run go with it.

    Parameters
    ----------
    security
        From `security_of`.
    folder
        A directory that the workers see and nobody else may read.
    """
    if security is None:
        yield None
        return
    found = security.get_tls_config_for_role("worker")
    values = [found[key] for key in ("ca_file", "cert", "key")]
    made = []
    try:
        for number, text in enumerate(values):
            if "\n" in text:  # not the name of a file but what would be in it
                path = Path(folder) / f"{secrets.token_hex(8)}.pem"
                made.append(path)
                path.touch(mode=0o600)
                path.write_text(text, encoding="ascii")
                values[number] = str(path)
        yield values[0], values[1], values[2]
    finally:
        for path in made:
            path.unlink(missing_ok=True)


@contextmanager
def worker_security(security: Any, folder: str) -> Iterator[Any]:
    """Yield a `Security` whose worker takes its certificates from files; see `certificate_files`."""
    with certificate_files(security, folder) as files:
        if files is not None:
            security = copy.copy(security)
            security.tls_ca_file, security.tls_worker_cert, security.tls_worker_key = files
        yield security

"""Who reaches what a cluster listens on: its own client, and nobody else."""

import http.client
import os
import socket
from contextlib import ExitStack, suppress
from typing import Any

import psutil
from distributed.security import Security

_ALERT = b"\x15\x03"
"""How TLS begins what it says of a connection that is none."""


def reaches(address: str, security: Security | None = None) -> bool:
    """Whether what listens there greets somebody with these certificates, or with none."""
    host, _, port = address.partition("//")[2].rpartition(":")
    with suppress(OSError), ExitStack() as stack:
        line: Any = stack.enter_context(socket.create_connection((host, int(port)), timeout=5))
        if security is not None:
            context = security.get_connection_args("client")["ssl_context"]
            line = stack.enter_context(context.wrap_socket(line))
        else:
            line.sendall(bytes(64))
        return line.recv(2) not in (b"", _ALERT)
    return False


def check_strangers(client: Any) -> list[str]:
    """Try every address of a cluster as its own client and as others; return the addresses."""
    info = client.scheduler_info(n_workers=-1)["workers"]
    addresses = [client.scheduler.address, *info, *(worker["nanny"] for worker in info.values())]
    other = Security.temporary()
    for address in addresses:
        assert address.startswith("tls://"), address
        assert reaches(address, client.security), address
        assert not reaches(address, other), address
        assert not reaches(address.replace("tls://", "tcp://")), address
    return addresses


def http_answers(name: str) -> tuple[set[str], list[str]]:
    """Return the IPs that this process, its children and programs of a name listen on, and what answers.

    An answer is the address and path of an HTTP request that had another answer than "not found".
    """
    mine = {os.getpid(), *(child.pid for child in psutil.Process().children(recursive=True))}
    ips, answers = set(), []
    for found in psutil.net_connections("tcp"):
        if found.status != psutil.CONN_LISTEN or not found.pid:
            continue
        if found.pid not in mine and name not in _command_of(found.pid):
            continue
        ips.add(found.laddr.ip)
        for path in (
            "/health",
            "/metrics",
            "/status",
            "/json/counts.json",
            "/info/main/workers.html",
        ):
            line = http.client.HTTPConnection(*found.laddr, timeout=0.5)
            with suppress(OSError, http.client.HTTPException):
                line.request("GET", path)
                if line.getresponse().status != 404:
                    answers.append(f"{found.laddr.port}{path}")
            line.close()
    return ips, answers


def _command_of(pid: int) -> str:
    """Return the command of a process, "" for one that has ended meanwhile."""
    try:
        return " ".join(psutil.Process(pid).cmdline())
    except psutil.NoSuchProcess:
        return ""

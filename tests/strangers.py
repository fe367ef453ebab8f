"""Who reaches what a cluster listens on: its own client, and nobody else."""

import asyncio
import http.client
import os
from contextlib import suppress
from typing import Any

import psutil
from distributed.comm import connect
from distributed.security import Security


def reaches(address: str, security: Security | None = None) -> bool:
    """Whether somebody with these certificates shakes hands with what listens there."""

    async def shake() -> None:
        keys: dict[str, Any] = security.get_connection_args("client") if security else {}
        comm = await connect(address, timeout=1, **keys)
        await comm.close()

    with suppress(OSError, TypeError):
        asyncio.run(shake())
        return True
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
        if found.pid not in mine and name not in " ".join(psutil.Process(found.pid).cmdline()):
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

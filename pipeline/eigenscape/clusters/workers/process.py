"""The worker process of a queue job or an allocation step: ``python -m eigenscape.clusters.workers.process``.

It is ``dask worker`` with the same arguments, but with all its ports on one interface. Dask's own
listens for HTTP on every interface unless an address is given, which is known only on the node.
"""

import os
import socket
import sys
from collections.abc import Sequence

import dask

from eigenscape.clusters.network import address_of
from eigenscape.clusters.options import UNPROFILED
from eigenscape.clusters.shellwords import expanded
from eigenscape.errors import ClusterError

SETTINGS = {
    # Tasks keep their own promise, and pages of mapped files count as memory of the process: a
    # worker that paused because of them would never go on.
    "distributed.worker.memory.target": False,
    "distributed.worker.memory.spill": False,
    "distributed.worker.memory.pause": False,
    "distributed.worker.memory.terminate": 0.95,
    # The port is opened all the same; everyone who reaches it would read what the worker does.
    "distributed.worker.http.routes": [],
    **UNPROFILED,
}
"""Settings of Dask for every worker that is started here."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Start a worker.

    Parameters
    ----------
    arguments
        Those of ``dask worker``, with ``--interface``; of the command line by default.
    """
    # The tasks of a step all get the same arguments; their number tells their workers apart.
    task = os.environ.get("SLURM_PROCID", "0")
    given = sys.argv[1:] if arguments is None else arguments
    arguments = [argument.replace("{task}", task) for argument in given]
    try:
        host = address_of(_value(arguments, "--interface") or "")
        _check_certificates(arguments)
    except ClusterError as error:
        sys.exit(f"eigenscape: {error}")
    if scratch := _value(arguments, "--local-directory"):
        arguments[arguments.index(scratch)] = expanded(scratch)
    dask.config.set(SETTINGS)
    from distributed.cli.dask_worker import main as dask_worker

    dask_worker([*arguments, "--no-dashboard", "--dashboard-address", f"{host}:0"])


def _value(arguments: Sequence[str], name: str) -> str | None:
    return arguments[arguments.index(name) + 1] if name in arguments else None


def _check_certificates(arguments: Sequence[str]) -> None:
    for name in ("--tls-ca-file", "--tls-cert", "--tls-key"):
        path = _value(arguments, name)
        if path is not None and not os.access(path, os.R_OK):
            raise ClusterError(
                f"{path}: {socket.gethostname()} does not see this certificate of the run. Set "
                "tls_directory in the cluster file to a directory that all machines share."
            )


if __name__ == "__main__":
    main()

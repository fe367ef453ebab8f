"""What a job of a queue or a step of an allocation starts: ``python -m eigenscape.clusters.worker``.

It is ``dask worker`` with the same arguments, but with all its ports on one interface. Dask's own
listens for HTTP on every interface unless it is told an address, which only the node itself knows.
"""

import os
import sys
from collections.abc import Sequence

import dask

from eigenscape.clusters.network import address_of
from eigenscape.errors import ClusterError

MEMORY = {
    # Tasks keep their own promise, and pages of mapped files count as memory of the process: a
    # worker that paused because of them would never go on.
    "distributed.worker.memory.target": False,
    "distributed.worker.memory.spill": False,
    "distributed.worker.memory.pause": False,
    "distributed.worker.memory.terminate": 0.95,
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
        host = address_of(arguments[arguments.index("--interface") + 1])
    except ClusterError as error:
        sys.exit(f"eigenscape: {error}")
    dask.config.set(MEMORY)
    from distributed.cli.dask_worker import main as dask_worker

    dask_worker([*arguments, "--dashboard-address", f"{host}:0"])


if __name__ == "__main__":
    main()

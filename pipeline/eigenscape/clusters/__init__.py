"""Executors of tasks: threads of this process, or the workers of a Dask cluster named by a file.

::

    options.py      what every kind is, shared keys loading.py    reading a file, saying what is wrong
    kinds/          each kind: keys, start, words   registry.py   the kinds by name, of other packages too
    queues.py       what all queues share           network.py    addresses, encryption
    start.py        a file to its workers           check.py      ``eigenscape cluster check``
    workers/        tasks on threads and on Dask workers, lost workers replaced
    directories/    directories seen by all         versions.py   versions on both sides
    submission.py   the driver as a job
"""

from typing import TYPE_CHECKING

from eigenscape.base.lazily import lazy_names

if TYPE_CHECKING:
    from eigenscape.clusters.loading import load_cluster
    from eigenscape.clusters.options import ClusterOptions, Say
    from eigenscape.clusters.start import connect
    from eigenscape.clusters.workers.dask import Workers, on_one_machine
    from eigenscape.clusters.workers.executors import (
        Executor,
        OnDone,
        Order,
        Serial,
        Task,
        Threads,
    )
    from eigenscape.clusters.workers.supply import ExternalSupply, Supply

__all__ = [
    "ClusterOptions",
    "Executor",
    "ExternalSupply",
    "OnDone",
    "Order",
    "Say",
    "Serial",
    "Supply",
    "Task",
    "Threads",
    "Workers",
    "connect",
    "load_cluster",
    "on_one_machine",
]

_HOME = {
    "load_cluster": "loading",
    "ClusterOptions": "options",
    "Say": "options",
    "Supply": "workers.supply",
    "ExternalSupply": "workers.supply",
    "connect": "start",
    "Workers": "workers.dask",
    "on_one_machine": "workers.dask",
    "Executor": "workers.executors",
    "OnDone": "workers.executors",
    "Order": "workers.executors",
    "Serial": "workers.executors",
    "Task": "workers.executors",
    "Threads": "workers.executors",
}

# On first use: whoever needs the keys of a cluster file must not wait for distributed.
__getattr__, __dir__ = lazy_names(__name__, _HOME)

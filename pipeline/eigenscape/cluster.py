"""Where tasks run: threads of this process, or the workers of a Dask cluster named by a file.

The front of `eigenscape.clusters`, which holds the parts.
"""

from eigenscape.clusters.executors import Executor, OnDone, Task, Threads
from eigenscape.clusters.loading import load_cluster
from eigenscape.clusters.options import ClusterOptions
from eigenscape.clusters.start import connect
from eigenscape.clusters.workers import Workers, on_one_machine

__all__ = [
    "ClusterOptions",
    "Executor",
    "OnDone",
    "Task",
    "Threads",
    "Workers",
    "connect",
    "load_cluster",
    "on_one_machine",
]

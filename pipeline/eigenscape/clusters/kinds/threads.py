"""Threads of this process."""

from typing import ClassVar, Literal

from eigenscape.clusters.options import ClusterOptions


class ThreadOptions(ClusterOptions):
    """No workers: tasks run here."""

    kind: Literal["threads"] = "threads"

    in_process: ClassVar[bool] = True

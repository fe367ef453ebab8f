"""Threads of this process."""

from typing import ClassVar, Literal

from eigenscape.clusters.options import ClusterOptions


class ThreadOptions(ClusterOptions):
    """Threads of this process, without workers."""

    kind: Literal["threads"] = "threads"

    in_process: ClassVar[bool] = True

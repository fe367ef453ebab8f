"""Threads of this process."""

from typing import ClassVar, Literal

from eigenscape.clusters.options import ClusterOptions
from eigenscape.clusters.registry import register_kind


@register_kind
class ThreadOptions(ClusterOptions):
    """No workers: tasks run here."""

    kind: Literal["threads"] = "threads"

    in_process: ClassVar[bool] = True

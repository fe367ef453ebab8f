"""The kinds of cluster by name: each is one class in one file of `kinds/`, or of another package."""

from typing import TYPE_CHECKING

from eigenscape.base.registry import Registry
from eigenscape.errors import ClusterError

if TYPE_CHECKING:
    from eigenscape.clusters.options import ClusterOptions
    from eigenscape.clusters.queues import QueueOptions

KINDS: "Registry[ClusterOptions]" = Registry(
    what="kind of cluster", folder="eigenscape.clusters.kinds", group="eigenscape.clusters",
    base="eigenscape.clusters.options:ClusterOptions", key="kind", error=ClusterError,
)  # fmt: skip
"""All of them; packages add theirs by the entry-point group ``eigenscape.clusters``."""


def find_queue(kind: str) -> "type[QueueOptions]":
    """Return the class of a kind that submits jobs.

    Raises
    ------
    ClusterError
        It has no queue.
    """
    from eigenscape.clusters.queues import QueueOptions

    found = KINDS.find(kind)
    if not issubclass(found, QueueOptions):
        raise ClusterError(
            f"kind = {kind!r} submits no jobs. Kinds that do: {', '.join(queue_names())}; "
            "see cluster/README.md."
        )
    return found


def check_queue(options: "ClusterOptions") -> "QueueOptions":
    """Return a cluster file if it is one of a queue.

    Raises
    ------
    ClusterError
        It is of another kind.
    """
    from eigenscape.clusters.queues import QueueOptions

    find_queue(options.kind)
    assert isinstance(options, QueueOptions)
    return options


def queue_names() -> tuple[str, ...]:
    """Return the kinds that submit jobs."""
    from eigenscape.clusters.queues import QueueOptions

    return tuple(name for name, kind in KINDS.all().items() if issubclass(kind, QueueOptions))

"""Jobs of OAR."""

from typing import Any, ClassVar, Literal

from eigenscape.clusters.options import Word
from eigenscape.clusters.queues import ProjectKey, QueueKey, QueueOptions, ResourcesKey


class OarOptions(QueueKey, ProjectKey, ResourcesKey, QueueOptions):
    """Workers in jobs of OAR."""

    kind: Literal["oar"] = "oar"
    memory_property: Word | None = None
    """Name of OAR's property for the memory of a core, such as "memcore"."""

    jobqueue = "OAR"
    query = ("oarstat", "-s", "-j", "{}")
    states: ClassVar = {
        "waiting": "WAITING TOLAUNCH SUSPENDED",
        "running": "RUNNING LAUNCHING FINISHING",
        "gone": "TERMINATED ERROR",
    }
    reason = (("oarstat", "-f", "-j", "{}"), r"message = (.+)")
    job_variable = "OAR_JOB_ID"

    def own_arguments(self) -> dict[str, Any]:
        """Return the arguments of its class; one of them OAR alone has."""
        memory = self.configured("memory-per-core-property-name", "not_applicable")
        own = {"memory_per_core_property_name": self.memory_property or memory}
        return super().own_arguments() | own

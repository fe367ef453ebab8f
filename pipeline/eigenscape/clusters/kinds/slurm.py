"""Jobs of SLURM."""

from typing import Any, ClassVar, Literal

from eigenscape.clusters.queues import AccountKey, QueueKey, QueueOptions
from eigenscape.clusters.registry import register_kind


@register_kind
class SlurmOptions(QueueKey, AccountKey, QueueOptions):
    """Workers in jobs of SLURM."""

    kind: Literal["slurm"] = "slurm"

    jobqueue = "SLURM"
    query = ("squeue", "--noheader", "--format=%T", "--jobs={}")
    states: ClassVar = {
        "waiting": "PENDING CONFIGURING REQUEUED SUSPENDED",
        "running": "RUNNING COMPLETING",
        "gone": "COMPLETED CANCELLED FAILED TIMEOUT",
    }
    reason = (("squeue", "--noheader", "--format=%T: %r", "--jobs={}"), r"(.+)")
    cancel_named = "scancel --name={}"
    job_variable = "SLURM_JOB_ID"

    def own_arguments(self) -> dict[str, Any]:
        """Return the arguments that dask-jobqueue's class of this kind alone takes."""
        return {"queue": self.queue, "account": self.account, "walltime": self.walltime_text()}

"""Jobs of SLURM."""

from typing import ClassVar, Literal

from eigenscape.clusters.queues import AccountKey, QueueKey, QueueOptions


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

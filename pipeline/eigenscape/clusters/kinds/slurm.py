"""Jobs of SLURM."""

from typing import ClassVar, Literal

from eigenscape.clusters.queues import AccountKey, QueueKey, QueueOptions


class SlurmOptions(QueueKey, AccountKey, QueueOptions):
    """Workers in jobs of SLURM."""

    kind: Literal["slurm"] = "slurm"

    jobqueue = "SLURM"
    query = ("squeue", "--noheader", "--format=%T", "--jobs={}")
    states: ClassVar = {
        "waiting": "PENDING CONFIGURING REQUEUED REQUEUE_HOLD SUSPENDED",
        "running": "RUNNING COMPLETING STAGE_OUT",
        "gone": "COMPLETED CANCELLED FAILED TIMEOUT BOOT_FAIL DEADLINE NODE_FAIL OUT_OF_MEMORY PREEMPTED",
    }
    reason = (("squeue", "--noheader", "--format=%T: %r", "--jobs={}"), r"(.+)")
    cancel_named = "scancel --name={}"
    job_variable = "SLURM_JOB_ID"

"""Jobs of PBS."""

from typing import Literal

from eigenscape.clusters.queues import AccountKey, QueueKey, QueueOptions, ResourcesKey
from eigenscape.clusters.workers.reports import JobState


class PbsOptions(QueueKey, AccountKey, ResourcesKey, QueueOptions):
    """Workers in jobs of PBS."""

    kind: Literal["pbs"] = "pbs"

    jobqueue = "PBS"
    query = ("qstat", "{}")
    reason = (("qstat", "-f", "{}"), r"comment = ((?:.+)(?:\n\t.+)*)")
    cancel_named = "qselect -N {} | xargs --no-run-if-empty qdel"
    job_variable = "PBS_JOBID"

    @classmethod
    def state_of(cls, job_id: str, status: int, out: str, err: str) -> JobState:
        """Return what its answer means. The table differs from site to site: a known job is there."""
        if status != 0:
            gone = any(text in err.lower() for text in ("unknown job", "has finished"))
            return "gone" if gone else "unknown"
        return "running" if " R " in out else "waiting"

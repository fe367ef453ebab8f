"""Jobs of LSF."""

from typing import ClassVar, Literal

from eigenscape.clusters.queues import ProjectKey, QueueKey, QueueOptions


class LsfOptions(QueueKey, ProjectKey, QueueOptions):
    """Workers in jobs of LSF."""

    kind: Literal["lsf"] = "lsf"

    jobqueue = "LSF"
    query = ("bjobs", "-noheader", "-o", "stat", "{}")
    states: ClassVar = {
        "waiting": "PEND PSUSP USUSP SSUSP WAIT PROV",
        "running": "RUN",
        "gone": "DONE EXIT",
    }
    reason = (("bjobs", "-noheader", "-o", "stat pend_reason", "{}"), r"(.+)")
    cancel_named = "bkill -J {} 0"
    job_variable = "LSB_JOBID"

    def walltime_text(self) -> str | None:
        """Return the walltime in hours and minutes: LSF has no seconds."""
        seconds = self.walltime_seconds()
        minutes = -(-(seconds or 0) // 60)
        return None if seconds is None else f"{minutes // 60:02}:{minutes % 60:02}"

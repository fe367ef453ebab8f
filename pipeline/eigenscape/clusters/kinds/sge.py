"""Jobs of Grid Engine."""

from typing import Literal

from eigenscape.clusters.queues import ProjectKey, QueueKey, QueueOptions, ResourcesKey
from eigenscape.clusters.workers.reports import JobState


class SgeOptions(QueueKey, ProjectKey, ResourcesKey, QueueOptions):
    """Workers in jobs of Grid Engine."""

    kind: Literal["sge"] = "sge"

    jobqueue = "SGE"
    query = ("qstat",)  # the own jobs; -j, of one job, gives no state in Grid Engine 8.1.9
    reason = (
        ("qstat", "-j", "{}"),
        r"(?:error reason +\d+|scheduling info): +((?:.+)(?:\n {10,}.+)*)",
    )
    cancel_named = "qdel {}"
    job_variable = "JOB_ID"

    def all_directives(self) -> list[str]:
        """Return the directives: many of its queues start jobs with csh, whatever the script says."""
        directives = super().all_directives()
        asked = any(line.split()[:1] == ["-S"] for line in directives)
        return directives if asked else ["-S /bin/bash", *directives]

    @classmethod
    def state_of(cls, job_id: str, status: int, out: str, err: str) -> JobState:
        """Return the state of a job by the table: number, priority, name, user, letters."""
        if status != 0:
            return "unknown"
        for words in map(str.split, out.splitlines()):
            if words[:1] == [job_id] and len(words) > 4:
                letters = words[4]
                if "E" in letters:
                    return "failed"
                return "running" if set("rt") & set(letters) else "waiting"
        return "gone"

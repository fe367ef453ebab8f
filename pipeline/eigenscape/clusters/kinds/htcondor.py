"""Jobs of HTCondor."""

import shlex
from typing import Any, ClassVar, Literal

from eigenscape.clusters.queues import QueueOptions
from eigenscape.errors import ClusterError
from eigenscape.job.options import Size


class HTCondorOptions(QueueOptions):
    """Workers in jobs of HTCondor."""

    kind: Literal["htcondor"] = "htcondor"
    disk: Size | None = None
    """Disk of each job, such as "10GiB"."""

    jobqueue = "HTCondor"
    query = ("condor_q", "{}", "-autoformat", "JobStatus")
    states: ClassVar = {
        "waiting": "1 5 7",
        "running": "2 6",
        "gone": "3 4",
    }
    reason = (("condor_q", "{}", "-autoformat", "HoldReason"), r"^(?!undefined)(.+)")
    cancel_named = "condor_rm -constraint 'JobBatchName == \"{}\"'"

    def own_arguments(self) -> dict[str, Any]:
        """Return the arguments of its class: no walltime, which is a directive."""
        return {"disk": self.disk or self.configured("disk", "10GiB")}

    def all_directives(self) -> dict[str, str]:
        """Return the directives as key and value; one of them ends a job after its walltime."""
        directives = dict(self.configured("job-extra-directives", {}))
        if (seconds := self.walltime_seconds()) is not None:
            directives["periodic_remove"] = (
                f"(JobStatus == 2) && (time() - EnteredCurrentStatus > {seconds})"
            )
        for line in self.directives:
            key, separator, value = line.partition("=")
            if not separator:
                raise ClusterError(
                    f'directives: {line!r}: HTCondor\'s have the form "key = value".'
                )
            directives[key.strip()] = value.strip()
        return directives

    @classmethod
    def adapted(cls, job: Any) -> Any:
        """Return a class of a job that hands its command line on as it is: $(NAME) is a macro."""

        class Literal(job):  # type: ignore[misc]
            def job_script(self) -> str:
                head, mark, rest = super().job_script().partition("\nArguments = ")
                line, end, rest = rest.partition("\n")
                return str(head + mark + line.replace("$", "$(DOLLAR)") + end + rest)

        Literal.__name__ = job.__name__
        return Literal

    def set_up(self, line: str) -> str:
        """Return a set-up line as it stands before others: a comment is not to take these with it."""
        return f"eval {shlex.quote(line)}" if "#" in line else line

    def driver_line(self, job: Any, line: str) -> str:
        """Return the set-up lines and the command in one: it has no lines before the command."""
        return "; ".join([*job._job_script_prologue, line])

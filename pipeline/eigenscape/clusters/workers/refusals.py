"""Jobs that a queue refuses: for now, or for good."""

import re
from collections.abc import Callable
from typing import Any

from distributed.core import Status

from eigenscape.clusters.network import certificate_arguments
from eigenscape.clusters.shellwords import quoted

_HOPELESS = re.compile(
    r"invalid|unknown|illegal|unrecogni[sz]ed|no such|can ?not be satisfied|denied|permitted|exceed"
    r"|node configuration is not available|does not exist|syntax error",
    re.IGNORECASE,
)


def is_hopeless(error: Exception) -> bool:
    """Return whether a job that was refused with an error would be refused again.

    What is not known to be for good may be a queue that is down for a while.
    """
    if isinstance(error, OSError):
        return True  # there is no such command here
    return _HOPELESS.search(str(error).rpartition("stderr:")[2]) is not None


def noting_refusals(job: Any, explain: Callable[[Exception], str]) -> Any:
    """Return a class of jobs that keep why they could not be submitted, for `Jobs` to act on.

    dask-jobqueue's raise it within the event loop, which only logs it.

    Parameters
    ----------
    job
        One of dask-jobqueue's classes.
    explain
        Says what the error of a submission means.
    """

    class Noting(job):  # type: ignore[misc]
        refused: str | None = None
        hopeless = False

        def __init__(
            self, *arguments: Any, security: Any, worker_extra_args: list[str], **keys: Any
        ) -> None:
            # dask-jobqueue would not quote the names of the files.
            worker_extra_args = [*worker_extra_args, *quoted(certificate_arguments(security))]
            super().__init__(*arguments, worker_extra_args=worker_extra_args, **keys)

        async def start(self) -> None:
            try:
                await super().start()
            except (OSError, RuntimeError, ValueError) as error:
                self.refused, self.hopeless = explain(error), is_hopeless(error)
                self.status = Status.running  # as far as the cluster is concerned

        async def close(self) -> None:
            await super().close()
            self.status = Status.closed

        def __repr__(self) -> str:
            return f"job {self.job_id}"

    Noting.__name__ = job.__name__
    return Noting

"""Workers inside the SLURM allocation of this process, each as one task of a step."""

import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Literal

import dask
from distributed.core import Status
from distributed.deploy.spec import ProcessInterface, SpecCluster
from distributed.scheduler import Scheduler
from pydantic import Field

from eigenscape.base.memory import parse_bytes
from eigenscape.clusters.network import (
    certificate_arguments,
    http_settings,
    interface_of,
    scheduler_options,
    security_of,
    worker_security,
)
from eigenscape.clusters.options import LogKey, NetworkKeys, Say, WorkerOptions
from eigenscape.clusters.shellwords import expanded
from eigenscape.clusters.workers.reports import JobState, Report, last_line
from eigenscape.clusters.workers.supply import Jobs, Supply
from eigenscape.errors import ClusterError


class Step(ProcessInterface):  # type: ignore[misc]
    """A step of the allocation, in which every task is a worker.

    Parameters
    ----------
    scheduler
        Its address.
    name
        First part of the names of its workers.
    command
        What starts it, with ``{scheduler}`` and ``{name}`` among it.
    log
        File for what it prints.
    """

    refused: str | None = None
    hopeless = False

    def __init__(self, scheduler: str, name: int, command: list[str], log: Path) -> None:
        super().__init__(scheduler=scheduler, name=name)
        filled = {"{scheduler}": scheduler, "{name}": f"{name}-{{task}}"}
        self._command = [filled.get(part, part) for part in command]
        self.log = log
        self._process: subprocess.Popen[bytes] | None = None

    async def start(self) -> None:
        """Start it, without waiting for its workers."""
        with self.log.open("ab") as log:
            try:
                self._process = subprocess.Popen(
                    self._command, stdin=subprocess.DEVNULL, stdout=log, stderr=log
                )
            except OSError as error:
                self.refused, self.hopeless = f"{self._command[0]}: {error.strerror}.", True
        await super().start()

    async def close(self) -> None:
        """End it."""
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()
            self._process.wait(timeout=30)
        self.status = Status.closed

    def state(self) -> JobState:
        """Return whether it runs."""
        alive = self._process is not None and self._process.poll() is None
        return "running" if alive else "gone"

    def __repr__(self) -> str:
        return f"the step of workers ({shlex.join(self._command[:2])} ...)"


class StepReports:
    """Reports the state of a step and the last line of its log."""

    def ask(self, job: Step) -> Report:
        """Return whether it runs."""
        return Report(job.state())

    def last_words(self, job: Step) -> str:
        """Return the last line of its log."""
        return last_line(job.log)


class AllocationOptions(NetworkKeys, LogKey, WorkerOptions):
    """Scheduler in this process, workers in a step of the same allocation."""

    kind: Literal["allocation"] = "allocation"
    workers: Annotated[int, Field(ge=1, le=4096)] | None = None
    """Worker processes: one per task of the allocation by default."""

    @contextmanager
    def start(
        self, threads: int | None, memory_limit: int, say: Say
    ) -> Iterator[tuple[Any, Supply]]:
        """Start the step."""
        with allocation_cluster(self, memory_limit, say) as both:
            yield both


@contextmanager
def allocation_cluster(
    options: AllocationOptions, memory_limit: int, say: Say
) -> Iterator[tuple[SpecCluster, Supply]]:
    """Start a scheduler in this process and a step of workers beside it.

    Raises
    ------
    ClusterError
        This process is in no allocation.
    """
    if "SLURM_JOB_ID" not in os.environ:
        raise ClusterError(
            "kind = 'allocation' works only inside a SLURM allocation, and SLURM_JOB_ID is not set. "
            "Start this command with salloc or in an sbatch script, or set kind = 'slurm'."
        )
    folder = Path(options.logs())
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / f"allocation-{os.environ['SLURM_JOB_ID']}.log"
    with worker_security(security_of(options.certificates, options.tls), options) as security:
        command = step_command(options, memory_limit) + certificate_arguments(security)
        scheduler = scheduler_options(options, interface_of(options)) | {"security": security}
        if security is not None:
            scheduler["protocol"] = "tls://"
        with (
            dask.config.set(http_settings(options)),
            SpecCluster(
                scheduler={"cls": Scheduler, "options": scheduler},
                worker={"cls": Step, "options": {"command": command, "log": log}},
                security=security,
                silence_logs=50,
            ) as cluster,
        ):
            advice = f"What the workers print is in {log}."
            yield cluster, Jobs(cluster, StepReports(), 1, advice, say)


def step_command(options: AllocationOptions, memory_limit: int) -> list[str]:
    """Return the command that starts the workers, ``{scheduler}`` and ``{name}`` left open."""
    tasks = options.workers or int(os.environ.get("SLURM_NTASKS", "1"))
    cores = options.cores or int(os.environ.get("SLURM_CPUS_PER_TASK", "1"))
    memory = parse_bytes(options.memory) if options.memory else 2 * memory_limit
    command = [
        # The tasks share the allocation with this process, and go on when one of them ends.
        "srun", "--overlap", f"--ntasks={tasks}", f"--cpus-per-task={cores}", "--mem=0",
        "--cpu-bind=none", "--kill-on-bad-exit=0", "--no-kill", "--wait=0", "--quiet",
        expanded(options.python or sys.executable), "-m", "eigenscape.clusters.workers.process",
        "{scheduler}",
        "--name", "{name}", "--interface", interface_of(options), "--nanny",
        "--nthreads", str(cores), "--memory-limit", str(memory), "--death-timeout", "60",
    ]  # fmt: skip
    if options.local_directory:
        command += ["--local-directory", options.local_directory]
    return command

"""Submit the driver of a run, say how it is, cancel it and its workers."""

import os
import secrets
import shlex
import subprocess
from collections.abc import Mapping
from pathlib import Path

from eigenscape.base.files.whole import explain_write_errors
from eigenscape.base.footprint import enough
from eigenscape.base.memory import format_bytes, parse_bytes
from eigenscape.base.process.progress import LogLines, Reporter
from eigenscape.clusters import ClusterOptions
from eigenscape.clusters.loading import parse_cluster
from eigenscape.clusters.queues import QueueOptions
from eigenscape.clusters.registry import check_queue, find_queue
from eigenscape.clusters.shellwords import check_plain, python_word, quoted
from eigenscape.clusters.submission import Submission, changing, read_submission, write_submission
from eigenscape.errors import BusyError, EigenscapeError, InputError, MemoryLimitError
from eigenscape.job.changes import given_tables
from eigenscape.job.jobfile import Job, parse_job
from eigenscape.workflow.directories import check_run_directory, run_directory
from eigenscape.workflow.footprint import driver_bytes
from eigenscape.workflow.plan import project_plan
from eigenscape.workflow.runner import fit_limits
from eigenscape.workflow.stages import stage_keys


def submit(
    job: Job,
    on: ClusterOptions,
    *,
    run_dir: Path | None = None,
    reporter: Reporter | None = None,
) -> tuple[Path, Submission]:
    """Put the driver of a run into a queue, unless it is there already.

    Parameters
    ----------
    job
        What to run.
    on
        A cluster file of a queue: for the driver by its table ``[driver]``, and for the workers.
    run_dir
        As in `eigenscape.run`.
    reporter
        Is told if the driver is in the queue already.

    Returns
    -------
    Path
        Run directory.
    Submission

    Raises
    ------
    ClusterError
        The cluster has no queue, or the queue refuses the job.
    InputError
        The job cannot work, or is a study.
    BusyError
        The driver of another job is in the queue for this run directory.
    """
    queue = check_queue(on)
    if job.study is not None:
        raise InputError(
            f"{job.name}: a study is many runs. Submit its jobs without [study], or run it with --on "
            "from a machine of the cluster that you may stay on."
        )
    keys = stage_keys(job)
    path = run_directory(job, keys, run_dir)
    check_run_directory(path, job)
    check_plain(str(path), "the run directory", "Choose another by output.directory or --run-dir.")
    # Refused here rather than in the queue.
    fitted, where = driven(job, queue)
    planned = project_plan(fitted, where)
    planned.check(fitted.limits.memory_bytes)
    if not queue.driver.alone:
        check_driver(queue, planned.samples)
    with explain_write_errors(path):
        path.mkdir(parents=True, exist_ok=True)
        (path / "driver").mkdir(exist_ok=True)
    # Only the keys that are given: with its defaults, a job would no longer leave its methods open.
    table = given_tables(job)
    # Short: some queues take 15 letters.
    name = f"eig-{secrets.token_hex(4)}"
    fresh = Submission(
        kind=on.kind,
        name=name,
        worker_name=f"{name}-w",
        job={"table": table, "name": job.name, "base": str(job.base.resolve())},
        cluster=on.model_dump(mode="json", exclude_defaults=True) | {"kind": on.kind},
    )
    with changing(path) as before:
        if before is not None and not before.over and before.job_id is not None:
            state = find_queue(before.kind).job_state(before.job_id)
            if state in ("waiting", "running"):
                if _keys_of(before) != keys:
                    raise BusyError(
                        f"{path}: job {before.job_id} ({state}) is to compute another job there. Give "
                        f"another --run-dir, or end it first: eigenscape cancel {path}"
                    )
                text = f"{path.name} is in the queue already: job {before.job_id}, {state}"
                (reporter or LogLines()).note(text)
                return path, before
        return path, enqueue(path, fresh)


def _keys_of(submission: Submission) -> Mapping[str, str] | None:
    """Return the keys of the job that was submitted, None if it cannot be run any more."""
    try:
        return stage_keys(submitted_job(submission))
    except EigenscapeError:
        return None


def submitted_job(submission: Submission) -> Job:
    """Return the job that a driver runs.

    Raises
    ------
    JobError
        Another version of eigenscape has submitted it, whose keys are not those of this one.
    """
    given = submission.job
    return parse_job(given["table"], name=given["name"], base=Path(given["base"]))


def check_driver(on: QueueOptions, samples: int) -> None:
    """Refuse a job of the driver with less memory than the driver takes.

    Parameters
    ----------
    on
        The cluster file.
    samples
        Of the scene.

    Raises
    ------
    MemoryLimitError
        With both, and the fix.
    """
    needed = driver_bytes(samples)
    if parse_bytes(on.driver.memory) < needed:
        raise MemoryLimitError(
            f"[driver] memory = {on.driver.memory}: the driver of a run of {samples:,} samples takes up to "
            f"{format_bytes(needed)}. Set it to {enough(needed)} or more in the cluster file."
        )


def driven(job: Job, on: QueueOptions) -> tuple[Job, ClusterOptions]:
    """Return a job as its driver runs it, and where its tasks run.

    A driver that works alone has its own cores, and three quarters of its own memory: the rest is
    for pages of mapped files, as in `eigenscape.workflow.runner.fit_limits`.
    """
    if not on.driver.alone:
        return fit_limits(job, on), on
    memory = min(job.limits.memory_bytes, int(0.75 * parse_bytes(on.driver.memory)))
    limits = {"memory": f"{memory} B", "threads": job.limits.threads or on.driver.cores}
    fitted = job.model_copy(update={"limits": job.limits.model_copy(update=limits)})
    return fitted, ClusterOptions()


def enqueue(path: Path, submission: Submission) -> Submission:
    """Submit a job of the driver and note its number; hold `changing` around it."""
    on = cluster_of(submission)
    # First, so that a job that starts at once finds itself expected.
    submission = write_submission(path, submission, state="submitting")
    before = [python_word(on.python)]
    if data := os.environ.get("EIGENSCAPE_DATA"):
        before = [*quoted(["env", f"EIGENSCAPE_DATA={Path(data).resolve()}"]), *before]
    script = on.driver_script(
        ["-m", "eigenscape.cli.driver", str(path)], before=before,
        name=submission.name, cores=on.driver.cores, memory=on.driver.memory,
        walltime=on.driver.walltime, log_directory=str(path / "driver"),
    )  # fmt: skip
    try:
        job_id = on.submit(script)
    except EigenscapeError as error:
        write_submission(path, submission, state="failed", exit_status=1, message=str(error))
        raise
    jobs = (*submission.jobs, job_id)
    return write_submission(path, submission, state="submitted", job_id=job_id, jobs=jobs)


def cluster_of(submission: Submission) -> QueueOptions:
    """Return the cluster file of a submission."""
    return check_queue(parse_cluster(submission.cluster, "cluster file"))


def cancel(path: Path) -> Submission:
    """Cancel the driver of a run and the jobs of its workers, and nothing else.

    What is finished stays: the same `submit` or `run` goes on with it.

    Raises
    ------
    InputError
        No driver of this run was ever submitted.
    """
    if read_submission(path) is None:
        raise InputError(
            f"{path}: no driver of it was submitted. Give a run directory of `eigenscape submit`; a run "
            "on this machine ends with Ctrl-C."
        )
    with changing(path) as found:
        assert found is not None, "it was there a moment ago"
        if found.state not in ("finished", "failed"):
            # First, so that a driver that ends now does not submit itself again; and without the message of
            # an end by the queue, which starts such a job again.
            found = write_submission(path, found, state="cancelled", message="")
    queue = find_queue(found.kind)
    for job_id in found.jobs:
        if queue.job_state(job_id) != "gone":
            queue.cancel(job_id)
    # A driver cancels its workers itself, but not if it was killed: by a name that nothing else has.
    if queue.cancel_named:
        command = queue.cancel_named.format(shlex.quote(found.worker_name))
        subprocess.run(["sh", "-c", command], capture_output=True, check=False, timeout=60)
    return found

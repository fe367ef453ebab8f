"""Run the scenes of a batch that are not finished, and keep its table true.

::

    runs/enmap/
        batch.csv         one row for each scene, earlier ones too; replaced whole after each of them
        failures/         traceback of each scene that failed
        lock              held while a batch works here
        scenes/           a run directory for each scene and content
        schedules/        locks and logs of schedules, if there are any

The manifests of the run directories, not the table, record what is finished. So a killed batch can be
continued, and only scenes whose file, labels or template changed are run again.
"""

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from textwrap import shorten

from eigenscape.base.files.whole import explain_write_errors
from eigenscape.base.process.progress import LogLines, Reporter
from eigenscape.base.shares import counted
from eigenscape.batch.lanes import Planned, run_scenes
from eigenscape.batch.outcomes import BatchResult, SceneOutcome, plan_outcome
from eigenscape.batch.sources import Scene, Source
from eigenscape.batch.table import BatchTable, earlier_rows, keep_names, write_trace
from eigenscape.batch.watch import Arrivals
from eigenscape.batch.whole import Report, failure
from eigenscape.clusters import ClusterOptions
from eigenscape.errors import BusyError, InputError
from eigenscape.store.lock import hold
from eigenscape.workflow.directories import BATCH_TABLE, check_ours, parent_directory
from eigenscape.workflow.plan import project_plan
from eigenscape.workflow.runner import fit_limits


def run_batch(
    source: Source,
    *,
    on: ClusterOptions | None = None,
    run_dir: str | Path | None = None,
    at_once: int | None = None,
    watch: float | None = None,
    reporter: Reporter | None = None,
) -> BatchResult:
    """Run every scene of a batch that is not finished.

    Parameters
    ----------
    source
        Where the scenes come from.
    on
        Where to run them: processes of this machine by default. A cluster is brought up once for
        all of them, and only if there is something to do.
    run_dir
        Directory of the batch; ``runs/<template>`` by default.
    at_once
        Scenes to work on at a time, each as one task; 1: one after another, each over all workers.
        By default as many as there are workers, if the scenes fit there.
    watch
        Look again for new scenes after so many seconds, until interrupted; None: once.
    reporter
        Called with the progress; by default its lines go to the logger ``eigenscape``.

    Returns
    -------
    BatchResult
        The outcomes of all scenes. A failed scene is recorded with the reason; the others are still run.

    Raises
    ------
    InputError
        There is nothing to run, or the cluster cannot be used.
    BusyError
        Another batch works in the same directory.
    """
    path = batch_directory(source, run_dir)
    check_ours(path, BATCH_TABLE)
    batch = _Batch(path, on or ClusterOptions(), at_once, reporter or LogLines())
    # Before the directory is made: a wrong pattern leaves nothing behind.
    scenes = batch.find(source)
    if not scenes and watch is None:
        raise InputError(
            f"{source.scenes or source.table}: no scene found. Give a pattern in quotes, "
            "such as --scenes 'tiles/*.tif', or a table with a row for each."
        )
    with explain_write_errors(path):
        path.mkdir(parents=True, exist_ok=True)
    with hold(path, _refuse):
        with explain_write_errors(path):
            (path / "scenes").mkdir(exist_ok=True)
        arrivals = Arrivals(watch)
        while True:
            batch.work(arrivals.plan([plan_outcome(scene, path) for scene in scenes]))
            arrivals.know(batch.outcomes)
            if watch is None or not arrivals.wait():
                return BatchResult(path, tuple(batch.outcomes))
            scenes = batch.look(source, scenes)


def batch_directory(source: Source, run_dir: str | Path | None) -> Path:
    """Return where a batch runs; its scenes have directories of their own for each content.

    Raises
    ------
    JobError
        The template cannot be used.
    """
    first = source.first_job()
    if run_dir is not None:
        return Path(run_dir).resolve()
    parent = Path("runs") if first is None else parent_directory(first)
    return (parent / source.name).resolve()


def _refuse(sentence: str) -> None:
    raise BusyError(
        f"{sentence.partition(';')[0]}: two batches cannot work in one directory at the same time. Wait for "
        "the other one to end, or give another --run-dir."
    )


class _Batch:
    """One call: what became of each scene so far."""

    def __init__(
        self, path: Path, on: ClusterOptions, at_once: int | None, reporter: Reporter
    ) -> None:
        self.outcomes: list[SceneOutcome] = []
        self._places: dict[str, int] = {}
        self._said, self._left_out = "", False
        self._path, self._on, self._at_once, self._reporter = path, on, at_once, reporter

    def find(self, source: Source) -> Sequence[Scene]:
        """Return the scenes as they are now; say once that results are not among them."""
        found = source.find(self._path)
        if found.left_out and not self._left_out:
            self._left_out = True
            self._reporter.note(
                f"{source.scenes}: {counted(found.left_out, 'path')} left out: results of this batch or "
                "files of another run. To classify such files, name them in a table (--table)."
            )
        return keep_names(found.scenes, earlier_rows(self._path))

    def look(self, source: Source, scenes: Sequence[Scene]) -> Sequence[Scene]:
        """Return the scenes as they are now; those given if their table cannot be read at the moment.

        The table may be gone or incomplete while another program writes it.
        """
        try:
            scenes, self._said = self.find(source), ""
        except InputError as error:
            if str(error) != self._said:
                self._said = str(error)
                self._reporter.note(f"{error} The watch continues.")
        return scenes

    def work(self, outcomes: Sequence[SceneOutcome]) -> None:
        """Run the scenes that are to do."""
        if list(outcomes) == self.outcomes:
            return  # nothing new since the last look
        self.outcomes = list(outcomes)
        self._places = {o.scene.name: number for number, o in enumerate(self.outcomes)}
        todo = self._plan()
        # Read again: of scenes that an earlier look has run and that are gone since, the rows stay.
        table = BatchTable(self._path, self.outcomes, earlier_rows(self._path))
        table.write()
        for outcome in self.outcomes:
            if outcome.state == "failed":
                write_trace(self._path, outcome)
        # The largest first: nobody waits for one at the end.
        todo.sort(key=lambda planned: -planned.plan.samples)
        began, left = time.monotonic(), len(todo)

        def hear(outcome: SceneOutcome, report: Report) -> None:
            nonlocal left
            left -= 1
            seconds = (time.monotonic() - began) / (len(todo) - left) * left
            self._hear(outcome, report)
            place = self._places[outcome.scene.name]
            table.put(place, self.outcomes[place])
            table.write()
            said = f"{report['seconds']:.1f} s" if "seconds" in report else report["reason"]
            self._reporter.stage(
                "batch",
                f"{len(todo) - left} of {len(todo)} scenes, {seconds:.0f} s left: "
                f"{outcome.scene.name} {report['state']}, {shorten(said, 100)}",
            )

        if todo:
            others = f"; finished or failed before: {len(self.outcomes) - len(todo)}"
            self._reporter.stage("batch", f"{counted(len(todo), 'scene')} to do{others}")
            run_scenes(todo, self._path, self._on, self._at_once, self._reporter, hear)

    def _plan(self) -> list[Planned]:
        """Return the scenes to do with what they need; one that cannot be read is failed already.

        No cluster is brought up for it.
        """
        todo = []
        for outcome in self.outcomes:
            if outcome.state != "to do" or outcome.reason:
                continue
            job = outcome.scene.job
            assert job is not None, "to do"
            try:
                fitted = fit_limits(job, self._on)
                plan = project_plan(fitted, self._on)
                plan.check(fitted.limits.memory_bytes)
            except Exception as error:
                self._hear(outcome, failure(error))
                continue
            todo.append(Planned(outcome, plan, fitted.limits.memory_bytes))
        return todo

    def _hear(self, outcome: SceneOutcome, report: Report) -> None:
        ended = replace(outcome, **report)
        self.outcomes[self._places[outcome.scene.name]] = ended
        write_trace(self._path, ended)

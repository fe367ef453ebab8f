"""The context of a running stage: its job, arrays of earlier stages, its workspace, and a map over blocks."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from numpy.typing import NDArray

from eigenscape.base.blocks import task_bytes
from eigenscape.base.files.ledger import Noted, Recorded, Sums
from eigenscape.base.memory import anonymous_bytes, bound_heaps, trim
from eigenscape.base.process.namedpoints import reached
from eigenscape.base.process.progress import Reporter
from eigenscape.clusters import Executor, OnDone, Order, on_one_machine
from eigenscape.job.jobfile import Job
from eigenscape.store.arrays import open_memmap
from eigenscape.store.run import Run
from eigenscape.store.workspace import Workspace

_KEPT_BYTES = 2**25
"""Growth of anonymous memory in a step, in bytes, above which freed memory is returned to the system."""


class Map(Protocol):
    """The interface of `Context.map` and `Loop`: the only part of a context that most functions need."""

    def __call__(
        self,
        step: str,
        function: Callable[[Any], Any],
        items: Sequence[Any],
        *,
        label: str | None = None,
        keep: bool = True,
        order: Order | None = None,
    ) -> list[Any]:
        """Return the results of the tasks, in the order of the items."""


@dataclass(frozen=True)
class Loop:
    """A `Map` without a journal and without progress: it runs the tasks of a step with an executor."""

    executor: Executor

    def __call__(
        self,
        step: str,
        function: Callable[[Any], Any],
        items: Sequence[Any],
        *,
        label: str | None = None,
        keep: bool = True,
        order: Order | None = None,
    ) -> list[Any]:
        """See `Map`."""
        results: list[Any] = [None] * len(items)

        def done(position: int, result: Any, peak: int) -> None:
            results[position] = result

        _run(self.executor, function, items, done, order)
        return results


@dataclass
class Context:
    """The surroundings of one stage.

    Attributes
    ----------
    job
        The whole job; a stage reads only its own table.
    run
        The run directory, for the arrays of earlier stages.
    workspace
        Where this stage writes.
    executor, reporter
        Where tasks run, and where progress is reported.
    halvings
        How often tasks were halved because one did not fit the memory of its worker.
    worker_peak
        Largest anonymous memory seen in any process that ran a task of this stage, in bytes.
    project_again
        Function that is called with the mean number of neighbours of a sample after a search by radius has
        estimated it. It raises an error if a later stage would not fit, and notes the projected memory.
    """

    job: Job
    run: Run
    workspace: Workspace
    executor: Executor
    reporter: Reporter
    halvings: int = 0
    worker_peak: int = 0
    project_again: Callable[[float], None] = lambda neighbors: None
    _finished: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._finished = self.workspace.finished_blocks()

    @property
    def task_bytes(self) -> int:
        """Return the bytes that one task may take, so that all tasks of a process stay within the limit."""
        budget = task_bytes(self.job.limits.memory_bytes, self.executor.tasks_per_process)
        return budget >> self.halvings

    def open(self, name: str) -> Any:
        """Open a zarr array of an earlier stage."""
        return self.run.open(name)

    def path(self, name: str) -> str:
        """Return the path of an array of an earlier stage, to hand to a task."""
        return str(self.run.array_path(name))

    def memmap(self, name: str) -> NDArray[Any]:
        """Map a whole array of an earlier stage."""
        return open_memmap(self.run.array_path(name))

    def map(
        self,
        step: str,
        function: Callable[[Any], Any],
        items: Sequence[Any],
        *,
        label: str | None = None,
        keep: bool = True,
        together: bool = False,
        order: Order | None = None,
    ) -> list[Any]:
        """Run `function` over `items`, skipping what an earlier attempt finished.

        Parameters
        ----------
        step
            Name of the step within the stage.
        function
            An idempotent task. Its result is small JSON when `keep` is true.
        items
            Blocks (start, stop), numbers or names; each item identifies a task.
        label
            Text of the progress bar; `step` by default.
        keep
            Whether to record each finished block in the journal. False for steps whose results are arrays in
            memory and are quick to compute again.
        together
            Whether the tasks write to scattered places of the same files. If so, all of them run on one
            machine, because two machines that map the same page of a file on NFS overwrite each other's data.
        order
            Dependencies of the items, so that successive steps form one call in which each item waits only
            for the items that it needs. Not allowed with `keep`.

        Returns
        -------
        list
            The results in the order of `items`.
        """
        assert order is None or not keep, "what is skipped would be waited for"
        names = [f"{step}/{_name(item)}" for item in items]
        results = {name: self._finished[name] for name in names if keep and name in self._finished}
        todo = [index for index, name in enumerate(names) if name not in results]
        self.reporter.begin(label or step, len(items), len(items) - len(todo))
        reached("step begins", step)

        recording, finished = self.workspace.recording, _Finished(self.workspace)

        def done(position: int, result: Any, peak: int) -> None:
            name = names[todo[position]]
            reached("block returned", name)
            result, noted = result if recording else (result, None)
            results[name] = result
            self.worker_peak = max(self.worker_peak, peak)
            if keep:
                self._finished[name] = result
                finished.take(name, result, noted)
            self.reporter.advance()

        limit = self.job.limits.memory_bytes
        function = _Bounded(function, limit, self.executor.tasks_per_process)
        if recording:
            function = Recorded(function, str(self.workspace.path))
        before = anonymous_bytes()
        try:
            if todo:
                executor = on_one_machine(self.executor) if together else self.executor
                _run(executor, function, [items[index] for index in todo], done, order)
                reached("step settles", step)
                finished.settle()
        finally:
            self.reporter.end()
            if anonymous_bytes() - before > _KEPT_BYTES:
                trim()
        reached("step ends", step)
        return [results[name] for name in names]


class _Finished:
    """Notes the finished blocks of a step.

    Blocks that write to scattered places of a file are recorded only when the step is done, because the
    contents of the file are final only then.
    """

    def __init__(self, workspace: Workspace) -> None:
        self._journal = workspace.journal
        self._blocks: dict[str, Any] = {}
        self._open: set[str] = set()
        self._sums: Sums = {}

    def take(self, name: str, result: Any, noted: Noted | None) -> None:
        """Note a block."""
        if noted is None or not noted.open:
            self._journal.finish({name: result}, noted.sums if noted else {})
            return
        self._blocks[name] = result
        self._open |= {*noted.open}
        for file, totals in noted.sums.items():
            self._sums.setdefault(file, []).extend(totals)

    def settle(self) -> None:
        """Note the blocks that waited for the end of the step."""
        if self._blocks:
            whole = self._journal.sum_now(sorted(self._open))
            self._journal.finish(self._blocks, self._sums | whole)


@dataclass(frozen=True)
class _Bounded:
    """A task, in a process that keeps little freed memory: see `bound_heaps`."""

    func: Callable[[Any], Any]
    limit: int
    tasks: int

    def __call__(self, item: Any) -> Any:
        bound_heaps(self.limit, self.tasks)
        return self.func(item)


def _run(
    executor: Executor,
    function: Callable[[Any], Any],
    items: Sequence[Any],
    done: OnDone,
    order: Order | None,
) -> None:
    # Executors of other packages may not have the parameter.
    if order is None:
        executor.run(function, items, done)
    else:
        executor.run(function, items, done, order)


def _name(item: Any) -> str:
    return "-".join(map(str, item)) if isinstance(item, tuple) else str(item)

"""Tasks on the workers of a Dask cluster; what can go wrong there, in words."""

import math
import os
import secrets
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from eigenscape.base.files.whole import explain_write_errors
from eigenscape.base.memory import format_bytes
from eigenscape.base.process.addresses import check_address_space
from eigenscape.clusters.directories.sharing import Shared
from eigenscape.clusters.options import Say
from eigenscape.clusters.versions import differences, versions
from eigenscape.clusters.workers.executors import (
    Executor,
    OnDone,
    Order,
    Task,
    Threads,
    one_blas_thread,
)
from eigenscape.clusters.workers.fence import under_way
from eigenscape.clusters.workers.supply import ExternalSupply, Supply
from eigenscape.clusters.workers.task import (
    Surroundings,
    describe_differences,
    describe_unseen,
    run_task,
    this_process,
)
from eigenscape.clusters.workers.watch import Clock, Watch
from eigenscape.errors import ClusterError, ClusterLostError, MemoryLimitError, TaskMemoryError

_POLL_S = 0.05
_IDLE_S = 0.2
_SAY_S = 5.0
_RECONNECT_S = 10.0
_LOST_SCHEDULER = (
    "the scheduler was lost. What is finished is kept: start a scheduler, and the same command "
    "goes on."
)
_MEMORY_TOPIC = "worker-restart-memory"


def print_nothing(_: str) -> None:
    """Say nothing."""


@dataclass
class _Patience:
    """Time that one step has been without a scheduler or workers.

    Attributes
    ----------
    clock
        Of the thread that waits.
    tasks
        Of the step.
    connected, present
        When the scheduler was there last, and when a worker was.
    """

    clock: Clock
    tasks: int
    connected: float = 0.0
    present: float = 0.0


class _Waiting:
    """The items of one call that wait for others."""

    def __init__(self, order: Order | None, count: int) -> None:
        self._left = [0] * count if order is None else [len(set(each)) for each in order.after]
        self._following: dict[int, list[int]] = {}
        for position, before in enumerate([] if order is None else order.after):
            for other in set(before):
                self._following.setdefault(other, []).append(position)

    def first(self) -> list[int]:
        """Return the items that wait for none."""
        return [position for position, left in enumerate(self._left) if not left]

    def after(self, position: int) -> list[int]:
        """Return the items that wait for none any more now that one is done."""
        ready = []
        for other in self._following.pop(position, []):
            self._left[other] -= 1
            if not self._left[other]:
                ready.append(other)
        return ready


class _Homes:
    """The worker of each place of an `Order`: the same one as long as it is there.

    Dask would give a task to a worker that has nothing to do, though what the task goes on with lies in the
    memory of another one.
    """

    def __init__(self, order: Order | None) -> None:
        self._count = 1 + max(order.places, default=0) if order is not None else 0
        self._homes: dict[int, str] = {}

    def of(self, place: int, addresses: Sequence[str]) -> list[str] | None:
        """Return the worker of a place, None if there is none at all."""
        if not addresses:
            return None
        if not self._homes:
            # Places that are next to each other, on one worker or on the next.
            names = sorted(addresses)
            self._homes = {
                number: names[number * len(names) // self._count] for number in range(self._count)
            }
        if self._homes[place] not in addresses:
            loads = Counter(self._homes.values())
            self._homes[place] = min(sorted(addresses), key=lambda address: loads[address])
        return [self._homes[place]]


@dataclass(frozen=True)
class _Task:
    """A task that is submitted: its item, its future, and its worker, where no other is to do it."""

    position: int
    future: Any
    home: str | None = None


class Workers:
    """Workers of a distributed cluster that share the run directory.

    Parameters
    ----------
    client
        Connected to the scheduler.
    supply
        Where the workers come from.
    wait
        Longest time without any worker, in seconds.
    say
        Called with lost and silent workers, and with what is waited for.
    dashboard
        Address of the scheduler's dashboard, empty where there is none.

    Raises
    ------
    ClusterError
        No worker comes, or one has other versions than this process.
    """

    def __init__(
        self,
        client: Any,
        supply: Supply | None = None,
        wait: float = 60.0,
        say: Say = print_nothing,
        dashboard: str = "",
    ) -> None:
        self._client, self._wait, self._say = client, wait, say
        self.dashboard = dashboard
        self._supply = supply or ExternalSupply("Start some with `dask worker`.")
        self._surroundings = Surroundings(versions(), driver=this_process())
        self._shared = Shared(client)
        self._began = time.time()
        self._watch = Watch(client, self._supply, say)
        try:
            self._watch.await_worker(wait)
            workers = self._watch.workers.values()
            self.tasks_per_process = max((worker["nthreads"] for worker in workers), default=1)
            self._check_versions()
        except BaseException:
            self._watch.close()
            raise

    def close(self) -> None:
        """Look after the workers no more."""
        self._watch.close()

    @property
    def width(self) -> int:
        """Tasks that run at a time on the workers that are there now."""
        return max(1, sum(int(worker["nthreads"]) for worker in self._watch.workers.values()))

    @property
    def _inside(self) -> bool:
        """Whether a worker is a thread of this process."""
        return any(address.startswith("inproc://") for address in self.addresses)

    @property
    def addresses(self) -> list[str]:
        """Addresses of the workers that are there now."""
        return list(self._watch.workers)

    def check_address_spaces(self, memory: int) -> None:
        """Refuse workers whose address space is limited to less than any task takes; note tighter ones.

        Parameters
        ----------
        memory
            ``limits.memory`` in bytes.

        Raises
        ------
        MemoryLimitError
            The limit of one is lower.
        """
        answers = self._client.run(
            check_address_space, memory, self.tasks_per_process, on_error="return"
        )
        for address, answer in answers.items():
            if isinstance(answer, MemoryLimitError):
                raise MemoryLimitError(f"worker on {host_of(address)}: {answer}")
        # Workers are alike as a rule: one note is enough.
        notes = [
            f"worker on {host_of(address)}: {note}"
            for address, note in answers.items()
            if isinstance(note, str) and note
        ]
        for note in notes[:1]:
            self._say(note)

    def share(self, directory: Path) -> None:
        """Make sure that all workers see a directory under the same path.

        Raises
        ------
        ClusterError
            One does not, or reads there what was before others wrote.
        """
        token = directory / f".shared.tmp-{secrets.token_hex(4)}"
        with explain_write_errors(directory):
            token.touch()
        try:
            seen = self._client.run(_sees, str(token), on_error="return")
        finally:
            token.unlink()
        for address, answer in seen.items():
            if answer is False:
                raise ClusterError(describe_unseen(str(directory), host_of(address)))
        self._surroundings = replace(self._surroundings, shared=str(directory))
        self._shared.add(directory)
        self._probe()
        # Of a driver that was killed while its scheduler went on.
        self._await_idle("tasks of an earlier run", directory=str(directory))

    def run(
        self, function: Task, items: Sequence[Any], on_done: OnDone, order: Order | None = None
    ) -> None:
        """Submit the tasks and take their results as they come.

        Those that wait for others are submitted as soon as these are done, so that workers have the next
        of them while they work.

        Raises
        ------
        TaskMemoryError
            A task took more memory than its worker has.
        ClusterLostError
            The scheduler or all workers are lost, and none came in time.
        """
        from distributed.client import ClosedClientError

        try:
            self._probe()
            # Workers may be threads of this process.
            with one_blas_thread() if self._inside else nullcontext():
                self._run(function, items, on_done, order)
        except ClosedClientError:
            # The client gave up the connection between two of our looks at it.
            raise ClusterLostError(_LOST_SCHEDULER) from None

    def _run(
        self, function: Task, items: Sequence[Any], on_done: OnDone, order: Order | None
    ) -> None:
        from distributed import as_completed

        surroundings = replace(self._surroundings, call=secrets.token_hex(8))
        task = partial(run_task, surroundings, function)
        waiting, homes = _Waiting(order, len(items)), _Homes(order)
        pending: dict[str, _Task] = {}

        def submit(positions: Sequence[int], *, strict: bool = True) -> list[Any]:
            started = self._submit(task, items, positions, order, homes, strict=strict)
            pending.update({each.future.key: each for each in started})
            return [each.future for each in started]

        completed = as_completed(
            submit(waiting.first()), loop=self._client.loop, with_results=True, raise_errors=False
        )
        self._began = time.time()
        patience = _Patience(Clock(), len(items))
        try:
            while not completed.is_empty():
                if not completed.has_ready():
                    self._check(patience, completed.count())
                    if lost := self._take_back(pending):
                        completed.update(submit(lost, strict=False))
                    # Not for a fixed time: tasks that wait for others would wait for that too.
                    with completed.thread_condition:
                        if not completed.has_ready():
                            completed.thread_condition.wait(_POLL_S)
                    continue
                for future, result in completed.next_batch(block=False):
                    if future.key not in pending:
                        continue  # taken back
                    self._raise_if_failed(result)
                    position = pending.pop(future.key).position
                    completed.update(submit(waiting.after(position)))
                    on_done(position, *result)
                    # Or a result that is here would be computed again when its worker is lost.
                    future.release()
        except ClusterLostError:
            raise
        except Exception:
            # The stage may begin again with other blocks, which what is under way must not meet.
            if self._client.status == "running":
                self._client.cancel([each.future for each in pending.values()])
                self._await_idle("tasks that are under way", call=surroundings.call)
            raise
        finally:
            if self._client.status == "running":
                self._client.cancel([each.future for each in pending.values()])

    def _submit(
        self,
        task: Task,
        items: Sequence[Any],
        positions: Sequence[int],
        order: Order | None,
        homes: _Homes,
        *,
        strict: bool,
    ) -> list[_Task]:
        """Submit some items. Tasks are idempotent, so a lost worker's tasks may run again."""
        if order is None:
            chosen = [items[position] for position in positions]
            futures = self._client.map(task, chosen, pure=False, retries=2, key="block")
            return [_Task(*each) for each in zip(positions, futures, strict=True)]
        started = []
        for position in positions:
            home = homes.of(order.places[position], self.addresses)
            future = self._client.submit(
                task, items[position], pure=False, retries=2, key=f"block-{secrets.token_hex(8)}",
                workers=home, allow_other_workers=home is not None and not strict,
            )  # fmt: skip
            started.append(_Task(position, future, home[0] if home and strict else None))
        return started

    def _take_back(self, pending: dict[str, _Task]) -> list[int]:
        """Cancel the tasks whose one worker is lost; return their items."""
        there = {*self.addresses}
        lost = [each for each in pending.values() if each.home and each.home not in there]
        for each in lost:
            del pending[each.future.key]
        if lost:
            self._client.cancel([each.future for each in lost])
        return [each.position for each in lost]

    def _probe(self) -> None:
        """See that machines which came since the last step see what others write."""
        away = [address for address in self.addresses if not is_here(address)]
        self._shared.probe({address: host_of(address) for address in away})

    def _check(self, patience: "_Patience", left: int) -> None:
        """Give up when the scheduler is lost, or no worker comes."""
        now = patience.clock()
        if self._client.status == "running":
            patience.connected = now
        elif self._client.status == "closed" or now - patience.connected > _RECONNECT_S:
            raise ClusterLostError(_LOST_SCHEDULER)
        else:
            return
        self._watch.raise_trouble()
        if self._watch.workers:
            patience.present = now
        elif now - patience.present > self._wait:
            raise ClusterLostError(
                f"all workers are lost, and none came within {self._wait:g} s (wait in the cluster "
                f"file); {left} of {patience.tasks} tasks of this step are left. What is finished is "
                f"kept: the same command goes on. {self._supply.hint()}"
            )

    def _await_idle(self, what: str, **which: str) -> None:
        """Wait until no worker works on some tasks (`eigenscape.clusters.workers.fence.under_way`)."""
        said = -math.inf
        while True:
            answers = self._client.run(under_way, on_error="return", **which)
            left = sum(answer for answer in answers.values() if isinstance(answer, int))
            if not left:
                return
            if time.monotonic() - said > _SAY_S:
                said = time.monotonic()
                self._say(f"waiting for {what}: {left}")
            time.sleep(_IDLE_S)

    def _raise_if_failed(self, result: Any) -> None:
        """Raise what came instead of a result: type, error and traceback, or that it is cancelled.

        The state of a future is not enough: it is pending again as soon as the worker that held a
        result is lost, whether that result is here or not.
        """
        from distributed import KilledWorker

        if isinstance(result, BaseException):  # that it is cancelled
            raise ClusterLostError(_LOST_SCHEDULER)
        if len(result) == 3:
            _, error, traceback = result
            if isinstance(error, KilledWorker):
                raise TaskMemoryError(self._describe_killed(error.allowed_failures + 1)) from None
            if isinstance(error, MemoryError):
                raise TaskMemoryError(f"a task ran out of memory ({error}).") from None
            if lacks_eigenscape(error):
                raise ClusterError(describe_differences("a node", [str(error)])) from None
            raise error.with_traceback(traceback)

    def _describe_killed(self, tries: int) -> str:
        """Return what is known of a task whose workers died: a nanny notes it if memory was why."""
        events = self._client.get_events(_MEMORY_TOPIC)
        sizes = [event["rss"] for when, event in events if when >= self._began]
        if sizes:
            reason = f"each took more memory than it may have ({format_bytes(max(sizes))})"
        else:
            reason = "mostly the system or the queue ends one for its memory"
        return f"{tries} workers died of a task: {reason}."

    def _check_versions(self) -> None:
        answers = self._client.run(versions, on_error="return")
        for address, there in answers.items():
            if isinstance(there, BaseException):
                if lacks_eigenscape(there):
                    raise ClusterError(describe_differences(host_of(address), [str(there)]))
                continue  # it went while it was asked
            if wrong := differences(versions(), there):
                raise ClusterError(describe_differences(host_of(address), wrong))


def on_one_machine(executor: Executor) -> Executor:
    """Return what runs tasks on one machine: the executor, or one thread of this process.

    Workers on the loopback interface are on this machine; others may be one machine now, and two
    when another job begins.
    """
    if not isinstance(executor, Workers):
        return executor
    local = all(is_here(address) for address in executor.addresses)
    return executor if local else Threads(1)


def _sees(path: str) -> bool:
    """Whether a worker sees a file that has just been made; network file systems take a while."""
    for _ in range(20):
        if os.path.exists(path):
            return True
        with suppress(OSError):
            os.listdir(os.path.dirname(path))
        time.sleep(0.25)
    return os.path.exists(path)


def lacks_eigenscape(error: BaseException) -> bool:
    """Whether an error of a worker says that eigenscape is not there, or an older one."""
    return isinstance(error, ModuleNotFoundError) and str(error.name).startswith("eigenscape")


def is_here(address: str) -> bool:
    """Whether a worker is certainly on this machine: on the loopback interface, or in this process."""
    return address.startswith("inproc://") or host_of(address).startswith("127.")


def host_of(address: str) -> str:
    """Return the host of an address such as ``tcp://10.0.0.1:1234``."""
    return address.rpartition("//")[2].rpartition(":")[0]

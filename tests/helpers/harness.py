"""Single stages on given arrays: a real run directory, no scene, no command line.

A test puts the arrays that a stage reads, runs the stage as a job would, and reads
what it committed.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from eigenscape.base.process.progress import Silent
from eigenscape.clusters import OnDone, Order, Serial, Task, Threads
from eigenscape.features.stage import features_stage
from eigenscape.graph.stage import graph_stage
from eigenscape.job.jobfile import filled_job
from eigenscape.learn.stage import learn_stage
from eigenscape.neighbors.stage import neighbors_stage
from eigenscape.spectrum.stage import spectrum_stage
from eigenscape.store.arrays import attach_whole, open_array
from eigenscape.store.manifest import Record
from eigenscape.store.rows import create_sparse
from eigenscape.store.run import Run
from eigenscape.workflow.runner import StageRunner, Work

STAGES: dict[str, Work] = {
    "features": features_stage,
    "neighbors": neighbors_stage,
    "graph": graph_stage,
    "spectrum": spectrum_stage,
    "learn": learn_stage,
}


def name_of(function: Task) -> str:
    """Return the name of a task: a function, a method, an object that is called, or a partial of one."""
    while hasattr(function, "func"):
        function = function.func
    return getattr(function, "__name__", type(function).__name__)


class Notes(Silent):
    """Keeps the messages for the user."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        self.notes.append(text)


class KilledError(Exception):
    """Stands for the end of the process."""


class Frail(Serial):
    """Runs tasks one by one, notes each, and is killed once it has finished some of them.

    Parameters
    ----------
    tasks
        How many it finishes before it is killed; None for all.
    noted
        Whether the last of them is noted as finished before the end comes.
    """

    def __init__(self, tasks: int | None = None, *, noted: bool = True) -> None:
        self.left, self.noted = tasks, noted
        self.log: list[tuple[str, Any]] = []

    def run(
        self, function: Task, items: Sequence[Any], on_done: OnDone, order: Order | None = None
    ) -> None:
        name = name_of(function)

        def attempt(item: Any) -> Any:
            if self.left == 0:
                raise KilledError
            result = function(item)
            self.log.append((name, item))
            if self.left is not None:
                self.left -= 1
            if self.left == 0 and not self.noted:
                raise KilledError
            return result

        super().run(attempt, items, on_done, order)


class Harness:
    """A run whose stages can be given or run one at a time."""

    def __init__(self, path: Path, **tables: dict[str, Any]) -> None:
        self.run_directory = Run(path)
        self.job = filled_job({"scene": {"path": "none"}, **tables})

    def options(self, **tables: dict[str, Any]) -> None:
        """Give other options for the stages to come."""
        self.job = filled_job({"scene": {"path": "none"}, **tables})

    def put(
        self,
        stage: str,
        arrays: dict[str, np.ndarray],
        *,
        whole: Sequence[str] = (),
        **summary: Any,
    ) -> None:
        """Commit given arrays as what a stage wrote."""
        workspace = self.run_directory.workspace(stage, "given")
        for name, values in arrays.items():
            path = workspace.create_array(name, values.shape, values.dtype, whole=name in whole)
            open_array(path)[...] = values
        self._commit(stage, workspace, summary)

    def run(
        self, stage: str, executor: Any = None, *, threads: int = 2, reporter: Any = None
    ) -> dict[str, Any]:
        """Run a stage, or go on with it, and commit it; return its summary."""
        executor = executor or Threads(threads)
        runner = StageRunner(self.run_directory, executor, reporter or Silent())
        return runner.run(stage, "key", STAGES[stage], self.job).summary

    def __getitem__(self, name: str) -> np.ndarray:
        return np.asarray(self.run_directory.open(name)[...])

    def _commit(self, stage: str, workspace: Any, summary: dict[str, Any]) -> None:
        record = Record("key", 0.0, 0, workspace.arrays(), workspace.files(), summary)
        self.run_directory.commit(stage, workspace, record)


def solve(
    path: Path, samples: Any, *, good: Sequence[bool] | None = None, **tables: dict[str, Any]
) -> Harness:
    """Run everything up to the spectrum on given samples, dense or sparse; return the harness."""
    tables = {
        "features": {"method": "none"},
        "neighbors": {"method": "exact", "k": 8},
        "spectrum": {"dimension": 4, "solver": "dense"},
        **tables,
    }
    harness = Harness(path, **tables)
    good = [True] * samples.shape[1] if good is None else good
    pixel = np.arange(samples.shape[0])
    if sp.issparse(samples):
        workspace = harness.run_directory.workspace("ingest", "given")
        paths = create_sparse(workspace, "samples/values", samples.indptr, samples.shape[1])
        for path, part in zip(paths, (samples.data, samples.indices), strict=False):
            attach_whole(path)[...] = part
        workspace.create_array("samples/pixel", pixel.shape, pixel.dtype)
        harness._commit("ingest", workspace, {"bands": {"good": good}})
    else:
        arrays = {"samples/values": samples.astype(np.float32), "samples/pixel": pixel}
        harness.put("ingest", arrays, bands={"good": good})
    for stage in ("features", "neighbors", "graph", "spectrum"):
        harness.run(stage)
    harness.run_directory.path.joinpath("job.toml").write_text(harness.job.to_toml())
    return harness


class Counted:
    """Counts the stages that are computed, and ends the process at one of them."""

    def __init__(self, monkeypatch, stop_at=None):
        self.stages, self.stop_at = [], stop_at
        inner = StageRunner.run

        def run(running, name, *rest):
            if len(self.stages) == self.stop_at:
                raise KeyboardInterrupt
            self.stages.append(name)
            return inner(running, name, *rest)

        monkeypatch.setattr(StageRunner, "run", run)

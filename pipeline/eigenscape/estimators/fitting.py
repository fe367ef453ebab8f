"""A fit as a run: the stages of a job, one after the other, on samples that come from memory."""

import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError

from eigenscape.base import memory
from eigenscape.base.blocks import task_bytes
from eigenscape.base.files.whole import explain_write_errors
from eigenscape.base.memory import ROW_TILE
from eigenscape.base.process.progress import Reporter, Silent
from eigenscape.base.version import __version__
from eigenscape.clusters import ClusterOptions, Executor, Serial, Threads, Workers, connect
from eigenscape.context import Context
from eigenscape.errors import EstimatorError, InputError, MissingExtraError
from eigenscape.estimators.folders import RunFolder
from eigenscape.estimators.precomputed import Affinity, writers
from eigenscape.estimators.samples import Samples, write_numbers, write_samples
from eigenscape.features.method import FeatureMethod, feature_method
from eigenscape.features.stage import features_stage
from eigenscape.graph.stage import graph_stage
from eigenscape.job.explanations import joined
from eigenscape.job.jobfile import Job, filled_job
from eigenscape.job.options import FeatureOptions, NeighborOptions
from eigenscape.job.registry import MethodOptions, MethodRegistry
from eigenscape.neighbors.method import NearestMethod
from eigenscape.neighbors.stage import neighbors_stage
from eigenscape.spectrum.stage import spectrum_stage
from eigenscape.store.run import Run
from eigenscape.workflow.footprint import Sizes
from eigenscape.workflow.plan import Plan
from eigenscape.workflow.runner import StageRunner, Work, fit_limits

KEYS = {
    "n_components": "spectrum.dimension",
    "n_neighbors": "neighbors.k",
    "neighbors": "neighbors.method",
    "metric": "neighbors.metric",
    "features": "features.method",
    "features_dimension": "features.dimension",
    "weights": "graph.weights",
    "bandwidth": "graph.bandwidth",
    "potential": "graph.potential.kind",
    "labels": "graph.potential.labels",
    "raster": "graph.potential.raster",
    "alpha": "graph.potential.alpha",
    "relative": "graph.potential.relative",
    "laplacian": "graph.laplacian",
    "tolerance": "spectrum.tolerance",
    "method": "learn.method",
    "gamma": "learn.gamma",
    "power": "learn.power",
    "prior": "learn.prior",
    "memory": "limits.memory",
    "threads": "limits.threads",
}
"""The key of a job that each parameter of an estimator stands for."""

_METHODS: Mapping[str, MethodRegistry] = {
    "neighbors": NeighborOptions.registry,
    "features": FeatureOptions.registry,
}
"""The methods that parameters name; an estimator offers some of them, `offered`."""

_STAGES: Mapping[str, Work] = {
    "features": features_stage,
    "neighbors": neighbors_stage,
    "graph": graph_stage,
    "spectrum": spectrum_stage,
}


class Fitting:
    """Stages of a job that work in a directory of their own.

    Parameters
    ----------
    job
        Its tables; it has no scene.
    folder
        Where the run lies, an empty directory.
    X
        Checked samples, or a checked graph.
    given : array of int, shape (n,), optional
        Class numbers for a potential, 0 for none.
    affinity
        Whether `X` is a graph, and of what.
    on
        The workers of a client; threads of this process by default, the calling one alone where there is
        one block of samples.
    reporter
        Where progress is reported; nowhere by default.

    Attributes
    ----------
    run
        The run directory.
    """

    def __init__(
        self,
        job: Job,
        folder: RunFolder,
        X: Samples,
        given: NDArray[np.integer] | None = None,
        *,
        affinity: Affinity = "nearest_neighbors",
        on: ClusterOptions | None = None,
        reporter: Reporter | None = None,
    ) -> None:
        self.job, self.X, self.given = job if on is None else fit_limits(job, on), X, given
        self._on, self._reporter, self._folder = on, reporter or Silent(), folder
        self._graph = affinity != "nearest_neighbors"
        path = folder.path
        self._stages = dict(_STAGES)
        if self._graph:
            given_stages = writers(X, affinity)
            names = list(_STAGES)
            first = names.index(next(iter(given_stages)))
            self._stages = {name: _STAGES[name] for name in names[first:]} | given_stages
        # Hundreds of small files that are read by this process: their checksums would take a tenth of
        # the time.
        self.run = Run(path, checksums=False)
        with explain_write_errors(path):
            (path / "job.toml").write_text(job.to_toml(), encoding="utf-8")
            self.run.manifest |= {"eigenscape": __version__, "name": job.name}
        self.stage("ingest", self._ingest)

    def through(self, last: str) -> dict[str, Any]:
        """Run the stages up to one of them; return its summary.

        Raises
        ------
        MemoryLimitError
            They cannot fit into the limit.
        """
        names = list(self._stages)
        wanted = [name for name in names[: names.index(last) + 1] if self.run.record(name) is None]
        with self._running() as executor:
            self._check_sizes(wanted, executor.tasks_per_process)
            for name in wanted:
                summary = self._stage(name, self._stages[name], executor)
                if self._graph and name == "graph" and summary["components"] > 1:
                    warnings.warn(
                        f"X: the graph has {summary['components']} connected components, which stay "
                        "apart: each adds an eigenvector that is constant on it.",
                        stacklevel=6,
                    )
        return summary

    @contextmanager
    def _running(self) -> Iterator[Executor]:
        """Yield what runs the tasks."""
        if self._on is None:
            # One block of samples needs no thread of its own.
            small = self.X.shape[0] <= ROW_TILE
            yield Serial() if small else Threads(self.job.limits.threads)
            return
        limits = self.job.limits
        with connect(self._on, limits.threads, limits.memory_bytes, self._reporter.note) as found:
            if isinstance(found, Workers):
                found.share(self.run.path)
            yield found

    def fewer_modes(self, dimension: int) -> dict[str, Any]:
        """Compute the spectrum again, of so many eigenvectors; return its summary."""
        self.take_modes(dimension)
        return self.stage("spectrum", spectrum_stage)

    def take_modes(self, dimension: int) -> None:
        """Set the number of eigenvectors that the spectrum stage computes beside the constant ones."""
        spectrum = self.job.spectrum.model_copy(update={"dimension": dimension})
        self.job = self.job.model_copy(update={"spectrum": spectrum})

    def stage(self, name: str, work: Work) -> dict[str, Any]:
        """Run one stage and commit what it wrote; return its summary."""
        with self._running() as executor:
            return self._stage(name, work, executor)

    def _stage(self, name: str, work: Work, executor: Executor) -> dict[str, Any]:
        if self.X.shape[0] > ROW_TILE:
            memory.release()
        runner = StageRunner(self.run, executor, self._reporter)
        # No other run shares the directory, so there are no other keys to tell apart.
        return runner.run(name, "fit", work, self.job).summary

    def _ingest(self, context: Context) -> dict[str, Any]:
        if self._graph:
            return write_numbers(context.workspace, self.X.shape[0], 1, self.given)
        # One thread reads, so it may take what all tasks may.
        budget = context.task_bytes * context.executor.tasks_per_process
        return write_samples(context.workspace, self.X, budget, self.given)

    def _check_sizes(self, stages: Sequence[str], tasks: int) -> None:
        rows, columns = self.X.shape
        limit = self.job.limits.memory_bytes
        entries = None if isinstance(self.X, np.ndarray) else getattr(self.X, "nnz", None)
        if self._graph:
            columns, entries = 1, None
        dimension = feature_method(self.job).count(columns)
        budget = task_bytes(limit, tasks)
        sizes = Sizes(self.job, rows, columns, dimension, tasks, budget, entries)
        plans = tuple(getattr(sizes, name)() for name in stages)
        Plan(rows, columns, dimension, plans).check(limit)
        if plans:
            scratch = max(stage.scratch_bytes for stage in plans)
            self._folder.check_room(sum(stage.disk_bytes for stage in plans) + scratch)


def offered(parameter: str) -> tuple[str, ...]:
    """Return the methods that a parameter can name: on samples without pixels, with k neighbours each."""
    return tuple(name for name, kind in _METHODS[parameter].all().items() if _works(kind))


def _works(kind: type[MethodOptions]) -> bool:
    if issubclass(kind, FeatureMethod):
        return not kind.needs_pixels
    return issubclass(kind, NearestMethod)


def _check_method(parameter: str, value: object) -> None:
    names = offered(parameter)
    if value in names:
        return
    kind = _METHODS[parameter].all().get(str(value))
    reason = ""
    if kind is not None and issubclass(kind, FeatureMethod):
        reason = f" It {kind.needs_pixels.partition('. ')[0]}, and samples have none."
    raise EstimatorError(
        f"{parameter} = {value!r}: give {', '.join(map(repr, names[:-1]))} or {names[-1]!r}.{reason}"
    )


def make_job(parameters: Mapping[str, Any], seed: int) -> Job:
    """Return the job that parameters of an estimator stand for.

    Parameters
    ----------
    parameters
        Values by name; names that are not in `KEYS` are passed over.
    seed
        Of the random projection, and of what is drawn later.

    Raises
    ------
    EstimatorError
        A value is impossible.
    """
    for name in _METHODS.keys() & parameters.keys():
        _check_method(name, parameters[name])
    tables: dict[str, Any] = {"scene": {"path": "samples"}}
    tables |= {"features": {"seed": seed}, "learn": {"seed": seed}}
    for name, key in KEYS.items():
        if name in parameters:
            *path, option = key.split(".")
            table = tables
            for part in path:
                table = table.setdefault(part, {})
            value = parameters[name]
            # Searches over parameters give NumPy's numbers, users its arrays.
            table[option] = value.tolist() if isinstance(value, np.generic | np.ndarray) else value
    try:
        return filled_job({**tables, "name": "fit"})
    except ValidationError as error:
        first, *others = error.errors()
        name = _parameter_of(first)
        messages = [item["msg"] for item in (first, *others) if _parameter_of(item) == name]
        raise EstimatorError(f"{name} = {first['input']!r}: {joined(messages)}.") from None


def _parameter_of(error: Mapping[str, Any]) -> str:
    """Return the parameter that an error of a job is about."""
    place = ".".join(map(str, error["loc"]))
    return next((name for name, key in KEYS.items() if place.startswith(key)), place)


@contextmanager
def parameter_names() -> Iterator[None]:
    """Turn errors about keys of a job into `EstimatorError` about parameters."""
    try:
        yield
    except (EstimatorError, MissingExtraError):
        raise
    except InputError as error:
        raise EstimatorError(in_parameters(error.in_estimators)) from error


def in_parameters(text: str) -> str:
    """Return a text with the parameters of an estimator instead of the keys of a job.

    Examples
    --------
    >>> in_parameters('Set limits.memory to "512MiB" or more, or limits.threads to fewer.')
    'Set memory to "512MiB" or more, or threads to fewer.'
    """
    return _KEY.sub(lambda found: _NAMES[found[0]], text)


_NAMES = {key: name for name, key in KEYS.items()} | {
    "[graph.potential]": "potential",
    "output.directory or --run-dir": "directory",
}
_KEY = re.compile(r"(?<![\w.])(?:" + "|".join(map(re.escape, _NAMES)) + r")(?![\w]|\.\w)")

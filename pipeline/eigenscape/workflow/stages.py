"""The stages in their order, and their keys: hashes of everything that the result of a stage depends on."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eigenscape.base.fingerprint import (
    code_fingerprint,
    content_key,
    data_files,
    module_in_a_file,
    reachable_modules,
)
from eigenscape.base.memory import check_chunk_rows
from eigenscape.errors import JobError, SceneError
from eigenscape.export.format import format_modules
from eigenscape.job.files.named import NAMED_FILES, job_with_files
from eigenscape.job.jobfile import Job
from eigenscape.job.options import REGISTRIES, PotentialOptions
from eigenscape.job.registry import MethodOptions
from eigenscape.scenes.files.identity import file_identity
from eigenscape.scenes.files.paths import scene_paths
from eigenscape.scenes.formats.tables.tabular import column_key
from eigenscape.scenes.geometry.names import geometry_files
from eigenscape.scenes.open import chosen_variable, foreign_files, reader_modules

if TYPE_CHECKING:
    from eigenscape.context import Context

_PACKAGE = __name__.partition(".")[0]

NEUTRAL = ("eigenscape.clusters", "eigenscape.base.process.progress", "eigenscape.job.study")
"""Modules on which no result depends: execution of tasks, progress reports, and names of the variants of a
study (whose jobs are in the keys)."""


@dataclass(frozen=True)
class OnDemand:
    """The work of a stage. Its module is imported when the stage begins: a plan needs no kernels.

    Attributes
    ----------
    module, function
        Name of the module, and of the function in it.
    arguments
        What the function is given beside the context.
    """

    module: str
    function: str
    arguments: Mapping[str, Any] = field(default_factory=dict)

    def __call__(self, context: "Context") -> dict[str, Any]:
        """Do the work."""
        work = getattr(import_module(self.module), self.function)
        return dict(work(context, **self.arguments))


@dataclass(frozen=True)
class Stage:
    """One stage of the pipeline.

    Attributes
    ----------
    name
        Name of the stage in the manifest.
    work
        Function that reads committed arrays, fills a workspace, and returns the summary for the manifest.
    depends
        Function that returns, as JSON values, the options and files that the result depends on in addition to
        earlier stages.
    follows
        Names of the earlier stages whose results the stage reads; "samples" is ingest without its labels.
    """

    name: str
    work: Callable[["Context"], dict[str, Any]]
    depends: Callable[[Job], Any]
    follows: tuple[str, ...] = ()

    @property
    def module(self) -> str:
        """Name of the module that does the work, also of a function with some arguments given."""
        work = self.work
        if isinstance(work, OnDemand):
            return work.module
        return str(work.func.__module__ if isinstance(work, partial) else work.__module__)


def _identity(job: Job, path: str, key: str = "scene.path", **made: int | None) -> Any:
    """Return the identity of one version of an input file."""
    full = job.scene.check_input == "full"
    return file_identity(path, job.resolve, key, full=full, **made)


def _scene(job: Job) -> dict[str, Any]:
    given = {
        "layout", "columns", "variable", "grid", "bad_bands", "drop_wavelengths", "geometry",
        "geometry_crs", "scale", "nodata", "samples", "seed",
    }  # fmt: skip
    options = job.scene.model_dump(mode="json", include=given)
    if options["geometry"] not in NAMED_FILES["scene.geometry"]:
        options["geometry"] = (
            "file"  # whose content is below: its path may be given in several ways
        )
    paths = scene_paths(job.scene, job.resolve)
    samples, seed = job.scene.samples, job.scene.seed
    files = [_identity(job, path, samples=samples, seed=seed) for path in paths]
    files += [_identity(job, path, "scene.mask") for path in job.scene.mask_files]
    options["flags"] = None if job.scene.mask is None else list(job.scene.mask_flags)
    # What cannot be read is refused by who reads it; in a batch it may be growing still.
    with suppress(SceneError):
        options["variable"] = chosen_variable(job.scene, job.resolve)
        files += [
            _identity(job, path, "scene.files") for path in foreign_files(job.scene, job.resolve)
        ]
    for path in geometry_files(job.scene, paths, job.resolve):
        files.append(_identity(job, path, "scene.geometry"))
    options["labels"] = column_key(job.scene, job.resolve)
    return {**options, "files": files}


def label_options(job: Job) -> dict[str, Any]:
    """Return the options and files that a scene's labels depend on."""
    options = job.scene.model_dump(
        mode="json",
        include={"labels_variable", "labels_field", "labels_layer", "labels_crs", "classes"},
    )
    labels = job.scene.labels
    return {
        **options,
        "file": _identity(job, labels, "scene.labels") if labels else None,
    }


def learn_options(job: Job) -> dict[str, Any]:
    """Return what the learn stage depends on beside eigenvectors and labels."""
    options = job.learn.model_dump(mode="json")
    if job.learn.train_file is not None:
        options["train"] = _identity(job, job.learn.train_file, "learn.train")
    if job.learn.test is not None:
        options["test"] = _identity(job, job.learn.test, "learn.test")
    return options


def _graph(job: Job) -> Any:
    # A potential leaves the graph as it is: the spectrum is that of both.
    return job.graph.model_dump(mode="json", exclude={"potential"})


def _spectrum(job: Job) -> Any:
    options, potential = job.spectrum.model_dump(mode="json"), job.graph.potential
    return options if potential is None else [options, _potential(job, potential)]


def _potential(job: Job, potential: PotentialOptions) -> Any:
    options = potential.model_dump(mode="json")
    if potential.labels in ("train", "all"):
        options["given"] = label_options(job)
    elif potential.labels:
        options["labels"] = _identity(job, potential.labels, "graph.potential.labels")
    if potential.labels == "train":
        learn = learn_options(job)
        options["learn"] = [learn[key] for key in ("train", "test", "split", "seed")]
    if potential.raster:
        options["raster"] = _identity(job, potential.raster, "graph.potential.raster")
    return options


def _table(name: str) -> Callable[[Job], Any]:
    """Return a function that reads one table of a job."""
    return lambda job: getattr(job, name).model_dump(mode="json")


def export_options(job: Job) -> Any:
    """Return the options that the files depend on."""
    return [job.name, job.output.formats, job.output.eigenvectors, job.output.colors]


def _work(name: str, folder: str = "") -> OnDemand:
    return OnDemand(f"{_PACKAGE}.{folder or name}.stage", f"{name}_stage")


_INGEST = _work("ingest", "scenes.ingest")

STAGES = (
    Stage("ingest", _INGEST, label_options, ("samples",)),
    Stage("features", _work("features"), _table("features"), ("samples",)),
    Stage("neighbors", _work("neighbors"), _table("neighbors"), ("features",)),
    Stage("graph", _work("graph"), _graph, ("neighbors",)),
    Stage("spectrum", _work("spectrum"), _spectrum, ("graph",)),
    Stage("learn", _work("learn"), learn_options, ("ingest", "spectrum")),
    Stage("export", _work("export"), export_options, ("learn",)),
)


def stage_keys(job: Job, stages: Sequence[Stage] = STAGES) -> dict[str, str]:
    """Return the content key of every stage: options, code and inputs, hashed."""
    check_chunk_rows()
    keys = {"samples": _samples_key(job)}
    for stage in stages:
        keys[stage.name] = _stage_key(job, stage, keys)
    if job.open and "export" in keys:
        # What is chosen nobody can say yet: it is another job than that with the defaults.
        keys["export"] = content_key(["open", keys["export"]])
    return keys


def check_unchanged(job: Job, stage: Stage, keys: Mapping[str, str], began: float) -> None:
    """Check that what a stage has read is what its key describes.

    Parameters
    ----------
    job
        The job whose keys these are.
    stage
        A stage that has done its work.
    keys
        See `stage_keys`.
    began
        Time of day at which the stage began, for the message.

    Raises
    ------
    SceneError
        A file has changed since the keys were made.
    """
    known = {**keys, "samples": _samples_key(job)} if stage.name == "ingest" else keys
    if _stage_key(job, stage, known) != keys[stage.name]:
        raise SceneError(
            f"{_changed_since(job, began)} changed while the stage {stage.name} read it. Nothing of the "
            "stage is kept: give the same command again."
        )


def check_inputs_unchanged(job: Job, keys: Mapping[str, str], began: float) -> None:
    """Check that a choice among methods was made on the files that the keys of its job describe.

    Parameters
    ----------
    job
        The job whose methods were chosen.
    keys
        See `stage_keys`; made before the choice.
    began
        Time of day at which the choice began, for the message.

    Raises
    ------
    SceneError
        A file has changed since the keys were made.
    """
    if stage_keys(job)["export"] != keys["export"]:
        raise SceneError(
            f"{_changed_since(job, began)} changed while methods were chosen. Nothing of the choice is kept: "
            "give the same command again."
        )


def _changed_since(job: Job, began: float) -> str:
    """Return the files of a job that have changed since a time of day, in words."""
    newer: list[str] = []

    def note(path: str) -> str:
        with suppress(OSError):
            # The directory of the runs is no input.
            if path != job.output.directory and Path(job.resolve(path)).stat().st_mtime >= began:
                newer.append(path)
        return path

    job_with_files(job, note)
    return ", ".join(newer) or "A file of the job"


def _samples_key(job: Job) -> str:
    readers = reader_modules(job.scene, job.resolve)
    return content_key(["samples", _code(_INGEST.module, readers), _scene(job)])


def _stage_key(job: Job, stage: Stage, keys: Mapping[str, str]) -> str:
    """Return the key of a stage, given those of the stages before it."""
    inputs = [keys[name] for name in stage.follows]
    code = _code(stage.module, _method_modules(job, stage.name))
    return content_key([stage.name, code, stage.depends(job), inputs])


def _method_modules(job: Job, table: str) -> tuple[str, ...]:
    """Return the modules of the class that a job's table names as its method, and of those it derives from.

    Those of the export stage are of the formats that are written.

    Raises
    ------
    JobError
        A class was typed in.
    """
    if table == "export":
        return format_modules(job.output.formats)
    if table not in REGISTRIES:
        return ()
    options = getattr(job, table)
    modules = {
        module_in_a_file(base, f'{table}.method = "{options.method}"', JobError)
        for base in type(options).__mro__
        if issubclass(base, MethodOptions)
    }
    return tuple(sorted(modules))


@cache
def _code(module: str, others: tuple[str, ...] = ()) -> str:
    """Return the fingerprint of all code and data that a module's results can depend on.

    `others`: modules that it calls by their names.
    """
    found = reachable_modules(module, NEUTRAL)
    for other in others:
        found |= reachable_modules(other, NEUTRAL)
    modules = [file for _, file in sorted(found.items())]
    return code_fingerprint([*modules, *data_files(modules)])

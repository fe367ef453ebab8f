"""`apply`: the stages of a run applied to a scene, through the same spine as any run."""

from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from eigenscape.applied.footprint import extend_footprint
from eigenscape.applied.model import Model, applied_job, manifest_entry, open_model
from eigenscape.applied.stage import extend_stage
from eigenscape.base.blocks import BASE_BYTES
from eigenscape.base.process.progress import Reporter, default_reporter
from eigenscape.clusters import ClusterOptions, Executor
from eigenscape.clusters.workers.client import place_of
from eigenscape.errors import InputError, OutputError
from eigenscape.export.stage import export_applied_stage
from eigenscape.job.jobfile import Job
from eigenscape.scenes.ingest.stage import ingest_stage
from eigenscape.scenes.open import open_scene
from eigenscape.scenes.views.resampled import to_bands
from eigenscape.store.manifest import HasPath, path_of
from eigenscape.store.run import Run
from eigenscape.workflow.directories import check_run_directory, run_directory
from eigenscape.workflow.finished.result import Result
from eigenscape.workflow.footprint import Sizes, StagePlan
from eigenscape.workflow.objects import files_of
from eigenscape.workflow.plan import Plan, fed_plan
from eigenscape.workflow.runner import Runner, fit_limits
from eigenscape.workflow.spine import result_of
from eigenscape.workflow.stages import Stage, export_options, label_options, stage_keys


def apply(
    run: str | Path | HasPath,
    scene: Any,
    *,
    labels: Any = None,
    overrides: Sequence[str] = (),
    on: ClusterOptions | str | Path | None = None,
    client: Any = None,
    run_dir: str | Path | None = None,
    reporter: Reporter | None = None,
    executor: Executor | None = None,
) -> Result:
    """Classify another scene with the model of a finished run.

    If the method of the run is a function of eigenvectors, the eigenvectors are extended to the new samples
    (`eigenscape.extend`) and classified as in the run. Otherwise, a support vector machine is fitted to the
    training labels of the run. If there are fewer than 50 labels per class on average, or none, the new
    samples instead take the probabilities of the nearest samples of the run, with the weights of its graph.
    The result is a run directory with the class map, its confidence and its entropy. The same call continues
    an unfinished run.

    Parameters
    ----------
    run
        Run directory with a finished class map, or the result of `eigenscape.run`.
    scene
        The other scene, with the bands of the run's scene, alone or among others; bands that it lacks are
        resampled by wavelength: a file, a list of files, a URL, a registered data set; or a cube in memory as
        `eigenscape.job_for` takes it, which is written to ``scenes`` beside `run_dir`, or beside the run.
    labels
        Labels of the other scene, a path or in memory, to measure the accuracy. Where these and those of the
        run have names of classes, they are compared by name.
    overrides
        ``key=value`` texts as in `load_job`, of the tables scene, output and limits.
    on, client, run_dir, reporter, executor
        As in `eigenscape.run`.

    Returns
    -------
    Result
        The result; ``scores`` is empty without labels. Labelled samples that coincide with training samples
        of the run are left out of the scores and counted in ``scores["left_out"]``; if no other is labelled,
        the accuracy is None, and ``scores["protocol"]`` says why.

    Raises
    ------
    InputError
        The run has no class map, or the scene has other bands.
    StoreError
        A file of the run is damaged.

    Notes
    -----
    Let the ratio be the distance of a new sample to its neighbours in the run, divided by the distance of
    these to their own neighbours. If it is above 2, the sample is unlike those of the run: its probabilities
    are shrunk towards equal shares by the factor (2 / ratio)^2, so that its confidence is low. Its class does
    not change.

    Examples
    --------
    >>> import eigenscape
    >>> job = eigenscape.parse_job({"scene": {"path": "scene.tif", "labels": "scene_labels.tif"}})
    >>> trained = eigenscape.run(job)
    >>> mapped = eigenscape.apply(trained.path, "scene.tif", run_dir="runs/applied")
    >>> mapped.outputs["class_map"]
    '...class_map.tif'
    """
    model = open_model(path_of(run))
    beside = model.path if run_dir is None else path_of(run_dir).resolve()
    files = files_of(scene, labels, beside.parent, "applied")
    job = applied_job(model, files.pop("path"), files, overrides)
    stages = applied_stages(model)
    keys = stage_keys(job, stages)
    path = run_directory(job, keys, run_dir)
    check_run_directory(path, job)
    if path == model.path.resolve():
        raise OutputError(
            f"{path}: is the directory of the run itself, which the applied one would replace. Give another "
            "directory with --run-dir."
        )
    on = place_of(on, client)
    fitted = fit_limits(job, on)
    planned = plan_applied(model, fitted, on)
    planned.check(fitted.limits.memory_bytes)
    about = {"applies": manifest_entry(model), "projected": planned.peaks}
    runner = Runner(job, stages, keys, about, threads=planned.threads, fewer=planned.fewer)
    times = runner.run(path, on, reporter or default_reporter(), executor=executor)
    return result_of(Run(path, create=False), times)


def applied_stages(model: Model) -> tuple[Stage, ...]:
    """Return the stages that apply a run, with their keys and inputs."""

    def depends(_: Job) -> list[str]:
        return [model.key, model.way.name]

    def read(job: Job) -> Any:
        options = label_options(job)
        return [options, model.origin, asdict(model.bands), classes]

    origin = None if model.origin is None else np.array(model.origin)
    classes = None if model.clusters else dict(model.legend.names)
    ingest = partial(ingest_stage, origin=origin, bands=model.bands, classes=classes)
    return (
        Stage("ingest", ingest, read, ("samples",)),
        Stage("extend", partial(extend_stage, model), depends, ("ingest",)),
        Stage("export", export_applied_stage, export_options, ("extend",)),
    )


def plan_applied(model: Model, job: Job, on: ClusterOptions) -> Plan:
    """Return the plan of a run that applies a model to a scene."""
    scene = to_bands(open_scene(job.scene, job.resolve), model.bands)
    if scene.grid.is_table and model.job.features.spatial is not None:
        raise InputError(
            f"{model.path}: its features are filtered among neighbouring pixels ([features.spatial]), and "
            f"{scene.files[0]} is a table of {scene.grid.height} samples. Give a raster, or apply a run "
            "without that table."
        )

    def stages_of(sizes: Sizes) -> tuple[StagePlan, ...]:
        needs = extend_footprint(model, sizes.n, sizes.bands, sizes.budget)
        peak = BASE_BYTES + max(needs.before, min(needs.tasks, sizes.tasks) * needs.each)
        extending = StagePlan("extend", needs.tasks, int(peak), int(needs.disk), int(needs.scratch))
        return sizes.ingest(scene), extending, sizes.export()

    return fed_plan(job, scene, on, stages_of)

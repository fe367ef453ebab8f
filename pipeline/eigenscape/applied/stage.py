"""The extend stage: the classes of a run on the samples of another scene.

::

    model    one task        scale, degree, class of each sample of the run; index; usual distances; its
                             training samples; a machine on their labels, where there are enough
    filter   sample blocks   features, where the run filters them in the grid of its scene
    extend   sample blocks   features, nearest of the run, weights, eigenvectors, class
    write    sample blocks   what the blocks found -> chunks of labels/class, .../confidence, .../entropy
    score    one task        where the scene has labels, without those of training samples of the run

New samples do not affect each other. A sample that coincides with one of the run's is taken for it.
"""

from dataclasses import asdict
from functools import partial
from typing import Any

from eigenscape.applied.extending import Extension
from eigenscape.applied.footprint import extend_blocks
from eigenscape.applied.model import Model
from eigenscape.applied.shift import verdict
from eigenscape.base.blocks import blocks
from eigenscape.context import Context
from eigenscape.errors import StoreError
from eigenscape.job.jobfile import Job
from eigenscape.learn.classmap import ClassMap
from eigenscape.store.arrays import chunk_rows
from eigenscape.store.rows import Rows


def extend_stage(model: Model, context: Context) -> dict[str, Any]:
    """Write ``labels/class``, ``labels/confidence`` and ``labels/entropy`` of a scene by a run."""
    values = Rows(context.path("samples/values"))
    samples, _ = values.shape
    origin, ingest = context.run.read("samples/origin"), context.run.record("ingest")
    assert ingest is not None, "extend follows ingest"
    extension = Extension(
        model, context.workspace.folder("model"), values,
        None if origin is None else tuple(origin.tolist()),
        context.path("labels/given") if ingest.summary["labelled"] else None,
    )  # fmt: skip
    machine = context.map("model", extension.read, ["all"], label="reading the run")[0]
    if model.job.features.spatial is not None:
        extension.filter(context)
    class_map = ClassMap.create(context.workspace, samples, entropy=not model.clusters)
    extension.create()
    ranges = extend_blocks(model, samples, context.task_bytes)
    found = context.map("extend", extension.extend, ranges, label="extending")
    ranges = blocks(samples, chunk_rows(samples, 4))
    context.map("write", partial(extension.write, class_map), ranges, label="writing classes")
    scores: dict[str, Any] = {}
    if extension.given is not None:
        work = partial(extension.score, _is_own_scene(model, context.job))
        scores = context.map("score", work, ["all"])[0]
        if left_out := scores.get("left_out"):
            context.reporter.note(
                f"{left_out} of {left_out + scores['samples']} labelled samples coincide with training "
                "samples of the run: they are left out of the accuracy"
            )
        if unknown := scores.get("unknown_classes"):
            names = ingest.summary["class_names"]
            listed = ", ".join(names.get(str(number), str(number)) for number in unknown)
            context.reporter.note(
                "the labels have classes that the run has not learned; their samples count as wrong: "
                f"{listed}"
            )
    if not model.unchanged():
        raise StoreError(
            f"{model.path}: was run again while it was being applied. Give the same command again."
        )
    told = {key: sum(part[key] for part in found) for key in ("without", "far")}
    if told["far"]:
        context.reporter.note(
            f"samples far from all of the run's: {told['far']:,} of {samples:,}; their confidence is "
            "lowered"
        )
    shift = verdict([part["shift"] for part in found])
    if shift and shift["differs"]:
        context.reporter.note(shift["message"])
    if shift is None and model.job.features.spatial is not None:
        context.reporter.note(
            "whether this scene differs from the one that the model learned from is not known: the filter of "
            "[features.spatial] reaches across most of that one"
        )
    return {
        "classes": list(model.numbers),
        "legend": asdict(model.legend),
        "clusters": model.clusters,
        "how": model.way.name,
        "machine": machine,
        "samples": samples,
        "without_class": told["without"],
        "far": told["far"],
        "shift": shift,
        "scores": scores,
    }


def _is_own_scene(model: Model, job: Job) -> bool:
    return job.scene.path == model.job.scene.path or [
        job.resolve(path) for path in _paths(job.scene.path)
    ] == list(_paths(model.job.scene.path))


def _paths(path: str | tuple[str, ...]) -> tuple[str, ...]:
    return (path,) if isinstance(path, str) else path

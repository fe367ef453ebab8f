"""The learn stage: one classifier fitted to several training sets, the class of every sample, scores.

Clusterings have steps of their own: `eigenscape.learn.clustering.stage`.

::

    gather     sample blocks   data of the labelled samples that the method needs
    fit        training sets   a model each, its scores and its confusion on the labelled samples
    smooth     training sets   the same after smoothing over the scene       (with learn.smoothing)
    judge      two tasks       scores to probabilities, on pixels that were held out; intervals of the scores
    classify   sample blocks   class, probability, entropy of every sample, by the first model
    areas      one task        areas of the classes                          (with learn.areas)
    queries    one task        pixels to label next                          (with learn.queries)
"""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenscape.base.blocks import Block, blocks
from eigenscape.base.memory import rows_within
from eigenscape.base.shares import counted, lead
from eigenscape.context import Context
from eigenscape.labels.priors import Prior
from eigenscape.labels.testing import listed
from eigenscape.labels.training import TEST, Labelled, Planned, plan_fits
from eigenscape.labels.zones import Zones, prepare_zones
from eigenscape.learn.classmap import ClassMap, class_numbers
from eigenscape.learn.decide.assessment import find_areas, find_intervals
from eigenscape.learn.decide.calibration import calibrate_fits
from eigenscape.learn.decide.fitscores import FitScores, Fitted
from eigenscape.learn.decide.fitting import fit_all
from eigenscape.learn.decide.kernels.decisions import (
    Calibration,
    choose,
    describe,
    probabilities,
)
from eigenscape.learn.decide.kernels.scores import OF_ALL, OF_CLASSES, accuracy, summarize
from eigenscape.learn.decide.queries import propose
from eigenscape.learn.decide.sampling import Sampling
from eigenscape.learn.decide.unreached import Unreached, find_unreached
from eigenscape.learn.method import Classifier, learn_method
from eigenscape.scenes.ingest.ingested import IngestedScene
from eigenscape.store.workspace import Workspace


def learn_stage(context: Context) -> dict[str, Any]:
    """Write classes or clusters, by `eigenscape.learn.method.LearnMethod.work`."""
    return learn_method(context.job).work(context)


def classify_stage(context: Context, chosen: Classifier) -> dict[str, Any]:
    """Write ``labels/class``, ``labels/confidence`` and ``labels/entropy``; return the scores.

    For `eigenscape.apply`, a classifier that is a function of eigenvectors is stored as ``learn/model``, and
    the factors of its prior as ``learn/prior``. The training samples of the map are stored as
    ``learn/sample`` and ``learn/class``, for methods whose classes follow from labels alone.
    """
    ingest = context.run.record("ingest")
    assert ingest is not None, "learn follows ingest"
    if not ingest.summary["labelled"]:
        return {"skipped": "the scene has no labels"}
    scene = IngestedScene.from_summary(ingest.summary, context.job.scene, context.job.resolve)
    planned = _plan_fits(context, scene)
    _note_labels(context, planned.labelled, scene)
    class_map = ClassMap.create(context.workspace, context.open("samples/pixel").shape[0])
    fitted = _prepare(context, chosen, planned)
    source, confusions = fit_all(context, fitted)
    _store_model(context.workspace, chosen, fitted)
    labelled, test = fitted.labelled, TEST in planned.protocols
    scores = _score_fits(confusions, planned.protocols, labelled, scene.grid.things)
    zones = prepare_zones(labelled, context.path(scene.places), fitted.folder, scene.extent)
    leading = planned.protocols[_leading(scores["held_out"])]
    calibration, judged = _judge(context, source, fitted, zones, scene, leading, test=test)
    scores |= judged
    _classify(context, source, fitted, zones, calibration, class_map)
    if context.job.learn.areas:
        areas = partial(find_areas, source, labelled, class_map.classes, scene.grid, test=test)
        scores["areas"] = context.map("areas", partial(_call, {"all": areas}), ["all"])[0]
    if never := _never_found(scores["confusion"], labelled, scene.class_names):
        scores["never_found"] = never
    if found := _count_guesses(context, fitted, scene.grid.things):
        scores["unreached"] = found
    # Last: what a map says of its own training pixels is no measure of it.
    scores["training_pixels"] = _score_training(confusions[-1][0, 0], scene.grid.things)
    summary = _summarize(chosen, fitted, calibration, scores)
    if context.job.learn.queries:
        summary["queries"] = propose(context, source, labelled, calibration)
    return summary


def _plan_fits(context: Context, scene: IngestedScene) -> Planned:
    """Return the labelled samples, and the training sets of the job."""
    potential = context.job.graph.potential
    return plan_fits(
        context.job.learn, context.open("labels/given")[...], context.open("samples/pixel")[...],
        context.open(scene.places)[...], scene,
        first_only=potential is not None and potential.labels == "train",
    )  # fmt: skip


def _note_labels(context: Context, labelled: Labelled, scene: IngestedScene) -> None:
    """Log which labels are left out of the training, by a test file or a file of training pixels."""
    train_file = context.job.learn.train_file
    if labelled.disjoint is not None:
        for note in labelled.disjoint.notes():
            context.reporter.note(note)
    elif train_file is not None and (untaught := labelled.untaught):
        context.reporter.note(
            f"{train_file} marks no pixel of the class {listed(untaught, scene.class_names)}: its "
            f"{sum(untaught.values()):,} labels count as wrong"
        )


def _prepare(context: Context, chosen: Classifier, planned: Planned) -> Fitted:
    """Return the method with the data of the labelled samples in files, ready to be fitted."""
    folder = context.workspace.folder("learn")
    labelled = planned.labelled.stored(folder)
    return Fitted(
        method=chosen.prepare(context, labelled),
        prior=Prior(chosen.wanted_prior, folder),
        labelled=labelled,
        folder=folder,
        sampling=Sampling(labelled, planned.calibrating, context.job.learn.seed),
        unreached=None if chosen.reads == "features" else find_unreached(context, labelled),
    )


def _store_model(workspace: Workspace, chosen: Classifier, fitted: Fitted) -> None:
    """Store the model of the first fit, which makes the map, and the samples that it learned from."""
    folder, labelled = fitted.folder, fitted.labelled
    train = labelled.train[0]
    workspace.write_array("learn/sample", labelled.sample[train])
    workspace.write_array("learn/class", labelled.numbers[labelled.classes[train]])
    files = {"prior-0.npy": "learn/prior"}
    if chosen.model:
        files[f"{chosen.model}-0.npy"] = "learn/model"
    for file, name in files.items():
        if (folder / file).exists():
            workspace.write_array(name, np.load(folder / file))


def _judge(
    context: Context,
    source: FitScores,
    fitted: Fitted,
    zones: Zones,
    scene: IngestedScene,
    leading: list[int],
    *,
    test: bool,
) -> tuple[Calibration, dict[str, Any]]:
    """Return how scores become probabilities, how good these are, and the intervals of the scores.

    Parameters
    ----------
    context, source, fitted, zones, scene
        Of the stage.
    leading
        Fits of the protocol whose scores come first.
    test
        Whether they are scored on a test file.
    """
    labelled, sampling = fitted.labelled, fitted.sampling
    assert sampling is not None, "this stage reads scores"
    judge: dict[str, Callable[[], Any]] = {
        "calibration": partial(_calibrate, source, sampling, zones),
        "intervals": partial(
            _find_intervals, source, labelled, zones.own, scene.extent, leading,
            test=test, seed=context.job.learn.seed,
        ),
    }  # fmt: skip
    judged = context.map("judge", partial(_call, judge), list(judge), label="calibrating")
    (calibration, report), intervals = judged
    return Calibration.from_json(calibration), {"calibration": report, "intervals": intervals}


def _calibrate(
    source: FitScores, sampling: Sampling, zones: Zones
) -> tuple[dict[str, Any], dict[str, Any]]:
    calibration, report = calibrate_fits(source, sampling, zones)
    return calibration.to_json(), report


def _find_intervals(
    source: FitScores, labelled: Labelled, place: Path, *given: Any, **options: Any
) -> dict[str, Any]:
    # A path until a worker reads it, so that the array does not travel.
    return find_intervals(source, labelled, np.load(place), *given, **options)


def _call(works: Mapping[str, Callable[[], Any]], name: str) -> Any:
    return works[name]()


def _classify(
    context: Context,
    source: FitScores,
    fitted: Fitted,
    zones: Zones,
    calibration: Calibration,
    class_map: ClassMap,
) -> None:
    """Write the class of every sample."""
    labelled = fitted.labelled
    row = fitted.method.bytes_per_sample + 24 * labelled.count
    # Chunks of the map may be more samples than have room with all of their eigenvectors.
    step = rows_within(context.task_bytes, row)
    # Smoothing brings classes to such components from beside them.
    guessed = None if context.job.learn.smoothing else fitted.unreached
    work = partial(_classify_block, source, labelled, zones, calibration, class_map, step, guessed)
    context.map("classify", work, class_map.blocks(context.task_bytes, row), label="classifying")


def _classify_block(
    source: FitScores,
    labelled: Labelled,
    zones: Zones,
    calibration: Calibration,
    class_map: ClassMap,
    step: int,
    guessed: Unreached | None,
    block: Block,
) -> None:
    parts = []
    for begin, end in blocks(block[1] - block[0], step):
        part = (block[0] + begin, block[0] + end)
        scores = source.scores(part)
        p = probabilities(scores, calibration, zones.of(part))
        if guessed is not None:
            p[guessed.at(0, slice(*part))] = 1 / labelled.count
        decided = describe(choose(scores), p)
        classes = class_numbers(decided.classes, labelled.numbers.tolist())
        parts.append((classes, decided.confidence, decided.entropy))
    class_map.write(block[0], *map(np.concatenate, zip(*parts, strict=True)))


def _score_fits(
    confusions: list[NDArray[np.int64]],
    fits: dict[str, list[int]],
    labelled: Labelled,
    things: str,
) -> dict[str, Any]:
    """Return the scores on held-out pixels, and the accuracies before smoothing, if there is one.

    Parameters
    ----------
    confusions
        See `eigenscape.learn.decide.fitting.fit_all`.
    fits
        Those of each protocol.
    labelled, things
        The labelled samples, and what messages call samples.
    """
    *unsmoothed, confusion = confusions
    scores = _score(confusion, fits, labelled, things)
    for plain in unsmoothed:
        scores["unsmoothed"] = _accuracies(_score(plain, fits, labelled, things))
    return scores


def _accuracies(scores: dict[str, Any]) -> dict[str, Any]:
    """Return the overall accuracy of each protocol."""
    return {split: held["overall_accuracy"] for split, held in scores["held_out"].items()}


def _score(
    confusions: NDArray[np.int64], fits: dict[str, list[int]], labelled: Labelled, things: str
) -> dict[str, Any]:
    """Return the scores on held-out pixels, blocked first: the accuracy to be expected of the map."""
    # With a test file the draws make the confidence, and scores are of the file alone.
    scored = {split: numbers for split, numbers in fits.items() if split != "all"}
    scored = {TEST: scored[TEST]} if TEST in scored else scored
    held_out = {
        split: summarize(list(confusions[numbers, 2 if split == TEST else 1]))
        for split, numbers in sorted(scored.items(), key=lambda item: item[0] != "blocked")
    }
    for split in held_out:
        held_out[split]["training_pixels"] = int(labelled.train[fits[split]].sum(axis=1).mean())
    leading, split = lead(held_out), _leading(held_out)
    keys = (*OF_ALL, *OF_CLASSES, "confusion")
    return {
        "protocol": describe_protocol(leading, things),
        **{key: held_out[split][key] for key in keys},
        "held_out": held_out,
    }


def _leading(held_out: dict[str, Any]) -> str:
    """Return the protocol whose scores come first, even where it measured nothing."""
    return lead(held_out) or next(iter(held_out))


def _never_found(
    confusion: list[list[int]], labelled: Labelled, names: Mapping[int, str]
) -> dict[str, int]:
    """Return the classes of which no held-out sample was found, and how many of each were held out."""
    counts = np.array(confusion)
    held = counts.sum(axis=1)
    lost = np.flatnonzero((held > 0) & (np.diagonal(counts) == 0))
    return {listed([int(labelled.numbers[one])], names): int(held[one]) for one in lost}


def _count_guesses(context: Context, fitted: Fitted, things: str) -> dict[str, int]:
    """Return how many samples are in components without training labels, and log it; empty for none."""
    if fitted.unreached is None:
        return {}
    found = fitted.unreached.count()
    if not found["samples"]:
        return {}
    context.reporter.note(
        f"{found['samples']:,} {things} lie in {counted(found['components'], 'component')} of the graph "
        "without training labels: their classes are guesses. Label some of them, or set "
        'graph.components to "connect"'
    )
    return found


def describe_protocol(leading: str | None, things: str) -> str:
    """Return a description of the pixels, or samples of a table, on which the scores were measured."""
    if leading == TEST:
        return "disjoint test file"
    return f"{things} held out ({leading})" if leading else f"no {things[:-1]} is held out"


def _score_training(confusion: NDArray[np.int64], things: str) -> dict[str, Any]:
    """Return the scores of the map's own fit on the pixels that it learned from."""
    return {
        "protocol": f"training {things}: those that the map learned from",
        **accuracy(confusion),
        "confusion": confusion.tolist(),
    }


def _summarize(
    chosen: Classifier, fitted: Fitted, calibration: Calibration, scores: dict[str, Any]
) -> dict[str, Any]:
    """Return the summary of the stage, without its queries."""
    labelled = fitted.labelled
    summary = {
        "method": chosen.method,
        "reads": chosen.reads,
        "classes": [int(number) for number in labelled.numbers],
        "labelled": len(labelled.sample),
        "calibration": calibration.to_json(),
        "scores": scores,
    }
    if warning := getattr(fitted.method, "warning", ""):
        summary["warning"] = warning
    if labelled.disjoint is not None:
        summary["test"] = labelled.disjoint.report()
    return summary

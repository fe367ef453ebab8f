"""The learn stage: one classifier fitted to several training sets, the class of every sample, scores.

::

    gather     sample blocks   what the method needs of the labelled samples
    fit        training sets   a model each, its scores and its confusion on the labelled samples
    smooth     training sets   the same after smoothing over the scene       (where the job asks)
    calibrate  one task        scores to probabilities, on pixels that were held out
    classify   sample blocks   class, probability, entropy of every sample, by the first model
    assess     one task        intervals of the scores, areas of the classes (where the job asks)
    queries    one task        which pixels to label next                    (where the job asks)
"""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenscape.base.blocks import Block, sample_blocks
from eigenscape.context import Context
from eigenscape.labels.priors import Prior
from eigenscape.labels.training import TEST, Labelled, plan_fits
from eigenscape.labels.zones import Zones, prepare_zones
from eigenscape.learn.clustering.stage import cluster_stage
from eigenscape.learn.decide.assessment import find_areas, find_intervals
from eigenscape.learn.decide.calibration import calibrate_fits
from eigenscape.learn.decide.queries import propose
from eigenscape.learn.decide.smoothing import prepare_smoothing
from eigenscape.learn.decide.sources import Fitted, Source
from eigenscape.learn.kernels.decisions import Calibration, decide
from eigenscape.learn.kernels.scores import OF_ALL, OF_CLASSES, accuracy, lead, summarize
from eigenscape.learn.methods import prepare
from eigenscape.scenes.types import Grid
from eigenscape.store.arrays import chunk_rows, write_rows

_MODEL = {
    "means-0.npy": "learn/model",
    "weights-0.npy": "learn/model",
    "prior-0.npy": "learn/prior",
}
"""Files of the first fit, and the arrays that they become."""


def learn_stage(context: Context) -> dict[str, Any]:
    """Write ``labels/class``, ``labels/confidence`` and ``labels/entropy``; return the scores.

    A classifier that is a function of eigenvectors alone stays as ``learn/model``, and the factors of
    its prior as ``learn/prior``: what other scenes are classified by.
    """
    options = context.job.learn
    if options.unsupervised:
        return cluster_stage(context)
    ingest = context.run.record("ingest")
    assert ingest is not None, "learn follows ingest"
    if not ingest.summary["labelled"]:
        return {"skipped": "the scene has no labels"}
    grid = Grid.from_json(ingest.summary["grid"])
    labelled, fits = plan_fits(context, grid)
    if labelled.disjoint is not None:
        for note in labelled.disjoint.notes():
            context.reporter.note(note)
    samples = context.open("samples/pixel").shape[0]
    target = context.workspace.create_array("labels/class", (samples,), np.uint16, dims=("sample",))
    confidence = context.workspace.create_array(
        "labels/confidence", (samples,), np.float32, dims=("sample",)
    )
    entropy = context.workspace.create_array(
        "labels/entropy", (samples,), np.float32, dims=("sample",)
    )
    folder = context.workspace.folder("learn")
    method = prepare(context, labelled)
    fitted = Fitted(method, Prior(options.prior, folder), labelled, folder)
    numbers = list(range(len(labelled.train)))
    confusions = np.array(context.map("fit", fitted.fit, numbers, label="fitting"))
    scores = _score(confusions, fits, labelled)
    _store_model(context, folder)
    source: Source = fitted
    if options.smoothing:
        source = smoothed = prepare_smoothing(context, fitted)
        bundles = list(range(len(smoothed.bundles)))
        found = context.map("smooth", smoothed.smooth, bundles, label="smoothing")
        unsmoothed, confusions = scores, np.array([fit for bundle in found for fit in bundle])
        scores = _score(confusions, fits, labelled)
        scores["unsmoothed"] = _accuracies(unsmoothed)
    zones = prepare_zones(context, labelled, grid)
    protocols = {split: numbers for split, numbers in fits.items() if split not in ("all", TEST)}
    work = partial(_calibrate, source, labelled, zones, protocols, options.seed)
    found, scores["calibration"] = context.map("calibrate", work, ["all"])[0]
    # Last: what a map says of its own training pixels is no measure of it.
    scores["training_pixels"] = _score_training(confusions[0, 0])
    calibration = Calibration.from_json(found)
    row = method.bytes_per_sample + 24 * labelled.count
    ranges = sample_blocks(samples, chunk_rows(samples, 4), context.task_bytes, row)
    targets = (target, confidence, entropy)
    classify = partial(_classify, source, labelled, zones, calibration, targets)
    context.map("classify", classify, ranges, label="classifying")
    split, test = _leading(scores["held_out"]), TEST in fits
    pixel = np.load(zones.own)
    assess = partial(
        _assess, source, labelled, pixel, grid, fits[split], test, options.seed,
        target if options.areas else None,
    )  # fmt: skip
    scores |= context.map("assess", assess, ["all"])[0]
    scores["training_pixels"] = scores.pop("training_pixels")
    summary = {
        "classes": [int(number) for number in labelled.numbers],
        "labelled": len(labelled.sample),
        "calibration": calibration.to_json(),
        "scores": scores,
    }
    if labelled.disjoint is not None:
        summary["test"] = labelled.disjoint.report()
    if options.queries:
        summary["queries"] = propose(context, source, labelled, calibration)
    return summary


def _store_model(context: Context, folder: Path) -> None:
    """Store what the first fit came to, which makes the map."""
    for file, name in _MODEL.items():
        if (folder / file).exists():
            values = np.load(folder / file)
            path = context.workspace.create_array(name, values.shape, values.dtype)
            write_rows(path, 0, values)


def _calibrate(
    source: Source,
    labelled: Labelled,
    zones: Zones,
    protocols: dict[str, list[int]],
    seed: int,
    _: str,
) -> tuple[dict[str, Any], dict[str, Any]]:
    calibration, report = calibrate_fits(source, labelled, zones, protocols, seed)
    return calibration.to_json(), report


def _assess(
    source: Source,
    labelled: Labelled,
    pixel: NDArray[np.int64],
    grid: Grid,
    fits: list[int],
    test: bool,
    seed: int,
    classes: str | None,
    _: str,
) -> dict[str, Any]:
    found = find_intervals(source, labelled, pixel, grid, fits, test=test, seed=seed)
    scores: dict[str, Any] = {"intervals": found}
    if classes is not None:
        scores["areas"] = find_areas(source, labelled, classes, grid, test=test)
    return scores


def _classify(
    source: Source,
    labelled: Labelled,
    zones: Zones,
    calibration: Calibration,
    targets: tuple[str, str, str],
    block: Block,
) -> None:
    found = decide(source.scores(block), calibration, zones.of(block))
    classes = np.where(found.classes < 0, 0, labelled.numbers[found.classes])
    for target, values in zip(targets, (classes, found.confidence, found.entropy), strict=True):
        write_rows(target, block[0], values)


def _accuracies(scores: dict[str, Any]) -> dict[str, Any]:
    """Return the overall accuracy of each protocol."""
    return {split: held["overall_accuracy"] for split, held in scores["held_out"].items()}


def _score(
    confusions: NDArray[np.int64], fits: dict[str, list[int]], labelled: Labelled
) -> dict[str, Any]:
    """Return the scores on held-out pixels, blocked first: what is to be expected of the map."""
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
        "protocol": describe_protocol(leading),
        **{key: held_out[split][key] for key in keys},
        "held_out": held_out,
    }


def _leading(held_out: dict[str, Any]) -> str:
    """Return the protocol whose scores come first, even where it measured nothing."""
    return lead(held_out) or next(iter(held_out))


def describe_protocol(leading: str | None) -> str:
    """Return in words which pixels scores are of."""
    if leading == TEST:
        return "disjoint test file"
    return f"pixels held out ({leading})" if leading else "no pixel is held out"


def _score_training(confusion: NDArray[np.int64]) -> dict[str, Any]:
    """Return the scores of the map's own fit on the pixels that it learned from."""
    return {
        "protocol": "training pixels: those that the map learned from",
        **accuracy(confusion),
        "confusion": confusion.tolist(),
    }

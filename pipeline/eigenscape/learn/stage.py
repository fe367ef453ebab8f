"""The learn stage: one classifier fitted to several training sets, the class of every sample, scores.

::

    gather     sample blocks   what the method needs of the labelled samples
    fit        training sets   a model each, and its confusion on the labelled samples
    classify   sample blocks   class and confidence of every sample, by the first model
"""

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenscape.arrays import chunk_rows, open_array
from eigenscape.learn.labelled import Labelled, plan_fits
from eigenscape.learn.methods import Method, prepare
from eigenscape.learn.scores import accuracy, confusion_matrix, summarize
from eigenscape.options import LearnOptions
from eigenscape.scenes.types import Grid
from eigenscape.stage import Block, Context, sample_blocks


def learn_stage(context: Context) -> dict[str, Any]:
    """Write ``labels/class`` and ``labels/confidence``; return the scores."""
    ingest = context.run.record("ingest")
    assert ingest is not None, "learn follows ingest"
    if not ingest.summary["labelled"]:
        return {"skipped": "the scene has no labels"}
    labelled, fits = plan_fits(context, Grid.from_json(ingest.summary["grid"]))
    samples = context.open("samples/pixel").shape[0]
    target = context.workspace.create_array("labels/class", (samples,), np.uint16, dims=("sample",))
    confidence = context.workspace.create_array(
        "labels/confidence", (samples,), np.float32, dims=("sample",)
    )
    method = prepare(context, labelled)
    numbers = list(range(len(labelled.train)))
    fit = partial(_fit, method, labelled)
    confusions = np.array(context.map("fit", fit, numbers, label="fitting", keep=False))
    ranges = sample_blocks(
        samples, chunk_rows(samples, 4), context.task_bytes, method.bytes_per_sample
    )
    work = partial(_classify, method, labelled, target, confidence)
    context.map("classify", work, ranges, label="classifying", keep=False)
    return {
        "classes": [int(number) for number in labelled.numbers],
        "labelled": len(labelled.sample),
        "scores": _score(context.job.learn, confusions, fits, labelled),
    }


def _fit(method: Method, labelled: Labelled, number: int) -> NDArray[np.int64]:
    """Return one confusion matrix for the training samples of a fit, and one for the others."""
    called = method.fit(number)
    train = labelled.train[number]
    return np.stack(
        [
            confusion_matrix(labelled.classes[chosen], called[chosen], labelled.count)
            for chosen in (train, ~train)
        ]
    )


def _classify(
    method: Method, labelled: Labelled, target: str, confidence: str, block: Block
) -> None:
    best, clear = method.classify(block)
    open_array(target)[slice(*block)] = np.where(best < 0, 0, labelled.numbers[best])
    open_array(confidence)[slice(*block)] = clear


def _score(
    options: LearnOptions,
    confusions: NDArray[np.int64],
    fits: dict[str, list[int]],
    labelled: Labelled,
) -> dict[str, Any]:
    """Return the scores of the map's own protocol, and beside them those of the others."""
    itself = {
        **accuracy(confusions[0, 0]),
        "confusion": confusions[0, 0].tolist(),
    }
    held_out = {
        split: summarize(list(confusions[numbers, 1]))
        for split, numbers in fits.items()
        if split != "all"
    }
    for split, numbers in fits.items():
        if split != "all":
            held_out[split]["training_pixels"] = int(labelled.train[numbers].sum(axis=1).mean())
    if options.train == "all":
        main, protocol = itself, "the labelled pixels themselves, all of them learned from"
    else:
        split = next(iter(held_out))
        main, protocol = held_out[split], f"pixels held out ({split})"
    keys = ("overall_accuracy", "average_accuracy", "kappa", "per_class", "confusion")
    return {
        "protocol": protocol,
        **{key: main[key] for key in keys},
        "training_pixels": itself,
        "held_out": held_out,
    }

"""A part of a big scene to choose by: squares that hold the labels, as a mask beside the job's own."""

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from eigenscape.base.blocks import blocks
from eigenscape.base.files.whole import explain_write_errors, written_whole
from eigenscape.job.jobfile import Job
from eigenscape.scenes.formats.tables.sparse import SparseScene
from eigenscape.scenes.open import open_scene
from eigenscape.scenes.types import Labels, Scene
from eigenscape.scenes.views.masks import MaskedScene
from eigenscape.scenes.views.subset import subset_of
from eigenscape.workflow.choice.roles import ClassRows, labels_by_role

TILE = 64
"""Most pixels along a square: wide enough for filters in space, and most of it not at its edge."""

_SQUARES = 6
"""At least so many, where that leaves them larger than `_LEAST_TILE`: classes lie in several places."""

_LEAST_TILE = 10

_HALVED = 32
"""Pixels along a square, at least, after squares were halved so that all labels lie in them: draws among
all labels are those of the whole scene. A random forest has 74 % in a part with 9,673 of the 12,657 labelled
pixels of a historical map, and 63 % with all of them."""

_JUDGING = 1 / 8
"""Share of the squares that are taken for the labels to judge by, where a part is to hold such."""

_ENOUGH = 200
"""Labelled pixels of a class after which further ones count for little."""

_STRIP_PIXELS = 2**22


@dataclass(frozen=True)
class Window:
    """A part of a scene.

    Attributes
    ----------
    job
        A job on it; the job that was given where the scene is small.
    notes
        What part it is, in words; nothing where the scene is small.
    labelled
        Number of labelled pixels in it.
    lacking
        Share of all labelled pixels whose classes it lacks.
    """

    job: Job
    notes: str = ""
    labelled: int = 0
    lacking: float = 0.0


def window_of(job: Job, path: Path, most: int, seed: int, *, judged: bool = False) -> Window:
    """Return a part of a job's scene that holds labels of as many classes as it can.

    Squares are taken one after the other, each the one that adds most to the labels of the classes that
    have few so far; without labels, at random. Of a table labelled rows are drawn, and others at random.
    Labels are those that the choice may see (`eigenscape.workflow.choice.roles`).

    Parameters
    ----------
    job
        A job.
    path
        Where the mask goes (.npy).
    most
        Pixels of the part, about.
    seed
        Of random draws.
    judged
        Whether it is to hold the labels as well by which the choice is judged, where files name some.

    Raises
    ------
    SceneError
        The scene or its labels cannot be read.
    """
    scene = open_scene(job.scene, job.resolve)
    if scene.grid.size <= most:
        return Window(job)
    roles = labels_by_role(job, scene)
    labels, judging = roles.seen, roles.judging if judged else None
    if isinstance(scene, SparseScene) or subset_of(scene) is not None:
        drawn = job.scene.model_copy(update={"samples": most})
        notes = f"a part of the table: {most:,} of {scene.grid.size:,} samples, drawn at random"
        return Window(job.model_copy(update={"scene": drawn}), notes)
    rng = np.random.default_rng(seed)
    if scene.grid.is_table:
        rows = roles.both if judged else labels
        chosen, what = _choose_rows(scene, rows, most, rng), "samples"
    else:
        chosen, what = _choose_squares(scene, labels, judging, most, rng), "pixels"
    keep_masked(scene, chosen)
    write_mask(path, chosen.astype(np.uint8))
    options = job.scene.model_copy(update={"mask": str(path)})
    notes = f"a part of the scene: {int(chosen.sum()):,} of {scene.grid.size:,} {what}"
    labelled, lacking = 0, 0.0
    if labels is not None:
        inside, whole = _count(labels, chosen), _count(labels, np.ones_like(chosen))
        classes = f"{np.count_nonzero(inside)} of {np.count_nonzero(whole)} classes"
        labelled, total = int(inside.sum()), int(whole.sum())
        notes += f", with {labelled:,} of {total:,} labelled ones of {classes}"
        if judging is not None:
            notes += f", and {int(_count(judging, chosen).sum()):,} to judge by"
        lacking = float(whole[inside == 0].sum() / max(total, 1))
    return Window(job.model_copy(update={"scene": options}), notes, labelled, lacking)


def set_aside(job: Job, pixels: NDArray[np.int64], path: Path) -> Job:
    """Return a job to which the labels of some pixels are test labels: no choice on any part sees them.

    Parameters
    ----------
    job
        A job whose files name no labels to test on.
    pixels
        Of its scene, or of the samples that it draws.
    path
        Where the mask goes (.npy).
    """
    scene = open_scene(job.scene, job.resolve)
    shape, subset = (scene.grid.height, scene.grid.width), subset_of(scene)
    if subset is not None:
        shape, pixels = (subset.total, 1), subset.rows[pixels]
    mask = np.zeros(shape, np.uint8)
    mask.ravel()[pixels] = 1
    write_mask(path, mask)
    learn = job.learn.model_copy(update={"test": str(path)})
    return job.model_copy(update={"learn": learn})


def write_mask(path: Path, mask: NDArray[np.uint8]) -> None:
    """Write a mask, unless it is there: a file that is newer would be another input."""
    try:
        if np.array_equal(np.load(path), mask):
            return
    except (OSError, ValueError, EOFError):
        pass  # none yet, or no mask
    with explain_write_errors(path.parent), written_whole(path) as temporary:
        np.save(temporary, mask)


def _choose_squares(
    scene: Scene,
    labels: Labels | None,
    judging: Labels | None,
    most: int,
    rng: np.random.Generator,
) -> NDArray[np.bool_]:
    height, width = scene.grid.height, scene.grid.width
    room = most if judging is None else most - int(_JUDGING * most)
    side = max(_LEAST_TILE, min(TILE, math.isqrt(most // _SQUARES)))
    counts = None
    if labels is not None:
        counts = _counts(labels, height, width, side)
        if side // 2 >= _HALVED and not _fit(counts, side, room):
            halved = _counts(labels, height, width, side // 2)
            if _fit(halved, side // 2, room):
                side, counts = side // 2, halved
    down, across = -(-height // side), -(-width // side)
    order = rng.permutation(down * across)
    wanted = max(1, most // side**2)
    if counts is not None:
        order = _by_need(counts, order, wanted)
    if judging is not None:
        first = wanted - max(1, int(_JUDGING * wanted))
        others = _counts(judging, height, width, side)
        order = np.concatenate([order[:first], _by_need(others, order[first:], wanted - first)])
    chosen = np.zeros((height, width), np.bool_)
    for square in order[:wanted].tolist():
        row, column = divmod(square, across)
        chosen[row * side : (row + 1) * side, column * side : (column + 1) * side] = True
    return chosen


def _fit(counts: NDArray[np.int64], side: int, most: int) -> bool:
    """Return whether so many pixels hold all squares with labels."""
    return int(np.count_nonzero(counts.any(axis=1))) * side**2 <= most


def _counts(labels: Labels, height: int, width: int, side: int) -> NDArray[np.int64]:
    """Return the labelled pixels of each class in each square, shape (squares, classes)."""
    across = -(-width // side)
    squares = -(-height // side) * across
    counts: dict[int, NDArray[np.int64]] = {}
    for start, stop in blocks(height, side):
        given = labels.read(start, stop)
        row, column = np.nonzero(given)
        number = given[row, column]
        square = (start // side) * across + column // side
        for one in np.unique(number).tolist():
            total = counts.setdefault(one, np.zeros(squares, np.int64))
            total += np.bincount(square[number == one], minlength=squares)
    # Of labels that are all 0, no class.
    columns = [counts[one] for one in sorted(counts)]
    return np.stack(columns, axis=1) if columns else np.zeros((squares, 0), np.int64)


def _by_need(counts: NDArray[np.int64], order: NDArray[np.int64], wanted: int) -> NDArray[np.int64]:
    """Return squares, those first that add most to the classes that have little so far."""
    taken: list[int] = []
    have = np.zeros(counts.shape[1])
    left = order.copy()
    for _ in range(min(wanted, len(order))):
        # Twice as many pixels of a class are worth little more than one doubling, whatever the class.
        gain = np.log2(
            (1 + np.minimum(have + counts[left], _ENOUGH)) / (1 + np.minimum(have, _ENOUGH))
        )
        best = int(gain.sum(axis=1).argmax())
        if gain[best].sum() <= 0:
            best = int(counts[left].sum(axis=1).argmax())
        taken.append(int(left[best]))
        have += counts[left[best]]
        left = np.delete(left, best)
    return np.array([*taken, *left.tolist()], np.int64)


def _choose_rows(
    scene: Scene, labels: ClassRows | None, most: int, rng: np.random.Generator
) -> NDArray[np.bool_]:
    samples = scene.grid.height
    chosen = np.zeros((samples, 1), np.bool_)
    # As many of each class as of any other, then whatever comes.
    order = rng.permutation(samples)
    if labels is not None:
        given = np.concatenate(
            [labels.read(*block).ravel() for block in blocks(samples, _STRIP_PIXELS)]
        )
        place = np.full(samples, samples)
        for number in np.unique(given[given > 0]).tolist():
            members = order[given[order] == number]
            place[members] = np.arange(len(members))
        labelled = order[given[order] > 0]
        labelled = labelled[np.argsort(place[labelled], kind="stable")][: most // 2]
        order = np.concatenate([labelled, np.setdiff1d(order, labelled, assume_unique=True)])
        rest = order[len(labelled) :]
        rng.shuffle(rest)
    chosen[order[:most]] = True
    return chosen


def keep_masked(scene: Scene, chosen: NDArray[np.bool_]) -> None:
    """Leave out what the job's own mask leaves out."""
    if not isinstance(scene, MaskedScene):
        return
    for start, stop in blocks(scene.grid.height, max(1, _STRIP_PIXELS // scene.grid.width)):
        chosen[start:stop] &= scene.kept(start, stop)


def _count(labels: Labels, chosen: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return the chosen pixels of each class number."""
    total = np.zeros(2**16, np.int64)
    for start, stop in blocks(len(chosen), max(1, _STRIP_PIXELS // chosen.shape[1])):
        given = labels.read(start, stop)
        total += np.bincount(given[chosen[start:stop]], minlength=len(total))
    total[0] = 0
    return total

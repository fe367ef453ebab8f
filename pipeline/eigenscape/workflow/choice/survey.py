"""What a scene is, as far as it decides which methods to try: read from a few rows and its labels."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenscape.errors import InputError
from eigenscape.job.jobfile import Job
from eigenscape.scenes.formats.tables.sparse import SparseScene
from eigenscape.scenes.ingest.content import all_identical, nothing_valid
from eigenscape.scenes.open import open_scene
from eigenscape.scenes.preview import count_labels
from eigenscape.scenes.types import Scene
from eigenscape.workflow.choice.roles import labels_by_role

_PAIRS, _ROWS, _ROW_PAIRS = 2**13, 16, 2**9
"""Pairs of neighbours that are compared, about; rows at least, and pairs of a row at most."""

_DEVIATIONS = 4.0
"""Standard deviations of shuffled pixels that a scene is below their mean."""

_COUNTED = 2**14
"""Pixels of a scene, at most, whose valid ones are counted."""

SMALL = 2**15
"""Pixels of a small image: jobs are compared on all of it. Measured with two seeds on 12 images of 100 x 100
pixels or less (five synthetic ones, crops of Indian Pines and EnMAP, Urban): 86.6 % held out by squares, and
14 to 16 s for the run; by a part of 4,096 pixels, which was doubtful in 9 of them, 86.1 % and 25 to 29 s. On
Indian Pines and EnMAP with three seeds: the same within 1.2 points, and about 21 s for any seed instead of 17
to 50."""


@dataclass(frozen=True)
class Survey:
    """What a scene is.

    Attributes
    ----------
    table
        Samples without a place.
    pixels
        All of them, valid or not.
    samples
        Valid ones; counted in small scenes only, all pixels otherwise.
    bands
        Good ones.
    alike
        Mean squared difference of pixels side by side, in units of that of pixels drawn at random, the mean
        of all bands (Indian Pines 0.1, EnMAP Potsdam 0.2); None of a table, and where no two pixels lie side
        by side.
    labelled
        Labelled pixels of each class that a choice may see; empty without labels.
    names
        Those of the classes that have one, by their numbers.
    chance
        What `alike` is at least where the pixels are in no order.
    """

    table: bool
    pixels: int
    samples: int
    bands: int
    alike: float | None
    labelled: Mapping[int, int]
    names: Mapping[int, str] = field(default_factory=dict)
    chance: float = 1.0

    @property
    def contiguous(self) -> bool:
        """Whether pixels side by side are alike: noise is what neighbours differ by only there.

        Also where they are hardly alike: of a noisy scene the methods of space make most.
        """
        return self.alike is not None and self.alike < self.chance

    @property
    def small(self) -> bool:
        """Whether it is an image small enough to be used whole."""
        return not self.table and self.pixels <= SMALL

    def fulfils(self, needs: str) -> bool:
        """Whether the scene is what a candidate needs.

        One of "image", "table", "contiguous", "small" and "labels".

        Raises
        ------
        KeyError
            For any other word.
        """
        return {
            "image": not self.table, "table": self.table, "contiguous": self.contiguous, "small": self.small,
            "labels": bool(self.labelled),
        }[needs]  # fmt: skip


def survey(job: Job) -> Survey:
    """Look at the scene of a job and at its labels.

    Raises
    ------
    SceneError
        They cannot be read; or of a small scene no pixel is valid, or all valid ones are identical.
    InputError
        ``learn.train`` and ``learn.test`` leave nothing to learn from.
    """
    scene = open_scene(job.scene, job.resolve)
    roles = labels_by_role(job, scene)
    labels = roles.seen
    counts = {} if labels is None else count_labels(labels, scene)
    if roles.judging is not None and len(counts) < 2:
        raise InputError(_nothing_to_learn(job, sum(counts.values())))
    table = scene.grid.is_table
    alike, chance = (None, 1.0) if table else _alike(scene)
    pixels = samples = scene.grid.size
    if pixels <= _COUNTED:
        values, valid = scene.read(0, scene.grid.height)
        samples = int(np.count_nonzero(valid))
        _check_pixels(job, scene, values, valid)
    names = {} if labels is None else labels.legend.names
    return Survey(table, pixels, samples, scene.bands.count, alike, counts, names, chance)


def _check_pixels(job: Job, scene: Scene, values: Any, valid: NDArray[np.bool_]) -> None:
    """Refuse what ingest would refuse: no valid pixel, or several that are all identical."""
    if not valid.any():
        raise nothing_valid(scene, job.scene, job.resolve)
    if isinstance(scene, SparseScene):
        return
    pixels = np.asarray(values)[valid]
    if len(pixels) > 1 and (pixels == pixels[0]).all():
        raise all_identical(scene, pixels[0])


def _nothing_to_learn(job: Job, left: int) -> str:
    files = {"learn.train": job.learn.train_file, "learn.test": job.learn.test}
    named = [f"{key} = {file!r}" for key, file in files.items() if file is not None]
    return (
        f"{' and '.join(named)}: {left} labelled pixels of fewer than two classes are left to learn from. "
        "What learn.test labels is not learned from; of a file in learn.train, what it marks is. Give files "
        "that leave pixels of two classes or more."
    )


def _alike(scene: Scene) -> tuple[float | None, float]:
    """Return ``alike`` and ``chance``, of some rows."""
    if isinstance(scene, SparseScene) or scene.grid.width < 2:
        return None, 1.0
    count = max(_ROWS, _PAIRS // scene.grid.width)
    rows = np.unique(np.linspace(0, scene.grid.height - 1, count).astype(int))
    found: list[NDArray[np.float64]] = []
    for row in rows.tolist():
        values, valid = scene.read(row, row + 1)
        line = np.asarray(values).reshape(scene.grid.width, -1)
        pairs = np.flatnonzero(valid[0, :-1] & valid[0, 1:])
        pairs = pairs[:: -(-len(pairs) // _ROW_PAIRS) or 1]
        found.append(line[np.stack([pairs, pairs + 1])].astype(np.float64))
    both = np.concatenate(found, axis=1)
    if not both.size:
        return None, 1.0
    # Of equal variance: a band of noise alone, however strong, is one among many.
    both -= both.mean(axis=(0, 1))
    spread = both.std(axis=(0, 1))
    both = both[..., spread > 0] / spread[spread > 0]
    first, second = both
    if not both.size:
        return None, 1.0
    return float(((first - second) ** 2).mean() / 2), _chance(first, second)


def _chance(first: NDArray[np.float64], second: NDArray[np.float64]) -> float:
    """Return what half the mean square of differences is at least where pairs are drawn anew.

    The sum of products of pairs has, over all permutations of one side, the mean n m m' and the variance
    tr(S S') / (n - 1), with the means m, m' and the scatter matrices S, S' of both sides.
    """
    n, means = len(first), (first.mean(axis=0), second.mean(axis=0))
    scatter, other = (
        (x - mean).T @ (x - mean) for x, mean in zip((first, second), means, strict=True)
    )
    mean = ((first**2).mean() + (second**2).mean()) / 2 - (means[0] * means[1]).mean()
    spread = np.sqrt((scatter * other).sum() / max(1, n - 1)) / first.size
    return float(mean - _DEVIATIONS * spread)

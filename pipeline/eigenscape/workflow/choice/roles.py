"""Labels by what they are for: those that a choice may see, and those that judge it.

``scene.labels`` are both where no file says otherwise. With ``learn.train`` the choice sees those that the
file marks, and with ``learn.test`` those that this file does not have. Pixels that ``scene.mask`` leaves out
have neither: no run learns from them.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from eigenscape.job.jobfile import Job
from eigenscape.scenes.geometry.companions import locate
from eigenscape.scenes.labels.sources import open_labels, open_marks, open_test_labels
from eigenscape.scenes.labels.wrapped import WrappedLabels
from eigenscape.scenes.types import Labels, Scene
from eigenscape.scenes.views.masks import MaskedScene
from eigenscape.scenes.views.subset import subset_of

_OTHERS = 2**16
"""Added to the class numbers of labels to judge by: they are classes of their own beside the others."""


class ClassRows(Protocol):
    """Class numbers by rows of a scene."""

    def read(self, start: int, stop: int) -> NDArray[np.integer]:
        """Read those of rows start ... stop-1, shape (stop - start, width), 0 = none."""
        ...


@dataclass(frozen=True, eq=False)
class KeptLabels(WrappedLabels):
    """Labels of some pixels alone; fulfils the `Labels` protocol.

    Attributes
    ----------
    labels
        All of them.
    keep
        Given rows start ... stop-1, returns the pixels that keep their label, shape (stop - start, width).
    """

    keep: Callable[[int, int], NDArray[np.bool_]]

    def read(self, start: int, stop: int) -> NDArray[np.uint16]:
        """See `eigenscape.scenes.types.Labels.read`."""
        return np.where(self.keep(start, stop), self.labels.read(start, stop), np.uint16(0))


@dataclass(frozen=True)
class Both:
    """Labels to see and labels to judge by, side by side; fulfils `ClassRows`."""

    seen: Labels
    judging: Labels

    def read(self, start: int, stop: int) -> NDArray[np.int64]:
        """See `ClassRows.read`."""
        seen = self.seen.read(start, stop).astype(np.int64)
        judging = self.judging.read(start, stop)
        return np.where((seen == 0) & (judging > 0), _OTHERS + judging.astype(np.int64), seen)


@dataclass(frozen=True)
class Roles:
    """The labels of a job by what they are for.

    Attributes
    ----------
    seen
        Those that a choice of methods may see; None without labels.
    judging
        Those by which it is judged; None where no file says it.
    """

    seen: Labels | None
    judging: Labels | None = None

    @property
    def both(self) -> ClassRows | None:
        """Return all of them."""
        if self.seen is None or self.judging is None:
            return self.seen
        return Both(self.seen, self.judging)


def labels_by_role(job: Job, scene: Scene) -> Roles:
    """Return the labels that a choice of methods may see, and those by which it is judged.

    Parameters
    ----------
    job
        Its ``[scene]``, ``learn.train`` and ``learn.test`` name them.
    scene
        Its scene, as `eigenscape.scenes.open.open_scene` returned it.

    Raises
    ------
    SceneError
        A file cannot be read, or cannot be brought onto the scene's grid.
    """
    labels: Labels | None = open_labels(job.scene, scene, job.resolve)
    if labels is not None and isinstance(scene, MaskedScene):
        labels = KeptLabels(labels, scene.kept)
    marking, test = job.learn.train_file, job.learn.test
    if labels is None or (marking is None and test is None):
        return Roles(labels)
    grid, subset, located = scene.grid, subset_of(scene), locate(scene, job.scene)
    seen: Labels = labels
    judging: Labels | None = None
    if marking is not None:
        marks = open_marks(job.resolve(marking), job.scene, grid, subset, located)
        seen = KeptLabels(seen, lambda start, stop: marks.read(start, stop) > 0)
        judging = KeptLabels(labels, lambda start, stop: marks.read(start, stop) == 0)
    if test is not None:
        tested = open_test_labels(job.resolve(test), job.scene, grid, subset, located)
        seen = KeptLabels(seen, lambda start, stop: tested.read(start, stop) == 0)
        judging = KeptLabels(tested, scene.kept) if isinstance(scene, MaskedScene) else tested
    return Roles(seen, judging)

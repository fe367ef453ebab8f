"""A registered data set in memory, for work without a job."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eigenscape.base.vectors import Vectors
from eigenscape.scenes import SceneOptions
from eigenscape.scenes.labels.sources import open_labels
from eigenscape.scenes.names import sample_names
from eigenscape.scenes.open import open_scene
from eigenscape.scenes.registry import registered


@dataclass(frozen=True)
class Table:
    """The samples of a data set.

    Attributes
    ----------
    values : array or csr_array, shape (samples, columns), float32
    labels : array of uint16, shape (samples,), or None
        Class numbers from 1, 0 where there is none; None for a set without labels.
    classes
        Names of the classes by number.
    names
        Name of every sample (the words of `brown`, the postings of `20newsgroups`), or None.
    """

    values: Vectors
    labels: NDArray[np.uint16] | None
    classes: Mapping[int, str]
    names: list[str] | None


def load(name: str, *, samples: int | None = None, seed: int | None = None) -> Table:
    """Load what a job with ``scene.path = name`` reads; of an image its valid pixels.

    Parameters
    ----------
    name
        As ``eigenscape data list`` names it.
    samples, seed
        As ``scene.samples`` and ``scene.seed``.

    Raises
    ------
    SceneError
        There is no such data set, it is not on this machine, or it has fewer samples.
    """
    registered(name)  # Or it is no data set, whatever file has its name.
    options = SceneOptions(path=name, samples=samples, seed=seed)
    scene = open_scene(options, str)
    source = open_labels(options, scene, str)
    values, valid = scene.read(0, scene.grid.height)
    kept = np.flatnonzero(valid)
    if isinstance(values, np.ndarray):
        values = values.reshape(-1, scene.bands.count)
    labels = None if source is None else source.read(0, scene.grid.height).ravel()[kept]
    classes = dict(source.legend.names) if source else {}
    return Table(values[kept], labels, classes, sample_names(options, scene))

"""Components of a graph without a training sample: nothing there tells one class from another."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eigenscape.context import Context
from eigenscape.labels.training import Labelled
from eigenscape.store.arrays import open_memmap


@dataclass(frozen=True)
class Unreached:
    """The samples of such components.

    Attributes
    ----------
    component
        Path of the component of each sample.
    labelled
        The labelled samples and training sets.
    """

    component: str
    labelled: Labelled

    def at(self, number: int, samples: slice | NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return which samples are in a component without a training sample of a fit."""
        component = open_memmap(self.component)
        taught = np.unique(component[self.labelled.sample[self.labelled.train[number]]])
        return ~np.isin(component[samples], taught)

    def count(self) -> dict[str, int]:
        """Return how many samples and components that are, as the fit of the map sees it."""
        away = self.at(0, slice(None))
        components = len(np.unique(open_memmap(self.component)[away]))
        return {"samples": int(away.sum()), "components": components}


def find_unreached(context: Context, labelled: Labelled) -> Unreached | None:
    """Return them for a graph of several components; None for a connected one, or without a graph."""
    graph = context.run.record("graph")
    if graph is None or graph.summary["connected"]:
        return None
    return Unreached(context.path("graph/component"), labelled)

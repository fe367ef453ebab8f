"""The interface of a method that spreads labels over the graph: `eigenscape.learn.propagate.fields`."""

import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from eigenscape.base.footprint import Footprint
from eigenscape.learn.method import Classifier, Prepared, Samples
from eigenscape.learn.propagate.sizes import (
    CYCLE_ARRAYS,
    EXACT_ROWS,
    LABEL_ARRAYS,
    MOST_ARRAYS,
    making_bytes,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from eigenscape.context import Context
    from eigenscape.labels.training import Labelled
    from eigenscape.learn.propagate.kernels.columnlabels import ColumnLabels
    from eigenscape.learn.propagate.kernels.conjugate import Allocate
    from eigenscape.learn.propagate.kernels.multigrid import CoarseGraph
    from eigenscape.learn.propagate.kernels.propagation import Propagated
    from eigenscape.spectrum.kernels.operator import Array, Operator


@dataclass(frozen=True)
class Group:
    """A group of columns, each a class of a fit, whose fields are computed together.

    Attributes
    ----------
    operator
        L = D - W.
    labels
        The labelled rows of every column: 1 for its class, 0 for another, the mean of several labels, NaN for
        a row that its fit does not learn from.
    allocate
        Gives zeros of shape (rows, WIDTH) to work on, in memory or mapped, for any number of rows.
    columns, classes
        Number of columns that are used, and of classes.
    wanted
        Returns the share that the class of each column is to have, shape (columns,).
    component
        Component of each row, None for a connected graph.
    start
        First guess of a solution; None without.
    tolerance
        Relative residual to reach.
    graphs
        Smaller graphs for multigrid cycles; None for a method that takes none.
    """

    operator: "Operator"
    labels: "ColumnLabels"
    allocate: "Allocate"
    columns: int
    classes: int
    wanted: Callable[[], "NDArray[np.float64]"]
    component: "NDArray[Any] | None"
    start: Any
    tolerance: float
    graphs: "Sequence[CoarseGraph] | None"


class FieldMethod(Classifier):
    """A method whose scores are a field over the graph for each class.

    Attributes
    ----------
    whole_fits
        Whether the classes of a fit depend on each other: they are in one group then.
    potentials
        Whether the fields have a mean of about 0 and no scale of their own.
    masses
        Whether scores follow the mass of each class; None is implied by others, which bring the prior in.
    pools
        Whether the labels of identical samples count together (`eigenscape.learn.propagate.identical`).
    """

    whole_fits: ClassVar[bool] = False
    potentials: ClassVar[bool] = False
    masses: ClassVar[bool] = False
    pools: ClassVar[bool] = False
    needs_eigenvectors: ClassVar[bool] = False

    @property
    def takes_cycles(self) -> bool:
        """Whether fields are solved with multigrid cycles."""
        return False

    @property
    def arrays(self) -> float:
        """Number of arrays of shape (rows, WIDTH) that `spread` holds at once, temporary ones included."""
        return CYCLE_ARRAYS if self.takes_cycles else MOST_ARRAYS

    @abstractmethod
    def spread(self, group: Group) -> "tuple[Array, dict[str, Any]]":
        """Return the fields of a group, shape (rows, WIDTH), and how they were reached.

        That is ``iterations``, the number of steps, and ``residual``, the largest relative
        one: 0 where nothing is solved. A group whose residual is above the tolerance is computed again in
        double. Columns from `Group.columns` on are not read.
        """

    def prepare(self, context: "Context", labelled: "Labelled") -> Prepared:
        """Compute all fields."""
        from eigenscape.learn.propagate.fields import prepare_fields

        return prepare_fields(context, labelled)

    def footprint(self, samples: Samples) -> Footprint:
        """Count the arrays of a group, in memory if they fit, mapped if not; the graph of other weights.

        Smaller graphs are made by a task of their own, with the entries of the graph in memory if they fit.
        """
        from eigenscape.spectrum.kernels.gather import WIDTH

        n, usual = samples.rows, samples.usual
        # Where labels are not counted: none, for what has to fit; all, for the rest.
        number = 8 if n <= EXACT_ROWS else 4
        group = self.arrays * n * WIDTH * number
        known = LABEL_ARRAYS * min(n, samples.labelled) * WIDTH * number
        inside = group + known * (samples.labelled < math.inf) <= samples.budget
        each = max(usual.each, min(group + known, samples.budget) if inside else 0)
        weights = 1.5 * samples.neighbors * (4 + number * (number > 4))
        # 40 bytes where samples are identical: hashes, who represents whom, groups.
        scratch = n * (weights + number * WIDTH + 32 + 40 * self.pools) + group * (not inside)
        if samples.labelled < math.inf:
            # What every fit spreads to the labelled samples; of the first group in the larger type.
            scratch += samples.labelled * (4 * samples.fields + number * WIDTH)
        if self.takes_cycles:
            entries = 1.5 * samples.neighbors * n
            making = making_bytes(entries, number)
            each = max(each, making * (making <= samples.budget))
            # The smaller graphs have as many entries as the graph itself, or less.
            scratch += entries * (4 + number) + 2 * making * (making > samples.budget)
            # In both types, where the first group is solved in double.
            scratch += 8 * entries * (number > 4)
        each += 60 * n
        # Fits that stay whole leave less than half of a group empty.
        groups = samples.fields // (WIDTH / 2 if self.whole_fits else WIDTH) + 1
        return replace(usual, each=each, scratch=scratch, most=min(samples.threads, groups))


def solved(found: "Propagated") -> "tuple[Array, dict[str, Any]]":
    """Return the fields of a solution, and how it was reached."""
    return found.X, {
        "iterations": found.solved.iterations,
        "residual": float(found.solved.residuals.max()),
    }

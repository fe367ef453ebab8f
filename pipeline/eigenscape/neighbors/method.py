"""The interface of the methods of ``[neighbors]``: from features to the neighbours of every sample."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from eigenscape.base.footprint import Footprint
from eigenscape.job.options import GraphOptions, NeighborOptions

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from eigenscape.base.vectors import Vectors
    from eigenscape.context import Context
    from eigenscape.job.jobfile import Job
    from eigenscape.neighbors.kernels.partition import Leaves
    from eigenscape.neighbors.search.layout import Layout
    from eigenscape.neighbors.search.recall import Truth
    from eigenscape.neighbors.search.scratch import Lists


@dataclass(frozen=True)
class Table:
    """The features that are searched, as far as memory depends on them.

    Attributes
    ----------
    rows, columns
        Samples, and length of a feature vector.
    row_bytes
        Bytes of a feature vector.
    sparse
        Whether zeros are not stored.
    budget
        Bytes that a task may take.
    """

    rows: int
    columns: int
    row_bytes: float
    sparse: bool
    budget: int


SPARSE_BYTES = 30 * 2**20
"""Bytes of the libraries that a search among sparse features loads (measured: 27 to 30 MiB)."""

LOW_RECALL = 0.9
"""Recall below which a note is printed."""


class NeighborMethod(NeighborOptions):
    """A method: its keys, the lists that it writes, and what that takes."""

    def library_bytes(self, *, sparse: bool) -> int:
        """Return the memory of libraries that the search loads; they stay for the stages after it."""
        return SPARSE_BYTES if sparse else 0

    def leaves(self, rows: int, columns: int, *, sparse: bool = False) -> "Leaves":
        """Return the parameters of the tree that orders the samples by place.

        A method that searches within the parts gives k, the overlap and the searcher. Other methods need only
        the order, and so no overlap.
        """
        from eigenscape.neighbors.kernels.partition import Leaves

        return Leaves(0, 0.0, self.leaf_size)

    @abstractmethod
    def write(self, context: "Context", layout: "Layout") -> dict[str, Any]:
        """Write ``neighbors/index`` and ``neighbors/distance``.

        Parameters
        ----------
        context
            Of the stage.
        layout
            The samples by place, without copies of others.

        Returns
        -------
        dict
            Further entries of the manifest, as JSON values, in addition to method, metric and parts.
        """

    def footprint(self, table: Table) -> Footprint:
        """Return the memory and disk of the stage: here of the order by place and the lists."""
        from eigenscape.neighbors.footprint import laid_out

        return laid_out(self, table)

    def notes(self, table: Table) -> Sequence[str]:
        """Return what a plan should say about it."""
        return ()

    def check_graph(self, graph: GraphOptions) -> None:
        """Refuse graphs that its lists cannot make.

        Raises
        ------
        JobError
            With the key that does not go with it.
        """


class NearestMethod(NeighborMethod):
    """A method that finds k neighbours of every sample; their recall is measured.

    Attributes
    ----------
    remedy
        What to set for a higher recall.
    """

    remedy: ClassVar[str] = 'neighbors.method = "exact"'

    @abstractmethod
    def search(
        self, context: "Context", layout: "Layout", truth: "Truth"
    ) -> "tuple[Lists, int, dict[str, Any]]":
        """Return the lists, their version, and what the manifest is to say.

        Parameters
        ----------
        context
            Of the stage.
        layout
            The samples by place, without copies of others.
        truth
            Measures the recall of lists.
        """

    def write(self, context: "Context", layout: "Layout") -> dict[str, Any]:
        """See `eigenscape.neighbors.writing.write_nearest`."""
        from eigenscape.neighbors.writing import write_nearest

        return write_nearest(context, layout, self)

    def judge(self, measured: dict[str, Any]) -> str:
        """Return what is to be said of a measured recall, or nothing."""
        recall = float(measured["recall"])
        if recall >= LOW_RECALL:
            return ""
        return (
            f"the recall of the neighbours is {recall:.4f}: the graph lacks {100 * (1 - recall):.0f} % of "
            f"the nearest ones; set {self.remedy}, or a smaller features.dimension"
        )


class InMemoryMethod(NearestMethod):
    """A method that searches all features in the memory of one task, by a library.

    Attributes
    ----------
    list_bytes, sample_bytes
        What the library takes for each neighbour of a sample, and for each sample, beside the features
        and a copy of its own.
    """

    list_bytes: ClassVar[float] = 60
    sample_bytes: ClassVar[float] = 600

    @abstractmethod
    def find(
        self, features: "Vectors", k: int, threads: int, dtype: str
    ) -> "tuple[NDArray[np.signedinteger], NDArray[np.float32]]":
        """Return the nearest others of every sample, shape (samples, k) each.

        Parameters
        ----------
        features : array or csr_array, shape (samples, columns)
            For angles they have length 1, and distances are those of such vectors.
        k
            Neighbours of each, itself not counted.
        threads
            Threads to work on.
        dtype
            Of the numbers.

        Returns
        -------
        index : array of `dtype`
            Numbers of the neighbours, nearest first.
        distance : array of float32
            Squared Euclidean distances.
        """

    def search(
        self, context: "Context", layout: "Layout", truth: "Truth"
    ) -> "tuple[Lists, int, dict[str, Any]]":
        """Search in one task."""
        from eigenscape.neighbors.writing import search_in_memory

        return search_in_memory(context, layout, self), 0, {}

    def footprint(self, table: Table) -> Footprint:
        """Count the features, a copy, and what the library makes of them."""
        from dataclasses import replace

        from eigenscape.neighbors.footprint import with_lists

        usual, n, k = super().footprint(table), table.rows, self.k
        each = 3 * table.row_bytes + self.list_bytes * k + self.sample_bytes
        return with_lists(replace(usual, shared=n * each), table, 18 * n * k)


def neighbor_method(job: "Job") -> NeighborMethod:
    """Return the method of a job's neighbours."""
    assert isinstance(job.neighbors, NeighborMethod), "every method of the table is one"
    return job.neighbors

"""``neighbors.method = "lanczos-bisection"``: recursive Lanczos bisection (Halevy 2011, chapter 5)."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import Field

from eigenscape.base.footprint import Footprint
from eigenscape.job.choices import Choice, Choices
from eigenscape.neighbors.method import NearestMethod, Table

if TYPE_CHECKING:
    from eigenscape.context import Context
    from eigenscape.neighbors.kernels.partition import Leaves
    from eigenscape.neighbors.search.layout import Layout
    from eigenscape.neighbors.search.recall import Truth
    from eigenscape.neighbors.search.scratch import Lists


class LanczosBisection(NearestMethod):
    """Recursive Lanczos bisection (Halevy 2011, chapter 5), refined."""

    read_with: ClassVar[Mapping[str, Choices]] = {"refine": (Choice("neighbors.recall", (None,)),)}

    remedy: ClassVar[str] = "neighbors.recall = 0.95"

    method: Literal["lanczos-bisection"] = "lanczos-bisection"
    """Recursive Lanczos bisection (Halevy 2011, chapter 5), refined."""
    overlap: Annotated[float, Field(ge=0, le=0.5)] = 0.1
    """Share of the samples that a split gives to both halves (Halevy 2011, chapter 5)."""
    searcher: Literal["auto", "blas", "pynndescent"] = "auto"
    """Search within a part of the bisection: "blas" (leaves, all pairs) or "pynndescent" (NN-descent); "auto"
    takes the faster one, as measured."""
    refine: Annotated[int, Field(ge=0, le=10)] = 3
    """Largest number of rounds of neighbour-of-neighbour search; they end when the recall rises by less than
    0.01."""
    recall: Annotated[float, Field(gt=0, le=1)] | None = None
    """Recall to reach, with as many rounds and further trees as necessary (instead of ``refine``)."""

    def library_bytes(self, *, sparse: bool) -> int:
        """Return the memory of pynndescent, where it is asked for."""
        from eigenscape.neighbors.search.searchers import descent_bytes

        if self.searcher == "pynndescent":
            return descent_bytes(sparse=sparse)
        return super().library_bytes(sparse=sparse)

    def leaves(self, rows: int, columns: int, *, sparse: bool = False) -> "Leaves":
        """Return how the parts of the first tree are cut and searched."""
        from eigenscape.neighbors.kernels.partition import Leaves
        from eigenscape.neighbors.search.bisection import list_length
        from eigenscape.neighbors.search.searchers import choose_searcher

        k = list_length(self.k)
        searcher, _ = choose_searcher(self.searcher, rows, columns, sparse=sparse)
        return Leaves(k, self.overlap, max(self.leaf_size, 4 * k), searcher=searcher)

    def search(
        self, context: "Context", layout: "Layout", truth: "Truth"
    ) -> "tuple[Lists, int, dict[str, Any]]":
        """Merge the lists of the parts, and refine them."""
        from eigenscape.neighbors.search.bisection import bisect_lists

        return bisect_lists(context, layout, truth, self.refine, self.recall)

    def judge(self, measured: dict[str, Any]) -> str:
        """Say that the recall is below the one that was asked for, or low where none was."""
        if self.recall is None:
            return super().judge(measured)
        if measured["recall"] >= self.recall:
            return ""
        return (
            f"neighbors.recall = {self.recall}: {measured['recall']:.4f} was reached; raise "
            'neighbors.overlap or leaf_size, or use neighbors.method = "exact"'
        )

    def footprint(self, table: Table) -> Footprint:
        """Count lists that are merged, and rounds of refinement."""
        from eigenscape.neighbors.footprint import mail_bytes, part_count, with_lists
        from eigenscape.neighbors.search.bisection import rank_blocks

        n, usual = table.rows, super().footprint(table)
        leaves = self.leaves(n, table.columns, sparse=table.sparse)
        parts, ranges, width = part_count(n, leaves), rank_blocks(n), 40 * leaves.k
        each = max(usual.each, n / parts * width, (ranges[0][1] - ranges[0][0]) * 14 * leaves.k)
        tasks = usual.tasks + parts + len(ranges) * (self.refine + 1)
        # Mail and what it is merged to; then two versions of the lists, with marks of what is new.
        lists = max(mail_bytes(leaves, n) + 9 * n * leaves.k, 18 * n * leaves.k)
        return with_lists(replace(usual, tasks=tasks, each=each), table, lists)

    def notes(self, table: Table) -> Sequence[str]:
        """Say what searches a part."""
        from eigenscape.neighbors.search.searchers import choose_searcher

        found = choose_searcher(self.searcher, table.rows, table.columns, sparse=table.sparse)
        return ("neighbour search within parts: {} ({})".format(*found),)

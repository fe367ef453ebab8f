"""``neighbors.method = "exact"``: brute force in tiles."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from eigenscape.base.footprint import Footprint
from eigenscape.neighbors.method import NearestMethod, Table

if TYPE_CHECKING:
    from eigenscape.context import Context
    from eigenscape.neighbors.search.layout import Layout
    from eigenscape.neighbors.search.recall import Truth
    from eigenscape.neighbors.search.scratch import Lists


class Exact(NearestMethod):
    """Brute force in tiles."""

    method: Literal["exact"] = "exact"
    """Brute force in tiles."""

    def search(
        self, context: "Context", layout: "Layout", truth: "Truth"
    ) -> "tuple[Lists, int, dict[str, Any]]":
        """Compare every tile with every other."""
        from eigenscape.neighbors.search.exhaustive import exact_lists

        return exact_lists(context, layout, self.k), 0, {}

    def footprint(self, table: Table) -> Footprint:
        """Count the tasks over ranges of ranks, and the lists."""
        from eigenscape.neighbors.footprint import with_lists
        from eigenscape.neighbors.search.exhaustive import TASK_RANKS

        usual, n = super().footprint(table), table.rows
        tasks = usual.tasks - (-n // TASK_RANKS)
        return with_lists(replace(usual, tasks=tasks), table, 18 * n * self.k)

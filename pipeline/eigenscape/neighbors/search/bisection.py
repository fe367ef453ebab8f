"""Neighbour lists by recursive bisection: merge the lists of a tree, refine them, measure them.

::

    mail     one task     which parts have found lists for which
    merge    parts        lists that the parts have found -> one list for each rank
    refine   rank blocks  neighbours of neighbours, until the sampled recall stops rising
    recall   one task     after each of both

Further trees are grown only where a recall is asked for that refinement does not reach.
"""

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from eigenscape.base.blocks import Block, blocks
from eigenscape.base.memory import CHUNK_ROWS, ROW_TILE
from eigenscape.context import Context
from eigenscape.neighbors.kernels import lists as kernels
from eigenscape.neighbors.search.forest import Tree
from eigenscape.neighbors.search.layout import Layout, grow_tree
from eigenscape.neighbors.search.recall import Truth
from eigenscape.neighbors.search.scratch import Lists

MOST_RANKS = CHUNK_ROWS // 2
"""Ranks per task of a refinement."""

MOST_TREES = 8
"""Trees that are grown for the sake of a recall, the first included."""

MOST_ROUNDS = 10
"""Rounds of refinement after each tree, where a recall is asked for."""

_RISE = 0.01
_RISE_WITH_TARGET = 0.002


def list_length(k: int) -> int:
    """Return the length of the lists while they are built.

    Half as many again as wanted: neighbours of neighbours are found through them. On MNIST (k = 8)
    three rounds come to 0.93 with lists of 8 and to 0.96 with lists of 12.
    """
    return k + max(2, k // 2)


def rank_blocks(rows: int) -> list[Block]:
    """Cut the ranks into blocks: enough of them for several threads, at most `MOST_RANKS` each."""
    return blocks(rows, min(MOST_RANKS, max(ROW_TILE, -(-rows // 16))))


@dataclass(frozen=True)
class Search:
    """The tasks of a bisection on its lists."""

    layout: Layout
    lists: Lists

    def merge(self, tree: Tree, version: int, part: int) -> None:
        """Merge the neighbours that a tree has found for a part into the lists; make the next version."""
        first, last = self.layout.starts[part], self.layout.starts[part + 1]
        rank, lists = self.layout.rank(), self.lists
        if version:
            before = np.array(lists.index(version - 1)[first:last])
            distance = np.array(lists.distance(version - 1)[first:last])
        else:
            before = np.full((last - first, lists.k), -1, lists.dtype)
            distance = np.full(before.shape, np.inf, np.float32)
        index = before.copy()
        for samples, found, squared in tree.mail(part):
            near = np.where(found >= 0, rank[found], -1).astype(lists.dtype)
            kernels.merge_lists(rank[samples] - first, near, squared, index, distance)
        lists.write(version, first, index, distance, kernels.mark_fresh(before, index))

    def refine(self, version: int, block: Block) -> None:
        """Try the neighbours of the neighbours of a block of ranks; make the next version."""
        start, stop = block
        lists, old = self.lists, version - 1
        shape = (stop - start, lists.k)
        index = np.empty(shape, lists.dtype)
        distance = np.empty(shape, np.float32)
        kernels.refine_lists(
            self.layout.ranked.parts(), start, lists.index(old), lists.distance(old),
            lists.fresh(old), index, distance,
        )  # fmt: skip
        fresh = kernels.mark_fresh(lists.index(old)[start:stop], index)
        lists.write(version, start, index, distance, fresh)


def bisect_lists(
    context: Context, layout: Layout, truth: Truth, refine: int, target: float | None
) -> tuple[Lists, int, dict[str, Any]]:
    """Fill the lists; return them, their last version, and their report.

    Parameters
    ----------
    context
        Runs the tasks; decides when to stop.
    layout
        Where the samples are; its tree has searched the parts.
    truth
        Measures the recall.
    refine, target
        ``neighbors.refine`` and ``neighbors.recall`` of the job.
    """
    k = layout.tree.leaves.k
    lists = Lists(context.workspace.folder("lists"), layout.ranked.rows, k, layout.dtype)
    search = Search(layout, lists)
    rounds = refine if target is None else MOST_ROUNDS
    rise = _RISE if target is None else _RISE_WITH_TARGET
    wanted = 1.0 if target is None else target
    parts = list(range(len(layout.starts) - 1))
    version, tree = 0, layout.tree
    steps: list[dict[str, Any]] = []

    def measure(step: str) -> float:
        # A task, so that it is noted: an attempt that goes on decides as the one before.
        work = partial(_measure, truth, lists, version)
        measured = context.map(f"recall-{version}", work, ["sample"])[0]
        steps.append({"step": step, "recall": measured["recall"]})
        return float(measured["recall"])

    for turn in range(1 if target is None else MOST_TREES):
        if turn:
            version += 1
            leaves = replace(layout.tree.leaves, turn=turn)
            source = layout.tree.source
            tree, _ = grow_tree(context, source, leaves, layout.folder, layout.ranked.rows)
        lists.create(version)
        context.map(f"mail-{turn}", tree.sort_mail, ["all"], label="sorting mail")
        merge = partial(search.merge, tree, version)
        context.map(f"merge-{turn}", merge, parts, label="merging lists")
        tree.remove_mail()
        recall = measure(f"tree {turn + 1}")
        for number in range(rounds):
            if recall >= wanted:
                break
            version += 1
            lists.create(version)
            label = f"refining, round {number + 1}"
            ranges, work = rank_blocks(layout.ranked.rows), partial(search.refine, version)
            context.map(f"refine-{version}", work, ranges, label=label)
            before, recall = recall, measure(label)
            if recall - before < rise:
                break
        if recall >= wanted:
            break
    return lists, version, {"steps": steps}


def _measure(truth: Truth, lists: Lists, version: int, _: str) -> dict[str, Any]:
    return truth.measure(np.array(lists.index(version)[truth.queries]))

"""The neighbors stage: samples to neighbour lists, by the method of the job.

::

    layout     samples by place, features in that order      (eigenscape.neighbors.search.layout)
    lists      of ranks in that order, by the method of the job      (eigenscape.neighbors.methods)
                 bisection     search parts, merge, refine   (eigenscape.neighbors.search.bisection)
                 exhaustive    every tile against every other, or all pairs within a radius
                 in memory     by a library, such as pynndescent
                 landmarks     every sample against a few  (eigenscape.neighbors.search.landmarks)
    write      sample blocks   ranks back to sample numbers, copies after their representatives

Between layout and write everything is a raw file in scratch, indexed by part or by rank, so that
tasks read and write contiguous ranges.
"""

from typing import Any

from eigenscape.context import Context
from eigenscape.neighbors.method import neighbor_method
from eigenscape.neighbors.search.duplicates import count_zeros, most_equal
from eigenscape.neighbors.search.layout import lay_out
from eigenscape.store.rows import Rows


def neighbors_stage(context: Context) -> dict[str, Any]:
    """Write ``neighbors/index``, ``neighbors/distance`` (sample, k) and ``neighbors/order``.

    With ``method = "radius"`` index and distance are one-dimensional, and ``neighbors/indptr``
    (sample + 1) holds the start of the list of each sample. With ``method = "landmarks"`` lists name
    landmarks only, and ``neighbors/landmark`` holds the sample numbers of the landmarks.
    """
    method = neighbor_method(context.job)
    source = Rows(context.path("features/values"), unit=method.metric == "angle")
    leaves = method.leaves(*source.shape, sparse=source.sparse)
    least, most = method.least_neighbors, most_equal(method.k)
    layout = lay_out(context, source, leaves, least=least, most_equal=most)
    if source.unit and (zeros := count_zeros(source, layout.folder)):
        context.reporter.note(
            f"{zeros:,} of {layout.samples:,} samples have only zeros as features, so no direction: they are "
            "at a right angle to all others, and their neighbours are arbitrary. Set neighbors.metric to "
            '"euclidean", or leave them out (scene.mask)'
        )
    context.workspace.write_array(
        "neighbors/order", layout.locality_order(), whole=True, dims=("rank",)
    )
    summary = {
        "method": method.method,
        "metric": method.metric,
        **({"searcher": leaves.searcher} if leaves.k else {}),
        "parts": layout.tree.parts,
        "copies": layout.samples - layout.ranked.rows,
    }
    return {**summary, **method.write(context, layout)}

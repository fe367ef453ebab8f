"""Memory and disk of the graph stage: lists that are transposed and united, row block by row block."""

from eigenscape.base.footprint import Footprint
from eigenscape.graph.bridges import bridging_bytes
from eigenscape.graph.stage import block_rows
from eigenscape.job.jobfile import Job
from eigenscape.job.sizes import JobSizes


def entry_count(job: Job, rows: int) -> float:
    """Return the entries of a matrix: neighbours, half as many that name a row, spatial edges."""
    spatial = job.graph.spatial
    return (1.5 * job.neighbors.k + (spatial.neighbors if spatial else 0)) * rows


def graph_footprint(sizes: JobSizes) -> Footprint:
    """Return the memory and disk of the stage.

    Parameters
    ----------
    sizes
        Of the job.
    """
    n, k, options = sizes.n, sizes.job.neighbors.k, sizes.job.graph
    rows = min(block_rows(k), n)
    # Blocks may have half as many entries again as on average.
    each: float = rows * k * 45
    most = -(-n // rows)
    tasks, scratch = 2 * most, n * k * 20
    if spatial := options.spatial:
        # Lists of their own; the spectral weights wait in scratch; joined by whole blocks.
        tasks += most
        each = max(2 * each, rows * (k + spatial.neighbors) * 80)
        scratch += 12 * k * n + 8 * spatial.neighbors * n
    before, disk = 48.0 * n, 8 * entry_count(sizes.job, n) + 24 * n
    if options.components == "connect":
        before = max(before, sizes.tasks * (sizes.heap + bridging_bytes(n, 4.0 * sizes.d)))
    return Footprint(tasks, each, 16 * n, disk, scratch, before, most)

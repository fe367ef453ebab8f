"""Memory and disk of the spectrum stage: matrix on disk, groups of columns, tiles, a small eigenproblem."""

import math
from dataclasses import dataclass

import numpy as np

from eigenscape.base.footprint import Footprint
from eigenscape.base.memory import ROW_TILE
from eigenscape.graph.footprint import entry_count
from eigenscape.job.options import PotentialOptions
from eigenscape.job.sizes import JobSizes
from eigenscape.spectrum.iteration.kernels.columns import (
    MOST_COLUMNS,
    PANEL_BYTES,
    column_count,
    gram_block,
    tile_rows,
)
from eigenscape.spectrum.iteration.layout import Layout
from eigenscape.spectrum.iteration.solvers import INERTIA_ROWS, WHOLE, choose_solver, precision
from eigenscape.spectrum.iteration.tasks import groups_held
from eigenscape.spectrum.kernels.gather import WIDTH
from eigenscape.store.arrays import chunk_rows, stored_bytes

_JOINED, _JOINED_IN_SPACE = 0.25, 0.55
"""Entries of a coarse matrix as a share of those of the matrix: 1.5 of 6.6 million on 640,976 pixels with 8
neighbours, 6.2 of 11.7 million with spatial edges, which join pixels that are far apart in features."""


@dataclass(frozen=True)
class FilterSizes:
    """Sizes of the filter's arrays, as far as they are known before the run.

    Attributes
    ----------
    rows, columns
        Of the vectors.
    groups
        Of 32 columns, that are filtered at a time.
    entries
        Of the matrix.
    dtype
        Of both.
    layout
        What decides how tasks share them.
    """

    rows: int
    columns: int
    groups: int
    entries: int
    dtype: str
    layout: Layout

    @property
    def parts(self) -> int:
        """Parts of the rows, 0 for columns alone; ties, and what converges first, may change it."""
        return self.layout.choose(self.rows, self.entries, self.dtype, self.groups)


def filter_sizes(sizes: JobSizes) -> FilterSizes:
    """Return what the filter of the eigensolver works on; of landmarks, on their own graph by columns.

    Parameters
    ----------
    sizes
        Of the job.
    """
    job = sizes.job
    landmarks = job.neighbors.most_landmarks
    rows = min(sizes.n, landmarks or sizes.n)
    columns = column_count(job.spectrum.dimension)
    dtype = precision("chebyshev", job.spectrum.tolerance, _pull(job.graph.potential))
    asked = "columns" if landmarks else job.limits.layout
    layout = Layout(asked, sizes.tasks * sizes.processes, sizes.budget)
    groups = min(columns, MOST_COLUMNS) // WIDTH
    return FilterSizes(rows, columns, groups, int(entry_count(job, rows)), dtype, layout)


def spectrum_footprint(sizes: JobSizes) -> Footprint:
    """Return the memory and disk of the stage; of landmarks without the memory of their own solution.

    Parameters
    ----------
    sizes
        Of the job.
    """
    job, n, modes = sizes.job, sizes.n, sizes.job.spectrum.dimension + 1
    disk, entries = stored_bytes(n, 4 * modes), entry_count(job, n)
    if (landmarks := sizes.landmarks()) is not None:
        own, k = spectrum_footprint(landmarks), job.neighbors.k
        # Vectors of a tile and of the landmarks; its rows, some of which are those of landmarks.
        each: float = (40 * modes + 400 * k) * min(n, ROW_TILE) + 16 * modes * landmarks.n
        each = max(each, 16 * modes * min(n, chunk_rows(n, 4 * modes)))
        return Footprint(own.tasks, each, 24.0 * n, disk, disk + 12 * n + own.scratch)
    solver, _ = choose_solver(job.spectrum.solver, job.spectrum.dimension, n)
    if solver in WHOLE:
        shared = WHOLE[solver].bytes(n, modes, entries)
        return Footprint(1, shared=shared, disk=disk, scratch=8 * n * modes)
    filtered = filter_sizes(sizes)
    columns, block = filtered.columns, filtered.groups * WIDTH
    size, groups = np.dtype(filtered.dtype).itemsize, columns // WIDTH
    vectors: float = n * (WIDTH * size * groups_held(n, filtered.dtype, sizes.budget) + 32)
    by_rows = filtered.layout.footprint(n, filtered.entries, filtered.dtype, filtered.groups)
    vectors = max(vectors, by_rows[0])
    tile = 16 * min(tile_rows(block), n) * block
    # Gram matrices: tiles of X, Y and A Y; where there are locked columns, Y, a product and a panel of them.
    tile = max(tile, 24 * min(n, ROW_TILE) * min(block, gram_block(block, np.dtype(np.float64))))
    if columns > block:
        tile = max(tile, min(tile_rows(block), n) * (2 * block * size + PANEL_BYTES))
    # What strong ties set at their members.
    vectors += 16 * WIDTH * _tied(sizes)
    each = max(vectors, tile, 16 * modes * min(n, chunk_rows(n, 4 * modes)))
    # Small eigenproblem: Gram matrices, factor, workspace of LAPACK; overlap with locked columns.
    # Coarsening: aggregates, weights, a slice of products, the coarse matrix as it was and as it becomes.
    small: float = 8 * 6 * block**2 + 12 * columns * block * (columns > block)
    if n <= INERTIA_ROWS:
        # Eigenvalues are counted, and LAPACK solves what the filter cannot.
        small += WHOLE["dense"].bytes(n, modes, entries)
    joined = _JOINED if job.graph.spatial is None else _JOINED_IN_SPACE
    coarse = 30 * n + 60 * entry_count(job, min(n, 2**15)) + 36 * joined * entries
    at_once = min(groups, sizes.tasks)
    shared = max(24.0 * n, small, coarse - at_once * each)
    # Pixels, ranks and the potential, while it is made.
    shared += 40 * n * (job.graph.potential is not None)
    if job.spectrum.solver == "auto" and sizes.d == 1:
        # A curve: its factors are small.
        inverted = WHOLE["shift-invert"].bytes(n, modes, entries)
        shared = max(shared, inverted - at_once * (each + sizes.heap))
    # Of the columns of a block: filtered ones; as they are projected or, with stiff rows, rotated.
    copies = 1 + (columns > block or job.graph.potential is not None)
    scratch = entries * size + n * (columns + copies * block) * size + by_rows[1]
    # Double precision begins with a matrix in single.
    scratch += (4 * entries + 4 * n) * (size > 4)
    # Coarse graphs, each of which is a share of the one before.
    scratch += 16 * n + joined / (1 - joined) * entries * (size + 4)
    if groups_held(n, filtered.dtype, sizes.budget) == 0:
        scratch += WIDTH * size * n * min(groups, sizes.tasks * sizes.processes)
    return Footprint(8 * groups, each, shared, disk, scratch)


def _tied(sizes: JobSizes) -> int:
    """Return how many samples an identification potential ties together at most."""
    potential, train = sizes.job.graph.potential, sizes.job.learn.train
    if potential is None or potential.kind != "identification":
        return 0
    if potential.pixels:
        return len(potential.pixels)
    if potential.labels == "train" and not isinstance(train, str):
        return min(sizes.n, train if isinstance(train, int) else math.ceil(train * sizes.n))
    return sizes.n


def _pull(potential: PotentialOptions | None) -> float:
    """Return the largest eigenvalue of an identification potential; one that is relative may be any."""
    if potential is None or potential.kind != "identification":
        return 0.0
    return math.inf if potential.relative else 2 * potential.alpha

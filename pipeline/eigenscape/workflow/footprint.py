"""The arithmetic of a plan: memory and disk of every stage.

The formulas count the arrays that a stage holds at one time; tests/bench/memory.py compares them with
measurements.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from eigenscape.base.blocks import sample_blocks
from eigenscape.base.footprint import Footprint
from eigenscape.base.memory import ROW_TILE, heap_bytes, rows_within
from eigenscape.export.canvas import STRIP_BYTES
from eigenscape.export.format import Amounts, formats_of
from eigenscape.features.method import FeatureMethod, Table, feature_method
from eigenscape.features.spatial.filtering import filtered_footprint
from eigenscape.graph.bridges import bridging_bytes
from eigenscape.graph.stage import block_rows
from eigenscape.job.jobfile import Job
from eigenscape.job.options import NeighborOptions
from eigenscape.learn.decide.calibration import MOST_VALUES as CALIBRATED_VALUES
from eigenscape.learn.decide.smoothing import array_count
from eigenscape.learn.method import Samples, learn_method
from eigenscape.neighbors.method import Table as NeighborTable
from eigenscape.neighbors.method import neighbor_method
from eigenscape.spectrum.iteration.kernels.columns import MOST_COLUMNS, column_count, tile_rows
from eigenscape.spectrum.iteration.layout import Layout
from eigenscape.spectrum.iteration.solvers import INERTIA_ROWS, choose_solver, precision
from eigenscape.spectrum.iteration.tasks import fits
from eigenscape.spectrum.kernels.gather import WIDTH
from eigenscape.spectrum.kernels.thin import FACTOR_BYTES
from eigenscape.spectrum.kernels.thin import MOST_BYTES as MOST_FACTORS
from eigenscape.store.arrays import chunk_rows

_MIB = 2**20

_BASES = {
    "ingest": 120, "features": 123, "neighbors": 152, "graph": 152, "spectrum": 152, "learn": 154,
    "export": 224,
}  # fmt: skip
"""MiB of libraries and compiled kernels: those of a stage stay for the next ones. Measured on a scene of
2,000 pixels, with a little to spare: another machine has other versions of them."""

_PLACING_BYTES = 32 * _MIB
"""Of the search for places of pixels: its library, and what the heap keeps of reading (measured: 25 MiB)."""

_CALIBRATED = 20_000
"""Samples, at most, whose probabilities are calibrated at once, where there are many classes."""

_DRIVER_BASE, _DRIVER_SAMPLE = 154 * _MIB, 160
_DRAWING_BASE, _DRAWN_PIXEL, _DRAWN_PIXELS = 224 * _MIB, 330, 600_000
"""Of a driver whose tasks run elsewhere: bytes at first and for each sample, whose label, rank and component
it holds; the same of the pictures that it draws, which grow no further than so many pixels. Measured with two
local workers: 214 MiB at 21,025 pixels (157 before the export), 410 MiB at 640,976 (247 before it)."""

_JOINED, _JOINED_IN_SPACE = 0.25, 0.55
"""Entries of a coarse matrix as a share of those of the matrix: 1.5 of 6.6 million on 640,976 pixels with 8
neighbours, 6.2 of 11.7 million with spatial edges, which join pixels that are far apart in features."""

_READ_ENTRY = 40
"""Bytes per entry of a sparse table while its file is read: as stored, in double and in single."""


@dataclass(frozen=True)
class StagePlan:
    """Tasks, memory and disk of one stage.

    Attributes
    ----------
    name
        Name of the stage.
    tasks
        Number of tasks.
    peak_bytes
        Projected peak of anonymous memory of one process, in bytes.
    disk_bytes, scratch_bytes
        Bytes that the stage adds to the store, and bytes of scratch that it needs while it runs.
    """

    name: str
    tasks: int
    peak_bytes: int
    disk_bytes: int
    scratch_bytes: int


def driver_bytes(samples: int) -> int:
    """Return the anonymous memory of a driver whose tasks run in other processes, at most.

    Parameters
    ----------
    samples
        Of the scene.
    """
    held = _DRIVER_BASE + _DRIVER_SAMPLE * samples
    return max(held, _DRAWING_BASE + _DRAWN_PIXEL * min(samples, _DRAWN_PIXELS))


@dataclass(frozen=True)
class Filtered:
    """What the filter of the eigensolver works on, as far as it is known before the run.

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


@dataclass(frozen=True)
class Sizes:
    """The sizes of a job, and the footprint of each stage.

    Attributes
    ----------
    job
        The job.
    n, bands, d
        Number of samples, of good bands, and of features.
    tasks
        Number of tasks at a time in one process.
    budget
        Bytes that one task may take.
    entries
        Number of values in a sparse table; None for other scenes.
    map_cells, lookup
        For a scene in sensor geometry: number of cells of its map, and the result of `lookup_bytes`.
    labelled
        Largest number of labelled samples of each class, by class; None if they were not counted.
    held
        Bytes of libraries that the process has loaded before the first stage.
    processes
        Number of worker processes, which share the parts of the rows of a filter.
    """

    job: Job
    n: int
    bands: int
    d: int
    tasks: int
    budget: int
    entries: int | None
    map_cells: int = 0
    lookup: tuple[int, float, float] = (0, 0, 0)
    labelled: Mapping[int, int] | None = None
    held: int = 0
    processes: int = 1

    @property
    def heap(self) -> int:
        """Return the bytes of freed memory that the heap of a thread may keep."""
        return heap_bytes(self.job.limits.memory_bytes, self.tasks)

    def _stage(
        self, name: str, tasks: int, each: float, shared: float, disk: float, scratch: float = 0,
        *, most: float = math.inf, before: float = 0,
    ) -> StagePlan:  # fmt: skip
        """Return the plan of a stage.

        Parameters
        ----------
        name, tasks
            Name of the stage, and number of its tasks.
        each, most
            Bytes of one task, and largest number of tasks that run at once.
        shared, before
            Bytes in addition to the tasks, and bytes of the work before the tasks.
        disk, scratch
            Bytes that the stage adds to the store, and bytes of scratch.
        """
        at_once = min(tasks, self.tasks, most)
        # The heap of a task keeps no more than the task has freed.
        working = at_once * (each + min(each, self.heap))
        libraries = 0
        if name not in ("ingest", "features"):
            sparse = self.neighbor_table().sparse
            libraries += neighbor_method(self.job).library_bytes(sparse=sparse)
        if name in ("learn", "export"):
            libraries += learn_method(self.job).library_bytes
        # And what the heap of the process's first thread keeps of arrays of all samples.
        shared += max(libraries, self.held) + min(24.0 * self.n, self.heap)
        peak = _BASES[name] * _MIB + max(working, before) + shared
        return StagePlan(name, tasks, int(peak), int(disk), int(scratch))

    def _step(self, chunk: int, row: float) -> tuple[int, int]:
        """Return number and rows of the blocks that `sample_blocks` cuts."""
        ranges = sample_blocks(self.n, chunk, self.budget, row)
        return len(ranges), ranges[0][1] - ranges[0][0]

    def ingest(
        self, strips: int, raw: int, value: float, held: int = 0, decoded: int = 0
    ) -> StagePlan:
        """Count strips of `raw` values of `value` bytes, what a reader holds, the copy of what is valid.

        Decoded blocks are those of each task.
        """
        n, bands = self.n, self.bands
        if self.entries is not None:
            disk = 8 * self.entries + 28 * n
            return self._stage("ingest", 2, 0, _READ_ENTRY * self.entries + 60 * n, disk, disk)
        tasks, rows = self._step(chunk_rows(n, 4 * bands), 8 * bands)
        # What is read, and what of it is copied, are steps of their own.
        reading, copying = (min(count, self.tasks) for count in (strips, tasks))
        at_once = max(reading, copying)
        each = max(reading * (value * raw + decoded), copying * 8 * rows * bands) / at_once
        disk = n * (4 * bands + 12)
        placing, one, placed = self.lookup
        shared = 30 * n + held + _PLACING_BYTES * (placing > 0)
        if placing:
            placing_at_once = min(placing, self.tasks)
            most = max(at_once, placing_at_once)
            each, at_once = max(each * at_once, one * placing_at_once) / most, most
        tasks += strips + placing
        return self._stage("ingest", tasks, each, shared, disk + placed, disk, most=at_once)

    @property
    def method(self) -> FeatureMethod:
        """The method of the features, which tells how many there are and whether they are sparse."""
        return feature_method(self.job)

    def features(self) -> StagePlan:
        """See `eigenscape.features.method.FeatureMethod.footprint`."""
        limit = self.job.limits.memory_bytes
        table = Table(self.n, self.bands, self.entries, self.budget, limit)
        filtered = self.method.spatial is not None
        needs = filtered_footprint(self.method, table) if filtered else self.method.footprint(table)
        return self._stage("features", **vars(needs))

    def neighbor_table(self) -> NeighborTable:
        """Return the features that are searched."""
        row, sparse = 4.0 * self.d, False
        if self.entries is not None and self.method.stays_sparse(self.bands):
            row, sparse = 8.0 * self.entries / self.n + 8, True
        return NeighborTable(self.n, self.d, row, sparse, self.budget)

    def neighbors(self) -> StagePlan:
        """See `eigenscape.neighbors.method.NeighborMethod.footprint`."""
        needs = neighbor_method(self.job).footprint(self.neighbor_table())
        return self._stage("neighbors", **vars(needs))

    def graph(self) -> StagePlan:
        """Count lists that are transposed and united, row block by row block."""
        n, k = self.n, self.job.neighbors.k
        rows = min(block_rows(k), n)
        # Blocks may have half as many entries again as on average.
        each: float = rows * k * 45
        most = -(-n // rows)
        tasks = 2 * most
        entries, scratch, shared = self._entries(n), n * k * 20, 16 * n
        if spatial := self.job.graph.spatial:
            # Lists of their own; the spectral weights wait in scratch; joined by whole blocks.
            tasks += -(-n // rows)
            each = max(2 * each, rows * (k + spatial.neighbors) * 80)
            scratch += 12 * k * n + 8 * spatial.neighbors * n
        before, disk = 48.0 * n, 8 * entries + 24 * n
        if self.job.graph.components == "connect":
            before = max(before, self.tasks * (self.heap + bridging_bytes(n, 4.0 * self.d)))
        return self._stage("graph", tasks, each, shared, disk, scratch, most=most, before=before)

    def spectrum(self) -> StagePlan:
        """Count matrix and vectors on disk; groups of columns, tiles, a small eigenproblem in memory."""
        options, n = self.job.spectrum, self.n
        solver, _ = choose_solver(options.solver, options.dimension, n)
        modes = options.dimension + 1
        disk, entries = 4.0 * n * modes, self._entries(n)
        if self.job.neighbors.form == "landmarks":
            return self._landmark_spectrum(disk)
        if solver == "dense":
            return self._stage(
                "spectrum", 1, 0, 8 * (2 * n * n + 3 * n * modes), disk, 8 * n * modes
            )
        if solver == "lanczos":
            return self._stage("spectrum", 1, 0, self._lanczos(), disk, 8 * n * modes)
        if solver == "shift-invert":
            return self._stage("spectrum", 1, 0, self._inverted(), disk, 8 * n * modes)
        if solver == "lobpcg":
            # The matrix and its hierarchy; blocks of vectors, directions and images; PyAMG.
            shared = 12 * entries * 8 + 8 * n * 10 * (modes + max(4, modes // 10)) + 8 * _MIB
            return self._stage("spectrum", 1, 0, shared, disk, 8 * n * modes)
        filtered = self.filter()
        columns, block = filtered.columns, filtered.groups * WIDTH
        size, groups = np.dtype(filtered.dtype).itemsize, columns // WIDTH
        vectors: float = n * (2 * WIDTH * size * fits(n, filtered.dtype, self.budget) + 32)
        by_rows = filtered.layout.footprint(n, filtered.entries, filtered.dtype, filtered.groups)
        vectors = max(vectors, by_rows[0])
        tile = 16 * min(tile_rows(block), n) * block
        # What strong ties set at their members.
        vectors += 16 * WIDTH * self._tied()
        each = max(vectors, tile, 16 * modes * min(n, chunk_rows(n, 4 * modes)))
        # Small eigenproblem: Gram matrices, factor, workspace of LAPACK; overlap with locked columns.
        # Coarsening: aggregates, weights, a slice of products, the coarse matrix as it was and as it becomes.
        small: float = 8 * 6 * block**2 + 12 * columns * block * (columns > block)
        small += 8.5 * min(n, INERTIA_ROWS) ** 2 * (n <= INERTIA_ROWS)
        joined = _JOINED if self.job.graph.spatial is None else _JOINED_IN_SPACE
        coarse = 30 * n + 60 * self._entries(min(n, 2**15)) + 36 * joined * entries
        shared = max(24.0 * n, small, coarse - min(groups, self.tasks) * each)
        # Pixels, ranks and the potential, while it is made.
        shared += 40 * n * (self.job.graph.potential is not None)
        if options.solver == "auto" and self.d == 1:
            # A curve: its factors are small.
            shared = max(shared, self._inverted() - min(groups, self.tasks) * (each + self.heap))
        copies = 4 + (self.job.graph.potential is not None)
        scratch = entries * size + n * (columns + copies * block) * size + by_rows[1]
        return self._stage("spectrum", 8 * groups, each, shared, disk, scratch)

    def _entries(self, rows: int) -> float:
        """Return the entries of a matrix: neighbours, half as many that name a row, spatial edges."""
        spatial = self.job.graph.spatial
        return (1.5 * self.job.neighbors.k + (spatial.neighbors if spatial else 0)) * rows

    def filter(self) -> Filtered:
        """Return what the filter of the eigensolver works on; of landmarks, on their own graph by columns."""
        options, neighbors = self.job.spectrum, self.job.neighbors
        rows = min(self.n, neighbors.most_landmarks or self.n)
        columns = column_count(options.dimension)
        dtype = precision("chebyshev", options.tolerance, self._pull())
        asked = "columns" if neighbors.form == "landmarks" else self.job.limits.layout
        layout = Layout(asked, self.tasks * self.processes, self.budget)
        groups = min(columns, MOST_COLUMNS) // WIDTH
        return Filtered(rows, columns, groups, int(self._entries(rows)), dtype, layout)

    def _lanczos(self) -> float:
        """Return the bytes of ARPACK's vectors and results, and of the matrix in double and a copy."""
        modes = self.job.spectrum.dimension + 1
        vectors = max(2 * modes + 1, 20) + 2 * modes
        # And a twentieth of it: 598 MiB were measured on 640,976 pixels, where 580 were counted.
        return 1.05 * (32 * self._entries(self.n) + 8.0 * self.n * vectors)

    def _inverted(self) -> float:
        """Return the bytes of an inverse of few entries: the profile, factors to solve with and to count by.

        Larger ones, which have to be asked for, are refused by the graph itself.
        """
        factors = min(MOST_FACTORS, FACTOR_BYTES * self.n**2 // 2)
        return self._lanczos() + 2 * factors + 12.0 * self.job.neighbors.k * self.n

    def _landmark_spectrum(self, disk: float) -> StagePlan:
        """Count the landmarks' own solution, and tiles of what is extended."""
        neighbors, modes = self.job.neighbors, self.job.spectrum.dimension + 1
        assert neighbors.most_landmarks is not None, "they are landmarks"
        count = min(self.n, neighbors.most_landmarks)
        exact = NeighborOptions.model_validate({"method": "exact", "k": neighbors.k})
        own = replace(
            self, job=self.job.model_copy(update={"neighbors": exact}), n=count
        ).spectrum()
        tile = min(self.n, ROW_TILE)
        # Vectors of a tile and of the landmarks; its rows, some of which are those of landmarks.
        each = 40 * modes * tile + 16 * modes * count + 400 * neighbors.k * tile
        each = max(each, 16 * modes * min(self.n, chunk_rows(self.n, 4 * modes)))
        plan = self._stage("spectrum", own.tasks, each, 24.0 * self.n, disk, disk + 12 * self.n)
        return replace(
            plan,
            peak_bytes=max(plan.peak_bytes, own.peak_bytes),
            scratch_bytes=plan.scratch_bytes + own.scratch_bytes,
        )

    def _tied(self) -> int:
        """Return how many samples an identification potential ties together at most."""
        potential, train = self.job.graph.potential, self.job.learn.train
        if potential is None or potential.kind != "identification":
            return 0
        if potential.pixels:
            return len(potential.pixels)
        if potential.labels == "train" and not isinstance(train, str):
            return min(self.n, train if isinstance(train, int) else math.ceil(train * self.n))
        return self.n

    def _pull(self) -> float:
        """Return the largest eigenvalue of an identification potential; one that is relative may be any."""
        potential = self.job.graph.potential
        if potential is None or potential.kind != "identification":
            return 0.0
        return math.inf if potential.relative else 2 * potential.alpha

    def learn(self) -> StagePlan:
        """Count blocks of eigenvectors, or groups of fields."""
        modes = self.job.spectrum.dimension + 1
        tasks, rows = self._step(chunk_rows(self.n, 4), 12 * modes)
        rows = min(rows, rows_within(self.budget, 12 * modes))
        rows = max(rows, chunk_rows(self.n, 4 * modes))
        most = min(self.tasks, -(-self.n // rows))
        each: float = min(self.n / most, rows) * 4 * modes * 3
        known, drawn, calibrated = self.labelled, 0.0, float(min(self.n, _CALIBRATED))
        labelled = math.inf if known is None else float(sum(known.values()))
        if known:
            # Draws of training pixels take 108 bytes of each that has a label, as measured.
            drawn = 120 * labelled
            calibrated = max(calibrated, min(labelled, CALIBRATED_VALUES // len(known)))
        calibrating = self.heap + max(1300 * calibrated, drawn)
        usual = Footprint(
            2 * tasks, each, 30.0 * self.n, 10 * self.n, before=calibrating, most=most
        )
        # All labels, and the draws of two kinds of split.
        fits = 1 + 2 * self.job.learn.trials
        classes = math.inf if known is None else float(len(known))
        fields = fits * classes
        samples = Samples(
            self.n,
            modes,
            self.job.neighbors.k,
            self.tasks,
            self.budget,
            usual,
            classes,
            fields,
            labelled,
        )
        needs = learn_method(self.job).footprint(samples)
        if self.job.learn.smoothing:
            # Edges of the pixels; shares, their image and a spare array, in memory if they fit.
            count = 0 if known is None else len(known)
            group = array_count(count) * self.n * WIDTH * 4
            inside = group <= self.budget
            bundles = min(self.tasks, fits if count > WIDTH / 2 else fields // (WIDTH / 2) + 1)
            smoothing = bundles * (group + self.heap) if inside else 0
            needs = replace(
                needs, before=max(needs.before, smoothing),
                scratch=needs.scratch + 150.0 * self.n + group * (not inside),
            )  # fmt: skip
        return self._stage("learn", **vars(needs))

    def export(self) -> StagePlan:
        """Count strips of the rasters, and what each format takes beside them."""
        dimension = self.job.spectrum.dimension
        modes = min(self.job.output.eigenvectors, dimension)
        cells = max(self.n, self.map_cells)
        amounts = Amounts(cells, self.bands, dimension, modes)
        needs = [each.footprint(amounts) for each in formats_of(self.job.output.formats)]
        # Strips, and the writer's rows of tiles; formats are written one after the other.
        strip = min(STRIP_BYTES, 4 * cells * max(self.bands, dimension + 1))
        shared = 2.6 * strip + max((need.shared for need in needs), default=0)
        scratch = max((need.scratch for need in needs), default=0)
        if self.map_cells:
            # Samples of the cells and what is taken of them; copies of the arrays, which are mapped.
            shared += 2 * min(STRIP_BYTES, 60 * cells)
            scratch += 4.0 * self.n * (2 * modes + 6)
        disk = sum(need.disk for need in needs)
        return self._stage("export", max(1, len(needs)), 0, shared, disk, scratch)

"""The arithmetic of a plan: memory and disk of every stage.

The formulas count the arrays that a stage holds at one time; tests/bench/performance/memory.py compares them
with measurements.
"""

import math
from dataclasses import dataclass, replace

from eigenscape.export.canvas import STRIP_BYTES
from eigenscape.export.format import Amounts, formats_of
from eigenscape.features.method import Table, feature_method
from eigenscape.features.spatial.filtering import filtered_footprint
from eigenscape.graph.footprint import graph_footprint
from eigenscape.job.sizes import JobSizes
from eigenscape.learn.footprint import learn_footprint
from eigenscape.learn.method import learn_method
from eigenscape.neighbors.method import Table as NeighborTable
from eigenscape.neighbors.method import neighbor_method
from eigenscape.scenes.ingest.footprint import ingest_footprint
from eigenscape.scenes.types import Scene
from eigenscape.spectrum.footprint import spectrum_footprint

_MIB = 2**20

_BASES = {
    "ingest": 120, "features": 123, "neighbors": 152, "graph": 152, "spectrum": 152, "learn": 154,
    "export": 224,
}  # fmt: skip
"""MiB of libraries and compiled kernels: those of a stage stay for the next ones. Measured on a scene of
2,000 pixels, with a little to spare: another machine has other versions of them."""

_DRIVER_BASE, _DRIVER_SAMPLE = 154 * _MIB, 160
_DRAWING_BASE, _DRAWN_PIXEL, _DRAWN_PIXELS = 224 * _MIB, 330, 600_000
"""Of a driver whose tasks run elsewhere: bytes at first and for each sample, whose label, rank and component
it holds; the same of the pictures that it draws, which grow no further than so many pixels. Measured with two
local workers: 214 MiB at 21,025 pixels (157 before the export), 410 MiB at 640,976 (247 before it)."""


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


class Sizes(JobSizes):
    """The sizes of a job, and the needs of each stage."""

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

    def ingest(self, scene: Scene) -> StagePlan:
        """See `eigenscape.scenes.ingest.footprint`."""
        return self._stage("ingest", **vars(ingest_footprint(self, scene)))

    def features(self, *, named: bool = True) -> StagePlan:
        """See `eigenscape.features.method.FeatureMethod.footprint`; for `named` see `project_plan`."""
        method = feature_method(self.job)
        limit = self.job.limits.memory_bytes if named else math.inf
        table = Table(self.n, self.bands, self.entries, self.budget, limit)
        filtered = method.spatial is not None
        needs = filtered_footprint(method, table) if filtered else method.footprint(table)
        return self._stage("features", **vars(needs))

    def neighbor_table(self) -> NeighborTable:
        """Return the features that are searched."""
        row, sparse = 4.0 * self.d, False
        if self.entries is not None and feature_method(self.job).stays_sparse(self.bands):
            row, sparse = 8.0 * self.entries / self.n + 8, True
        return NeighborTable(self.n, self.d, row, sparse, self.budget)

    def neighbors(self) -> StagePlan:
        """See `eigenscape.neighbors.method.NeighborMethod.footprint`."""
        needs = neighbor_method(self.job).footprint(self.neighbor_table())
        return self._stage("neighbors", **vars(needs))

    def graph(self) -> StagePlan:
        """See `eigenscape.graph.footprint`."""
        return self._stage("graph", **vars(graph_footprint(self)))

    def spectrum(self) -> StagePlan:
        """See `eigenscape.spectrum.footprint`."""
        planned = self._stage("spectrum", **vars(spectrum_footprint(self)))
        landmarks = self.landmarks()
        own = 0 if landmarks is None else landmarks.spectrum().peak_bytes
        return replace(planned, peak_bytes=max(planned.peak_bytes, own))

    def learn(self) -> StagePlan:
        """See `eigenscape.learn.footprint`."""
        return self._stage("learn", **vars(learn_footprint(self)))

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

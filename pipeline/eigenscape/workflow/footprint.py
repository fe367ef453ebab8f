"""The arithmetic of a plan: memory and disk of every stage.

The formulas count the arrays that a stage holds at one time; tests/bench/memory.py compares them with
measurements.
"""

import math
from dataclasses import dataclass, replace

from eigenscape.base.footprint import Footprint
from eigenscape.base.memory import rows_within
from eigenscape.export.canvas import STRIP_BYTES
from eigenscape.export.format import Amounts, formats_of
from eigenscape.features.method import Table, feature_method
from eigenscape.features.spatial.filtering import filtered_footprint
from eigenscape.graph.footprint import graph_footprint
from eigenscape.job.sizes import JobSizes
from eigenscape.labels.training import CALIBRATING_TRIALS
from eigenscape.learn.decide.sampling import MOST_CALLED, MOST_VALUES
from eigenscape.learn.decide.smoothing import array_count
from eigenscape.learn.method import Classifier, Samples, learn_method
from eigenscape.neighbors.method import Table as NeighborTable
from eigenscape.neighbors.method import neighbor_method
from eigenscape.scenes.ingest.footprint import ingest_footprint
from eigenscape.scenes.types import Scene
from eigenscape.spectrum.footprint import spectrum_footprint
from eigenscape.spectrum.kernels.gather import WIDTH
from eigenscape.store.arrays import chunk_rows, stored_bytes

_MIB = 2**20

_BASES = {
    "ingest": 120, "features": 123, "neighbors": 152, "graph": 152, "spectrum": 152, "learn": 154,
    "export": 224,
}  # fmt: skip
"""MiB of libraries and compiled kernels: those of a stage stay for the next ones. Measured on a scene of
2,000 pixels, with a little to spare: another machine has other versions of them."""

_CALIBRATED = 20_000
"""Samples, at most, whose probabilities are calibrated at once, where there are many classes."""

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
        """Count blocks of eigenvectors, or groups of fields."""
        modes = self.job.spectrum.dimension + 1
        tasks, rows = self.step(chunk_rows(self.n, 4), 12 * modes)
        rows = min(rows, rows_within(self.budget, 12 * modes))
        rows = max(rows, chunk_rows(self.n, 4 * modes))
        most = min(self.tasks, -(-self.n // rows))
        each: float = min(self.n / most, rows) * 4 * modes * 3
        known, drawn, calibrated = self.labelled, 0.0, float(min(self.n, _CALIBRATED))
        labelled = math.inf if known is None else float(sum(known.values()))
        if known:
            # Draws of training pixels take 108 bytes of each that has a label, as measured.
            drawn = 120 * labelled
            calibrated = max(calibrated, min(labelled, MOST_VALUES // len(known)))
        calibrating = self.heap + max(1300 * calibrated, drawn)
        method = learn_method(self.job)
        # Class and confidence; entropy where classes have probabilities.
        arrays = (2, 4, 4) if isinstance(method, Classifier) else (2, 4)
        disk = sum(stored_bytes(self.n, size) for size in arrays)
        usual = Footprint(2 * tasks, each, 30.0 * self.n, disk, before=calibrating, most=most)
        # All labels, and the draws of two kinds of split.
        fits = 1 + 2 * (self.job.learn.trials + CALIBRATING_TRIALS)
        classes = math.inf if known is None else float(len(known))
        fields = fits * classes
        samples = Samples(
            self.n, modes, self.job.neighbors.k, self.tasks, self.budget, usual, classes, fields,
            labelled,
        )  # fmt: skip
        needs = method.footprint(samples)
        if known and isinstance(method, Classifier):
            # Of the labelled samples: coordinates or features, numbers, classes and zones, and for every fit
            # its training set; its calls and some scores, once more where maps are smoothed.
            called = MOST_CALLED * (2 if self.job.learn.test is not None else 1)
            held = 2 * MOST_VALUES / max(1, self.job.learn.trials)
            read = min(labelled, (called + held) / classes + 4)
            of_fit = (1 if classes <= 128 else 2) * labelled + read * (4 * classes + 8)
            kept = labelled * (4 * max(modes, self.d) + 32 + fits)
            kept += of_fit * fits * (2 if self.job.learn.smoothing else 1)
            needs = replace(needs, scratch=needs.scratch + kept)
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

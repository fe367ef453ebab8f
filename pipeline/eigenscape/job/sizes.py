"""The sizes of a job on its scene, of which the footprints of its stages are made."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Self

from eigenscape.base.blocks import sample_blocks
from eigenscape.base.memory import heap_bytes
from eigenscape.job.jobfile import Job
from eigenscape.job.options import NeighborOptions


@dataclass(frozen=True)
class JobSizes:
    """The sizes of a job, as far as they are known before it runs.

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

    def step(self, chunk: int, row: float) -> tuple[int, int]:
        """Return number and rows of the blocks that `sample_blocks` cuts."""
        ranges = sample_blocks(self.n, chunk, self.budget, row)
        return len(ranges), ranges[0][1] - ranges[0][0]

    def landmarks(self) -> Self | None:
        """Return the sizes of the landmarks' own eigenproblem, None where all samples are solved."""
        neighbors = self.job.neighbors
        if neighbors.most_landmarks is None:
            return None
        exact = NeighborOptions.model_validate({"method": "exact", "k": neighbors.k})
        job = self.job.model_copy(update={"neighbors": exact})
        return replace(self, job=job, n=min(self.n, neighbors.most_landmarks))

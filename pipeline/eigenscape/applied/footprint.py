"""Memory and disk of the extend stage: the stage and its plan read the same arithmetic."""

from eigenscape.applied.model import Model
from eigenscape.base.blocks import Block, sample_blocks
from eigenscape.base.footprint import Footprint
from eigenscape.base.memory import ROW_TILE
from eigenscape.features.method import feature_method
from eigenscape.features.spatial.filtering import filter_footprint
from eigenscape.features.spatial.filters import make_filter
from eigenscape.neighbors.kernels.partition import TREE_SAMPLE
from eigenscape.neighbors.search.exhaustive import MOST_NEIGHBORS
from eigenscape.store.rows import Rows
from eigenscape.store.run import Run

_RUN_BYTES = 96
"""Memory per sample of the run while it is read: hashes and their order, scale, degree, classes."""

_MEMBER_BYTES = 36
"""Disk per sample of the run in the leaves of an index, as many of them as overlap."""

_ENTRY_BYTES = 64
_WIDTH_BYTES = 24
_TILE_BYTES = 32 * 2**20


def extend_blocks(model: Model, samples: int, budget: int) -> list[Block]:
    """Return the blocks of new samples that are classified at a time."""
    return sample_blocks(samples, 1, budget - chunk_bytes(model), row_bytes(model))


def extend_footprint(model: Model, samples: int, bands: int, budget: int) -> Footprint:
    """Return what the stage takes on a scene of so many samples and bands."""
    trained, columns = _rows(model).shape
    ranges = extend_blocks(model, samples, budget)
    each = min(max(ranges[0][1], ROW_TILE), samples) * row_bytes(model) + chunk_bytes(model)
    # Reading the run is a task of its own, before all others.
    reading = _RUN_BYTES * trained + 12 * columns * min(trained, TREE_SAMPLE)
    reading = max(reading, model.way.reading_bytes(trained))
    disk = 10 * samples
    scratch = (
        trained * (4 * columns + 8 * model.job.neighbors.k + 13 + _MEMBER_BYTES) + disk + samples
    )
    if model.job.neighbors.most_landmarks is not None:
        scratch += trained * (4 * columns + 8 + _MEMBER_BYTES)
    tasks = len(ranges)
    if (options := model.job.features.spatial) is not None:
        features = feature_method(model.job).count(bands)
        filtering = filter_footprint(make_filter(options), samples, features, budget)
        each, tasks = max(each, filtering.each), tasks + filtering.tasks
        scratch += int(filtering.scratch + filtering.disk)
    return Footprint(tasks, each, disk=disk, scratch=scratch, before=reading)


def row_bytes(model: Model) -> float:
    """Return what a new sample takes in a task."""
    options = model.job.neighbors
    longest = 2 * options.k if options.reach is None else MOST_NEIGHBORS
    return (
        20 * model.bands.count + 24 * _rows(model).shape[1] + model.way.row_bytes(_run(model))
        + _ENTRY_BYTES * longest + _WIDTH_BYTES * model.count
    )  # fmt: skip


def chunk_bytes(model: Model) -> int:
    """Return what a task takes beside its samples: tiles of a search, and a chunk of the run."""
    rows = _rows(model)
    return _TILE_BYTES + max(8 * rows.shape[1] * rows.step, model.way.chunk_bytes(_run(model)))


def _run(model: Model) -> Run:
    return Run(model.path, create=False)


def _rows(model: Model) -> Rows:
    return Rows(str(_run(model).array_path("features/values")))

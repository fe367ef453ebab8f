"""The features stage with a filter in space: features of all samples first, then their neighbourhoods.

::

    (fit, project)   as the method does it    samples -> features/unfiltered
    lay out          sample blocks            features/unfiltered -> mapped files, with their pixels
    unit             sample blocks            noise of the features, of methods that do not whiten it
    (prepare)        images, profiles         what a filter has to know of the whole scene
    filter           sample blocks            windows of the scene -> features/values

A filter reads valid pixels alone. A sample depends on what lies around it and never on the blocks.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from eigenscape.base.blocks import Block, blocks, sample_blocks
from eigenscape.base.footprint import Footprint
from eigenscape.context import Context
from eigenscape.errors import SceneError
from eigenscape.features.kernels import difference_power
from eigenscape.features.method import FeatureMethod, Table
from eigenscape.features.noise import adjacent_pairs
from eigenscape.features.pieces import MOMENT_ROWS
from eigenscape.features.spatial.filters import Filter, make_filter
from eigenscape.features.spatial.unfiltered import F4, Unfiltered
from eigenscape.scenes.types import Grid
from eigenscape.store.arrays import chunk_rows, open_array, stored_bytes, write_rows

_LAID_OUT = "features/unfiltered"


def write_filtered(context: Context, method: FeatureMethod) -> dict[str, Any]:
    """Write ``features/unfiltered`` (sample, feature), as the method does it, and ``features/values``.

    Raises
    ------
    SceneError
        No sample has a neighbour by which noise could be measured.
    """
    assert method.spatial is not None, "there is a filter"
    told = method.write(context, _LAID_OUT)
    source = context.workspace.array_path(_LAID_OUT)
    unfiltered = lay_out(context, partial(_read, str(source)), open_array(source).shape[1])
    found, kept = make_filter(method.spatial), dict(open_array(source).attrs)
    unit = 1.0
    if found.in_noise and not method.whitened:
        unit = noise_unit(context, unfiltered)
    sources = found.sources(unfiltered.features)
    if "origin" in kept:
        kept["origin"] = np.array(kept["origin"])[sources].tolist()
    shape = (unfiltered.samples, len(sources))
    path = context.workspace.create_array(
        "features/values", shape, np.float32, dims=("sample", "feature"), **kept
    )
    filter_features(context, found, unfiltered, unit, partial(write_rows, path))
    return {**told, "dimension": len(sources), "unfiltered": unfiltered.features, "noise": unit}


def lay_out(
    context: Context, read: Callable[[Block], F4], features: int, row: float = 0
) -> Unfiltered:
    """Return features in mapped files, with the pixels of their samples.

    Parameters
    ----------
    context
        Of a stage after ingest.
    read
        Returns the features of a block of samples; it can be pickled.
    features
        How many.
    row
        Bytes per sample that `read` takes beside what it returns.
    """
    ingest = context.run.record("ingest")
    assert ingest is not None, "features follow ingest"
    grid, pixels = Grid.from_json(ingest.summary["grid"]), context.path("samples/pixel")
    samples = open_array(pixels).shape[0]
    folder = context.workspace.folder("unfiltered")
    unfiltered = Unfiltered(folder, samples, features, grid.height, grid.width)
    unfiltered.create()
    ranges = sample_blocks(samples, 1, context.task_bytes, _laid_bytes(features) + row)
    work = partial(_lay_block, unfiltered, read, pixels)
    context.map("lay out", work, ranges, label="features in their grid")
    return unfiltered


def noise_unit(context: Context, unfiltered: Unfiltered) -> float:
    """Return the standard deviation of the noise of a feature, by what neighbouring pixels differ by.

    Raises
    ------
    SceneError
        There are no neighbours.
    """
    ranges = blocks(unfiltered.samples, MOMENT_ROWS)
    work = partial(_block_power, unfiltered)
    parts = context.map("unit", work, ranges, label="noise of features", keep=False)
    count = sum(part[0] for part in parts)
    if count == 0:
        raise SceneError(
            "[features.spatial] counts in standard deviations of the noise, which is what neighbouring "
            f"pixels differ by, and none of the {unfiltered.samples} samples has a neighbour. Leave "
            "[features.spatial] out."
        )
    variance = sum(part[1] for part in parts) / (2 * count * unfiltered.features)
    # Of a constant scene any unit will do.
    return float(np.sqrt(variance)) or 1.0


def filter_features(
    context: Context,
    found: Filter,
    unfiltered: Unfiltered,
    unit: float,
    write: Callable[[int, F4], None],
) -> None:
    """Filter all samples.

    Parameters
    ----------
    context
        Of a stage.
    found
        The filter.
    unfiltered
        What it works on.
    unit
        Standard deviation of the noise of a feature.
    write
        Called with the number of the first sample of a block and its filtered features, whole chunks of
        an array; it can be pickled.
    """
    found.prepare(context, unfiltered)
    work = partial(_filter_block, found, unfiltered, unit, write)
    ranges = filter_blocks(found, unfiltered.samples, unfiltered.features, context.task_bytes)
    context.map("filter", work, ranges, label="filtering features")


def filter_blocks(found: Filter, samples: int, features: int, budget: int) -> list[Block]:
    """Return the blocks of samples that are filtered at a time."""
    width = len(found.sources(features))
    left = budget - found.task_bytes(features)
    return sample_blocks(samples, chunk_rows(samples, 4 * width), left, _filtered_bytes(width))


def filter_footprint(found: Filter, samples: int, features: int, budget: int) -> Footprint:
    """Return what it takes to lay features out and to filter them; all pixels may be samples."""
    width = len(found.sources(features))
    ranges = filter_blocks(found, samples, features, budget)
    laying = sample_blocks(samples, 1, budget, _laid_bytes(features))
    each = max(
        (ranges[0][1] - ranges[0][0]) * _filtered_bytes(width) + found.task_bytes(features),
        (laying[0][1] - laying[0][0]) * _laid_bytes(features),
        min(samples, MOMENT_ROWS) * _PAIR_BYTES * (found.in_noise),
    )
    scratch = samples * (4.0 * features + 8) + found.scratch_bytes(samples, features)
    tasks, disk = len(ranges) + len(laying), stored_bytes(samples, 4 * width)
    return Footprint(tasks, each, _KERNEL_BYTES, disk, scratch)


def filtered_footprint(method: FeatureMethod, table: Table) -> Footprint:
    """Return what the features stage takes with a filter."""
    assert method.spatial is not None, "there is a filter"
    before = method.footprint(table)
    found, features = make_filter(method.spatial), method.count(table.bands)
    after = filter_footprint(found, table.rows, features, table.budget)
    return Footprint(
        before.tasks + after.tasks,
        max(before.each, after.each),
        before.shared + after.shared,
        before.disk + after.disk,
        before.scratch + after.scratch,
        before.before,
    )


_KERNEL_BYTES = 8 * 2**20
"""Of the compiled filters, beside what the plan counts for the features stage."""

_PAIR_BYTES = 64
"""Of a sample whose neighbours are looked for: numbers of pairs."""


def _laid_bytes(features: int) -> float:
    return 8.0 * features + 16


def _filtered_bytes(width: int) -> float:
    # What is filtered, and copies as chunks are written.
    return 12.0 * width


def _read(source: str, block: Block) -> F4:
    found: F4 = open_array(source)[slice(*block)]
    return found


def _lay_block(
    unfiltered: Unfiltered, read: Callable[[Block], F4], pixels: str, block: Block
) -> None:
    unfiltered.write(block[0], read(block), open_array(pixels)[slice(*block)])


def _block_power(unfiltered: Unfiltered, block: Block) -> tuple[int, float]:
    """Return the number of pairs of neighbours in a block, and the sum of squares that they differ by."""
    first = max(0, block[0] - unfiltered.width)
    pixels = unfiltered.pixels()[first : block[1]]
    one, two = adjacent_pairs(pixels, block[0] - first, unfiltered.width)
    return len(one), difference_power(unfiltered.values()[first : block[1]], one, two)


def _filter_block(
    found: Filter,
    unfiltered: Unfiltered,
    unit: float,
    write: Callable[[int, F4], None],
    block: Block,
) -> None:
    write(block[0], found.filter_block(unfiltered, unit, block))

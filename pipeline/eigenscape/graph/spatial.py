"""Edges between neighbouring pixels of a scene, weighed by how alike they are.

Spatial-spectral graphs (Cahill, Czaja, Messinger 2014) hold the classes of a scene together where
its spectra alone do not. A random split of the labelled pixels leaks through such edges: a test
pixel's neighbours were learned from. The blocked split is the honest figure.
"""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from eigenscape.base.blocks import Block, sample_blocks
from eigenscape.base.files.mapped import attach_memmap, write_range
from eigenscape.context import Context
from eigenscape.errors import InputError
from eigenscape.graph.blocks import write_whole
from eigenscape.graph.kernels import weights as kernels
from eigenscape.graph.lists import FlatLists, create_lists
from eigenscape.job.options import SpatialOptions
from eigenscape.neighbors.kernels.metrics import Metric, lengths
from eigenscape.neighbors.kernels.tiles import square_norms
from eigenscape.scenes.types import Grid
from eigenscape.store.arrays import open_array
from eigenscape.store.rows import Rows
from eigenscape.store.workspace import Workspace

_OFFSETS = ((0, 1), (1, 0), (0, -1), (-1, 0), (1, 1), (1, -1), (-1, -1), (-1, 1))
_MEDIAN_ENTRIES = 2**22


def spatial_lists(
    context: Context, rank: NDArray[Any], neighbors: int, asked: str = "[graph.spatial]"
) -> FlatLists:
    """Return the neighbouring pixels of every pixel, in the locality order, with their distances.

    Parameters
    ----------
    context
        Of a stage that follows the features.
    rank : array, shape (samples,)
        Row of each sample.
    neighbors
        4 or 8.
    asked
        Key of the job file that needs neighbouring pixels.

    Raises
    ------
    InputError
        The samples are no pixels of a scene.
    """
    ingest = context.run.record("ingest")
    assert ingest is not None, "the graph follows ingest"
    grid = Grid.from_json(ingest.summary["grid"])
    if grid.is_table:
        raise InputError(
            f"{asked}: {context.job.scene.path} is a table of {grid.height} samples, which have no "
            f"neighbours in space. Leave {asked} out, or give a raster."
        )
    folder = context.workspace.folder("spatial")
    lists = create_lists(folder, len(rank), neighbors, rank.dtype.type)
    metric = context.job.neighbors.metric
    values = Rows(context.path("features/values"), unit=metric == "angle")
    work = partial(
        _measure, lists, values, metric, context.path("samples/pixel"), grid,
        context.workspace.folder("lists"),
    )  # fmt: skip
    row = values.shape[1] * 4 * 5 + 40 * neighbors
    ranges = sample_blocks(len(rank), values.step, context.task_bytes, row)
    context.map("spatial", work, ranges, label="neighbouring pixels", together=True)
    return lists


def _measure(
    lists: FlatLists, values: Rows, metric: Metric, pixel_path: str, grid: Grid, folder: Path,
    block: Block,
) -> None:  # fmt: skip
    """Write the lists of a block of samples."""
    assert lists.k is not None
    rank = np.load(folder / "rank.npy", mmap_mode="r")
    # Samples are in the order of their pixels: what touches them lies at most a row before or after.
    before = max(0, block[0] - grid.width - 1)
    pixels = open_array(pixel_path)[before : block[1] + grid.width + 1]
    near, found = adjacent(pixels, grid, (block[0] - before, block[1] - before), lists.k)
    near += before
    first = int(min(near[found].min(initial=block[0]), block[0]))
    last = int(max(near[found].max(initial=block[1] - 1) + 1, block[1]))
    vectors = values.read(first, last)
    own = vectors[block[0] - first : block[1] - first]
    places = np.asarray(rank[slice(*block)], np.int64) * lists.k
    index, distance = lists.index("r+"), lists.distance("r+")
    for number in range(lists.k):
        here = found[:, number]
        other = near[here, number]
        # The same bits from both ends: (a - b)^2 is (b - a)^2, summed in the same order.
        difference = own[here] - vectors[other - first]
        squared = np.zeros(len(here), np.float32)
        squared[here] = square_norms(difference)
        index[places + number] = -1
        index[places[here] + number] = rank[other]
        distance[places + number] = lengths(squared, metric)


def adjacent(
    pixels: NDArray[np.int64], grid: Grid, block: Block, count: int
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return the samples next to some samples.

    Parameters
    ----------
    pixels : array, shape (samples,)
        Flat pixel of each sample, ascending; of a range of samples that holds all that may be next
        to those of the block.
    grid
        Of the scene.
    block
        Which samples.
    count
        4 for those that share an edge, 8 for those that share a corner too.

    Returns
    -------
    near : array of int, shape (rows, count)
        Sample on each side; meaningless where there is none.
    found : array of bool, shape (rows, count)
        Whether there is one: at the border of the scene and beside masked pixels there is not.
    """
    row, column = np.divmod(np.asarray(pixels[slice(*block)]), grid.width)
    near = np.empty((len(row), count), np.int64)
    found = np.empty((len(row), count), np.bool_)
    for number, (down, right) in enumerate(_OFFSETS[:count]):
        inside = (row + down >= 0) & (row + down < grid.height)
        inside &= (column + right >= 0) & (column + right < grid.width)
        wanted = (row + down) * grid.width + column + right
        near[:, number] = np.minimum(np.searchsorted(pixels, wanted), len(pixels) - 1)
        found[:, number] = inside & (pixels[near[:, number]] == wanted)
    return near, found


def spatial_bandwidth(lists: FlatLists, options: SpatialOptions) -> float:
    """Return t of the weights exp(-d^2 / t): twice the median of d^2 if it is to be found."""
    if options.bandwidth != "auto":
        return float(options.bandwidth)
    # Odd: an even step through 4 or 8 neighbours of each pixel would see some directions alone.
    step = max(1, lists.entries // _MEDIAN_ENTRIES) | 1
    distance = lists.distance()[::step][lists.index()[::step] >= 0].astype(np.float64)
    # Equal pixels have weight 1 with any bandwidth; they may be more than half of all pairs.
    for squares in (distance**2, distance[distance > 0] ** 2):
        if len(squares) and (median := float(np.median(squares))):
            return 2 * median
    return 1.0


def spatial_rows(lists: FlatLists, bandwidth: float, block: Block) -> scipy.sparse.csr_array:
    """Return the weights exp(-d^2 / t) of some rows."""
    assert lists.k is not None
    _, index, distance = lists.read(block)
    weights = np.empty(len(index), np.float32)
    kernels.heat_weights(distance, bandwidth, weights)
    known = np.asarray(index) >= 0
    indptr = np.concatenate([[0], np.cumsum(known.reshape(-1, lists.k).sum(axis=1))])
    shape = (block[1] - block[0], lists.rows)
    return scipy.sparse.csr_array((weights[known], np.asarray(index)[known], indptr), shape=shape)


def spatial_factor(
    lists: FlatLists, bandwidth: float, weight: float, degree: Path, _: str
) -> float:
    """Return the factor that gives the weights a total of `weight` times that of the others; 0 without any.

    Parameters
    ----------
    lists, bandwidth
        Of the spatial weights.
    weight
        See `eigenscape.job.options.SpatialOptions`.
    degree
        Raw file of the row sums of the spectral weights.
    """
    total = sum(
        float(spatial_rows(lists, bandwidth, tile).sum(dtype=float)) for tile in lists.tiles()
    )
    if not total:
        return 0.0
    return weight * (float(attach_memmap(degree, (lists.rows,), np.float64).sum()) / total)


def join_rows(
    lists: FlatLists, bandwidth: float, factor: float, degree: Path, ranges: list[Block],
    workspace: Workspace, block: Block,
) -> int:  # fmt: skip
    """Write the rows of a block: spectral weights, and `factor` times the spatial ones."""
    number, rows = ranges.index(block), block[1] - block[0]
    names = ("indptr", "indices", "data")
    indptr, indices, data = (
        np.load(spectral_file(lists.folder, number, name), mmap_mode="r") for name in names
    )
    spectral = scipy.sparse.csr_array((data, indices, indptr), shape=(rows, lists.rows))
    spatial = spatial_rows(lists, bandwidth, block)
    spatial.data *= np.float32(factor)
    both = scipy.sparse.csr_array(spectral + spatial)
    both.sort_indices()
    for name, values in (
        ("indptr", both.indptr.astype(indptr.dtype)),
        ("indices", both.indices.astype(indices.dtype)),
        ("data", both.data),
    ):
        write_whole(workspace, f"graph/{number}/{name}", values)
    write_range(degree, block[0], kernels.row_sums(both.indptr, both.data))
    return int(both.nnz)


def spectral_file(folder: Path, number: int, name: str) -> Path:
    """Return where a block of the spectral weights waits for the spatial ones."""
    return folder / f"spectral-{number}-{name}.npy"

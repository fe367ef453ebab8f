"""Edge-preserving smoothing of the class map: neighbouring pixels that look alike agree.

::

    edges      sample blocks    neighbouring pixels and how far apart their features are
    weigh      sample blocks    w_ij = exp(-d^2 / t), as in the spatial graph
    smooth     bundles of fits  P = (1 + weight L)^-1 P0

The minimum of ``sum |P_i - P0_i|^2 + weight sum w_ij |P_i - P_j|^2``, each edge counted once, where
L is the Laplacian of the w_ij and P0 the shares of the classes. Rows of P stay
distributions. Between pixels that differ w is small, so borders stay where the spectra have them.
"""

from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from eigenscape.base.blocks import Block, blocks
from eigenscape.base.files.mapped import (
    attach_memmap,
    clear_scratch,
    create_memmap,
    note_rows,
    save_array,
    save_raw,
    scratch_arrays,
)
from eigenscape.base.memory import CHUNK_ROWS
from eigenscape.context import Context
from eigenscape.graph.kernels.weights import row_sums
from eigenscape.graph.lists import FlatLists
from eigenscape.graph.spatial import spatial_bandwidth, spatial_lists, spatial_rows
from eigenscape.job.options import SpatialOptions
from eigenscape.learn.decide.fitscores import Fitted, LabelScores
from eigenscape.learn.decide.kernels.decisions import Calibration, probabilities
from eigenscape.learn.propagate.kernels.smoothness import Inverse
from eigenscape.spectrum.kernels.gather import WIDTH
from eigenscape.spectrum.kernels.operator import Array
from eigenscape.spectrum.stored import StoredOperator

_EDGES = SpatialOptions()
_BLOCK_ROWS = CHUNK_ROWS // 2


def array_count(classes: int) -> int:
    """Return how many arrays of (samples, WIDTH) a task holds: groups of classes, their image and a spare."""
    return max(1, -(-classes // WIDTH)) + 2


@dataclass(frozen=True)
class Smoothed:
    """Scores of a fitted method, smoothed over the scene.

    Attributes
    ----------
    fitted
        The method; each of its fits has scores of all samples.
    laplacian
        L, rows in the order of the samples.
    weight
        See `eigenscape.job.options.LearnOptions.smoothing`.
    in_memory
        Whether a task may hold its arrays in memory; they are mapped from scratch files otherwise.
    """

    fitted: Fitted
    laplacian: StoredOperator
    weight: float
    in_memory: bool

    @property
    def bundles(self) -> list[list[int]]:
        """Fits that share a group of columns."""
        fits = list(range(len(self.fitted.labelled.train)))
        step = max(1, WIDTH // self.fitted.labelled.count)
        return [fits[first : first + step] for first in range(0, len(fits), step)]

    @property
    def _folder(self) -> Path:
        return self.fitted.folder

    def smooth(self, number: int) -> list[list[list[list[int]]]]:
        """Smooth the fits of a bundle; return the `confusions` of each."""
        fits, count = self.bundles[number], self.fitted.labelled.count
        groups = -(-len(fits) * count // WIDTH)
        with scratch_arrays(None if self.in_memory else self._folder) as zeros:
            shape = (self.laplacian.rows, WIDTH)
            arrays = [zeros(shape, self.laplacian.dtype) for _ in range(groups + 2)]
            unknown = self._fill(fits, arrays[:groups])
            operator = self.laplacian.open()
            *fields, image, spare = arrays
            smoother = Inverse(operator, self.weight, spare)
            for field in fields:
                smoother.apply(field, image)
                field[:] = image
            return [
                self._keep(fit, place * count, fields, unknown[:, place])
                for place, fit in enumerate(fits)
            ]

    def _fill(self, fits: list[int], fields: list[Array]) -> NDArray[np.bool_]:
        """Write P0 of some fits into groups of columns; return which samples have no scores."""
        count = self.fitted.labelled.count
        none = Calibration.none(count)
        unknown = np.zeros((self.laplacian.rows, len(fits)), np.bool_)
        for block in blocks(self.laplacian.rows, _BLOCK_ROWS):
            here = slice(*block)
            for place, fit in enumerate(fits):
                p = probabilities(self.fitted.of_fit(fit, block), none)
                unknown[here, place] = np.isnan(p[:, 0])
                # They take no side, and get no class.
                p[unknown[here, place]] = 1 / count
                for number in range(count):
                    group, column = divmod(place * count + number, WIDTH)
                    fields[group][here, column] = p[:, number]
        return unknown

    def _keep(
        self, fit: int, first: int, fields: list[Array], unknown: NDArray[np.bool_]
    ) -> list[list[list[int]]]:
        """Write the smoothed scores of a fit at the labelled samples, and of the first fit everywhere."""
        labelled = self.fitted.labelled
        places = [divmod(first + number, WIDTH) for number in range(labelled.count)]

        def take(rows: NDArray[np.int64] | slice) -> NDArray[np.float32]:
            p = np.stack([fields[group][rows, column] for group, column in places], axis=1)
            p[unknown[rows]] = np.nan
            return p

        if fit == 0:
            whole = self._whole("r+")
            for block in blocks(len(unknown), _BLOCK_ROWS):
                whole[slice(*block)] = take(slice(*block))
            note_rows(whole)
        return self._kept.keep(fit, take(labelled.sample))

    def _whole(self, mode: str = "r") -> NDArray[np.float32]:
        path, shape = self._folder / "smoothed", (self.laplacian.rows, self.fitted.labelled.count)
        if mode != "r":
            create_memmap(path, shape, np.float32)
        return attach_memmap(path, shape, np.float32, mode)

    @property
    def _kept(self) -> LabelScores:
        return LabelScores(self._folder, "smooth", self.fitted.labelled, self.fitted.sampling)

    def called(self, number: int) -> NDArray[np.intp]:
        """See `eigenscape.learn.decide.fitscores.FitScores`."""
        return self._kept.called(number)

    def at_labels(self, number: int, rows: NDArray[np.intp]) -> NDArray[np.float32]:
        """See `eigenscape.learn.decide.fitscores.FitScores`."""
        return self._kept.at_labels(number, rows)

    def scores(self, block: Block) -> NDArray[np.float32]:
        """See `eigenscape.learn.decide.fitscores.FitScores`."""
        return np.array(self._whole()[slice(*block)])


def prepare_smoothing(context: Context, fitted: Fitted) -> Smoothed:
    """Measure the edges between neighbouring pixels and store their Laplacian.

    Raises
    ------
    InputError
        The samples are no pixels of a scene.
    """
    samples = context.open("samples/pixel").shape[0]
    weight = context.job.learn.smoothing
    rank = np.arange(samples, dtype=np.int32 if samples < 2**31 else np.int64)
    save_array(context.workspace.folder("lists") / "rank.npy", rank)
    lists = spatial_lists(context, rank, _EDGES.neighbors, f"learn.smoothing = {weight:g}")
    clear_scratch(fitted.folder)
    folder = context.workspace.folder("pixels")
    for name in ("diagonal", "null"):
        create_memmap(folder / name, (samples,), np.float32 if name == "diagonal" else np.float64)
    ranges = blocks(samples, _BLOCK_ROWS)
    bandwidth = context.map("bandwidth", partial(_bandwidth, lists), ["all"])[0]
    work = partial(_weigh, lists, bandwidth, folder)
    found = context.map("weigh", work, ranges, label="weights of pixels")
    parts = [
        tuple(str(folder / f"{name}-{first}{end}") for name, end in _FILES) for first, _ in ranges
    ]
    operator = StoredOperator(
        graph=tuple((indptr, indices) for indptr, indices, _ in parts),
        data=tuple(data for _, _, data in parts),
        starts=tuple(first for first, _ in ranges),
        rows=samples,
        entries=sum(entries for entries, _ in found),
        dtype="float32",
        diagonal=str(folder / "diagonal"),
        null=str(folder / "null"),
        singular=True,
        # Gershgorin's circles; a hundredth more, as the sums are rounded.
        bound=2.02 * max(degree for _, degree in found) or 1.0,
    )
    arrays = array_count(fitted.labelled.count)
    fits_in = arrays * samples * WIDTH * 4 <= context.task_bytes
    return Smoothed(fitted, operator, weight, fits_in)


_FILES = (("indptr", ".npy"), ("indices", ".npy"), ("data", ""))


def _bandwidth(lists: FlatLists, _: str) -> float:
    return spatial_bandwidth(lists, _EDGES)


def _weigh(lists: FlatLists, bandwidth: float, folder: Path, block: Block) -> tuple[int, float]:
    """Write rows of the Laplacian; return their entries and the largest degree."""
    weights = spatial_rows(lists, bandwidth, block)
    degree = row_sums(weights.indptr, weights.data)
    for array, (name, end) in zip((weights.indptr, weights.indices), _FILES, strict=False):
        kind = np.int64 if name == "indptr" else array.dtype
        save_array(folder / f"{name}-{block[0]}{end}", array.astype(kind))
    save_raw(folder / f"data-{block[0]}", weights.data)
    for name, values in (("diagonal", degree), ("null", np.ones(len(degree)))):
        kind = np.float32 if name == "diagonal" else np.float64
        mapped = attach_memmap(folder / name, (lists.rows,), kind, "r+")
        mapped[slice(*block)] = values
        note_rows(mapped, *block)
    return int(weights.nnz), float(degree.max(initial=0))

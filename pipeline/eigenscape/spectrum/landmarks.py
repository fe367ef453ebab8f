"""Eigenvectors of the landmarks' graph, extended to all samples by the Nystrom formula.

::

    landmarks   row blocks   their own graph: rows and columns of the weights that are landmarks
    solve                    its eigenpairs, by the solver of the job
    extend      row blocks   v(x) = sum_j W(x, j) v_j / sqrt(d(x) d_j) / (1 - lambda), j landmarks
    residual    row blocks   |L v - lambda v| of the whole graph
    write       samples      vectors of length 1, signs fixed

A landmark keeps the coordinates that the solution gives it, so with all samples as landmarks the
result is the exact one. Else the vectors are no eigenvectors of the run's graph: their residuals show
by how much, and those of the landmarks' own problem decide whether the run has converged.
"""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from scipy.sparse import csr_array

from eigenscape.base.blocks import Block, blocks, sample_blocks
from eigenscape.base.files.mapped import attach_memmap, create_memmap, save_array, write_range
from eigenscape.base.files.whole import written_whole
from eigenscape.base.memory import ROW_TILE
from eigenscape.context import Context, Map
from eigenscape.errors import InputError
from eigenscape.graph.kernels.weights import row_sums
from eigenscape.job.options import Laplacian
from eigenscape.spectrum.extension import LEAST_SHARE, count_extended, nystrom
from eigenscape.spectrum.iteration.solvers import choose, find_pairs
from eigenscape.spectrum.iteration.tasks import Problem
from eigenscape.spectrum.kernels.forms import FORMS
from eigenscape.spectrum.kernels.laplacian import laplacian
from eigenscape.spectrum.kernels.operator import RowBlock
from eigenscape.spectrum.scaled import StoredGraph, sample_rows, stored_graph
from eigenscape.spectrum.stored import store_operator
from eigenscape.store.arrays import chunk_rows, write_rows


@dataclass(frozen=True)
class Extension:
    """The data that the tasks share: small, so that each of them can carry it.

    Attributes
    ----------
    graph
        The weights of all samples, edges between samples and landmarks.
    folder
        ``place.npy``: place of each row among the landmarks, -1 for all others; ``degree.npy``,
        ``vector.npy``: of the landmarks in their own graph; ``extended`` (row, mode); ``own``: degree
        of each row among the landmarks.
    values
        Eigenvalues, the 0 of the null vector first.
    laplacian
        Whose symmetric form is solved and extended.
    """

    graph: StoredGraph
    folder: Path
    values: tuple[float, ...]
    laplacian: Laplacian

    def create(self) -> None:
        """Reserve the space of the extended vectors."""
        create_memmap(self.folder / "extended", self.shape, np.float32)
        create_memmap(self.folder / "own", self.shape[:1], np.float64)

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and of modes."""
        return self.graph.rows, len(self.values)

    def extended(self) -> NDArray[np.float32]:
        """Map the vectors of all rows, not yet of length 1."""
        return attach_memmap(self.folder / "extended", self.shape, np.float32)

    def own(self) -> NDArray[np.float64]:
        """Map the degrees of all rows among the landmarks."""
        return attach_memmap(self.folder / "own", self.shape[:1], np.float64)

    def extend(self, number: int) -> int:
        """Extend the vectors to the rows of a block; note the sums of their squares and their peaks.

        Returns
        -------
        int
            Number of rows to which a vector does not extend.
        """
        place = np.load(self.folder / "place.npy", mmap_mode="r")
        degree, vectors = (np.load(self.folder / f"{name}.npy") for name in ("degree", "vector"))
        squares, peak, lost = np.zeros(self.shape[1]), np.zeros(self.shape[1]), 0
        for rows, weights in self._tiles(number):
            table = columns_of(weights, place, len(degree))
            twins = np.asarray(place[slice(*rows)])
            extended = nystrom(
                table, twins, degree, np.array(self.values), [(0, vectors)], self.laplacian
            )
            write_range(self.folder / "extended", rows[0], extended.astype(np.float32))
            write_range(self.folder / "own", rows[0], row_sums(table.indptr, table.data))
            lost += int(np.isnan(extended).any(axis=1).sum())
            finite = np.nan_to_num(extended)
            squares += (finite**2).sum(axis=0)
            largest = finite[np.abs(finite).argmax(axis=0), np.arange(len(peak))]
            peak = np.where(np.abs(largest) > np.abs(peak), largest, peak)
        save_array(self._moments(number), np.stack([squares, peak]))
        return lost

    def factors(self) -> NDArray[np.float64]:
        """Return factors that make every vector of length 1, its entry of largest magnitude positive."""
        parts = np.stack([np.load(self._moments(i)) for i in range(len(self.graph.paths))])
        peaks = parts[:, 1]
        peak = peaks[np.abs(peaks).argmax(axis=0), np.arange(peaks.shape[1])]
        return np.asarray(np.where(peak < 0, -1, 1) / np.sqrt(parts[:, 0].sum(axis=0)))

    def residual(self, factors: NDArray[np.float64], number: int) -> list[float]:
        """Return the squares of A v - lambda v, summed over the rows of a block, for each vector."""
        vectors, degree = self.extended(), self.graph.degree()
        normal = FORMS[self.laplacian].normalized
        total = np.zeros(self.shape[1])
        for rows, weights in self._tiles(number):
            # No more of the vectors than the rows name.
            columns, place = np.unique(weights.indices, return_inverse=True)
            entries = weights.data.astype(np.float64)
            if normal:
                across = np.repeat(degree[slice(*rows)], np.diff(weights.indptr))
                entries /= np.sqrt(across * degree[columns][place])
            shape = (weights.shape[0], len(columns))
            scaled = csr_array((entries, place.astype(np.int64), weights.indptr), shape)
            own = vectors[slice(*rows)].astype(np.float64)
            diagonal = 1.0 if normal else degree[slice(*rows), None]
            away = (diagonal - np.array(self.values)) * own - scaled @ vectors[columns]
            total += (np.nan_to_num(away * factors) ** 2).sum(axis=0)
        return [float(value) for value in total]

    def write(self, factors: NDArray[np.float64], target: str, turned: bool, block: Block) -> None:
        """Write the vectors of a block of samples."""
        rows = np.load(self.folder / "row.npy", mmap_mode="r")[slice(*block)]
        inside = rows >= 0
        # Samples outside of the largest component have no coordinates.
        vectors = np.full((len(rows), self.shape[1]), np.nan, np.float32)
        coordinates = self.extended()[rows[inside]] * factors
        if turned:
            coordinates /= np.sqrt(self.own()[rows[inside]])[:, None]
        vectors[inside] = coordinates
        write_rows(target, block[0], vectors)

    def landmark_weights(self, number: int) -> None:
        """Write the rows and columns of a block that are landmarks."""
        place = np.load(self.folder / "place.npy", mmap_mode="r")
        count = int(place.max()) + 1
        tiles = [
            columns_of(weights, place, count)[np.flatnonzero(place[slice(*rows)] >= 0)]
            for rows, weights in self._tiles(number)
        ]
        with written_whole(self.folder / f"weights-{number}.npz") as temporary:
            scipy.sparse.save_npz(temporary, scipy.sparse.vstack(tiles, format="csr"))

    def _tiles(self, number: int) -> Any:
        """Yield ranges of rows and their weights, a tile of a block after the other."""
        block = self.graph.block(number)
        for start, stop in blocks(len(block.indptr) - 1, ROW_TILE):
            starts = np.asarray(block.indptr[start : stop + 1])
            piece = slice(int(starts[0]), int(starts[-1]))
            parts = (
                np.array(block.data[piece]),
                np.array(block.indices[piece]),
                starts - starts[0],
            )
            rows = (block.first + start, block.first + stop)
            yield rows, csr_array(parts, (stop - start, self.graph.rows))

    def _moments(self, number: int) -> Path:
        return self.folder / f"moments-{number}.npy"


def columns_of(weights: csr_array, place: NDArray[np.int32], count: int) -> csr_array:
    """Return the columns of weights that are landmarks, by their places.

    Parameters
    ----------
    weights : csr_array, shape (rows, n)
    place : array, shape (n,)
        Place of each landmark, -1 for other columns.
    count
        How many landmarks there are.
    """
    column = place[weights.indices]
    keep = column >= 0
    starts = np.concatenate([[0], np.cumsum(keep)])[weights.indptr]
    return csr_array((weights.data[keep], column[keep], starts), (weights.shape[0], count))


def landmark_spectrum(context: Context) -> dict[str, Any]:
    """Write the arrays of the spectrum stage, by the Nystrom formula, and the landmarks with them.

    ``spectrum/landmark`` holds their samples, by rows of the graph, and ``spectrum/degree``
    their degrees among themselves: new samples are extended from them, too.
    """
    options, form = context.job.spectrum, FORMS[context.job.graph.laplacian].solved
    folder = context.workspace.folder("landmarks")
    graph, order = stored_graph(context.run), context.memmap("graph/sample")
    rows = sample_rows(order, context.open("samples/pixel").shape[0])
    save_array(folder / "row.npy", rows)
    landmark = np.asarray(context.memmap("neighbors/landmark"))
    landmark = landmark[rows[landmark] >= 0]
    landmark = landmark[np.argsort(rows[landmark])]
    place = np.full(graph.rows, -1, np.int32)
    place[rows[landmark]] = np.arange(len(landmark), dtype=np.int32)
    save_array(folder / "place.npy", place)
    _check_dimension(options.dimension, len(landmark))
    weights = _landmark_weights(Extension(graph, folder, (0.0,), form), context.map)
    degree = row_sums(weights.indptr, weights.data)
    save_array(folder / "degree.npy", degree)
    choice = choose(options.solver, options.dimension, options.tolerance, form, degree)
    block = RowBlock(
        0, weights.indptr.astype(np.int64), weights.indices.astype(np.int32), weights.data
    )
    operator = laplacian([block], degree, form, choice.dtype, unit=choice.unit)
    problem = Problem(store_operator(operator, folder), None, folder)
    solution = find_pairs(
        problem, choice.solver, options.dimension, options.tolerance, context.map,
        context.reporter.note,
    )  # fmt: skip
    values = solution.values[: options.dimension]
    if len(landmark) < graph.rows:
        _check_values(values, form)
    null = problem.null_space().entries[:, None]
    vectors = solution.vectors.read(slice(None))[:, : options.dimension]
    save_array(folder / "vector.npy", np.column_stack([null, vectors]))
    extension = Extension(graph, folder, (0.0, *values.tolist()), form)
    extension.create()
    residuals = _extend(context, extension)
    for name, array, dim in (
        ("value", np.array(extension.values), "mode"), ("residual", residuals, "mode"),
        ("landmark", landmark, "landmark"), ("degree", degree, "landmark"),
    ):  # fmt: skip
        context.workspace.write_array(
            f"spectrum/{name}", array, whole=dim == "landmark", dims=(dim,)
        )
    return {
        "solver": choice.solver,
        "reason": f"{len(landmark)} landmarks, extended by the Nystrom formula; {choice.reason}",
        "precision": choice.precision,
        "values": list(extension.values),
        "max_residual": float(residuals.max()),
        "landmarks": len(landmark),
        "landmark_residual": float(solution.residuals[: options.dimension].max()),
        "converged": bool(solution.converged),
        "passes": solution.passes,
        "products": solution.products,
        "null_vectors": 1,
    }


def _landmark_weights(extension: Extension, map_blocks: Map) -> csr_array:
    """Return the weights of the landmarks among themselves."""
    count = len(extension.graph.paths)
    map_blocks("landmarks", extension.landmark_weights, list(range(count)))
    parts = [scipy.sparse.load_npz(extension.folder / f"weights-{i}.npz") for i in range(count)]
    weights = csr_array(scipy.sparse.vstack(parts, format="csr"))
    weights.sort_indices()
    return weights


def _extend(context: Context, extension: Extension) -> NDArray[np.float64]:
    """Extend the vectors and write them; return the residuals in the run's graph."""
    numbers = list(range(len(extension.graph.paths)))
    lost = sum(context.map("extend", extension.extend, numbers, label="extending eigenvectors"))
    if lost:
        raise InputError(
            f'graph.laplacian = "unnormalized": {lost:,} of {extension.shape[0]:,} samples have no '
            f"coordinates, because their weights to the landmarks add up to little more than the largest "
            f'eigenvalue, {extension.values[-1]:.4g}, or less. Set graph.laplacian to "normalized", or '
            "spectrum.dimension to less."
        )
    factors = extension.factors()
    measure = partial(extension.residual, factors)
    squares = context.map("residual", measure, numbers, label="measuring residuals")
    samples, modes = context.open("samples/pixel").shape[0], extension.shape[1]
    target = context.workspace.create_array(
        "spectrum/vector", (samples, modes), np.float32, dims=("sample", "mode")
    )
    turned = FORMS[context.job.graph.laplacian].turned
    work = partial(extension.write, factors, target, turned)
    ranges = sample_blocks(samples, chunk_rows(samples, 4 * modes), context.task_bytes, 16 * modes)
    context.map("write", work, ranges, label="writing eigenvectors")
    return np.asarray(np.sqrt(np.sum(squares, axis=0)))


def _check_dimension(dimension: int, landmarks: int) -> None:
    if dimension > landmarks - 1:
        raise InputError(
            f"spectrum.dimension = {dimension}: {landmarks} landmarks in the graph have "
            f"{landmarks - 1} eigenvectors at most beside the constant one. Set spectrum.dimension to "
            f"{landmarks - 1} or less, or raise neighbors.landmarks."
        )


def _check_values(values: NDArray[np.float64], form: Laplacian) -> None:
    """Refuse eigenvalues by which the formula would divide by almost nothing."""
    few = count_extended(values, form)
    if few < len(values):
        raise InputError(
            f"spectrum.dimension = {len(values)}: the eigenvalues of the landmarks' graph reach "
            f"{values.max():.4g}, and other samples have coordinates up to {1 - LEAST_SHARE}. Set "
            f"spectrum.dimension to {max(1, few)} or less, or raise neighbors.landmarks."
        )

"""A smaller graph to start from: aggregate the rows, carry vectors back."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from eigenscape.base.blocks import blocks
from eigenscape.base.files.mapped import save_array
from eigenscape.base.memory import CHUNK_ROWS
from eigenscape.spectrum.kernels import products as kernels
from eigenscape.spectrum.kernels.operator import Array, Operator, as_operator
from eigenscape.spectrum.stored import StoredOperator, store_operator

_COMPONENT = "component.npy"
_SLICE_ROWS = CHUNK_ROWS // 4


def aggregate_rows(operator: Operator) -> NDArray[np.int32]:
    """Return an aggregate for every row: a root and its neighbours, as far as they are free."""
    label = np.full(operator.rows, -1, np.int32)
    count = 0
    for stage in range(3):
        for block in operator.blocks:
            count = kernels.aggregate(
                block.first, block.indptr, block.indices, block.data, label, count, stage
            )
        if stage == 1:
            joined = label < -1
            label[joined] = -2 - label[joined]
    return label


def coarsen(operator: Operator, label: NDArray[np.int32]) -> tuple[Operator, NDArray[np.float64]]:
    """Return the Galerkin product P^T A P and the entries of P.

    Column a of P is the null vector restricted to aggregate a, of length 1; so the null vector is
    kept exactly, and the coarse operator is a Laplacian of the coarse graph.

    Returns
    -------
    coarse : Operator
    weight : array, shape (n,)
        P has ``weight[i]`` in row i and column ``label[i]``.
    """
    count = int(label.max()) + 1
    length = np.sqrt(np.bincount(label, operator.null**2, count))
    weight = operator.null / length[label]
    diagonal = np.bincount(label, np.asarray(operator.diagonal, np.float64) * weight**2, count)
    A: Any = scipy.sparse.csr_array(scipy.sparse.diags_array(diagonal))
    A = A - _sum_of_parts(_off_diagonal_parts(operator, label, weight, count))
    kind = operator.diagonal.dtype
    return as_operator(A, length, kind, singular=operator.singular), weight


def _off_diagonal_parts(
    operator: Operator, label: NDArray[np.int32], weight: NDArray[np.float64], count: int
) -> Iterator[Any]:
    """Yield what the entries of each slice of rows add to the coarse matrix."""
    for block in operator.blocks:
        for begin, end in blocks(len(block.indptr) - 1, _SLICE_ROWS):
            entries = slice(block.indptr[begin], block.indptr[end])
            here = slice(block.first + begin, block.first + end)
            lengths = np.diff(block.indptr[begin : end + 1])
            across = block.indices[entries]
            values = np.repeat(weight[here], lengths) * block.data[entries] * weight[across]
            place = (np.repeat(label[here], lengths), label[across])
            yield scipy.sparse.coo_array((values, place), shape=(count, count)).tocsr()


def _sum_of_parts(parts: Iterable[Any]) -> Any:
    """Return the sum of sparse matrices, small ones first.

    One after the other into one sum, each entry would be copied once per slice, so that the time would
    grow with the square of the rows. Here it is copied log2(slices) times.
    """
    sums: list[Any] = []
    for part in parts:
        sums.append(part)
        while len(sums) > 1 and sums[-2].nnz <= 2 * sums[-1].nnz:
            last = sums.pop()
            sums[-1] = sums[-1] + last
    while len(sums) > 1:
        last = sums.pop()
        sums[-1] = sums[-1] + last
    return sums[0]


def store_coarse(
    operator: Operator,
    label: NDArray[np.int32],
    component: NDArray[np.int32] | None,
    directory: Path,
) -> StoredOperator:
    """Coarsen an operator and write the result, with the arrays that carry vectors back.

    Parameters
    ----------
    operator
        In memory or mapped.
    label : array of int, shape (n,)
        Aggregate of each row.
    component : array of int, shape (n,), optional
        Component of each row; an aggregate never has two.
    directory
        Where the files go.
    """
    directory.mkdir(exist_ok=True)
    coarse, weight = coarsen(operator, label)
    if component is not None:
        inside = np.zeros(coarse.rows, np.int32)
        inside[label] = component
        save_array(directory / _COMPONENT, inside)
    save_array(directory / "label.npy", label)
    save_array(directory / "weight.npy", weight)
    return store_operator(coarse, directory)


def coarse_component(component: str | None, directory: Path) -> str | None:
    """Return the path of the components of a stored coarse operator."""
    return None if component is None else str(directory / _COMPONENT)


def prolong(vectors: Array, directory: Path, rows: slice) -> Array:
    """Return some rows of the vectors of a coarse operator, carried back to the finer one.

    Parameters
    ----------
    vectors : array, shape (coarse rows, columns)
    directory
        Of `store_coarse`.
    rows
        Of the finer operator.
    """
    label = np.load(directory / "label.npy", mmap_mode="r")[rows]
    weight = np.load(directory / "weight.npy", mmap_mode="r")[rows]
    carried: Array = vectors[label]
    carried *= weight.astype(vectors.dtype)[:, None]
    return carried

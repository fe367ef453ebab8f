"""The Laplacian as an operator on groups of columns: CSR row blocks, mapped or in memory."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from eigenscape.arrays import attach_memmap, open_memmap
from eigenscape.spectrum import kernels

Array = NDArray[Any]


@dataclass(frozen=True)
class RowBlock:
    """Rows first ... of the off-diagonal part, its sign turned, as CSR."""

    first: int
    indptr: Array
    indices: Array
    data: Array


@dataclass(frozen=True)
class Operator:
    """A symmetric positive semi-definite operator ``diag(diagonal) - S`` whose null vector is known.

    Attributes
    ----------
    blocks
        Row blocks of S, in order.
    diagonal : array, shape (n,)
        Of the floating type in which products are computed.
    null : array, shape (n,), float64
        Positive; on every connected component it is, apart from its length, the null vector:
        sqrt(degree) for the normalised Laplacian, ones for the unnormalised one.
    bound
        Upper bound of the spectrum that theory gives.
    """

    blocks: Sequence[RowBlock]
    diagonal: Array
    null: NDArray[np.float64]
    bound: float

    @property
    def rows(self) -> int:
        """Order of the operator."""
        return len(self.diagonal)

    def step(self, X: Array, Z: Array, a: float, b: float, c: float) -> None:
        """Z <- a A X + b X - c Z in place, X and Z of shape (n, WIDTH)."""
        kind = X.dtype.type
        for block in self.blocks:
            kernels.filter_step(
                block.indptr, block.indices, block.data, self.diagonal, block.first, X, Z,
                kind(a), kind(b), kind(c),
            )  # fmt: skip

    def times(self, X: Array) -> Array:
        """Return A X for one group of columns."""
        Z = np.zeros_like(X)
        self.step(X, Z, 1.0, 0.0, 0.0)
        return Z

    def matrix(self) -> scipy.sparse.csr_array:
        """Return the operator as one SciPy matrix in double: for the oracles."""
        indptr = [np.zeros(1, np.int64)]
        for block in self.blocks:
            indptr.append(indptr[-1][-1] + np.asarray(block.indptr[1:]))
        data = np.concatenate([block.data for block in self.blocks]).astype(np.float64)
        columns = np.concatenate([block.indices for block in self.blocks])
        S = scipy.sparse.csr_array(
            (data, columns, np.concatenate(indptr)), shape=(self.rows, self.rows)
        )
        return scipy.sparse.csr_array(
            scipy.sparse.diags_array(np.asarray(self.diagonal, np.float64)) - S
        )


@dataclass(frozen=True)
class StoredOperator:
    """Where an operator lies on disk: small, so that every task opens it for itself."""

    graph: tuple[tuple[str, str], ...]
    """Paths of indptr and indices of each block."""
    data: tuple[str, ...]
    starts: tuple[int, ...]
    rows: int
    dtype: str
    diagonal: str
    null: str
    bound: float

    def open(self) -> Operator:
        """Map the operator; its pages are shared by all threads and processes."""
        blocks = []
        for (indptr, indices), data, first in zip(self.graph, self.data, self.starts, strict=True):
            columns = open_memmap(indices)
            blocks.append(
                RowBlock(
                    first,
                    open_memmap(indptr),
                    columns,
                    attach_memmap(data, columns.shape, self.dtype),
                )
            )
        return Operator(
            blocks,
            attach_memmap(self.diagonal, (self.rows,), self.dtype),
            attach_memmap(self.null, (self.rows,), np.float64),
            self.bound,
        )


def laplacian(
    blocks: Sequence[RowBlock],
    degree: NDArray[np.float64],
    kind: str,
    dtype: type[np.floating[Any]],
    allocate: Callable[[int, int], Array] | None = None,
) -> Operator:
    """Return the Laplacian of a weighted graph.

    The random-walk Laplacian is similar to the normalised one, D^-1 L = D^-1/2 (D^-1/2 L D^-1/2)
    D^1/2, so both are solved as the symmetric one; the stage turns the vectors.

    Parameters
    ----------
    blocks
        Row blocks of the weight matrix W.
    degree : array, shape (n,)
        Row sums of W.
    kind
        "normalized", "random-walk" or "unnormalized".
    dtype
        Floating type of the products.
    allocate
        Called with block number and entries, returns where the scaled entries go; memory by
        default.
    """
    normalized = kind != "unnormalized"
    scale = 1 / np.sqrt(degree) if normalized else np.ones_like(degree)
    scaled = []
    for number, block in enumerate(blocks):
        size = len(block.data)
        data = allocate(number, size) if allocate else np.empty(size, dtype)
        kernels.scale_entries(block.first, block.indptr, block.indices, block.data, scale, data)
        scaled.append(RowBlock(block.first, block.indptr, block.indices, data))
    return Operator(
        scaled,
        (np.ones_like(degree) if normalized else degree).astype(dtype),
        np.sqrt(degree) if normalized else np.ones_like(degree),
        2.0 if normalized else 2.0 * float(degree.max()),
    )


def as_operator(A: scipy.sparse.csr_array, null: NDArray[np.float64], dtype: Any) -> Operator:
    """Return a symmetric SciPy matrix as an operator in memory: for coarse levels and tests."""
    A = scipy.sparse.csr_array(A)
    diagonal = A.diagonal()
    S = scipy.sparse.csr_array(scipy.sparse.diags_array(diagonal) - A)
    S.eliminate_zeros()
    block = RowBlock(0, S.indptr.astype(np.int64), S.indices.astype(np.int32), S.data.astype(dtype))
    # Gershgorin's circles.
    bound = float((abs(A) @ np.ones(A.shape[0])).max())
    return Operator([block], diagonal.astype(dtype), null, bound)


def store_operator(operator: Operator, directory: Path, graph: Sequence[tuple[str, str]],
                   data: Sequence[str]) -> StoredOperator:  # fmt: skip
    """Write the diagonal and the null vector beside entries that are stored already."""
    for name, values in (("diagonal", operator.diagonal), ("null", operator.null)):
        (directory / name).write_bytes(np.ascontiguousarray(values).data)
    return StoredOperator(
        graph=tuple(graph),
        data=tuple(data),
        starts=tuple(block.first for block in operator.blocks),
        rows=operator.rows,
        dtype=operator.diagonal.dtype.name,
        diagonal=str(directory / "diagonal"),
        null=str(directory / "null"),
        bound=operator.bound,
    )


def upper_bound(operator: Operator, steps: int = 12) -> float:
    """Return a safe upper bound of the spectrum, by a few Lanczos steps.

    The largest Ritz value plus the norm of the last residual (Zhou, Li 2011); never more than what
    theory gives. A tighter bound makes every filter shorter: it falls with its square root.
    """
    n = operator.rows
    steps = min(steps, n)
    vector = np.random.default_rng(3).standard_normal(n)
    vector /= np.linalg.norm(vector)
    previous, beta = np.zeros(n), 0.0
    alphas, betas = [], []
    for _ in range(steps):
        # One column in a group of WIDTH: a rare step, not worth a kernel of its own.
        group = np.zeros((n, kernels.WIDTH), operator.diagonal.dtype)
        group[:, 0] = vector
        image = operator.times(group)[:, 0].astype(np.float64) - beta * previous
        alpha = float(image @ vector)
        image -= alpha * vector
        alphas.append(alpha)
        beta = float(np.linalg.norm(image))
        betas.append(beta)
        if beta < 1e-10:
            break
        previous, vector = vector, image / beta
    ritz = np.linalg.eigvalsh(np.diag(alphas) + np.diag(betas[:-1], 1) + np.diag(betas[:-1], -1))
    # A hundredth more: in single precision the bound itself is rounded.
    return min(operator.bound, 1.01 * (float(ritz[-1]) + betas[-1]))

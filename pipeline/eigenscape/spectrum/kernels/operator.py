"""The Laplacian as an operator on groups of columns: CSR row blocks, mapped or in memory."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from eigenscape.spectrum.kernels import products as kernels
from eigenscape.spectrum.kernels.ties import Ties

Array = NDArray[Any]

_HUBS = 8
"""Power of the diagonal: a hub of twice the degree of all others weighs as much as 65,000 of them."""


def read_only(array: Array) -> Array:
    """Return a read-only view.

    Kernels are compiled for each type of array that they are called with. With this view, mapped arrays and
    arrays in memory have the same type.
    """
    if not array.flags.writeable:
        return array
    view = array.view()
    view.flags.writeable = False
    return view


def set_read_only(holder: object, *names: str) -> None:
    """Make arrays of a frozen data class read-only: see `read_only`."""
    for name in names:
        object.__setattr__(holder, name, read_only(getattr(holder, name)))


@dataclass(frozen=True)
class RowBlock:
    """Rows first ... of the off-diagonal part, its sign turned, as CSR, read-only."""

    first: int
    indptr: Array
    indices: Array
    data: Array

    def __post_init__(self) -> None:
        set_read_only(self, "indptr", "indices", "data")


@dataclass(frozen=True)
class Operator:
    """A symmetric positive semi-definite operator ``A = diag(diagonal) - S + V`` on groups of columns.

    Attributes
    ----------
    blocks
        Row blocks of S, in order.
    diagonal : array, shape (n,)
        Of the floating type in which products are computed.
    null : array, shape (n,), float64
        Positive; on every connected component it is, apart from its length, the null vector:
        sqrt(degree) for the normalised Laplacian, ones for the unnormalised one. With a potential
        it is only close to the lowest vectors.
    singular
        Whether the null vectors are those: not with a potential.
    bound
        Upper bound of the spectrum that theory gives.
    ties
        V, which draws clusters of samples together; None for 0.
    unit
        What the eigenvalues are multiplied by to be those of the Laplacian: A is it, divided by this.
    """

    blocks: Sequence[RowBlock]
    diagonal: Array
    null: NDArray[np.float64]
    singular: bool
    bound: float
    ties: Ties | None = None
    unit: float = 1.0

    def __post_init__(self) -> None:
        set_read_only(self, "diagonal", "null")

    @property
    def rows(self) -> int:
        """Order of the operator."""
        return len(self.diagonal)

    def step(self, X: Array, Z: Array, a: float, b: float, c: float) -> None:
        """Z <- a A X + b X - c Z in place, X and Z of shape (n, WIDTH)."""
        kind, X = X.dtype.type, read_only(X)
        for block in self.blocks:
            kernels.filter_step(
                block.indptr, block.indices, block.data, self.diagonal, block.first,
                X, Z, kind(a), kind(b), kind(c),
            )  # fmt: skip
        if self.ties is not None:
            self.ties.add(X, Z, a)

    def times(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return A x for one vector, in double."""
        image, x = np.empty_like(x), read_only(x)
        for block in self.blocks:
            kernels.multiply(
                block.indptr, block.indices, block.data, self.diagonal, block.first,
                x, image,
            )  # fmt: skip
        if self.ties is not None:
            self.ties.add(x[:, None], image[:, None], 1.0)
        return image

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
        A: Any = scipy.sparse.diags_array(np.asarray(self.diagonal, np.float64)) - S
        if self.ties is not None:
            A = A + self.ties.matrix(self.rows)
        return scipy.sparse.csr_array(A)


def as_operator(
    A: scipy.sparse.csr_array, null: NDArray[np.float64], dtype: Any, *, singular: bool = True
) -> Operator:
    """Return a symmetric SciPy matrix as an operator in memory: for coarse levels and tests."""
    A = scipy.sparse.csr_array(A)
    diagonal = A.diagonal()
    S = scipy.sparse.csr_array(scipy.sparse.diags_array(diagonal) - A)
    S.eliminate_zeros()
    block = RowBlock(0, S.indptr.astype(np.int64), S.indices.astype(np.int32), S.data.astype(dtype))
    # Gershgorin's circles.
    bound = float((abs(A) @ np.ones(A.shape[0])).max())
    return Operator([block], diagonal.astype(dtype), null, singular, bound)


def upper_bound(
    operator: Operator, free: NDArray[np.bool_] | None = None, steps: int = 12
) -> float:
    """Return a safe upper bound of the spectrum, by a few Lanczos steps.

    The largest Ritz value plus the norm of the last residual (Zhou, Li 2011); never more than what
    theory gives. A tighter bound makes every filter shorter: it falls with its square root.

    The first vector is random, and larger where the diagonal is: the largest eigenvectors of a graph
    with hubs sit on these, where a random vector of many rows has next to nothing.

    Parameters
    ----------
    operator
        A.
    free : array of bool, shape (n,), optional
        Rows and columns to which A is cut down; all by default.
    steps
        Lanczos steps, each with one product of A with a vector.
    """
    n = operator.rows
    vector = np.random.default_rng(3).standard_normal(n)
    large = np.asarray(operator.diagonal, np.float64) * (1 if free is None else free)
    large = (large / large.max()) ** _HUBS
    vector += np.copysign(math.sqrt(n) / np.linalg.norm(large) * large, vector)
    vector *= 1 if free is None else free
    vector /= np.linalg.norm(vector)
    previous, beta = np.zeros(n), 0.0
    alphas, betas = [], []
    for _ in range(min(steps, n)):
        image = operator.times(vector) - beta * previous
        image *= 1 if free is None else free
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

"""The Laplacians of a weighted graph, and Schroedinger operators on it."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import scipy.sparse
from numpy.typing import DTypeLike, NDArray

from eigenscape.spectrum.kernels import products as kernels
from eigenscape.spectrum.kernels.forms import FORMS
from eigenscape.spectrum.kernels.operator import Array, Operator, RowBlock
from eigenscape.spectrum.kernels.ties import Ties


def laplacian(
    blocks: Sequence[RowBlock],
    degree: NDArray[np.float64],
    kind: str,
    dtype: DTypeLike,
    allocate: Callable[[int, int], Array] | None = None,
    *,
    potential: NDArray[np.float64] | None = None,
    edges: scipy.sparse.csr_array | None = None,
    ties: Ties | None = None,
    unit: float = 1.0,
) -> Operator:
    """Return the Laplacian of a weighted graph, or the Schroedinger operator L + V + L_E.

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
    potential : array, shape (n,), optional
        V >= 0, alpha included: it keeps eigenvectors away from where it is large (Halevy 2011,
        chapter 3). Added to the normalised or unnormalised Laplacian; to the random-walk one as
        D^-1 V.
    edges : csr_array, shape (n, n), optional
        Non-negative symmetric weights E, alpha included, whose own Laplacian is added in the same
        way: it pulls their ends together.
    ties
        Clusters of samples to draw together, alpha included, added in the same way.
    unit
        Of the eigenvalues: the operator is divided by it. See `usual_degree`.
    """
    form, ones = FORMS[kind], np.ones_like(degree)
    normalized = form.normalized
    scale = 1 / np.sqrt(degree) if normalized else np.full_like(degree, 1 / math.sqrt(unit))
    scaled = []
    for number, block in enumerate(blocks):
        size = len(block.data)
        data = allocate(number, size) if allocate else np.empty(size, dtype)
        kernels.scale_entries(block.first, block.indptr, block.indices, block.data, scale, data)
        scaled.append(RowBlock(block.first, block.indptr, block.indices, data))
    turn = scale if form.constant else ones
    diagonal = ones if normalized else degree / unit
    null = np.sqrt(degree) if normalized else ones
    added = np.zeros_like(degree)
    if edges is not None:
        added += np.asarray(edges.sum(axis=1))
    if potential is not None:
        added += potential
    added *= turn**2
    if edges is not None:
        turned = scipy.sparse.diags_array(turn)
        scaled = [_add_rows(block, (turned @ edges @ turned).tocsr()) for block in scaled]
    bound = 2.0 if normalized else 2.0 * float(degree.max()) / unit
    if ties is not None:
        ties = replace(ties, pull=ties.pull * turn[ties.member])
        bound += ties.most
    singular = is_singular(kind, potential, edges, ties)
    if not singular:
        # Low vectors fall off where the potential is large.
        null = null * diagonal / np.maximum(diagonal + added, np.finfo(np.float64).tiny)
        null[diagonal == 0] = 1
    return Operator(
        scaled,
        (diagonal + added).astype(dtype),
        null,
        singular,
        # Weyl: no more than the sum of both; L_E by Gershgorin.
        bound + 2 * float(added.max(initial=0)),
        ties,
        unit,
    )


def usual_degree(kind: str, degree: NDArray[np.float64]) -> float:
    """Return the unit in which the eigenvalues of a Laplacian are sought.

    The normalised ones have eigenvalues from 0 to 2. Those of D - W grow with the weights, so they are
    sought in units of the median degree, to which the tolerance is relative then: the result for c W is
    c times that for W. The largest degree is no such unit, as few hubs would decide on it.

    Parameters
    ----------
    kind
        See `laplacian`.
    degree : array, shape (n,)
        Row sums of the weights; samples without edges do not count.
    """
    if FORMS[kind].normalized:
        return 1.0
    joined = degree[degree > 0]
    return float(np.median(joined)) if len(joined) else 1.0


def is_singular(
    kind: str,
    potential: NDArray[np.float64] | None = None,
    edges: scipy.sparse.csr_array | None = None,
    ties: Ties | None = None,
) -> bool:
    """Whether the operator of `laplacian` has the null vectors of the Laplacian alone."""
    # Constants are null vectors of L_E, so they stay those of the whole only where they are L's.
    joined = ties is not None or (edges is not None and edges.nnz > 0)
    return (potential is None or not potential.any()) and (FORMS[kind].constant or not joined)


def _add_rows(block: RowBlock, edges: scipy.sparse.csr_array) -> RowBlock:
    """Add the rows of `edges` that belong to a block."""
    rows = len(block.indptr) - 1
    own = scipy.sparse.csr_array(
        (block.data, block.indices, block.indptr), shape=(rows, edges.shape[1])
    )
    both = (own + edges[block.first : block.first + rows]).tocsr()
    return RowBlock(
        block.first,
        both.indptr.astype(np.int64),
        both.indices.astype(np.int32),
        both.data.astype(block.data.dtype),
    )

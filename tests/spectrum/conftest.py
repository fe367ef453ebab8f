from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse

from eigenscape.base.files.mapped import attach_memmap, create_memmap
from eigenscape.spectrum.iteration.tasks import Problem
from eigenscape.spectrum.kernels.laplacian import laplacian
from eigenscape.spectrum.kernels.operator import RowBlock
from eigenscape.spectrum.stored import store_operator
from eigenscape.store.arrays import open_array, open_memmap
from eigenscape.store.workspace import Workspace


def row_blocks(W, count: int = 1) -> list[RowBlock]:
    """Cut a symmetric weight matrix into row blocks."""
    W = scipy.sparse.csr_array(W)
    W.sort_indices()
    cuts = np.linspace(0, W.shape[0], count + 1).astype(int)
    pieces = [(first, W[first:last]) for first, last in pairwise(cuts)]
    return [
        RowBlock(
            int(first), part.indptr.astype(np.int64), part.indices.astype(np.int32),
            part.data.astype(np.float32),
        )
        for first, part in pieces
    ]  # fmt: skip


@pytest.fixture
def make_problem(tmp_path: Path) -> Callable[..., Problem]:
    """Store the Laplacian of a weight matrix as the spectrum stage does."""

    def make(
        W, *, kind="unnormalized", dtype=np.float64, component=None, count=1, name="p", **added
    ):
        workspace = Workspace(tmp_path / name)
        directory = workspace.folder("operator")
        paths, mapped, data = [], [], []
        for number, block in enumerate(row_blocks(W, count)):
            three = []
            for part in ("indptr", "indices", "data"):
                values = getattr(block, part)
                path = workspace.create_array(
                    f"{number}/{part}", values.shape, values.dtype, whole=True
                )
                open_array(path)[...] = values
                three.append(path)
            paths.append((three[0], three[1]))
            mapped.append(RowBlock(block.first, *map(open_memmap, three)))

        def allocate(number, size):
            path = directory / f"data-{number}"
            data.append(str(path))
            create_memmap(path, (size,), dtype)
            return attach_memmap(path, (size,), dtype, "r+")

        degree = np.asarray(
            scipy.sparse.csr_array(W).astype(np.float32).astype(np.float64).sum(axis=1)
        )
        operator = laplacian(mapped, degree, kind, dtype, allocate, **added)
        stored = None
        if component is not None:
            stored = workspace.create_array("component", component.shape, np.int32, whole=True)
            open_array(stored)[...] = component
        # Added edges change the structure, so nothing of it is stored yet.
        known = () if added.get("edges") is not None else (paths, data)
        return Problem(store_operator(operator, directory, *known), stored, directory)

    return make

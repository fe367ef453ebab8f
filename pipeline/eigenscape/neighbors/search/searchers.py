"""The search inside a part: leaves, all pairs of each by a product, or NN-descent."""

WIDE = 256
"""Columns from which NN-descent is the faster search of a part.

Measured on parts of 16,384 samples, one core, at the same recall: 40 columns 0.09 s (leaves) against
0.23 s (NN-descent), 100 columns 0.17 s against 0.20 s, 784 columns 1.28 s against 0.62 s."""

MANY = 1_000_000
"""Samples from which that makes up for the 25 s that pynndescent compiles in every process."""

_DESCENT_BYTES, _SPARSE_DESCENT_BYTES = 240 * 2**20, 330 * 2**20
"""Of pynndescent and what it compiles in every process, measured by stage on 160,000 samples: 171 to 237 MiB,
315 to 330 MiB where the samples are sparse."""


def descent_bytes(*, sparse: bool) -> int:
    """Return the memory of pynndescent and of what it compiles."""
    return _SPARSE_DESCENT_BYTES if sparse else _DESCENT_BYTES


def choose_searcher(
    wanted: str, rows: int, columns: int, *, sparse: bool = False
) -> tuple[str, str]:
    """Return which searcher a job uses within its parts, and why.

    Parameters
    ----------
    wanted
        ``neighbors.searcher`` of the job.
    rows, columns
        Samples, and length of a feature vector.
    sparse
        Whether the features are a sparse table.
    """
    if wanted != "auto":
        return wanted, "neighbors.searcher"
    if sparse:
        return "blas", "sparse products"
    if columns < WIDE:
        return "blas", f"the faster one for {columns} columns: fewer than {WIDE}"
    if rows < MANY:
        return "blas", f"fewer than {MANY:,} samples: NN-descent would compile for longer"
    return "pynndescent", f"the faster one for {columns} columns: {WIDE} or more"

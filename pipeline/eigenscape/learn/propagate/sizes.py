"""Sizes that decide how fields are solved, and what that takes; free of kernels, so that plans are quick."""

EXACT_ROWS = 2**17
"""Rows up to which the fit that makes the map is solved in double."""

MOST_ARRAYS = 5
"""Arrays of a group that a method holds at once."""

LABEL_ARRAYS = 7
"""The same of arrays with a row for each labelled sample, which all samples can be; one less where no samples
are identical."""

CYCLE_ARRAYS = 4.7
"""The same of conjugate gradients with multigrid cycles: four, and two for each smaller graph,
of a third of the rows in all."""

_COARSE_BYTES = 8
"""Bytes for each entry of the graph that the smaller ones take while they are made: half of it in double."""


def making_bytes(entries: float, number: int) -> float:
    """Return what the smaller graphs of multigrid cycles take while they are made, with the graph itself.

    Parameters
    ----------
    entries
        Of the graph.
    number
        Bytes of a number of the operator.
    """
    return entries * (4 + number + _COARSE_BYTES)

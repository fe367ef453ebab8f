"""Sizes of graphs that decide how fields are solved; free of kernels, so that plans read them quickly."""

EXACT_ROWS = 2**17
"""Rows up to which the fit that makes the map is solved in double."""

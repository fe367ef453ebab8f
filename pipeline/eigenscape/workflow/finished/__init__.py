"""A finished run in Python: its result, its neighbour lists as a matrix, its picture, its state as HTML."""

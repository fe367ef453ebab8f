"""Neighbour lists to a symmetric weighted graph and its Laplacian."""

"""Laplacian to eigenpairs: Chebyshev-filtered subspace iteration and its oracles."""

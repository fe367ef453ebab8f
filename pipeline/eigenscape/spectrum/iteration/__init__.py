"""Chebyshev-filtered subspace iteration over vectors on disk."""

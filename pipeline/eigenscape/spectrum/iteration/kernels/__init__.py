"""Filters, the Rayleigh-Ritz step and the decisions of the iteration, on arrays in memory."""

"""Neighbours and classes of new samples, on arrays in memory."""

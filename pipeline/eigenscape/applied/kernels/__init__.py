"""Neighbours of new samples, on arrays in memory."""

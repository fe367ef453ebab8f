"""Distances, lists and partitions of arrays in memory."""

"""Cuts of a graph, their costs, and agreement with classes, on arrays in memory."""

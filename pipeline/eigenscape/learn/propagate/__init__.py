"""Classifiers that spread labels over the graph."""

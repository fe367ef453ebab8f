"""Compiled inner loops of the graph."""

"""Clusters of the graph, without labels."""

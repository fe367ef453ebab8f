"""Batches: many scenes over one cluster, a table of what became of each."""

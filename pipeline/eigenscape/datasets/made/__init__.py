"""Data sets that are made: manifolds, scenes, pictures, texts."""

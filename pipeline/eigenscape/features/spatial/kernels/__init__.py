"""Filters on windows of a scene, and morphology of whole images."""

"""Choosing among jobs: what a scene is, which jobs to try on it, and how well each one does."""

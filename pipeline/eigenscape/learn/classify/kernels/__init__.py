"""Classifiers on arrays in memory."""

"""Scores to classes: calibration, smoothing, queries."""

"""Searches over tables on disk: bisection, exhaustive, landmarks."""

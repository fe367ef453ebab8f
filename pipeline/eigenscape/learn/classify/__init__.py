"""Classifiers that read coordinates or neighbours of the labelled samples."""

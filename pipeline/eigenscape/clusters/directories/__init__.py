"""Directories that several machines share."""

"""Readers: one for each kind of file that a scene can be in."""

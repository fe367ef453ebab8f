"""Paths and addresses of scenes: found, allowed, compared with an earlier version."""

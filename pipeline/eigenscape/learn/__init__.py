"""Eigenpairs and labels to classes and scores."""

from eigenscape.base.lazily import lazy_names

__getattr__, __dir__ = lazy_names(__name__, {}, ("classify", "clustering", "decide", "propagate"))

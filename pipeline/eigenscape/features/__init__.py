"""Samples to features: random projection, principal components, noise fractions, standardisation."""

from eigenscape.base.lazily import lazy_names

__getattr__, __dir__ = lazy_names(__name__, {}, ("linear", "method"))

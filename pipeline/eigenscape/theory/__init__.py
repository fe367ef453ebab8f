"""Theorems of the documents as numbers: operators and spectra of samples tend to those of manifolds."""

from eigenscape.base.lazily import lazy_names

__getattr__, __dir__ = lazy_names(__name__, {}, ("lle", "operators", "spectra"))

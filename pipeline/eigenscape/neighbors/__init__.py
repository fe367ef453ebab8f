"""Features to k-nearest-neighbour lists, out of core."""

from eigenscape.base.lazily import lazy_names

__getattr__, __dir__ = lazy_names(__name__, {}, ("method",))

"""Class numbers, confidences and eigenvectors to files that a GIS opens as they are."""

from typing import TYPE_CHECKING

from eigenscape.base.lazily import lazy_names

if TYPE_CHECKING:
    from eigenscape.export.format import Amounts, Format, Product

__all__ = ["Amounts", "Format", "Product"]

_HOME = {"Amounts": "format", "Format": "format", "Product": "format"}

# On first use: whoever imports one of its modules needs no format.
__getattr__, __dir__ = lazy_names(__name__, _HOME)

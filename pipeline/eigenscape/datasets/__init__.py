"""Data sets by name: public ones to fetch, and made ones as plain functions of a seed."""

from typing import TYPE_CHECKING

from eigenscape.base.lazily import lazy_names
from eigenscape.datasets.made.manifolds import (
    arc,
    circle,
    flat_torus,
    helix,
    plane_curve,
    rectangle,
    sphere,
    surface,
    swiss_roll,
    torus,
)
from eigenscape.datasets.made.pictures import bars, urban_like

if TYPE_CHECKING:
    from eigenscape.datasets.tables import Table, load

__all__ = [
    "Table", "arc", "bars", "circle", "flat_torus", "helix", "load", "plane_curve", "rectangle",
    "sphere", "surface", "swiss_roll", "torus", "urban_like",
]  # fmt: skip


# The readers of files import the catalogue, and so this package.
__getattr__, __dir__ = lazy_names(__name__, {"Table": "tables", "load": "tables"})

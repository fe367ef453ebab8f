"""Data sets by name: public ones to fetch, and made ones as plain functions of a seed."""

from typing import TYPE_CHECKING, Any

from eigenscape.datasets.manifolds import (
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
from eigenscape.datasets.pictures import bars, urban_like

if TYPE_CHECKING:
    from eigenscape.datasets.tables import Table, load

__all__ = [
    "Table", "arc", "bars", "circle", "flat_torus", "helix", "load", "plane_curve", "rectangle",
    "sphere", "surface", "swiss_roll", "torus", "urban_like",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    # The readers of files import the catalogue, and so this package.
    if name in ("Table", "load"):
        from eigenscape.datasets import tables

        return getattr(tables, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

"""Words and figures that several sections of a report share."""

from functools import partial

from eigenscape.base import shares
from eigenscape.export.report.source import Source

percent = partial(shares.percent, missing="\u2013")
"""See `eigenscape.base.shares.percent`; a dash for what was not measured."""


def product(source: Source) -> str:
    """Return the word for what a run makes of labels: a map, or of a table a model."""
    return "model" if source.grid.is_table else "map"

"""What a picture of a study shows: its options and its panels."""

from collections.abc import Mapping
from dataclasses import dataclass

from eigenscape.job.study import Coordinates, PictureOptions, StudyOptions
from eigenscape.workflow.finished.shown import Shown

INK = "#1d2329"


@dataclass(frozen=True)
class Panel:
    """One panel of a picture.

    Attributes
    ----------
    shown
        The variant.
    title
        What stands over it.
    coordinates
        Its plane.
    """

    shown: Shown
    title: str
    coordinates: Coordinates


@dataclass(frozen=True)
class Picture:
    """One picture of a study.

    Attributes
    ----------
    study, options
        What to show.
    cells
        Its panels by their rows and columns.
    """

    study: StudyOptions
    options: PictureOptions
    cells: Mapping[tuple[int, int], Panel]

    @property
    def panels(self) -> list[Panel]:
        """Return the panels in the order in which they are drawn."""
        return list(self.cells.values())

    @property
    def title(self) -> str:
        """Return what stands over the picture."""
        return self.options.title or self.study.title

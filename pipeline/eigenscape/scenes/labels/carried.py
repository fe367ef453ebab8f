"""Labels on a map, carried onto the pixels of a scene in sensor geometry."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eigenscape.scenes.geometry.located import Located
from eigenscape.scenes.labels.wrapped import WrappedLabels


@dataclass(frozen=True, eq=False)
class CarriedLabels(WrappedLabels):
    """Labels on a map as a scene's pixels have them; fulfils the `Labels` protocol.

    A pixel gets the class of the cells of the map that show it; of several classes the one of most cells, of
    equally many the lowest.

    Attributes
    ----------
    labels
        On the map.
    located
        Where the pixels of the scene are on it.
    """

    located: Located

    @property
    def notes(self) -> tuple[str, ...]:
        """What a user should know."""
        return ("labels are carried from the map onto the sensor's pixels",)

    def read(self, start: int, stop: int) -> NDArray[np.uint16]:
        """Read the labels of rows start ... stop-1 of the scene; see `Labels.read`.

        Raises
        ------
        SceneError
            A file is damaged, or a value is no class number.
        """
        located = self.located
        votes = []
        for number in range(len(located.lines)):
            rows: tuple[int, int] = (0, 0)
            for window in located.tiles(number, start, stop):
                top, bottom, left, right = window
                if rows != (top, bottom):
                    rows, given = (top, bottom), self.labels.read(top, bottom)
                part = given[:, left:right]
                if not part.any():
                    continue
                pixel = located.tile(number, window)
                wanted = (
                    (part > 0) & (pixel >= start * located.width) & (pixel < stop * located.width)
                )
                votes.append((pixel[wanted] - start * located.width) * 2**16 + part[wanted])
        found = np.zeros((stop - start) * located.width, np.uint16)
        if votes:
            pairs, counts = np.unique(np.concatenate(votes), return_counts=True)
            pixel, number_ = np.divmod(pairs, 2**16)
            # The last one that is written stays: of most cells, then of the lowest number.
            order = np.lexsort((-number_, counts))
            found[pixel[order]] = number_[order]
        return found.reshape(stop - start, located.width)

"""Labels of one file, in the numbers that another file gives to classes of the same names."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eigenscape.scenes.types import Labels, Legend

_NUMBERS = 2**16


@dataclass(frozen=True, eq=False)
class RenumberedLabels:
    """Labels with other class numbers; fulfils the `Labels` protocol.

    Attributes
    ----------
    labels
        As their file numbers them.
    number : array of uint16, shape (65536,)
        Number to give to each number of the file.
    legend
        Names and colours under the new numbers.
    """

    labels: Labels
    number: NDArray[np.uint16]
    legend: Legend

    @property
    def files(self) -> tuple[str, ...]:
        """Every file the labels are read from."""
        return self.labels.files

    def read(self, start: int, stop: int) -> NDArray[np.uint16]:
        """Read the labels of rows start ... stop-1 of the scene; see `Labels.read`."""
        return self.number[self.labels.read(start, stop)]


def renumbered(labels: Labels, known: Mapping[int, str]) -> Labels:
    """Return labels under the numbers of known classes that have the same names.

    The names in a file are numbered in alphabetical order, so a class that one file lacks shifts the numbers
    of those after it. Classes with other names get numbers after the last one. Upper and lower case are the
    same.

    Parameters
    ----------
    labels
        The labels.
    known
        Names of the known classes, by number. Where these or the labels have no names, the numbers stay.
    """
    names = labels.legend.names
    if not names or not known:
        return labels
    numbers = {_same(name): number for number, name in sorted(known.items(), reverse=True)}
    place, following = np.arange(_NUMBERS), max(*known, *names) + 1
    for number, name in names.items():
        if _same(name) not in numbers:
            numbers[_same(name)], following = following, following + 1
        place[number] = numbers[_same(name)]
    if all(place[number] == number for number in names):
        return labels
    legend = Legend(
        {int(place[old]): name for old, name in names.items()},
        {int(place[old]): color for old, color in labels.legend.colors.items()},
    )
    return RenumberedLabels(labels, place.astype(np.uint16), legend)


def names_in_common(one: Mapping[int, str], other: Mapping[int, str]) -> bool:
    """Return whether classes of two legends have a name in common."""
    return not {*map(_same, one.values())}.isdisjoint(map(_same, other.values()))


def _same(name: str) -> str:
    return name.strip().casefold()

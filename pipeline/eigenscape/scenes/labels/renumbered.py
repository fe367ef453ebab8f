"""Labels of one file, in the numbers that another file gives to classes of the same names."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from eigenscape.errors import SceneError
from eigenscape.scenes.labels.classnumbers import MOST_CLASSES
from eigenscape.scenes.labels.flags import flag_word
from eigenscape.scenes.types import Labels, Legend


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
    taken
        Numbers that the file gives to no name, and that a class has which got another number.
    """

    labels: Labels
    number: NDArray[np.uint16]
    legend: Legend
    taken: tuple[int, ...] = ()

    @property
    def files(self) -> tuple[str, ...]:
        """Every file the labels are read from."""
        return self.labels.files

    def read(self, start: int, stop: int) -> NDArray[np.uint16]:
        """Read the labels of rows start ... stop-1 of the scene; see `Labels.read`.

        Raises
        ------
        SceneError
            A class has no name, and its number is that of another class.
        """
        stored = self.labels.read(start, stop)
        if self.taken and (unclear := np.isin(stored, self.taken)).any():
            number = int(stored[unclear][0])
            raise SceneError(
                f"{self.files[0]}: class {number} has no name, and by the names {number} becomes the "
                f"number of {self.legend.names[number]!r}. Give class {number} a name, or another number."
            )
        return self.number[stored]


def renumbered(labels: Labels, known: Mapping[int, str]) -> Labels:
    """Return labels under the numbers of known classes that have the same names.

    The names in a file are numbered in alphabetical order, so a class that one file lacks shifts the numbers
    of those after it. Classes with other names get numbers after the last one, or free ones if there is none.
    Upper and lower case are the same, and so are a blank and the underscore of the CF conventions.

    Parameters
    ----------
    labels
        The labels.
    known
        Names of the known classes, by number. Where these or the labels have no names, the numbers stay. Of
        several with one name the class with the number of the file's is meant.

    Raises
    ------
    SceneError
        Several known classes have the name of a class, and none has its number.
    """
    # A legend may have numbers that no label can have.
    names, known = (
        {number: name for number, name in legend.items() if 0 < number <= MOST_CLASSES}
        for legend in (labels.legend.names, known)
    )
    if not names or not known:
        return labels
    last = max(*known, *names)
    used = {*known, *names}
    free = (
        number
        for number in chain(range(last + 1, MOST_CLASSES + 1), range(1, last))
        if number not in used
    )
    place = np.arange(MOST_CLASSES + 1, dtype=np.uint16)
    exact, folded = _by_name(known, str.strip), _by_name(known, _same)
    added: dict[str, int] = {}
    for number, name in names.items():
        alike = exact.get(name.strip()) or folded.get(_same(name), [])
        if len(alike) > 1 and number not in alike:
            raise SceneError(
                f"{labels.files[0]}: it is unknown which class of the run its class {number} is: the classes "
                f"{', '.join(map(str, alike))} of the run are all called {name!r}. Give each class a name of "
                "its own, or give labels without names, with the numbers of the run."
            )
        if not alike and _same(name) not in added:
            added[_same(name)] = _next(free, labels)
        place[number] = number if number in alike else alike[0] if alike else added[_same(name)]
    if all(place[number] == number for number in names):
        return labels
    taken = {int(place[number]) for number in names}.difference(names)
    legend = Legend(
        {int(place[old]): name for old, name in names.items()},
        {
            int(place[old]): color
            for old, color in labels.legend.colors.items()
            if 0 < old <= MOST_CLASSES and old not in taken
        },
    )
    return RenumberedLabels(labels, place, legend, tuple(sorted(taken)))


def _by_name(known: Mapping[int, str], form: Callable[[str], str]) -> dict[str, list[int]]:
    """Return the numbers of the classes of each name, in one form of the names."""
    found: dict[str, list[int]] = {}
    for number, name in known.items():
        found.setdefault(form(name), []).append(number)
    return found


def _next(free: Iterator[int], labels: Labels) -> int:
    """Return the next free number."""
    if (number := next(free, None)) is None:
        raise SceneError(
            f"{labels.files[0]}: its classes and those of the run are more than {MOST_CLASSES}. "
            "Give labels with fewer classes."
        )
    return number


def names_in_common(one: Mapping[int, str], other: Mapping[int, str]) -> bool:
    """Return whether classes of two legends have a name in common."""
    return not {*map(_same, one.values())}.isdisjoint(map(_same, other.values()))


def _same(name: str) -> str:
    return (flag_word(name) or name.strip()).casefold()

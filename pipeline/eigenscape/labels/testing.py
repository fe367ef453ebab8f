"""Labels of a file of their own that a map is tested on, and those that are left to learn from.

Benchmarks publish disjoint files for training and testing. The test file stays whole: a pixel that both
files label is not learned from. A class that only the test file has cannot be called, so its pixels
are left out of the scores. Both are counted and reported.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenscape.base.blocks import blocks
from eigenscape.errors import InputError
from eigenscape.scenes.describe import notes_of
from eigenscape.scenes.ingest.ingested import IngestedScene
from eigenscape.scenes.labels.sources import numbered_like, numbers_taken
from eigenscape.scenes.types import Grid, Labels

_STRIP_PIXELS = 2**22


@dataclass(frozen=True)
class Disjoint:
    """Labels to learn from and labels to test on; no sample has both.

    Attributes
    ----------
    given, tested : array of uint16, shape (samples,)
        Class numbers to learn from and to test on, 0 for none.
    file
        Of the test labels.
    shared
        Samples that both files label.
    unknown
        Test samples of each class that nothing is learned of.
    names
        Of the classes, as far as they have names.
    of_file
        Notes on the file: of its reader, and what the numbers of test labels without names are taken for, if
        the others have some.
    """

    given: NDArray[np.uint16]
    tested: NDArray[np.uint16]
    file: str
    shared: int
    unknown: Mapping[int, int]
    names: Mapping[int, str] = field(default_factory=dict)
    of_file: tuple[str, ...] = ()

    @property
    def marked(self) -> NDArray[np.uint16]:
        """Class numbers of both, shape (samples,)."""
        return np.where(self.tested > 0, self.tested, self.given)

    def report(self) -> dict[str, Any]:
        """Return what was tested on, as JSON values."""
        numbers, counts = np.unique(self.tested[self.tested > 0], return_counts=True)
        absent = np.setdiff1d(self.given[self.given > 0], [*numbers, *self.unknown])
        return {
            "file": self.file,
            "pixels": int(counts.sum()),
            "per_class": dict(zip(map(str, numbers.tolist()), counts.tolist(), strict=True)),
            "not_learned_from": self.shared,
            "unknown_classes": {str(number): count for number, count in self.unknown.items()},
            "classes_without_test": absent.tolist(),
        }

    def notes(self) -> list[str]:
        """Return what a user should know."""
        found, notes = self.report(), [*self.of_file]
        if self.shared:
            notes.append(
                f"{self.shared} pixels are labelled in the test file too, and are not learned from"
            )
        if self.unknown:
            notes.append(
                f"{sum(self.unknown.values())} test pixels are left out of the scores: nothing is learned "
                f"of their classes {listed(self.unknown, self.names)}"
            )
        if found["classes_without_test"]:
            notes.append(
                f"no test pixel has the class {listed(found['classes_without_test'], self.names)}: "
                "its accuracy is not measured"
            )
        few = [int(number) for number, count in found["per_class"].items() if count <= _FEW]
        if few:
            notes.append(
                f"the class {listed(few, self.names)} has one or two test pixels: its accuracy says little"
            )
        return notes


_FEW = 2


def read_disjoint(
    test: str,
    given: NDArray[np.uint16],
    pixel: NDArray[np.int64],
    scene: IngestedScene,
    marked: NDArray[np.uint16] | None = None,
) -> Disjoint:
    """Read the labels of ``learn.test`` at all samples.

    Parameters
    ----------
    test
        The file, as the job names it.
    given, pixel : array, shape (samples,)
        Label of each sample in ``scene.labels``, 0 for none, and its pixel.
    scene
        Their scene.
    marked : array, shape (samples,), optional
        Of the labels those that a file in ``learn.train`` marks: no others are learned from.

    Raises
    ------
    InputError
        Nothing is left to test on, or fewer than two classes are left to learn from.
    """
    labels = numbered_like(scene.open_test_labels(test), scene.class_names)
    names = {**labels.legend.names, **scene.class_names}
    tested = _read_tested(labels, pixel, scene.grid)
    # What a file marks is part of the labels: where too little is left of these, it is of those.
    learned = None if marked is None else _left_to_learn(test, marked, tested, "learn.train")[0]
    given, shared = _left_to_learn(test, given, tested)
    learned = given if learned is None else learned
    asked = f"learn.test = {test!r}"
    known = np.isin(tested, np.unique(learned))
    numbers, counts = np.unique(tested[(tested > 0) & ~known], return_counts=True)
    unknown = dict(zip(numbers.tolist(), counts.tolist(), strict=True))
    tested = np.where(known, tested, np.uint16(0))
    if not tested.any():
        why = (
            f"its {sum(unknown.values())} pixels have the classes {listed(unknown, names)}, and "
            f"{'scene.labels' if marked is None else 'learn.train'} has "
            f"{listed(np.unique(learned[learned > 0]).tolist(), names)}"
            if unknown
            else "none of its labels lies on a valid pixel of the scene"
        )
        raise InputError(f"{asked}: {why}. Give test labels of the classes that are learned.")
    noted = (f"learn.test: {note}" for note in notes_of(labels))
    of_file = (*noted, *numbers_taken(labels, scene.class_names))
    return Disjoint(given, tested, labels.files[0], shared, unknown, names, of_file)


def read_learnable(
    test: str, given: NDArray[np.uint16], pixel: NDArray[np.int64], scene: IngestedScene
) -> NDArray[np.uint16]:
    """Return the labels that those of ``learn.test`` leave to learn from, shape (samples,).

    A part of a scene need not have any to test on.

    Parameters
    ----------
    test, given, pixel, scene
        See `read_disjoint`.

    Raises
    ------
    InputError
        Fewer than two classes are left to learn from.
    """
    labels = scene.open_test_labels(test)
    return _left_to_learn(test, given, _read_tested(labels, pixel, scene.grid))[0]


def _read_tested(labels: Labels, pixel: NDArray[np.int64], grid: Grid) -> NDArray[np.uint16]:
    row, column = np.divmod(pixel, grid.width)
    return read_at(labels, grid, row, column)


def _left_to_learn(
    test: str, given: NDArray[np.uint16], tested: NDArray[np.uint16], source: str = "scene.labels"
) -> tuple[NDArray[np.uint16], int]:
    """Return the labels of no test sample, and how many samples have both.

    `source` is the key that gives the labels.
    """
    both = (given > 0) & (tested > 0)
    left, shared = np.where(both, np.uint16(0), given), int(both.sum())
    if len(np.unique(left[left > 0])) > 1:
        return left, shared
    if len(np.unique(given[given > 0])) < 2:
        raise InputError(
            f"{source} marks {int((given > 0).sum())} labels of fewer than two classes, and a classifier "
            "needs two or more. Mark labels of other classes too."
        )
    raise InputError(
        f"learn.test = {test!r}: {shared} of the labels of {source} are test labels too and are not learned "
        f"from, which leaves {int((left > 0).sum())} labels of fewer than two classes. Give files that do "
        "not overlap."
    )


def read_at(
    labels: Labels, grid: Grid, row: NDArray[np.int64], column: NDArray[np.int64]
) -> NDArray[np.uint16]:
    """Return the class numbers at some pixels, shape (pixels,), read by strips.

    Parameters
    ----------
    labels, grid
        On the grid.
    row, column : array, shape (pixels,)
        Of the pixels, by rows.
    """
    found = np.zeros(len(row), np.uint16)
    for start, stop in blocks(grid.height, max(1, _STRIP_PIXELS // grid.width)):
        here = slice(*np.searchsorted(row, (start, stop)).tolist())
        if here.stop > here.start:
            found[here] = labels.read(start, stop)[row[here] - start, column[here]]
    return found


def listed(numbers: Iterable[int], names: Mapping[int, str]) -> str:
    """Return classes by their names; a class that only the test file names has a number nobody knows."""
    return ", ".join(names.get(number) or str(number) for number in numbers)

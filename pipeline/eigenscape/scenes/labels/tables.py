"""Labels in a column of a CSV or Parquet file: numbers or names of classes, one for each row."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from eigenscape.errors import SceneError
from eigenscape.scenes.formats.tables.tabularfiles import (
    TabularFile,
    find_label_column,
    open_tabular,
)
from eigenscape.scenes.labels.classnumbers import (
    MISSING,
    MOST_CLASSES,
    is_zero,
    label_out_of_range,
    texts_of_none,
    to_number,
    told_merged,
    told_unnamed,
    told_zero_of,
    unnamed,
)
from eigenscape.scenes.labels.vectorclasses import classify
from eigenscape.scenes.types import Grid, Legend


@dataclass(frozen=True)
class TableLabels:
    """The classes in a column; fulfils the `Labels` protocol.

    Attributes
    ----------
    file, column
        Where they are, and the column's place from 0.
    numbers
        Class number of every distinct value, 0 for those that mean none.
    legend
        Names of the classes, if the values are names.
    notes
        What a user should know.
    """

    file: TabularFile
    column: int
    numbers: Mapping[Any, int]
    legend: Legend
    notes: tuple[str, ...]

    @property
    def files(self) -> tuple[str, ...]:
        """The file."""
        return (self.file.path,)

    def read(self, start: int, stop: int) -> NDArray[np.uint16]:
        """Read the labels of rows start ... stop-1; see `Labels.read`.

        Raises
        ------
        SceneError
            The file is damaged or gone.
        """
        parts = []
        for values in self.file.words(self.column, start, stop):
            place, distinct = pd.factorize(values)
            # Behind the last: what is NaN, whose place is -1.
            known = [*(self.numbers.get(value, 0) for value in distinct.tolist()), 0]
            parts.append(np.array(known, np.uint16)[place])
        return np.concatenate(parts)[:, np.newaxis]


def open_table_labels(
    path: str, field: str | None, scene: Grid, *, marks: bool = False
) -> TableLabels:
    """Open the labels in a table, whose classes are collected in one pass.

    Parameters
    ----------
    path
        A CSV or Parquet file.
    field
        Name of the column; by default the only one, or one with a telling name.
    scene
        Grid of the scene: a table of as many rows.
    marks
        Whether the labels only mark samples: in a file without the column `field` another one may.

    Raises
    ------
    SceneError
        The file has another number of rows or no such column, or its values are no classes.
    """
    file = open_tabular(path)
    if file.rows != scene.height:
        raise SceneError(
            f"{path}: has labels for {file.rows} rows, and the scene is a table of {scene.height} "
            "samples. Give one for each sample, in their order; empty where there is none."
        )
    if marks and all(column.name != field for column in file.columns):
        field = None
    return label_column(file, field)


def label_column(file: TabularFile, field: str | None) -> TableLabels:
    """Return the classes in a column, collected in one pass; see `open_table_labels`."""
    path, column = file.path, find_label_column(file, field)
    name = file.columns[column].name
    counts = _count_values(file, column)
    numbers, legend = _number_classes(sorted(counts), name, path)
    notes: list[str] = []
    if any(number == 0 and is_zero(value) for value, number in numbers.items()):
        notes.append(told_zero_of(f"the column {name!r}"))
    notes += told_merged(numbers, f"the column {name!r}")
    if legend.names and (missing := unnamed(counts) - {""}):
        count = sum(counts[value] for value in missing)
        told = f"{count:,} of {file.rows:,} rows"
        notes.append(told_unnamed(missing, f"the column {name!r}", told))
    return TableLabels(file, column, numbers, legend, tuple(notes))


def _count_values(file: TabularFile, column: int) -> Counter[Any]:
    """Return how many rows hold each value of a column, NaN left out."""
    found: Counter[Any] = Counter()
    for values in file.words(column, 0, file.rows):
        place, distinct = pd.factorize(values)
        counts = np.bincount(place[place >= 0], minlength=len(distinct))
        found.update(dict(zip(distinct.tolist(), counts.tolist(), strict=True)))
        if len(found) > MOST_CLASSES + len(MISSING):
            where = f"{file.path}: column {file.columns[column].name}, number of distinct values"
            raise label_out_of_range(f"more than {MOST_CLASSES}", where)
    return found


def _number_classes(distinct: list[Any], name: str, path: str) -> tuple[dict[Any, int], Legend]:
    """Return the class number of every value, and the names of the classes if they are texts."""
    none = texts_of_none({value for value in distinct if isinstance(value, str)})
    given = [value for value in distinct if value not in none]
    try:
        column = np.array([to_number(value) for value in given])
    except ValueError:
        column = np.array(given, object)
    if not given:
        return {}, Legend()
    numbers, legend = classify({name: column}, name, path)
    return dict(zip(given, numbers.tolist(), strict=True)), legend

"""Scenes in CSV and Parquet files: rows are samples, columns features, chosen by name or number."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenscape.errors import SceneError
from eigenscape.job.options import SceneOptions
from eigenscape.scenes.formats.bandlists import parse_bad_bands
from eigenscape.scenes.formats.rasters.pixels import (
    Calibration,
    calibrate,
    check_some_band,
    fill_samples,
)
from eigenscape.scenes.formats.tables.tabularfiles import (
    TabularFile,
    find_column,
    find_label_column,
    is_tabular,
    open_tabular,
    repeated,
)
from eigenscape.scenes.labels.vectorclasses import LIKELY
from eigenscape.scenes.types import Bands, Grid

_RANGE = re.compile(r"\s*(\d+)\s*(?:-\s*(\d+)\s*)?")
_WINDOW = 2**21
_COUNTED_ROWS = 1000
"""First rows by which a column of row numbers is known."""
_LEAST_COUNTED = 20
"""In fewer rows a feature may rise by 1 by chance."""
_INDEX = "__index_level_"
"""How pandas calls an index without a name that it stores in Parquet files."""


@dataclass(frozen=True)
class TabularScene:
    """Columns of a file as a scene one pixel wide, without georeference.

    Attributes
    ----------
    grid
        As many rows as the file, one column.
    bands
        The columns that were chosen, in the order of the job.
    file
        Where they are.
    columns
        Their places in the file, from 0.
    calibration
        What their numbers mean.
    notes
        What a user should know of the choice.
    row_numbers
        Places among `columns`, from 0, of those that look like row numbers and were not named by the job.
    """

    grid: Grid
    bands: Bands
    file: TabularFile
    columns: tuple[int, ...]
    calibration: Calibration
    notes: tuple[str, ...]
    row_numbers: tuple[int, ...] = ()

    @property
    def files(self) -> tuple[str, ...]:
        """The file."""
        return (self.file.path,)

    @property
    def row_step(self) -> int:
        """Rows that the file is read by, as far as a window of so many is small."""
        return max(1, min(self.file.row_step, _WINDOW // len(self.columns)))

    def read(self, start: int, stop: int) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
        """Read rows start ... stop-1 of the good columns; see `Scene.read`.

        Raises
        ------
        SceneError
            The file is damaged or gone, or a value is missing or infinite.
        """
        assert 0 <= start < stop <= self.grid.height
        good = [self.columns[place] for place in self.bands.good_index]
        values = np.empty((stop - start, 1, len(good)), np.float32)
        valid = np.ones((stop - start, 1), np.bool_)
        row = 0
        for part in self.file.numbers(good, start, stop):
            self._check_finite(part, good, start + row)
            window = slice(row, row + len(part))
            fill_samples(part[:, np.newaxis], self.calibration, values[window], valid[window])
            row += len(part)
        values[~valid] = 0
        return values, valid

    def _check_finite(self, part: NDArray[np.float64], places: Sequence[int], first: int) -> None:
        finite = np.isfinite(part)
        if finite.all():
            return
        row, column = np.argwhere(~finite)[0].tolist()
        missing = np.isnan(part[row, column])
        fault = "has no value" if missing else "is infinite"
        raise _no_feature(self.file, places[column], f"{fault} in row {first + row + 1}")


def open_tabular_scene(
    path: str, options: SceneOptions, resolve: Callable[[str], str]
) -> TabularScene:
    """Open a table; of a Parquet file the footer and first rows are read, a CSV file is read through once.

    Parameters
    ----------
    path
        A file for which `is_tabular` is true.
    options
        ``[scene]`` of the job.
    resolve
        Turns a path of the job into an absolute one.

    Raises
    ------
    SceneError
        The file is damaged, a column is unknown or no feature, or a key has no meaning for it.
    """
    _refuse_keys(path, options)
    file = open_tabular(path)
    own = own_label_column(file, options, resolve)
    columns, notes = _choose(file, options, own)
    for place in columns:
        if file.columns[place].fault:
            raise _no_feature(file, place, file.columns[place].fault)
    bad = parse_bad_bands(options.bad_bands, len(columns))
    good = tuple(place not in bad for place in range(len(columns)))
    check_some_band(good, path)
    kept = sum(good)
    factor = 1.0 if isinstance(options.scale, str) else float(options.scale)
    names = tuple(file.columns[place].name for place in columns)
    counted: tuple[int, ...] = ()
    if options.columns is None:
        counted = _find_row_numbers(file, columns, np.flatnonzero(good))
        notes += tuple(
            f"the column {names[place]!r} rises by 1 from row to row, as row numbers do, and is taken for a "
            f"feature; to leave it out, add {place + 1} to scene.bad_bands"
            for place in counted
        )
    return TabularScene(
        grid=Grid(height=file.rows, width=1),
        bands=Bands(good, names=names if file.named else None),
        file=file,
        columns=columns,
        calibration=calibrate([factor] * kept, [0.0] * kept, [(options.nodata,)] * kept),
        notes=notes,
        row_numbers=counted,
    )


def _find_row_numbers(
    file: TabularFile, columns: Sequence[int], good: NDArray[np.intp]
) -> tuple[int, ...]:
    """Return which of the good columns hold whole numbers that rise by 1 in the first rows."""
    rows = min(file.rows, _COUNTED_ROWS, max(_LEAST_COUNTED, _WINDOW // len(good)))
    if rows < _LEAST_COUNTED:
        return ()
    parts = file.numbers([columns[place] for place in good], 0, rows)
    first = np.concatenate(list(parts))
    rising = (np.diff(first, axis=0) == 1).all(axis=0) & (first[0] == np.rint(first[0]))
    return tuple(good[rising].tolist())


def own_label_column(
    file: TabularFile, options: SceneOptions, resolve: Callable[[str], str]
) -> int | None:
    """Return the place of the scene's own column that holds its labels; None if none does.

    Raises
    ------
    SceneError
        There is no such column.
    """
    if options.labels is None and options.labels_field is None:
        return None
    if not _are_own_labels(options, resolve):
        # Labels of another file; a column of that name is no feature here either.
        names = [column.name for column in file.columns]
        return names.index(options.labels_field) if options.labels_field in names else None
    return find_label_column(file, options.labels_field)


def column_key(options: SceneOptions, resolve: Callable[[str], str]) -> Any:
    """Return what the choice of columns depends on beside ``scene.columns``; None for other scenes."""
    if not is_tabular(options.path):
        return None
    return [options.labels_field, _are_own_labels(options, resolve)]


def _are_own_labels(options: SceneOptions, resolve: Callable[[str], str]) -> bool:
    if options.labels is None:
        return options.labels_field is not None
    return resolve(options.labels) == resolve(str(options.path))


def _choose(
    file: TabularFile, options: SceneOptions, labels: int | None
) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Return the places of the features in the file, and what to say about the choice."""
    if options.columns is not None:
        known = {column.name: place for place, column in enumerate(file.columns)}
        chosen = [place for entry in options.columns for place in _places(file, known, entry)]
        if twice := repeated(chosen):
            name = file.columns[twice[0]].name
            raise SceneError(f"scene.columns: names the column {name!r} twice. Leave one out.")
        if labels in chosen:
            assert labels is not None
            raise SceneError(
                f"scene.columns: the column {file.columns[labels].name!r} holds the labels "
                "(scene.labels_field), and no feature may. Leave it out."
            )
        return tuple(chosen), ()
    chosen, left = [], []
    for place, column in enumerate(file.columns):
        if place == labels:
            continue
        if not column.numbers:
            left.append(f"{column.name} ({column.kind})")
        elif not column.name or column.name.startswith(_INDEX):
            left.append(f"column {place + 1} (no name, an index)")
        elif column.index:
            left.append(f"{column.name} (an index)")
        else:
            chosen.append(place)
    if not chosen:
        raise SceneError(
            f"{file.path}: no column holds numbers{' beside the labels' if labels is not None else ''}. "
            "Numbers have a point before their decimals; values are separated by commas, "
            "semicolons or tabs."
        )
    notes = [f"columns left out: {', '.join(left)}"] if left else []
    if labels is None:
        likely = [n for place in chosen if (n := file.columns[place].name).lower() in LIKELY]
        notes += [
            f"the column {name!r} is taken for a feature; if it holds the classes, set "
            f'scene.labels_field = "{name}"'
            for name in likely
        ]
    return tuple(chosen), tuple(notes)


def _places(file: TabularFile, known: Mapping[str, int], entry: int | str) -> list[int]:
    """Return the places of what an entry of ``scene.columns`` names, given those of all names."""
    if isinstance(entry, str) and entry in known:
        return [known[entry]]
    match = _RANGE.fullmatch(str(entry))
    if match is None:
        return [find_column(file, str(entry), "scene.columns")]
    first, last = int(match[1]), int(match[2] or match[1])
    if not 1 <= first <= last <= len(file.columns):
        raise SceneError(
            f"scene.columns: {entry!r} is not a range of columns of {file.path}, which are numbered "
            f"1 to {len(file.columns)}. Give their numbers or names."
        )
    return list(range(first - 1, last))


def _no_feature(file: TabularFile, place: int, fault: str) -> SceneError:
    return SceneError(
        f"{file.path}: the column {file.columns[place].name!r} {fault} (rows counted from 1 below "
        "the header). A feature needs a finite number in every row: fill such rows in or leave them "
        "out of the file, or name the other columns in scene.columns."
    )


def _refuse_keys(path: str, options: SceneOptions) -> None:
    if options.variable is not None:
        raise SceneError(
            f"scene.variable = {options.variable!r}: names an array in a .mat, .npz or zarr file, and "
            f"{path} is a table. Choose its columns with scene.columns."
        )
    if options.layout == "image":
        raise SceneError(
            f'scene.layout = "image": the rows of {path} are samples, not rows of pixels. Leave the '
            "key out, or write the image as an array (.npy)."
        )

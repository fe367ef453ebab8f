"""Tables of many jobs, as CSV and Parquet: one row for each of them, or for each of their protocols."""

import csv
import json
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from eigenscape.base.files.cells import from_cell, separator_of, to_cell
from eigenscape.base.files.whole import explain_write_errors, written_whole

Row = dict[str, Any]


def columns_of(rows: Sequence[Row]) -> list[str]:
    """Return the columns of some rows, in the order of their first appearance."""
    return list(dict.fromkeys(name for row in rows for name in row))


def write_table(directory: Path, rows: Sequence[Row]) -> dict[str, Path]:
    """Write ``table.csv`` and, where pyarrow is installed, ``table.parquet``.

    Returns
    -------
    dict
        The files written, by format.
    """
    files = {"csv": directory / "table.csv"}
    with explain_write_errors(directory):
        write_csv(files["csv"], rows, columns_of(rows))
        if find_spec("pyarrow") is not None:
            files["parquet"] = directory / "table.parquet"
            with written_whole(files["parquet"]) as path:
                _write_parquet(path, rows)
        else:
            (directory / "table.parquet").unlink(missing_ok=True)  # an older table's
    return files


def write_csv(path: Path, rows: Sequence[Row], columns: Sequence[str]) -> None:
    """Write some rows as a CSV file that is either the old one or the new one."""
    with written_whole(path) as temporary, temporary.open("w", encoding="utf-8", newline="") as out:
        writer = csv.writer(out, lineterminator="\n")
        # Without quotes, a line that begins with # would be read as a comment.
        quoting = csv.writer(out, lineterminator="\n", quoting=csv.QUOTE_ALL)
        writer.writerow(columns)
        for row in rows:
            cells = [to_cell(text_of(row.get(name))) for name in columns]
            is_comment = cells and cells[0].startswith("#")
            (quoting if is_comment else writer).writerow(cells)


def read_table(path: Path) -> list[dict[str, str]]:
    """Return the rows of a CSV file as texts, those that are blank left out; see `separator_of`."""
    # Spreadsheets begin a file in UTF-8 with a byte order mark.
    with path.open(encoding="utf-8-sig", newline="") as stream:
        lines = [line for line in stream if not line.startswith("#")]
        header = lines[0] if lines else ""
        return [
            {
                name: from_cell(value.strip())
                for name, value in row.items()
                if name and value and value.strip()
            }
            for row in csv.DictReader(lines, delimiter=separator_of(path, header))
        ]


def text_of(value: Any) -> str:
    """Return a value as the table says it: the same for 5, 5.0 and "5".

    Bytes of a file name that are not UTF-8 are written as escapes.

    Examples
    --------
    >>> text_of(5.0), text_of("auto"), text_of(None), text_of((1, 2)), text_of(0.1)
    ('5', 'auto', '', '[1, 2]', '0.1')
    """
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode("utf-8")
    return json.dumps(value)


def number_of(text: str | None) -> float | None:
    """Return a text of the table as a number, None if it is none."""
    try:
        return None if text is None else float(text)
    except ValueError:
        return None


def _write_parquet(path: Path, rows: Sequence[Row]) -> None:
    import pyarrow
    from pyarrow import parquet

    data = {}
    for name in columns_of(rows):
        values = [row.get(name) for row in rows]
        kinds = {type(value) for value in values if value is not None}
        # A column of Parquet has one type: 10 beside "auto" becomes "10".
        if not (kinds <= {int, float} or kinds in ({str}, {bool})):
            values = [None if value is None else text_of(value) for value in values]
        elif kinds == {int, float}:
            values = [None if value is None else float(value) for value in values]
        data[name] = values
    parquet.write_table(pyarrow.table(data), path)

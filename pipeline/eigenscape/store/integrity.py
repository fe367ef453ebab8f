"""Check of the files of finished stages."""

import os
from collections.abc import Iterator
from pathlib import Path

from eigenscape.base.files.sums import damaged
from eigenscape.store.manifest import Record


def find_damage(path: Path, record: Record) -> list[str]:
    """Read all files of a finished stage; return a text for each that is wrong.

    Parameters
    ----------
    path
        Run directory.
    record
        Of the stage. One without checksums is not looked at.

    Returns
    -------
    list of str
        Each begins with the file, by its path in the run directory.
    """
    if not record.sums:
        return []
    found = [
        f"{name} is damaged" if (path / name).exists() else f"{name} is missing"
        for name in damaged(path, {name: [total] for name, total in record.sums.items()})
    ]
    # A chunk of zeros has no file, and one that turns up there would be read.
    further = {name for array in record.arrays for name in _files(path, f"store.zarr/{array}")}
    return found + [
        f"{name} does not belong there" for name in sorted(further - record.sums.keys())
    ]


def _files(path: Path, folder: str) -> Iterator[str]:
    """Yield the files below a folder; hidden ones, which file systems make, are left out."""
    for place, folders, files in os.walk(path / folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        here = Path(place).relative_to(path).as_posix()
        yield from (f"{here}/{name}" for name in files if not name.startswith("."))

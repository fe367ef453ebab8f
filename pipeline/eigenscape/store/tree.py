"""The tree of committed arrays below ``store.zarr/``: groups, links, and leftovers."""

import json
import os
import shutil
from collections.abc import Collection
from pathlib import Path
from typing import Any

from eigenscape.base.files.whole import write_json
from eigenscape.base.process.namedpoints import reached

_GROUP: dict[str, Any] = {"zarr_format": 3, "node_type": "group", "attributes": {}}


def make_groups(root: Path, arrays: Collection[str]) -> None:
    """Write the metadata of the groups that arrays are in, unless it is there and whole."""
    for path in broken_groups(root, arrays):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_json(path, _GROUP)


def broken_groups(root: Path, arrays: Collection[str]) -> list[Path]:
    """Return the files with the metadata of groups that are not there or not whole."""
    groups = {str(parent) for name in arrays for parent in Path(name).parents}
    return [root / name / "zarr.json" for name in sorted(groups) if not _is_group(root / name)]


def _is_group(path: Path) -> bool:
    """Whether a directory of a store is marked as a group."""
    try:
        return bool(json.loads((path / "zarr.json").read_text(encoding="utf-8")) == _GROUP)
    except (OSError, ValueError):
        return False


def remove_others(root: Path, arrays: Collection[str]) -> None:
    """Remove the directories that are neither arrays of a list nor groups of them."""
    groups = {str(parent) for name in arrays for parent in Path(name).parents}
    for place, folders, _ in os.walk(root):
        for folder in list(folders):
            name = (Path(place) / folder).relative_to(root).as_posix()
            if name not in groups:
                folders.remove(folder)
                if name not in arrays:
                    shutil.rmtree(Path(place) / folder)


def link_array(source: Path, target: Path) -> None:
    """Share an array by hard links; its metadata last, because with it the array looks complete."""
    shutil.rmtree(target, ignore_errors=True)
    metadata = shutil.ignore_patterns("zarr.json")
    shutil.copytree(source, target, copy_function=os.link, ignore=metadata)
    reached("array linked", target)
    os.link(source / "zarr.json", target / "zarr.json")

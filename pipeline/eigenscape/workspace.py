"""Where one stage works until it commits: its arrays, files, scratch and journal of blocks."""

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import zarr
from numpy.typing import DTypeLike

from eigenscape.arrays import chunk_rows


class Workspace:
    """Where one stage works until it commits.

    Attributes
    ----------
    path
        Its directory; everything else in it is scratch that vanishes at the commit.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        for part in ("store", "files", "scratch"):
            (path / part).mkdir(parents=True, exist_ok=True)
        self._journal = path / "journal.jsonl"

    def create_array(
        self,
        name: str,
        shape: Sequence[int],
        dtype: DTypeLike,
        *,
        whole: bool = False,
        **attributes: Any,
    ) -> str:
        """Create the zarr array `name` unless an earlier attempt did; return its path.

        Parameters
        ----------
        name
            Path in the store, for example ``"features/values"``.
        shape, dtype
            As in NumPy; the first axis is the one that is chunked.
        whole
            Store it as one uncompressed chunk, which `open_memmap` can map.
        attributes
            Attributes of the array; ``dims`` names its axes.
        """
        path = self.path / "store" / name
        if not (path / "zarr.json").exists():
            width = int(np.prod(shape[1:], dtype=np.int64)) * np.dtype(dtype).itemsize
            rows = shape[0] if whole else chunk_rows(shape[0], width)
            chunks = (max(1, min(rows, shape[0])), *(max(1, size) for size in shape[1:]))
            dims = attributes.pop("dims", None)
            zarr.create_array(
                store=str(path),
                shape=tuple(shape),
                dtype=np.dtype(dtype),
                chunks=chunks,
                compressors=None,
                dimension_names=dims,
                attributes=attributes,
                fill_value=0,
                overwrite=True,
            )
        return str(path)

    def folder(self, name: str) -> Path:
        """Return a scratch folder, made if need be."""
        path = self.path / "scratch" / name
        path.mkdir(parents=True, exist_ok=True)
        return path

    def file(self, name: str) -> Path:
        """Return the path of a file that the commit moves to ``outputs/``."""
        return self.path / "files" / name

    def finished_blocks(self) -> dict[str, Any]:
        """Return the results of the blocks that earlier attempts finished, by block name."""
        if not self._journal.exists():
            return {}
        blocks = {}
        for line in self._journal.read_text(encoding="utf-8").splitlines():
            try:
                entry = json.loads(line)
            except json.JSONDecodeError:
                continue  # the last line of a killed process
            blocks[entry["block"]] = entry["result"]
        return blocks

    def finish_block(self, block: str, result: Any) -> None:
        """Note that a block is finished, so that no later attempt computes it again."""
        with self._journal.open("a", encoding="utf-8") as stream:
            # A line begun by a killed process is ended first, or this entry would be lost with it.
            stream.write("\n" if stream.tell() and not self._ends_line() else "")
            stream.write(json.dumps({"block": block, "result": result}) + "\n")

    def _ends_line(self) -> bool:
        with self._journal.open("rb") as stream:
            stream.seek(-1, os.SEEK_END)
            return stream.read(1) == b"\n"

    def arrays(self) -> tuple[str, ...]:
        """Return the names of the arrays made so far."""
        root = self.path / "store"
        return tuple(sorted(str(path.parent.relative_to(root)) for path in root.rglob("zarr.json")))

    def files(self) -> tuple[str, ...]:
        """Return the names of the output files made so far, not those that a killed writer began."""
        names = (path.name for path in (self.path / "files").iterdir())
        return tuple(sorted(name for name in names if not name.startswith(".")))

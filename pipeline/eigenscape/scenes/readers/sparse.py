"""Sparse matrices of SciPy in .npz files: tables of samples."""

from typing import ClassVar

from eigenscape.job.options import SceneOptions
from eigenscape.scenes.reading import Reader, Resolve
from eigenscape.scenes.types import Scene


class SparseReader(Reader):
    """Sparse tables."""

    name: ClassVar[str] = "sparse"
    priority: ClassVar[int] = 30

    def recognises(self, path: str) -> bool:
        """Return whether a file is an .npz file with the parts of a sparse matrix."""
        from eigenscape.scenes.formats.arrays.arrayfiles import array_format

        if array_format(path) != "npz":
            return False
        from eigenscape.scenes.formats.tables.sparse import is_sparse

        return is_sparse(path)

    def open(self, path: str, options: SceneOptions, resolve: Resolve) -> Scene:
        """Open a sparse table by its headers."""
        from eigenscape.scenes.formats.tables.sparse import open_sparse_scene

        return open_sparse_scene(path, options)

"""Arrays in .npy, .npz and .mat files and in zarr stores: cubes, or tables of samples."""

from typing import ClassVar

from eigenscape.job.options import SceneOptions
from eigenscape.scenes.reading import Reader, Resolve
from eigenscape.scenes.types import Scene


class ArrayReader(Reader):
    """Arrays without a georeference."""

    name: ClassVar[str] = "arrays"
    priority: ClassVar[int] = 20

    def recognises(self, path: str) -> bool:
        """Return whether a path ends as array files do, or is a zarr store."""
        from eigenscape.scenes.formats.arrays.arrayfiles import array_format

        return array_format(path) is not None

    def open(self, path: str, options: SceneOptions, resolve: Resolve) -> Scene:
        """Open an array by its header."""
        from eigenscape.scenes.formats.arrays.arrayscenes import open_array_scene

        return open_array_scene(path, options)

    def variable(self, path: str, options: SceneOptions) -> str | None:
        """Return the name of the array, given or chosen."""
        from eigenscape.scenes.formats.arrays.cubes import find_cube

        return find_cube(path, options)[0].variable

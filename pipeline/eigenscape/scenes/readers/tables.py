"""CSV and Parquet files: tables of samples with named columns."""

from typing import ClassVar

from eigenscape.errors import SceneError
from eigenscape.job.options import SceneOptions
from eigenscape.scenes.reading import Reader, Resolve
from eigenscape.scenes.types import Scene


class TableReader(Reader):
    """Tables with named columns."""

    name: ClassVar[str] = "tables"
    priority: ClassVar[int] = 40
    columns: ClassVar[bool] = True

    def recognises(self, path: str) -> bool:
        """Return whether a path ends as tables do.

        Raises
        ------
        SceneError
            It is packed.
        """
        from eigenscape.scenes.formats.tables.tabularfiles import is_tabular

        if path.lower().endswith(".gz") and is_tabular(path[:-3]):
            raise SceneError(
                f"{path}: is packed as a whole, so no part of it can be read. Unpack it: gunzip."
            )
        return is_tabular(path)

    def open(self, path: str, options: SceneOptions, resolve: Resolve) -> Scene:
        """Open a table by the types of its columns."""
        from eigenscape.scenes.formats.tables.tabular import open_tabular_scene

        return open_tabular_scene(path, options, resolve)

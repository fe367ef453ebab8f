"""Rasters that GDAL opens: whatever no other reader takes, of the formats in `scenes.files.outside`."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from eigenscape.errors import SceneError
from eigenscape.job.options import SceneOptions
from eigenscape.scenes.files.places import check_exists
from eigenscape.scenes.reading import Reader, Resolve
from eigenscape.scenes.types import Scene

if TYPE_CHECKING:
    from eigenscape.scenes.formats.rasters.raster import RasterScene


class RasterReader(Reader):
    """Rasters, or one of several in a NetCDF or HDF file."""

    name: ClassVar[str] = "rasters"
    priority: ClassVar[int] = 0

    def recognises(self, path: str) -> bool:
        """Return true: GDAL says what it can open."""
        return True

    def open(self, path: str, options: SceneOptions, resolve: Resolve) -> Scene:
        """Open a raster by its header."""
        from eigenscape.scenes.formats.rasters.containers import describe_layer, find_layer

        _refuse_table(path, options)
        check_exists(path)
        layer = find_layer(path, options.variable)
        if layer is None:
            return open_rasters([path], options)
        note = describe_layer(path, layer, chosen=options.variable is None)
        unnamed = options.model_copy(update={"variable": None})
        scene = open_rasters([layer.address], unnamed)
        return replace(scene, notes=(note, *scene.notes))

    def variable(self, path: str, options: SceneOptions) -> str | None:
        """Return the name of the raster in a file of several."""
        from eigenscape.scenes.formats.rasters.containers import SUFFIXES, find_layer

        layer = find_layer(path, None) if Path(path).suffix.lower() in SUFFIXES else None
        return layer.name if layer else None


def open_rasters(paths: Sequence[str], options: SceneOptions) -> "RasterScene":
    """Open rasters of which each is a band, or the only one.

    Raises
    ------
    SceneError
        They cannot be used, or differ in their grids; or a key has no meaning for them.
    """
    from eigenscape.scenes.formats.rasters.raster import open_raster_scene

    _refuse_table(paths[0], options)
    if options.variable is not None:
        raise SceneError(
            f"{paths[0]}: scene.variable = {options.variable!r} names an array in a .mat, .npz or "
            "zarr file or one of several rasters, and this is one raster. Leave the key out."
        )
    return open_raster_scene(
        paths,
        bad_bands=options.bad_bands,
        scale=options.scale,
        nodata=options.nodata,
        grid=options.grid,
    )


def _refuse_table(path: str, options: SceneOptions) -> None:
    if options.layout == "table":
        raise SceneError(
            f'{path}: scene.layout = "table" is for arrays, and this is a raster, an image. Leave '
            "the key out."
        )

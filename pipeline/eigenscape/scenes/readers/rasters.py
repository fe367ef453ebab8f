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
    from eigenscape.scenes.formats.named.lists import BandLists
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
        from eigenscape.scenes.files.outside import source_file
        from eigenscape.scenes.formats.named.arrays import stored_axes
        from eigenscape.scenes.formats.named.lists import band_lists
        from eigenscape.scenes.formats.named.netcdf import netcdf_arrays
        from eigenscape.scenes.formats.rasters.containers import (
            Layer,
            describe_layer,
            find_layer,
            only_array,
            told_others,
        )
        from eigenscape.scenes.sensors.named import open_named

        _refuse_table(path, options)
        check_exists(path)
        file = source_file(path)
        known = netcdf_arrays(file)
        layer = find_layer(path, options.variable, known)
        array = only_array(path, known) if layer is None else known.get(layer.name)
        named = layer is not None or (array is not None and options.variable == array.name)
        chosen = options.model_copy(update={"variable": None}) if named else options
        lists, others = None, ""
        if layer is not None and options.variable is None:
            others = told_others(path, layer, known)
        if array is not None and chosen.variable is None:
            axes = stored_axes(array, known)
            if axes is not None:
                address = path if layer is None else layer.address
                return open_named(file, address, array, known, axes, chosen, others)
            lists = band_lists(array, known)
        if layer is None and array is not None and len(array.shape) > 2:
            # Nothing says the order of its axes, so that the note must.
            layer = Layer(array.name, path, array.shape)
        if layer is None:
            return open_rasters([path], chosen, lists)
        note = describe_layer(file, layer) + others
        scene = open_rasters([layer.address], chosen, lists)
        return replace(scene, notes=(note, *scene.notes))

    def variable(self, path: str, options: SceneOptions) -> str | None:
        """Return the name of the raster in a file of several."""
        from eigenscape.scenes.formats.named.netcdf import netcdf_arrays
        from eigenscape.scenes.formats.rasters.containers import SUFFIXES, find_layer

        if Path(path).suffix.lower() not in SUFFIXES:
            return None
        layer = find_layer(path, None, netcdf_arrays(path))
        return layer.name if layer else None


def open_rasters(
    paths: Sequence[str], options: SceneOptions, lists: "BandLists | None" = None
) -> "RasterScene":
    """Open rasters of which each is a band, or the only one.

    Parameters
    ----------
    paths
        The rasters.
    options
        ``[scene]`` of the job.
    lists
        What other arrays of the file of the only one say of its bands.

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
        lists=lists,
    )


def _refuse_table(path: str, options: SceneOptions) -> None:
    if options.layout == "table":
        raise SceneError(
            f'{path}: scene.layout = "table" is for arrays, and this is a raster, an image. Leave '
            "the key out."
        )

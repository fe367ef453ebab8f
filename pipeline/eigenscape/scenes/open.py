"""From ``[scene]`` of a job to a `Scene`: which reader takes it."""

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from eigenscape.errors import SceneError, did_you_mean
from eigenscape.job.options import SceneOptions
from eigenscape.scenes.outside import is_address, is_contained
from eigenscape.scenes.places import check_exists
from eigenscape.scenes.registry import is_registered, registered, registered_names
from eigenscape.scenes.types import Scene

Resolve = Callable[[str], str]

MOST_PIXELS = 2**36
"""Pixels of a scene: their blocks are listed in memory."""


def open_scene(options: SceneOptions, resolve: Resolve) -> Scene:
    """Open a scene; only its metadata is read.

    Parameters
    ----------
    options
        ``[scene]`` of the job.
    resolve
        Turns a path of the job into an absolute one; URLs stay as they are.

    Returns
    -------
    Scene
        Small and picklable: tasks read windows of rows from it.

    Raises
    ------
    SceneError
        The source, its mask or its bands cannot be used.
    """
    scene = _open_unmasked(options, resolve)
    if scene.grid.size > MOST_PIXELS:
        raise SceneError(
            f"{scene.files[0]}: has {scene.grid.height:,} x {scene.grid.width:,} pixels (rows x columns); "
            f"{MOST_PIXELS:,} in all can be worked on. Check the size in its header, or give a part of it."
        )
    if options.mask is not None:
        from eigenscape.scenes.masks import mask_scene

        scene = mask_scene(scene, resolve(options.mask))
    path = options.path
    named = registered(path) if isinstance(path, str) and is_registered(path) else None
    if options.samples is not None and not (named and named.drawn):
        from eigenscape.scenes.subset import draw_samples

        return draw_samples(scene, options.samples, options.seed or 0)
    if options.samples is None and options.seed is not None and not (named and named.seeded):
        raise SceneError(
            f"scene.seed = {options.seed}: {scene.files[0]} is not made with a seed. Leave the key "
            "out, or draw a random subset with scene.samples."
        )
    return scene


def _open_unmasked(options: SceneOptions, resolve: Resolve) -> Scene:
    given = options.path
    if isinstance(given, str) and is_registered(given):
        located = registered(given).locate(options.samples, options.seed)
        options = options.model_copy(update={"variable": options.variable or located.variable})
        return _open_files(list(located.paths), options, resolve)
    if not isinstance(given, str):
        if not given:
            raise SceneError("scene.path: the list is empty. Give at least one file.")
        for name in given:
            _check_known(name, resolve(name))
        return _open_rasters([resolve(name) for name in given], options)
    path = resolve(given)
    _check_known(given, path)
    return _open_files([path], options, resolve)


def _open_files(paths: list[str], options: SceneOptions, resolve: Resolve) -> Scene:
    if len(paths) == 1:
        for takes, reader in _READERS:
            if takes(paths[0]):
                return reader(paths[0], options, resolve)
    return _open_rasters(paths, options)


def _takes_tables(path: str) -> bool:
    from eigenscape.scenes.readers.tabularfiles import is_tabular

    if path.lower().endswith(".gz") and is_tabular(path[:-3]):
        raise SceneError(
            f"{path}: is packed as a whole, so no part of it can be read. Unpack it: gunzip."
        )
    return is_tabular(path)


def _open_table(path: str, options: SceneOptions, resolve: Resolve) -> Scene:
    from eigenscape.scenes.readers.tabular import open_tabular_scene

    return open_tabular_scene(path, options, resolve)


def _takes_sparse(path: str) -> bool:
    from eigenscape.scenes.readers.arrays import array_format
    from eigenscape.scenes.readers.sparse import is_sparse

    return array_format(path) == "npz" and is_sparse(path)


def _open_sparse(path: str, options: SceneOptions, resolve: Resolve) -> Scene:
    from eigenscape.scenes.readers.sparse import open_sparse_scene

    _refuse_columns(path, options)
    return open_sparse_scene(path, options)


def _takes_arrays(path: str) -> bool:
    from eigenscape.scenes.readers.arrays import array_format

    return array_format(path) is not None


def _open_array(path: str, options: SceneOptions, resolve: Resolve) -> Scene:
    from eigenscape.scenes.readers.arrayscenes import open_array_scene

    _refuse_columns(path, options)
    return open_array_scene(path, options)


def chosen_variable(options: SceneOptions, resolve: Resolve) -> str | None:
    """Return the name of the array that a scene is taken from, given or chosen; None where none has one.

    Raises
    ------
    SceneError
        The file is damaged, or several arrays could be meant.
    """
    path = options.path
    if options.variable is not None or not isinstance(path, str) or is_registered(path):
        return options.variable
    path = resolve(path)
    if _takes_tables(path) or _takes_sparse(path):
        return None
    if not _takes_arrays(path):
        from eigenscape.scenes.readers.containers import SUFFIXES, find_layer

        layer = find_layer(path, None) if Path(path).suffix.lower() in SUFFIXES else None
        return layer.name if layer else None
    from eigenscape.scenes.readers.cubes import find_cube

    return find_cube(path, options)[0].variable


_READERS: tuple[
    tuple[Callable[[str], bool], Callable[[str, SceneOptions, Resolve], Scene]], ...
] = (
    (_takes_tables, _open_table),
    (_takes_sparse, _open_sparse),
    (_takes_arrays, _open_array),
)
"""Whether a reader takes a file, and the reader; the first that does. GDAL opens all others."""


def _refuse_columns(path: str, options: SceneOptions) -> None:
    if options.columns is not None:
        raise SceneError(
            f"scene.columns: chooses columns of a CSV or Parquet file, and {path} is none. Leave the "
            "key out; scene.bad_bands leaves out bands and columns."
        )


def _open_rasters(paths: list[str], options: SceneOptions) -> Scene:
    from eigenscape.scenes.readers.raster import open_raster_scene

    _refuse_columns(paths[0], options)
    if options.layout == "table":
        raise SceneError(
            f'{paths[0]}: scene.layout = "table" is for arrays, and this is a raster, an image. Leave '
            "the key out."
        )
    if len(paths) == 1:
        from eigenscape.scenes.readers.containers import describe_layer, find_layer

        check_exists(paths[0])
        layer = find_layer(paths[0], options.variable)
        if layer is not None:
            note = describe_layer(paths[0], layer, chosen=options.variable is None)
            return replace(
                open_raster_scene(
                    [layer.address], bad_bands=options.bad_bands, scale=options.scale,
                    nodata=options.nodata,
                ),
                notes=(note,),
            )  # fmt: skip
    if options.variable is not None:
        raise SceneError(
            f"{paths[0]}: scene.variable = {options.variable!r} names an array in a .mat, .npz or "
            "zarr file or one of several rasters, and this is one raster. Leave the key out."
        )
    return open_raster_scene(
        paths, bad_bands=options.bad_bands, scale=options.scale, nodata=options.nodata
    )


def _check_known(given: str, path: str) -> None:
    if is_contained(path) or is_address(path) or os.path.lexists(path):
        check_exists(path)
        return
    directory = Path(path).parent
    siblings = [item.name for item in directory.iterdir()] if directory.is_dir() else []
    # A bare word is meant as a data set more often than a path is.
    names = registered_names() if Path(given).name == given else ()
    question = did_you_mean(Path(given).name, [*names, *siblings], cutoff=0.5)
    raise SceneError(
        f"scene.path = {given!r}: no such file ({path}), and no registered data set.{question} "
        "Relative paths are relative to the job file; registered are: "
        f"{', '.join(registered_names())}."
    )

"""From ``[scene]`` of a job to a `Scene`: which reader takes it."""

import os
from collections.abc import Callable
from pathlib import Path

from eigenscape.errors import SceneError, did_you_mean
from eigenscape.options import SceneOptions
from eigenscape.scenes.registry import is_registered, registered, registered_names
from eigenscape.scenes.types import Scene


def open_scene(options: SceneOptions, resolve: Callable[[str], str]) -> Scene:
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
    if options.mask is not None:
        from eigenscape.scenes.masks import mask_scene

        scene = mask_scene(scene, resolve(options.mask))
    path = options.path
    named = registered(path).data_set if isinstance(path, str) and is_registered(path) else None
    if options.samples is not None and (named is None or named.samples is None):
        from eigenscape.scenes.subset import draw_samples

        return draw_samples(scene, options.samples, options.seed or 0)
    if options.samples is None and options.seed is not None and not (named and named.seeded):
        raise SceneError(
            f"scene.seed = {options.seed}: {scene.files[0]} is not made with a seed. Leave the key "
            "out, or draw a random subset with scene.samples."
        )
    return scene


def _open_unmasked(options: SceneOptions, resolve: Callable[[str], str]) -> Scene:
    given = options.path
    if isinstance(given, str) and is_registered(given):
        located = registered(given).locate(options.samples, options.seed)
        options = options.model_copy(update={"variable": options.variable or located.variable})
        return _open_files(list(located.paths), options)
    if not isinstance(given, str):
        if not given:
            raise SceneError("scene.path: the list is empty. Give at least one file.")
        for name in given:
            _check_known(name, resolve(name))
        return _open_rasters([resolve(name) for name in given], options)
    path = resolve(given)
    _check_known(given, path)
    return _open_files([path], options)


def _open_files(paths: list[str], options: SceneOptions) -> Scene:
    from eigenscape.scenes.arrays import array_format

    if len(paths) == 1 and array_format(paths[0]) is not None:
        return _open_array(paths[0], options)
    return _open_rasters(paths, options)


def _open_array(path: str, options: SceneOptions) -> Scene:
    from eigenscape.scenes.arrays import array_format
    from eigenscape.scenes.arrayscenes import open_array_scene
    from eigenscape.scenes.sparse import is_sparse, open_sparse_scene

    if array_format(path) == "npz" and is_sparse(path):
        return open_sparse_scene(path, options)

    return open_array_scene(
        path,
        options.variable,
        bad_bands=options.bad_bands,
        scale=options.scale,
        nodata=options.nodata,
    )


def _open_rasters(paths: list[str], options: SceneOptions) -> Scene:
    from eigenscape.scenes.raster import open_raster_scene

    if options.variable is not None:
        raise SceneError(
            f"{paths[0]}: scene.variable = {options.variable!r} names an array in a .mat, .npz or "
            "zarr file, and this is a raster. Leave the key out."
        )
    return open_raster_scene(
        paths, bad_bands=options.bad_bands, scale=options.scale, nodata=options.nodata
    )


def _check_known(given: str, path: str) -> None:
    if "://" in path or path.startswith("/vsi") or os.path.exists(path):
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

"""From ``[scene]`` of a job to a `Scene`, by the reader that takes its path."""

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from eigenscape.base.shares import counted, listed
from eigenscape.errors import SceneError
from eigenscape.job.options import SceneOptions
from eigenscape.scenes.files.outside import is_address, is_contained
from eigenscape.scenes.files.paths import scene_paths
from eigenscape.scenes.files.places import check_exists, told_missing
from eigenscape.scenes.geometry.names import companion_of
from eigenscape.scenes.readers.rasters import RasterReader, open_rasters
from eigenscape.scenes.reading import Reader, Resolve, find_reader, foreign_module, open_by
from eigenscape.scenes.registry import is_registered, registered, registered_names
from eigenscape.scenes.types import Bands, Scene
from eigenscape.scenes.windows import find_windows, left_out_notes

if TYPE_CHECKING:
    from eigenscape.scenes.views.flightlines import StackedScene

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
    masked = options.mask is not None or getattr(scene, "flags", None)
    if masked and not hasattr(scene, "lines"):
        from eigenscape.scenes.views.masks import mask_scene

        scene = mask_scene(scene, options, resolve)
    path = options.path
    named = registered(path) if isinstance(path, str) and is_registered(path) else None
    if options.samples is not None and not (named and named.drawn):
        from eigenscape.scenes.views.subset import draw_samples

        return draw_samples(scene, options.samples, options.seed or 0)
    if options.samples is None and options.seed is not None and not (named and named.seeded):
        raise SceneError(
            f"scene.seed = {options.seed}: {scene.files[0]} is not made with a seed. Leave the key "
            "out, or draw a random subset with scene.samples."
        )
    return scene


def _open_unmasked(options: SceneOptions, resolve: Resolve, carried: tuple[int, ...] = ()) -> Scene:
    """Open a scene without its mask; a line also without bands that another line carries over to it."""
    given = options.path
    if isinstance(given, str) and is_registered(given):
        located = registered(given).locate(options.samples, options.seed)
        options = options.model_copy(update={"variable": options.variable or located.variable})
        reader = find_reader(located.paths[0])
        return _open_files(reader, located.paths, options, resolve, carried)
    if not given:
        raise SceneError("scene.path: the list is empty. Give at least one file.")
    names = scene_paths(options, resolve)
    for name in names:
        _check_known(name, resolve(name))
    paths = [resolve(name) for name in names]
    if len(names) > 1 and (lines := _open_lines(names, options, resolve)) is not None:
        return lines
    # Of a list of single bands each file is a band, whatever reader would take it alone.
    reader = (
        RasterReader() if len(paths) > 1 or not isinstance(given, str) else find_reader(paths[0])
    )
    scene = _open_files(reader, paths, options, resolve, carried)
    if any(map(os.path.islink, paths)):
        from eigenscape.scenes.files.identity import told_links

        scene = _noted(scene, told_links(paths), last=True)
    return _with_names(scene, paths) if names != (given,) and isinstance(given, str) else scene


def _with_names(scene: Scene, paths: Sequence[str]) -> Scene:
    """Say which files a pattern or a folder stands for."""
    names = [Path(path).name for path in paths]
    return _noted(
        scene, (f"scene.path stands for {counted(len(names), 'file')}: {listed(names, 20)}",)
    )


def _noted(scene: Scene, told: tuple[str, ...], *, last: bool = False) -> Scene:
    """Return a scene with further notes before its own, or after them."""
    notes = getattr(scene, "notes", None)
    if notes is None:
        return scene
    return replace(scene, notes=(*notes, *told) if last else (*told, *notes))  # type: ignore[type-var]


def _open_files(
    reader: Reader,
    paths: Sequence[str],
    options: SceneOptions,
    resolve: Resolve,
    carried: tuple[int, ...] = (),
) -> Scene:
    """Open one file by its reader, or several as rasters of a band each; without some wavelengths."""
    scene = _open_all_bands(reader, paths, options, resolve)
    found = find_windows(options, scene.bands)
    good = set((scene.bands.good_index + 1).tolist())
    dropped = sorted(good.intersection({*carried}.union(*(each.numbers for each in found))))
    word = "column" if scene.grid.is_table else "band"
    alpha = getattr(scene, "alpha", ())
    told = left_out_notes(options, scene.bands, found, word=word, alpha=alpha, carried=carried)
    if not dropped:
        return _geolocated(_noted(scene, told, last=True), options, resolve)
    if len(dropped) == len(good):
        raise SceneError(
            f"scene.drop_wavelengths = {options.drop_wavelengths}: all {len(good)} good bands of "
            f"{scene.files[0]} lie in these windows. Leave one at least."
        )
    further = {"bad_bands": (*options.bad_bands, *dropped)}
    scene = _open_all_bands(reader, paths, options.model_copy(update=further), resolve)
    return _geolocated(_noted(scene, told, last=True), options, resolve)


def _geolocated(scene: Scene, options: SceneOptions, resolve: Resolve) -> Scene:
    """Return a scene with the geometry that the job names, or a file beside it has."""
    if options.geometry == "none" or (options.geometry == "auto" and companion_of(scene) is None):
        return scene
    from eigenscape.scenes.geometry.companions import geolocate

    return geolocate(scene, options, resolve)


def _open_lines(
    given: Sequence[str], options: SceneOptions, resolve: Resolve
) -> "StackedScene | None":
    """Open files of several bands each as lines of one scene; None where the first has one band."""
    first = resolve(given[0])
    # Numbers of bad bands count those of all files, where each has one.
    alone = _of_one(options, given[0]).model_copy(update={"bad_bands": ()})
    scene = open_by(find_reader(first), first, alone, resolve)
    # An alpha band masks the others.
    if len(scene.bands.good) - len(getattr(scene, "alpha", ())) == 1:
        return None
    if options.geometry not in ("auto", "none"):
        raise SceneError(
            f"scene.geometry = {options.geometry!r}: {len(given)} lines are given, and each has a "
            "geometry of its own. Put them beside the lines as *_glt or *_igm, and leave the key out."
        )
    if options.mask_files:
        raise SceneError(
            f"scene.mask = {options.mask!r}: {len(given)} lines are given, and a mask lies on the grid "
            "of one. "
            "Mark what is missing as nodata in each line, or name flags of a product."
        )
    opened = [_open_line(_of_one(options, name), resolve) for name in given]
    from eigenscape.scenes.views.resampled import same_sequence

    alike = [same_sequence(line.bands, opened[0].bands) for line in opened]
    bad = _bad_in_some([line.bands for line, same in zip(opened, alike, strict=True) if same])
    if bad:
        opened = [
            _open_line(_of_one(options, name), resolve, bad) if same else line
            for name, line, same in zip(given, opened, alike, strict=True)
        ]
    from eigenscape.scenes.views.flightlines import stack

    return stack(opened)


def _bad_in_some(lines: Sequence[Bands]) -> tuple[int, ...]:
    """Return the numbers of the bands that are bad in some of several lines and good in others.

    Raises
    ------
    SceneError
        No band is good in all.
    """
    flags = list(zip(*(bands.good for bands in lines), strict=True))
    if not any(map(all, flags)):
        raise SceneError(
            f"scene.path: none of the {len(flags)} bands is good in all lines. Give lines that have some "
            "good bands in common."
        )
    return tuple(number for number, good in enumerate(flags, 1) if any(good) and not all(good))


def _open_line(options: SceneOptions, resolve: Resolve, carried: tuple[int, ...] = ()) -> Scene:
    """Open one of several lines, less what its own flags leave out, and the bands that are bad in another."""
    line = _open_unmasked(options, resolve, carried)
    if not getattr(line, "flags", None):
        return line
    from eigenscape.scenes.views.masks import mask_scene

    return mask_scene(line, options, resolve)


def _of_one(options: SceneOptions, path: str) -> SceneOptions:
    return options.model_copy(update={"path": path})


def _open_all_bands(
    reader: Reader, paths: Sequence[str], options: SceneOptions, resolve: Resolve
) -> Scene:
    if options.columns is not None and not reader.columns:
        raise SceneError(
            f"scene.columns: chooses columns of a CSV or Parquet file, and {paths[0]} is none. Leave the "
            "key out; scene.bad_bands leaves out bands and columns."
        )
    if len(paths) > 1:
        return open_rasters(paths, options)
    if options.grid != "finest" and not getattr(reader, "grids", False):
        raise SceneError(
            f"scene.grid = {options.grid!r}: chooses the grid of bands of several resolutions, "
            "and all bands of "
            f"{paths[0]} have one. Leave the key out."
        )
    return open_by(reader, paths[0], options, resolve)


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
    if not _is_known(path):
        return None
    return find_reader(path).variable(path, options)


def reader_modules(options: SceneOptions, resolve: Resolve) -> tuple[str, ...]:
    """Return the modules of other packages that read a scene; see `foreign_module`."""
    path = options.path
    if not isinstance(path, str) or is_registered(path) or not _is_known(resolve(path)):
        return ()
    try:
        reader = find_reader(resolve(path))
    except SceneError:
        return ()  # refused when it is opened; in a batch it may be growing still
    module = foreign_module(reader)
    return () if module is None else (module,)


def foreign_files(options: SceneOptions, resolve: Resolve) -> tuple[str, ...]:
    """Return the files that a reader of another package reads, if its `Reader.files` does not name them.

    Raises
    ------
    SceneError
        The scene cannot be opened.
    """
    if not reader_modules(options, resolve):
        return ()
    path = resolve(str(options.path))
    reader = find_reader(path)
    if reader.files(path) is not None:
        return ()
    return open_by(reader, path, options, resolve).files


def _is_known(path: str) -> bool:
    return is_contained(path) or is_address(path) or os.path.lexists(path)


def _check_known(given: str, path: str) -> None:
    if _is_known(path):
        check_exists(path)
        return
    # A bare word is meant as a data set more often than a path is.
    names = registered_names() if Path(given).name == given else ()
    told = told_missing(path, names)
    raise SceneError(
        f"scene.path = {given!r}: no such file ({path}), and no registered data set.{told} Relative "
        "paths are relative to the job file; registered are: "
        f"{', '.join(registered_names())}."
    )

"""``scene.path`` as files: patterns and folders stand for the files that they name, in a fixed order."""

import glob
import os
import re
from pathlib import Path

from eigenscape.errors import SceneError
from eigenscape.job.options import SceneOptions
from eigenscape.scenes.files.outside import is_address, is_contained
from eigenscape.scenes.formats.arrays.arrayfiles import is_zarr
from eigenscape.scenes.reading import Resolve, find_reader
from eigenscape.scenes.registry import is_registered

RASTERS = {".tif", ".tiff", ".jp2", ".img", ".vrt", ".bil", ".bip", ".bsq", ".dat"}
"""Endings of the files of a folder that are taken for bands."""

_MOST = 4096

_LAYERS = re.compile(
    r"""
    L[COTEM]0[45789]_L\d[A-Z]{2}_ .*_(?!(SR_)?B\d) [A-Z_]+ (_B\d+)?  # Landsat: QA_PIXEL, ST_B10
    | (L2A_)?T\d\d[A-Z]{3}_\d{8}T\d{6}_ (AOT|SCL|TCI|WVP) (_\d\dm)?  # Sentinel-2
    | HLS\.[LS]30\..* \.(Fmask|SAA|SZA|VAA|VZA)  # Harmonized Landsat and Sentinel-2
    | (ENMAP|DESIS).* -QL_.*
    """,
    re.IGNORECASE | re.VERBOSE,
)
"""Names, less their endings, of files of products that are not spectral bands."""


def scene_paths(options: SceneOptions, resolve: Resolve) -> tuple[str, ...]:
    """Return the paths of a scene: what is given, with patterns and folders replaced by their files.

    Parameters
    ----------
    options
        ``[scene]`` of the job. Its labels and masks are no bands, wherever they lie.
    resolve
        Makes a path of the job absolute.

    Returns
    -------
    tuple of str
        Names of data sets and paths as they are given; the files of a pattern such as ``B*.tif``, or of a
        folder that is no product and no store, as absolute paths in the order of their names, numbers
        within them by their size.

    Raises
    ------
    SceneError
        A pattern stands for no file, or for very many; or some of its files are layers of a product that
        are no bands.
    """
    given = (options.path,) if isinstance(options.path, str) else options.path
    others = [*options.mask_files, *([options.labels] if options.labels else [])]
    apart = {os.path.abspath(resolve(name)) for name in others if not is_registered(name)}
    return tuple(name for one in given for name in _files_of(one, resolve, apart))


def _files_of(given: str, resolve: Resolve, apart: set[str]) -> tuple[str, ...]:
    if is_registered(given):
        return (given,)
    path = resolve(given)
    if is_contained(path) or is_address(path):
        return (given,)
    if glob.has_magic(path) and not os.path.lexists(path):
        found = _few(given, glob.glob(path, recursive=True), apart)
        if not found:
            raise SceneError(
                f"scene.path = {given!r}: no file matches the pattern ({path}). Relative patterns "
                "are relative "
                "to the job file."
            )
        return found
    if os.path.isdir(path) and not is_zarr(path) and find_reader(path).priority <= 0:
        with os.scandir(path) as entries:
            bands = [
                entry.path for entry in entries
                if Path(entry.name).suffix.lower() in RASTERS and os.path.isfile(entry.path)
            ]  # fmt: skip
        return _few(given, bands, apart) or (given,)
    return (given,)


def _few(given: str, names: list[str], apart: set[str]) -> tuple[str, ...]:
    names = [name for name in map(os.path.abspath, names) if name not in apart]
    if len(names) > _MOST:
        raise SceneError(
            f"scene.path = {given!r}: stands for {len(names):,} files; {_MOST:,} bands can be listed. Give a "
            "pattern for fewer; `eigenscape batch` works on many scenes."
        )
    layers = [Path(name).name for name in names if _LAYERS.fullmatch(Path(name).stem)]
    if 0 < len(layers) < len(names):
        listed = ", ".join(sorted(layers)[:3]) + (", ..." if len(layers) > 3 else "")
        raise SceneError(
            f"scene.path = {given!r}: {len(layers)} of its {len(names)} files are not spectral bands: "
            f"{listed}. Give the product with its metadata file, as it was downloaded, or a pattern for the "
            'bands alone, such as "*_SR_B*.TIF".'
        )
    return tuple(sorted(names, key=_by_number))


def _by_number(name: str) -> list[tuple[int, int, str]]:
    """Order names as people do: B2 before B10."""
    parts = re.split(r"(\d+)", name)
    return [(0, int(part), part) if part.isdigit() else (1, 0, part) for part in parts]

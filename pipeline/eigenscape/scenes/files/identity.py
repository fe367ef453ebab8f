"""Identity of a file's version, normally without reading the whole file."""

import glob
import hashlib
import os
from collections.abc import Callable, Iterable, Sequence, Set
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

from eigenscape.errors import SceneError, did_you_mean
from eigenscape.scenes.files.outside import check_sources
from eigenscape.scenes.files.places import check_exists
from eigenscape.scenes.formats.arrays.arrayfiles import is_zarr
from eigenscape.scenes.formats.rasters.rasterfiles import dataset_files, open_raster
from eigenscape.scenes.registry import is_registered, registered

_END = 2**16
_BLOCK = 2**12
_BLOCKS = 64
"""Blocks between the ends: of a file, or of all files of a directory together."""


def file_identity(
    path: str,
    resolve: Callable[[str], str],
    key: str = "scene.path",
    *,
    samples: int | None = None,
    seed: int | None = None,
    full: bool = False,
) -> Any:
    """Return what a stage's key holds of a file.

    That is its size, its time of change, the first and last 64 KiB, and 64 blocks of 4 KiB evenly
    between. So a stretch of a 64th of the file that has changed is always seen, as is another scene;
    a few bytes in the midst of a file of M MiB, with the time put back, only with odds of 1 to 4 M.
    With `full` it is all of the content, and not the time.

    The name is left out: a scene that was moved is the same scene. Side-car files beside it count, since
    they hold nodata, headers and names: those of the same stem, and all that GDAL reads with it, such as
    world files. So do the data file of a header, and the files that a VRT names.

    Parameters
    ----------
    path
        A path, URL or registered name, as the job says it.
    resolve
        Makes it absolute.
    key
        The key of the job that names it, for messages.
    samples, seed
        What a registered data set is made with, if it is.
    full
        Whether to read files whole.

    Raises
    ------
    SceneError
        There is no such file.
    """
    if is_registered(path):
        named = registered(path)
        prepared = named.key(samples, seed)
        if prepared is not None:
            return [path, prepared]
        located = named.locate()
        files = [*located.paths, *([located.labels] if located.labels else [])]
        return [_family(Path(file), full) for file in files]
    place = resolve(path)
    if "://" in place:
        return place
    file = Path(place)
    if not os.path.lexists(place):
        if key == "scene.path":
            # The reader's own message names what is there instead.
            from eigenscape.job.options import SceneOptions
            from eigenscape.scenes.open import open_scene

            open_scene(SceneOptions(path=path), resolve)
        siblings = [item.name for item in file.parent.iterdir()] if file.parent.is_dir() else []
        raise SceneError(
            f"{key} = {path!r}: no such file ({place}).{did_you_mean(file.name, siblings)} "
            "Relative paths are relative to the job file."
        )
    check_exists(place)
    if key == "scene.path" and (parts := _product_files(place)) is not None:
        within = _identities(parts, full)
        return [[part.name, *one] for part, one in zip(parts, within, strict=True)]
    if file.is_dir():
        _check_store(place, key)
        parts = sorted(part for part in file.rglob("*") if part.is_file())
        within = _identities(parts, full)
        return [
            [str(part.relative_to(file)), *one] for part, one in zip(parts, within, strict=True)
        ]
    sources = [Path(source) for source in check_sources(place)]
    apart = frozenset(sources)
    return [*_family(file, full, apart), *(_family(source, full, apart) for source in sources)]


def _product_files(place: str) -> list[Path] | None:
    """Return the files of a sensor product; None for other files."""
    from eigenscape.scenes.reading import find_reader

    files = find_reader(place).files(place)
    return None if files is None else [Path(name) for name in files]


def _check_store(place: str, key: str) -> None:
    """Refuse a directory that no reader takes, before all that is in it is read."""
    if is_zarr(place) or place.lower().endswith((".zarr", ".gdb")):
        return
    if key == "scene.path":
        from eigenscape.scenes.reading import find_reader

        if find_reader(place).priority > 0:
            return
        # GDAL has some formats that are directories.
        with open_raster(place):
            return
    raise SceneError(
        f"{key} = {place!r}: is a directory, and not a zarr store. Give the file inside it."
    )


def told_links(paths: Iterable[str]) -> tuple[str, ...]:
    """Return a note on a symbolic link of some paths whose target alone has side-car files beside it.

    Nothing looks for them there, and they may hold its place and its nodata.
    """
    for path in filter(os.path.islink, paths):
        target = Path(os.path.realpath(path))
        if not _sidecars(Path(path)) and (lost := sorted(_sidecars(target))):
            return (
                f"{path} is a symbolic link, and {lost[0].name} beside its target is not read. Link that "
                f"file, too, or give the target: {target}",
            )
    return ()


def _family(file: Path, full: bool, apart: Set[Path] = frozenset()) -> list[Any]:
    """Return what tells a file and its side-cars, less those that are looked at apart, from others."""
    family = [file, *sorted(_sidecars(file) - apart)]
    return [
        [other.suffix, *one] for other, one in zip(family, _identities(family, full), strict=True)
    ]


def _sidecars(file: Path) -> set[Path]:
    """Return the files beside a file that are read with it."""
    beside = file.parent.glob(f"{glob.escape(file.stem)}.*")
    sidecars = {other for other in beside if other.is_file() and _is_sidecar(other)}
    return (sidecars | _raster_files(file)) - {file}


def _raster_files(file: Path) -> set[Path]:
    """Return the files that GDAL reads for a raster, or for the ENVI header of one; none of other files."""
    from eigenscape.scenes.readers.envi import data_file

    place = data_file(str(file)) or str(file)
    # A name that is not UTF-8 is refused by the reader, in words.
    with suppress(SceneError, UnicodeEncodeError), open_raster(place) as dataset:
        return {Path(name) for name in dataset_files(dataset, place) if os.path.isfile(name)}
    return set()


def _is_sidecar(path: Path) -> bool:
    endings = {".hdr", ".xml", ".prj", ".tfw", ".dbf", ".shx", ".msk", ".ovr", ".cpg"}
    return path.suffix.lower() in endings


def _identities(paths: Sequence[Path], full: bool) -> list[list[Any]]:
    blocks = -(-_BLOCKS // max(1, len(paths)))
    found = []
    for path in paths:
        try:
            found.append(_whole(path) if full else _sampled(path, blocks))
        except OSError as error:
            raise SceneError(f"{path}: cannot be read ({error.strerror}).") from error
    return found


def _sampled(path: Path, blocks: int) -> list[Any]:
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        state = os.fstat(stream.fileno())
        digest.update(stream.read(_END))
        between = state.st_size - 2 * _END
        for number in range(blocks if between > 0 else 0):
            # The middle of each of as many equal parts.
            stream.seek(_END + max(0, (2 * number + 1) * between // (2 * blocks) - _BLOCK // 2))
            digest.update(stream.read(_BLOCK))
        stream.seek(max(0, state.st_size - _END))
        digest.update(stream.read(_END))
    return [state.st_size, state.st_mtime_ns, digest.hexdigest()[:16]]


def _whole(path: Path) -> list[Any]:
    state = path.stat()
    return [state.st_size, _hash(path, state.st_ino, state.st_mtime_ns, state.st_ctime_ns)]


@lru_cache(maxsize=4096)
def _hash(path: Path, *version: int) -> str:
    # A command asks several times, and the scene may be large.
    del version
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()[:32]

"""What tells one version of a file from another without reading it whole."""

import glob
import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from eigenscape.errors import SceneError, did_you_mean
from eigenscape.scenes.registry import is_registered, registered

_SAMPLE = 2**16


def file_identity(
    path: str,
    resolve: Callable[[str], str],
    key: str = "scene.path",
    *,
    samples: int | None = None,
    seed: int | None = None,
) -> Any:
    """Return what a stage's key holds of a file: size, time of change, first and last 64 KiB.

    The name is left out: a scene that was moved is the same scene. Side-car files beside it (same
    stem) count, since they hold nodata, headers and names.

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
        return [_family(Path(file)) for file in files]
    place = resolve(path)
    if "://" in place:
        return place
    file = Path(place)
    if not file.exists():
        if key == "scene.path":
            # The reader's own message names what is there instead.
            from eigenscape.options import SceneOptions
            from eigenscape.scenes.open import open_scene

            open_scene(SceneOptions(path=path), resolve)
        siblings = [item.name for item in file.parent.iterdir()] if file.parent.is_dir() else []
        raise SceneError(
            f"{key} = {path!r}: no such file ({place}).{did_you_mean(file.name, siblings)} "
            "Relative paths are relative to the job file."
        )
    if file.is_dir():
        return sorted(
            [str(part.relative_to(file)), *_one(part)] for part in file.rglob("*") if part.is_file()
        )
    return _family(file)


def _family(file: Path) -> list[Any]:
    """Return what tells a file and its side-cars apart from others."""
    beside = file.parent.glob(f"{glob.escape(file.stem)}.*")
    sidecars = {other for other in beside if other.is_file() and _is_sidecar(other)}
    family = [file, *sorted(sidecars - {file})]
    return [[other.suffix, *_one(other)] for other in family]


def _is_sidecar(path: Path) -> bool:
    endings = {".hdr", ".xml", ".prj", ".tfw", ".dbf", ".shx", ".msk", ".ovr", ".cpg"}
    return path.suffix.lower() in endings


def _one(path: Path) -> list[Any]:
    state = path.stat()
    with path.open("rb") as stream:
        head = stream.read(_SAMPLE)
        stream.seek(max(0, state.st_size - _SAMPLE))
        tail = stream.read(_SAMPLE)
    return [state.st_size, state.st_mtime_ns, hashlib.sha256(head + tail).hexdigest()[:16]]

"""Files beside a scene that say where its pixels are, known by their names: ``*_glt`` and ``*_igm``."""

from collections.abc import Sequence
from pathlib import Path

from eigenscape.job.options import SceneOptions
from eigenscape.scenes.formats.tables.tabularfiles import is_tabular
from eigenscape.scenes.reading import Resolve
from eigenscape.scenes.registry import is_registered
from eigenscape.scenes.types import Scene, geolocation_of

_KINDS = ("glt", "igm")
"""Endings of names, in the order in which they are taken."""

_ENDINGS = ("", ".img", ".dat", ".bil", ".bip", ".bsq", ".tif", ".tiff")


def companion_of(scene: Scene) -> tuple[str, str] | None:
    """Return the GLT or IGM beside a scene that has no place of its own, and which of them it is."""
    placed = geolocation_of(scene) is not None or scene.grid.transform is not None
    path = scene.files[0]
    if placed or scene.grid.is_table or not Path(path).is_file():
        return None
    return find_companion(path)


def find_companion(path: str) -> tuple[str, str] | None:
    """Return the GLT or IGM beside a file, and which of them it is.

    Its name, less ``_glt`` or ``_igm``, begins that of the file, or is it; of several the longest.
    """
    file = Path(path)
    stem = file.name.lower()
    found: list[tuple[int, int, str, str]] = []
    try:
        beside = list(file.parent.iterdir())
    except OSError:
        return None
    for other in beside:
        kind = name_kind(other)
        if (
            other.name == file.name
            or kind is None
            or other.suffix.lower() not in _ENDINGS
            or not other.is_file()
        ):
            continue
        own = _bare(other).lower()[: -len(kind) - 1]
        # The rest of the name is another part of it: "line1" is no beginning of "line10".
        if own and stem.startswith(own) and stem[len(own) : len(own) + 1] in ("", "_", "-", "."):
            found.append((-len(own), _KINDS.index(kind), str(other), kind))
    return min(found)[2:] if found else None


def geometry_files(options: SceneOptions, given: Sequence[str], resolve: Resolve) -> list[str]:
    """Return the files of this machine that the geometry of some paths is read from, besides these."""
    if options.geometry == "none":
        return []
    if options.geometry != "auto":
        return [options.geometry]
    paths = [resolve(one) for one in given if not is_registered(one)]
    found = (
        find_companion(path) for path in paths if Path(path).is_file() and not is_tabular(path)
    )
    return [each[0] for each in found if each is not None]


def _bare(path: Path) -> str:
    """Return a name without an ending of rasters; dots may be part of it."""
    ending = path.suffix.lower()
    return path.stem if ending and ending in _ENDINGS else path.name


def name_kind(path: Path) -> str | None:
    """Return which of them a name says that a file is, None for neither."""
    name = _bare(path).lower()
    return next((kind for kind in _KINDS if name.endswith(f"_{kind}")), None)

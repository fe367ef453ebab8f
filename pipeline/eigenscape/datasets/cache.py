"""Where data sets are kept: files that were fetched or put there, and arrays prepared from them."""

import hashlib
import os
import secrets
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache, lru_cache
from importlib.util import find_spec
from pathlib import Path

from eigenscape.base.fingerprint import code_fingerprint, content_key
from eigenscape.datasets.entry import DataSet, Form
from eigenscape.errors import OutputError

VARIABLE = "EIGENSCAPE_DATA"
"""Environment variable that names a directory with one folder per data set."""

_CODE = (
    "datasets/made/manifolds.py", "datasets/made/pictures.py", "datasets/recipes.py", "datasets/made/text.py",
    "datasets/made/landcover.py", "datasets/made/synthetic.py",
    "export/geotiff.py", "export/palette.py", "export/sidecar.py",
)  # fmt: skip
"""Modules that prepared arrays depend on."""


def data_directory() -> Path:
    """Return where fetched files go: ``EIGENSCAPE_DATA``, or the user's cache."""
    given = os.environ.get(VARIABLE)
    return Path(given).expanduser().resolve() if given else _cache() / "data"


def find_form(data_set: DataSet) -> tuple[Form, tuple[Path, ...]] | None:
    """Return the first form of a data set whose files are all here, and their paths."""
    for directory in dict.fromkeys((data_directory(), _cache() / "data")):
        for form in data_set.forms:
            root = _package(form.package) if form.package else directory / data_set.folder
            paths = tuple(root / file for file in form.files) if root is not None else ()
            if paths and all(path.exists() for path in paths):
                return form, paths
    return None


def prepared_key(data_set: DataSet, files: Sequence[Path], samples: int, seed: int) -> str:
    """Return what prepared arrays are known by: their sources' content, the code and the draw."""
    parts = [data_set.name, samples, seed, _code(), [file_hash(path) for path in files]]
    return content_key(parts)[:24]


def prepared(data_set: DataSet, files: Sequence[Path], samples: int, seed: int) -> Path:
    """Return the folder of prepared arrays; fill it first unless that was done before.

    Whoever is first wins when several processes do so at once; a kill leaves no folder of that name.

    Raises
    ------
    SceneError
        A file is damaged or not what its name says.
    OutputError
        The cache cannot be written.
    """
    key = prepared_key(data_set, files, samples, seed)
    folder = _cache() / "prepared" / f"{data_set.name}-{key}"
    if folder.is_dir():
        return folder
    from eigenscape.datasets.recipes import RECIPES

    assert data_set.recipe is not None
    temporary = folder.with_name(f".{folder.name}.tmp-{secrets.token_hex(4)}")
    with explain_refusal(folder.parent, "XDG_CACHE_HOME"):
        temporary.mkdir(parents=True)
        try:
            RECIPES[data_set.recipe](files, temporary, samples, seed)
            temporary.rename(folder)
        except OSError:
            # Unless another process was first.
            if not folder.is_dir():
                raise
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
    return folder


@contextmanager
def explain_refusal(directory: Path, variable: str) -> Iterator[None]:
    """Turn the system's refusal to write to a directory of data sets into an `OutputError`."""
    try:
        yield
    except OSError as error:
        raise OutputError(
            f"{directory}: cannot be written ({error.strerror or error}). Set {variable} to a "
            "directory that you may write, on a disk with room."
        ) from error


def file_hash(path: Path) -> str:
    """Return the sha256 of a file's content, in hexadecimal digits."""
    state = path.stat()
    return _file_hash(path, state.st_size, state.st_mtime_ns)


@lru_cache(maxsize=64)
def _file_hash(path: Path, size: int, modified: int) -> str:
    """Hash a file; size and time of change make a changed file a new entry."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _cache() -> Path:
    import platformdirs

    return Path(platformdirs.user_cache_path("eigenscape"))


def _package(name: str) -> Path | None:
    # find_spec does not import the package: tensorly would take a second.
    spec = find_spec(name)
    return Path(spec.origin).parent if spec is not None and spec.origin else None


@cache
def _code() -> str:
    """Return the fingerprint of the recipes."""
    root = Path(__file__).parents[1]
    return code_fingerprint(root / name for name in _CODE)

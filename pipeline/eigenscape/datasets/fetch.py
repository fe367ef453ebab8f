"""Download the files of a data set: checked, retried, and resumed where they were cut off."""

from collections.abc import Callable
from pathlib import Path
from typing import Any
from zipfile import ZipFile

from filelock import FileLock

from eigenscape.base.files.whole import written_whole
from eigenscape.datasets.cache import VARIABLE, data_directory, explain_refusal, find_form
from eigenscape.datasets.entry import DataSet, Remote
from eigenscape.errors import FetchError, MissingExtraError

_BLOCK = 2**13
"""Bytes written at a time: what a broken connection loses at most."""
_RETRIES = 3
_SECONDS = 30
"""Of silence, after which a server counts as gone."""

Progress = Callable[[str, int, int], None]
"""Called with the file, its bytes that are here and its bytes in all."""


def fetch(data_set: DataSet, progress: Progress | None = None) -> Path:
    """Bring the files of a data set to the data directory, if they are not here.

    Parameters
    ----------
    data_set
        Which one.
    progress
        Told of every block.

    Returns
    -------
    Path
        The folder of its files.

    Raises
    ------
    FetchError
        There is nothing to fetch, no answer, or content with another hash; says what to do by hand.
    MissingExtraError
        pooch is not installed.
    OutputError
        The data directory cannot be written.
    """
    found = find_form(data_set)
    if found is not None:
        return found[1][0].parent
    folder = data_directory() / data_set.folder
    if not data_set.remotes:
        raise FetchError(f"{data_set.name}: cannot be fetched. {by_hand(data_set)}")
    with explain_refusal(folder, VARIABLE):
        folder.mkdir(parents=True, exist_ok=True)
        # Beside the folder, so that it holds nothing but data.
        with FileLock(folder.with_name(f".{folder.name}.lock")):
            for remote in data_set.remotes:
                if not all((folder / name).exists() for name in remote.brings):
                    _fetch_one(data_set, remote, folder, progress)
    return folder


def by_hand(data_set: DataSet) -> str:
    """Return the sentence that says which files to put where, and where they come from."""
    folder = data_directory() / data_set.folder
    form = next(form for form in data_set.forms if form.package is None)
    place = f"Put {', '.join(form.files)} into {folder}"
    return f"{place}. {data_set.obtain}".strip()


def _fetch_one(data_set: DataSet, remote: Remote, folder: Path, progress: Progress | None) -> None:
    try:
        import pooch
        from requests.exceptions import RequestException
    except ModuleNotFoundError:
        raise MissingExtraError("pooch", "data", f"Fetching {data_set.name}") from None
    store = pooch.create(
        path=folder,
        base_url="",
        registry={remote.file: f"sha256:{remote.sha256}"},
        urls={remote.file: remote.url},
        retry_if_failed=_RETRIES,
    )
    pooch.get_logger().setLevel("ERROR")
    hand = (
        f"Or download {remote.url} by other means and put {', '.join(remote.brings)} into {folder}."
    )

    def download(url: str, target: str, _: Any) -> None:
        _resume(url, Path(target), folder / f".{remote.file}.part", remote, progress)

    try:
        store.fetch(remote.file, downloader=download)
    except RequestException as error:
        raise FetchError(
            f"{data_set.name}: {remote.url} cannot be reached or broke off ({error}). What came is "
            f"kept: give the same command again, it goes on from there. {hand}"
        ) from error
    except ValueError as error:
        raise FetchError(
            f"{data_set.name}: {remote.url} is not the file it was: its content does not have the "
            f"sha256 {remote.sha256}. It was deleted. Try again later. {hand}"
        ) from error
    if remote.members:
        _unpack(folder / remote.file, remote.members, folder)


def _resume(url: str, target: Path, part: Path, remote: Remote, progress: Progress | None) -> None:
    """Download to `part`, from where it ends; a whole one becomes `target`."""
    import requests

    have = part.stat().st_size if part.exists() else 0
    headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={have}-"} if have else {})
    with requests.get(url, headers=headers, stream=True, timeout=_SECONDS) as answer:
        if answer.status_code == requests.codes.requested_range_not_satisfiable:
            part.unlink()  # It is not the beginning of this file: the next attempt starts anew.
        answer.raise_for_status()
        if answer.status_code != requests.codes.partial_content:
            have = 0  # The server sends all of it again.
        with part.open("ab" if have else "wb") as stream:
            # A body shorter than its announced length raises.
            for block in answer.iter_content(_BLOCK):
                stream.write(block)
                have += len(block)
                if progress is not None:
                    progress(remote.file, have, remote.size)
    part.replace(target)


def _unpack(archive: Path, members: tuple[str, ...], folder: Path) -> None:
    with ZipFile(archive) as file:
        for member in members:
            with written_whole(folder / member.rpartition("/")[2]) as path:
                path.write_bytes(file.read(member))
    archive.unlink()

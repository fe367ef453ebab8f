"""Names of the files of a scene, for readers who need not know where the files are."""

from pathlib import PurePosixPath
from urllib.parse import urlsplit


def file_name(path: str) -> str:
    """Return the name of a file without its directory; of a URL also without its query and user.

    A query may hold the key that opens the file.

    Examples
    --------
    >>> file_name("/home/me,too/a.tif"), file_name("https://me:pw@host/d/a.tif?Signature=secret#x")
    ('a.tif', 'a.tif')
    """
    if "://" not in path:
        return PurePosixPath(path).name or path
    parts = urlsplit(path)
    return PurePosixPath(parts.path).name or parts.hostname or parts.scheme

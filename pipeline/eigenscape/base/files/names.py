"""Paths of files under the names that a user gives them."""

import os
from pathlib import Path


def own_path(path: str | Path) -> str:
    """Return the absolute path of a file under its own name, also where it is a symbolic link.

    Side-car files lie beside the name that a file is given by, and GDAL looks for them there: the last part
    of the path is not followed. Links among its folders are, so that ``..`` is the folder that the system
    takes it for.

    Examples
    --------
    >>> own_path("/data/./a.tif")
    '/data/a.tif'
    """
    path = Path(path)
    if path.name in ("", ".."):
        return os.path.realpath(path)
    # `Path.resolve` raises an error of its own for a loop of links.
    return os.path.join(os.path.realpath(path.parent), path.name)

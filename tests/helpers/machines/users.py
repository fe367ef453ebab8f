"""Directories of several users: what one of them may do in those of another."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

_OTHER = 65534
"""The number of the user nobody."""


@contextmanager
def shared_directory() -> Iterator[Path]:
    """Make a directory that every user may enter, as those of pytest are not."""
    if os.geteuid() != 0:
        pytest.skip("needs the right to become another user")
    path = Path(tempfile.mkdtemp(prefix="shared-", dir="/tmp"))
    path.chmod(0o755)
    try:
        yield path
    finally:
        shutil.rmtree(path)


@contextmanager
def another_user() -> Iterator[None]:
    """Be another user, without the rights of root."""
    group = os.getegid()
    os.setegid(_OTHER)
    os.seteuid(_OTHER)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(group)

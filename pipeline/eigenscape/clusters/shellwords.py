"""Values of cluster files as words of a shell: nothing but variables and a leading ~ is expanded."""

import os
import re
import shlex
import sys
from collections.abc import Sequence

from eigenscape.errors import ClusterError

_HOME = re.compile(r"~[\w.-]*(?:/|$)")
_PLAIN = re.compile(r"[\w./:@+=,~-]+")
"""Paths that stand in the head of a script of any queue: each has its own rules for other characters."""


def shell_word(value: str) -> str:
    """Return a word for a shell that expands its variables and a leading ~, and nothing else.

    >>> print(shell_word("~/my env/$NAME/python"))
    ~/"my env/$NAME/python"
    """
    home = found[0] if (found := _HOME.match(value)) else ""
    rest = re.sub(r"[\\`\"]|\$(?![A-Za-z_{])", r"\\\g<0>", value.removeprefix(home))
    plain = re.fullmatch(r"[\w./:@%+=,-]*", rest, re.ASCII)
    return home + (rest if plain and value else f'"{rest}"')


def python_word(given: str | None) -> str:
    """Return the Python of a cluster file for a shell; the one that runs now by default."""
    return shell_word(given) if given else shlex.quote(sys.executable)


def expanded(value: str) -> str:
    """Return what a shell of this machine would make of `shell_word`."""
    return os.path.expandvars(os.path.expanduser(value))


def check_plain(path: str, what: str, fix: str) -> str:
    """Return a path unless the head of a submit script cannot hold it.

    Raises
    ------
    ClusterError
        It has blanks, quotes or other characters to which queues give a meaning.
    """
    if _PLAIN.fullmatch(path):
        return path
    bad = sorted(set(_PLAIN.sub("", path)))
    raise ClusterError(
        f"{path}: {what} has {', '.join(map(ascii, bad))} in its path, and the head of a submit script "
        f"takes letters, digits and ./:@+=,~_- alone. {fix}"
    )


def quoted(words: Sequence[str]) -> list[str]:
    """Return words that a shell takes as they are.

    Raises
    ------
    ClusterError
        One has a line break or another control character, which scripts of queues cannot hold.
    """
    for word in words:
        if re.search(r"[\x00-\x1f\x7f]", word):
            raise ClusterError(
                f"{word!r}: a line break or another control character cannot stand in a submit script. "
                "Rename the file or directory."
            )
    return [shlex.quote(word) for word in words]

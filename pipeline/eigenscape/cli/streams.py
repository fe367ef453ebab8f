"""Stdout and stderr of the command line: characters that they lack, and a stdout that cannot be written."""

import errno
import io
import os
import sys
from contextlib import suppress

from eigenscape.errors import InputError


def accept_all_characters() -> None:
    r"""Print characters that the encoding of stdout and stderr lacks as escapes, such as ``\xfc``.

    A path with such a character would otherwise end a run.
    """
    for stream in (sys.stdout, sys.stderr):
        # In UTF-8, "surrogateescape" prints names of files that are no text as the bytes that they are.
        if isinstance(stream, io.TextIOWrapper) and (
            stream.errors == "strict" or stream.encoding.lower() != "utf-8"
        ):
            stream.reconfigure(errors="backslashreplace")


def stdout_error(more: str = "") -> OSError | None:
    """Write what stdout still holds; return the error if it cannot be written, such as that of a full disk.

    Parameters
    ----------
    more
        Text to write in addition: without a buffer, stdout holds nothing that could fail again.
    """
    try:
        print(end=more, flush=True)
    except OSError as error:
        return error
    return None


def explain_stdout_error(error: OSError) -> int:
    """Print that stdout cannot be written, and return the exit status; whatever stdout holds is lost."""
    # Python writes stdout again when it ends, and would print a traceback.
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if error.errno == errno.EPIPE:
        return 1  # Nobody reads any more, as with `| head`: that is no mistake.
    print(
        f"eigenscape: stdout cannot be written ({error.strerror}), so the result is not printed. Results "
        "on disk are kept.",
        file=sys.stderr,
    )
    return InputError.exit_status

"""Stdout and stderr of the command line: characters that they lack, and streams that cannot be written."""

import errno
import io
import os
import signal
import sys
from collections.abc import Callable
from typing import Any, TextIO

from eigenscape.errors import OutputError


class _Guarded(io.FileIO):
    """A stream that notes the first error of writing, where another one raises it.

    Attributes
    ----------
    replaced
        The stream in whose place it is: deleted, it would close the descriptor.
    error
        The error, such as that of a full disk; what was written after it is lost.
    """

    def __init__(self, replaced: TextIO) -> None:
        super().__init__(replaced.fileno(), "w", closefd=False)
        self.replaced = replaced
        self.error: OSError | None = None

    def write(self, data: Any, /) -> int:
        try:
            return super().write(data)
        except OSError as error:
            self.error = self.error or error
            return memoryview(data).nbytes


def guard_streams() -> Callable[[], OSError | None]:
    r"""Let no line that cannot be printed end a command: a run may be hours behind it.

    Characters that the encoding of a stream lacks are printed as escapes, such as ``\xfc``. What a stream
    refuses is lost. Closed streams are opened on ``/dev/null``: the next file would get their number, and
    what libraries print.

    Returns
    -------
    callable
        Writes what stdout still holds, and returns the error if some of its text is lost.
    """
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            # The lowest free number is this one. Processes that are started inherit it.
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
    sys.stdin = sys.stdin or io.StringIO()
    sys.stdout, stdout = _guarded(sys.stdout)
    sys.stderr, _ = _guarded(sys.stderr)
    text = sys.stdout

    def lost() -> OSError | None:
        text.flush()
        return None if stdout is None else stdout.error

    return lost


def _guarded(stream: TextIO | None) -> tuple[TextIO, _Guarded | None]:
    """Return a stream to print to, and what notes its errors."""
    if stream is None:  # closed
        return open(os.devnull, "w", encoding="utf-8"), None
    if not isinstance(stream, io.TextIOWrapper):
        return stream, None
    stream.flush()
    raw = _Guarded(stream)
    # In UTF-8, "surrogateescape" prints names of files that are no text as the bytes that they are.
    keeps = stream.errors != "strict" and stream.encoding.lower() == "utf-8"
    text = io.TextIOWrapper(
        io.BufferedWriter(raw),
        encoding=stream.encoding,
        errors=stream.errors if keeps else "backslashreplace",
        line_buffering=stream.line_buffering or stream.write_through,
    )
    return text, raw


def exit_status_of(lost: OSError) -> int:
    """Return the exit status of a command whose result could not be printed, and say so on stderr."""
    if lost.errno == errno.EPIPE:
        # Nobody reads any more, as with `| head`: that is no mistake, and ends other commands by a signal.
        return 128 + signal.SIGPIPE
    print(
        f"eigenscape: stdout cannot be written ({lost.strerror}), so the result is not printed. Results "
        "on disk are kept.",
        file=sys.stderr,
    )
    return OutputError.exit_status

"""Commands of eigenscape, each a fork of one process that has loaded everything and computed nothing.

A command of its own takes seconds to load; a fork of it has its own memory all the same. Lines of
JSON come in (arguments, file for what is said, file for errors); exit statuses go out, negative ones
for signals.
"""

import gc
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path


class Nursery:
    """The process that commands are forks of, seen from the process that gives them."""

    def __init__(self, server: "subprocess.Popen[str]") -> None:
        self._server = server

    def command(self, arguments: Sequence[str], told: Path, errors: Path) -> int:
        """Give a command, wait for its end; return its exit status."""
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        self._server.stdin.write(json.dumps([list(arguments), str(told), str(errors)]) + "\n")
        self._server.stdin.flush()
        return int(self._server.stdout.readline())


@contextmanager
def nursery() -> Iterator[Nursery]:
    """Start the process; it ends with the block."""
    with subprocess.Popen(
        [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as server:
        yield Nursery(server)


def main() -> None:
    """Serve commands until there are no more lines."""
    import eigenscape.cli.app
    import eigenscape.workflow.spine  # noqa: F401

    gc.collect()
    gc.freeze()
    for line in sys.stdin:
        arguments, *files = json.loads(line)
        child = os.fork()
        if not child:
            status = 99
            try:
                for number, file in enumerate(files, 1):
                    os.dup2(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644), number)
                status = _command(arguments)
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(status)
        _, code = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(code), flush=True)


def _command(arguments: list[str]) -> int:
    import traceback

    from eigenscape.cli.app import main as eigenscape_main

    sys.argv = ["eigenscape", *arguments]
    try:
        eigenscape_main()
    except SystemExit as end:
        return int(end.code or 0)
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


if __name__ == "__main__":
    main()

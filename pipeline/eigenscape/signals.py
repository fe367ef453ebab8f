"""SIGTERM, as queues and service managers send it, ends a command like Ctrl-C does."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def stopped_by_sigterm() -> Iterator[None]:
    """Turn SIGTERM into `KeyboardInterrupt`: tables are written and processes ended on the way out.

    Call it in the main thread.
    """

    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)

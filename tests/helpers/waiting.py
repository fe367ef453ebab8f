"""Waiting for what another process does."""

import time
from collections.abc import Callable


def wait_until(what: Callable[[], object], seconds: float = 60) -> None:
    """Wait until something is so; fail when it is not in time."""
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end
        time.sleep(0.1)

"""Ctrl-C, and SIGTERM as queues and service managers send it: what they end, and what is said."""

import gc
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_SHOW_CURSOR = "\x1b[?25h"

_AGAIN = 0.02
"""Seconds until a signal comes again that came where it could raise nothing."""


@contextmanager
def stopped_by_sigterm() -> Iterator[None]:
    """Turn SIGTERM into `KeyboardInterrupt`: tables are written and processes ended on the way out.

    Call it in the main thread.
    """

    def interrupt(number: int, frame: FrameType | None) -> None:
        if not put_off(number, frame):
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def stopped_by_ctrl_c() -> Iterator[None]:
    """Answer Ctrl-C at once, and end the process at the second one.

    The first raises `KeyboardInterrupt` as ever: jobs are cancelled and processes ended on the way
    out, which can take a while.
    """
    ours = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if not ours or threading.current_thread() is not threading.main_thread():
        yield  # a caller has an answer of its own
        return
    asked = False

    def interrupt(number: int, frame: FrameType | None) -> None:
        nonlocal asked
        if put_off(number, frame):
            return
        if asked:
            _say("ended. What is finished is kept: the same command goes on from there.")
            os._exit(130)
        asked = True
        _say("stopping ... (Ctrl-C again ends it at once)")
        raise KeyboardInterrupt

    signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def put_off(number: int, frame: FrameType | None) -> bool:
    """Return whether a signal came where exceptions are dropped; then it comes again, a little later.

    Python ignores what is raised in callbacks of the garbage collector (distributed registers one)
    and in finalizers.
    """
    callbacks = {
        code
        for callback in gc.callbacks
        if (code := getattr(getattr(callback, "__func__", callback), "__code__", None))
    }
    while frame is not None:
        if frame.f_code in callbacks or frame.f_code.co_name == "__del__":
            thread = threading.main_thread().ident
            assert thread is not None
            timer = threading.Timer(_AGAIN, signal.pthread_kill, (thread, number))
            timer.daemon = True
            timer.start()
            return True
        frame = frame.f_back
    return False


def _say(text: str) -> None:
    # Not by `print`: what is interrupted may be within it. A bar of progress hides the cursor.
    cursor = _SHOW_CURSOR if sys.stderr.isatty() else ""
    os.write(2, f"{cursor}\neigenscape: {text}\n".encode())

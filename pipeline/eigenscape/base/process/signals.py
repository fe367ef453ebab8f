"""Ctrl-C, SIGTERM of queues and services, SIGHUP of terminals that close: how they end a command."""

import gc
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing import resource_tracker
from types import FrameType
from typing import Any

_SHOW_CURSOR = "\x1b[?25h"

_AGAIN = 0.02
"""Seconds until a signal comes again that came where it could raise nothing."""

_UNTOUCHED: dict[signal.Signals, Callable[[int, FrameType | None], Any] | signal.Handlers] = {
    signal.SIGINT: signal.default_int_handler,
    signal.SIGTERM: signal.SIG_DFL,
    signal.SIGHUP: signal.SIG_DFL,
}
"""Signals that stop a command, with their handlers where neither a caller nor ``nohup`` has set another."""


class StoppedBySignal(KeyboardInterrupt):
    """A signal stops the command.

    Parameters
    ----------
    number
        Number of the signal.

    Attributes
    ----------
    exit_status
        Exit status of a process that the signal ends, as shells report it.
    """

    def __init__(self, number: int) -> None:
        super().__init__()
        self.exit_status = 128 + number


@contextmanager
def stopped_by_signals() -> Iterator[None]:
    """Stop the block in an orderly way at Ctrl-C, SIGTERM or SIGHUP; end the process at a further Ctrl-C.

    The first signal raises `StoppedBySignal`: jobs are cancelled, processes ended and tables written on
    the way out, which can take a while. Further SIGTERM and SIGHUP are ignored, as terminals, shells and
    ``timeout`` send them twice. Signals that have other handlers, or are ignored, stay as they are.
    """
    ours = [one for one, handler in _UNTOUCHED.items() if signal.getsignal(one) is handler]
    if threading.current_thread() is not threading.main_thread():
        ours = []  # only the main thread may set handlers
    owner, stopping = os.getpid(), False

    def stop(number: int, frame: FrameType | None) -> None:
        nonlocal stopping
        if os.getpid() != owner:
            # A fork has the handlers of its parent; its parent ends it.
            signal.signal(number, _UNTOUCHED[signal.Signals(number)])
            signal.raise_signal(number)
        elif put_off(number, frame):
            return
        elif not stopping:
            stopping = True
            again = " again" if number == signal.SIGINT else ""
            _say(f"stopping ... (Ctrl-C{again} ends it at once)")
            raise StoppedBySignal(number)
        elif number == signal.SIGINT:
            _say("ended. What is finished is kept: the same command goes on from there.")
            os._exit(128 + number)

    for one in ours:
        signal.signal(one, stop)
    try:
        yield
    finally:
        for one in ours:
            signal.signal(one, _UNTOUCHED[one])


def start_resource_tracker() -> None:
    """Start the process that tracks the resources of multiprocessing so that no SIGHUP ends it.

    It ignores Ctrl-C and SIGTERM, and ends with this process. Where a terminal that closes ends it
    first, it is started anew while everything stops, and prints tracebacks.
    """
    # A process inherits the signals that the thread blocks which starts it.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGHUP})
    try:
        resource_tracker.ensure_running()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


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
    with suppress(OSError):  # the terminal may be gone
        os.write(2, f"{cursor}\neigenscape: {text}\n".encode())

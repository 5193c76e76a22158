"""Ctrl-C and requests to end, made to arrive between steps and never inside one."""

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

REQUESTS_TO_END = (signal.SIGTERM, signal.SIGHUP)


@contextmanager
def orderly_end() -> Iterator[None]:
    """Let SIGTERM and SIGHUP unwind the `with` blocks, as Ctrl-C does: by SystemExit."""

    def unwind(number: int, _frame: FrameType | None) -> None:
        sys.exit(128 + number)

    previous = {each: signal.getsignal(each) for each in REQUESTS_TO_END}
    try:
        for each in REQUESTS_TO_END:
            signal.signal(each, unwind)
        yield
    finally:
        for each, handler in previous.items():
            signal.signal(each, handler)


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Hold back signals that arrive inside the block and deliver them at its end.

    They are held by handlers, not by a signal mask: a mask would be inherited by the programs started inside.
    Python runs handlers in the main thread alone, so in any other thread there is nothing to hold.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    arrived: list[int] = []
    held = (signal.SIGINT, *REQUESTS_TO_END)
    previous = {each: signal.getsignal(each) for each in held}
    try:
        for each in held:
            signal.signal(each, lambda number, _frame: arrived.append(number))
        yield
    finally:
        for each, handler in previous.items():
            signal.signal(each, handler)
        for number in arrived:
            signal.raise_signal(number)

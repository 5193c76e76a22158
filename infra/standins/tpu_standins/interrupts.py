"""Signal handling: SIGINT, SIGTERM and SIGHUP are delivered between steps, never in the middle of one."""

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

REQUESTS_TO_END = (signal.SIGTERM, signal.SIGHUP)


@contextmanager
def orderly_end() -> Iterator[None]:
    """Make SIGTERM and SIGHUP raise SystemExit, so that they unwind `with` blocks as Ctrl-C does.

    SIGINT raises KeyboardInterrupt even where it was ignored: shells ignore it in what they start in the background.
    """

    def unwind(number: int, _frame: FrameType | None) -> None:
        sys.exit(128 + number)

    previous = {each: signal.getsignal(each) for each in (signal.SIGINT, *REQUESTS_TO_END)}
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        for each in REQUESTS_TO_END:
            signal.signal(each, unwind)
        yield
    finally:
        for each, handler in previous.items():
            signal.signal(each, handler)


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Defer signals that arrive inside the block and deliver them when it ends.

    Handlers defer them, not a signal mask: programs started inside the block would inherit a mask.
    Python runs signal handlers only in the main thread, so in any other thread there is nothing to defer.
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

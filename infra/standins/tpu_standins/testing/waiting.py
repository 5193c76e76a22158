"""Waiting for what comes, however slow the machine is: what hangs fails after PATIENCE_SECONDS."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from tpu_standins.patience import PATIENCE_SECONDS

SOONEST_SECONDS, LATEST_SECONDS = 0.02, 0.5
"""The first pause between two looks, and the longest: a look may start a process, which takes others' time."""
T = TypeVar("T")


def until(look: Callable[[], T], what: str | Callable[[], object]) -> T:
    """Look until there is something true, and return it; if nothing comes, fail with `what`.

    What is looked for must stay once it is there: anything else may come and go between two looks.
    """
    deadline, pause = time.monotonic() + PATIENCE_SECONDS, SOONEST_SECONDS
    while True:
        late = time.monotonic() >= deadline
        if found := look():
            return found
        assert not late, f"waited {PATIENCE_SECONDS:.0f} s for {what() if callable(what) else what}"
        time.sleep(pause)
        pause = min(LATEST_SECONDS, 1.5 * pause)


@contextmanager
def beside(run: Callable[[], object], stop: Callable[[], object]) -> Iterator[None]:
    """Run something in a thread, which must end once it is stopped; it is, also where the test fails."""
    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        stop()
        thread.join(PATIENCE_SECONDS)
        assert not thread.is_alive()

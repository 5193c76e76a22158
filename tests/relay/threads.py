"""What a test runs beside itself."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from infra.local.patience import PATIENCE_SECONDS


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

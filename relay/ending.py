"""How the programs in the cluster end."""

from __future__ import annotations

import os
import sys
from typing import NoReturn


def end(code: int) -> NoReturn:
    """End the process without a word to its threads: all that had to be said is said.

    Otherwise Python waits for calls of clients that are under way, and their libraries abort if a thread uses them
    while they are taken down.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)

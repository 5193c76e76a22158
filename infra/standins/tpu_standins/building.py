"""Kubernetes' own control plane, and the controllers of others beside it: found, or built from their sources.

`python -m tpu_standins.building` says first how long it takes in all. What is complete stays, whatever becomes of the
rest.
"""

import argparse
import os
import sys
from collections.abc import Mapping

from tpu_standins.controllers import build as controllers
from tpu_standins.interrupts import orderly_end
from tpu_standins.kubernetes import build as control_plane
from tpu_standins.kubernetes.build import Tell

INTERRUPTED = 130


def provide(environment: Mapping[str, str], tell: Tell) -> int:
    """Build what is not there, and say what is used. Return the exit code."""
    if minutes := control_plane.minutes_left(environment) + controllers.minutes_left(environment):
        tell(f"To be built: some {minutes} minutes of two processors in all. If interrupted, it goes on from there.")
    return control_plane.provide(environment, tell) or controllers.provide(environment, tell)


def main() -> int:
    """Provide it, with lines that go to the terminal as they come. Return the exit code."""
    argparse.ArgumentParser(prog="python -m tpu_standins.building", description=__doc__).parse_args()
    try:
        with orderly_end():
            return provide(os.environ, lambda line: print(line, flush=True))
    except KeyboardInterrupt:
        print("Interrupted; the next build goes on where this one was, from Go's cache.", file=sys.stderr)
        return INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())

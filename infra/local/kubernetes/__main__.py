"""`make kubernetes`: the programs of a control plane, found or built; which ones are used is said in a line."""

import os
import sys
from collections.abc import Callable, Mapping

from infra.local.interrupts import orderly_end
from infra.local.kubernetes.build import build
from infra.local.kubernetes.programs import find
from infra.local.kubernetes.toolchain import NotBuilt
from infra.local.kubernetes.versions import pinned

INTERRUPTED = 130
NOT_THERE = "NO KUBERNETES {version}: its tests are skipped, with CI=true they fail. {why}"


def provide(environment: Mapping[str, str], tell: Callable[[str], None]) -> int:
    """Find the programs, or build them. Return the exit code."""
    version = pinned()
    found = find(environment, version)
    for remark in found.remarks:
        tell(remark)
    if found.programs is None:
        try:
            build(environment, tell)
        except (NotBuilt, OSError) as problem:
            tell(NOT_THERE.format(version=version, why=problem))
            return 1
        found = find(environment, version)
    tell(str(found.programs))
    return 0


def main() -> int:
    """Run it for people: lines go to the terminal as they come."""
    try:
        with orderly_end():
            return provide(os.environ, lambda line: print(line, flush=True))
    except KeyboardInterrupt:
        print("Interrupted; the next build goes on where this one was, from Go's cache.", file=sys.stderr)
        return INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())

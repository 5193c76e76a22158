"""`make kubernetes`: the programs of a control plane, found or built; which ones are used is said in a line."""

import sys
from collections.abc import Callable, Mapping

from infra.local.kubernetes.build import build, for_people
from infra.local.kubernetes.programs import find
from infra.local.kubernetes.toolchain import NotBuilt
from infra.local.kubernetes.versions import pinned

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


if __name__ == "__main__":
    sys.exit(for_people(provide))

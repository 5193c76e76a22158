"""`python -m tests.domain.gangs.contended --seeds 10000`: plays contentions on all processors, as `make proof` does.

Exit code 1: a promise was broken in one.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from datetime import timedelta

from tests.domain.gangs.contention import (
    CHIPS,
    LIMITS,
    LONGEST_CREATION,
    MINUTE,
    NAMESPACES,
    SHORT_UNTIL,
    Contention,
    a_contention,
)

SLACK = 3
"""Minutes by which a decision may be late."""
MOST_OFTEN = 12
"""How often a gang lets slices go that stood before it starts, at most."""
OVER_WITHIN = 24 * 60
"""In how many minutes all gangs have started once all capacity is there."""


class Broken(AssertionError):
    """A promise was broken."""


def minutes(time: timedelta) -> int:
    return time // MINUTE


HELD_AT_MOST = minutes(LIMITS.gang_hold_for) + LONGEST_CREATION + SLACK
"""While others could not be made; and once they are being made, these stand within the longest creation."""
IDLE_AT_MOST = HELD_AT_MOST
"""For how many minutes each slice of a gang but one is idle before it starts, at most and on the average."""
BOTH_AT_MOST = minutes(LIMITS.gang_yield_after) + SLACK


def played(seed: int) -> Contention:
    """Return a contention after its end; raise Broken for what may not happen meanwhile."""
    world = a_contention(seed)
    while not world.over:
        world.plays_a_minute()
        _look(world, f"seed {seed}, minute {world.minute}")
    return world


def _look(world: Contention, when: str) -> None:
    if world.minute > SHORT_UNTIL + OVER_WITHIN:
        waiting = [each.name for each in world.gangs if each.started is None and not each.never_fits]
        raise Broken(f"{when}: {waiting} have not started")
    for each in world.gangs:
        held = world.minute - each.lacked_since if each.lacked_since is not None else 0
        if held > HELD_AT_MOST:
            raise Broken(f"{when}: {each.name} has held {each.standing} of {each.size} slices for {held} minutes")
        if each.gave_back > MOST_OFTEN:
            raise Broken(f"{when}: {each.name} has let slices go {each.gave_back} times")
    for first, second, both in world.halves():
        if both > BOTH_AT_MOST:
            raise Broken(f"{when}: {first} and {second} have waited for each other for {both} minutes")


def starts_or_never_fits(seed: int) -> None:
    """Play a contention; raise Broken unless each gang starts that a limit of chips would ever let start."""
    world = played(seed)
    limits = {each: world.settings.policy.limits(each).values() for each in NAMESPACES}
    too_large = {it.name for it in world.gangs if CHIPS * it.size > min(limits[it.namespace], default=CHIPS * it.size)}
    never = {each.name for each in world.gangs if each.never_fits}
    if never != too_large:
        raise Broken(f"seed {seed}: {never} are told that they never fit, and {too_large} do not")
    if {*world.starts} != {each.name for each in world.gangs} - too_large:
        raise Broken(f"seed {seed}: {sorted(world.starts)} have started")
    _is_cheap(world, seed)


def _is_cheap(world: Contention, seed: int) -> None:
    """Raise Broken if slices were idle for more than one whole time of holding for each start.

    Who held in vain goes behind the others, and who is first makes the others give up theirs.
    """
    most = sum((each.size - 1) * IDLE_AT_MOST for each in world.gangs if each.started is not None)
    if world.idle > most:
        raise Broken(f"seed {seed}: slices were idle for {world.idle} minutes, and {most} are the most")


def _broken(seed: int) -> str:
    """Return what was broken; empty: nothing."""
    try:
        starts_or_never_fits(seed)
    except Broken as broken:
        return str(broken)
    return ""


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Fifty gangs each that contend for capacity that comes and goes.")
    parser.add_argument("--seeds", type=int, default=200, help="how many contentions, each of its own seed")
    parser.add_argument("--from", type=int, default=0, dest="first", help="the first seed")
    asked = parser.parse_args(argv)
    with ProcessPoolExecutor(os.cpu_count()) as processes:
        found = [*processes.map(_broken, range(asked.first, asked.first + asked.seeds), chunksize=8)]
    broken = [each for each in found if each]
    told = (*broken, f"{len(found):,} contentions of fifty gangs, {len(broken)} broken")
    sys.stdout.writelines(f"{each}\n" for each in told)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())

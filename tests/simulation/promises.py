"""What the system promises whatever goes wrong, each a check on a simulated world.

| promise         | is broken by                                                                      | looked at     |
|-----------------|-----------------------------------------------------------------------------------|---------------|
| no theft        | a deletion of a pool that is not ours, or under a pod of a live Job, or that ends | at a deletion |
| no double       | a creation beside a pool that could serve its Job, or under a name deleted before | at a creation |
| no stale buying | a creation for a slice that no leader was reported to wait for since `demand_ttl` | at a creation |
| no overrun      | a creation of more chips than the cluster may hold, with all that are bought; an  | at a creation |
|                 | operation beyond those at a time; more slices of missing workloads deleted than   | or deletion   |
|                 | the brake allows, before an operator confirms it                                  |               |
|                 | pods of a namespace on more chips than it may hold                                | each minute   |
| no pile         | more than two slices that stand for the Jobs of one name, if nothing goes wrong   | each minute   |
| no defiance     | a creation or deletion in a cluster that is paused, or for a slice that is held;  | the same      |
|                 | a creation for a namespace that may request nothing; each for longer than an      |               |
|                 | instance may stand still                                                          |               |
| no stray        | a pool of ours that no record knows                                               | at each step  |
| one claim       | a claim that has two slices                                                       | at each step  |
| books balance   | a claim that says that nothing is left of it, while a pool that it had last       | at each step  |
|                 | stands                                                                            |               |
| no silence      | a slice that is not READY, and does not say why, or waits and is not looked at    | at each step  |
| true reports    | in calm, a JobSet's report that says other than what it has                       | in the end    |
| known users     | in calm, a Job on a slice that its claim does not have, and the slice does not    | in the end    |
|                 | say so                                                                            |               |
| own hosts       | pods of two Jobs on a slice, each pinned by its key                               | each minute   |
| no half gang    | a pod of a gang that is let go while not all of its slices stand, as far as the   | at each step  |
|                 | relay can see                                                                     |               |
| no hoard        | a gang of which some slices stand unused, and others do not, for longer than the  | each minute   |
|                 | settings have them held                                                           |               |
| wanted          | a pool that neither its claim needs nor a live pod uses, after an hour of minutes | each minute   |
|                 | in which nothing goes wrong                                                       |               |
| warmth ends     | a slice that is kept warm for longer than the settings say, with more than three  | each minute   |
|                 | minutes in which nothing goes wrong                                               |               |
| own rungs       | a creation at no rung of its workload's ladder, as what the policy does not       | at a creation |
|                 | allow its namespace, or where it costs more than the rung may                     |               |
| one zone        | a creation for a workload with a ladder of one zone, in another zone than slices  | at a creation |
|                 | that it has, or that are made for it; not of a gang that has not started          |               |
| no hammering    | a creation of a workload with a ladder where that many hosts are known to be out  | at a creation |
|                 | of stock: before the pause after the last refusal is over, or beside another one  |               |
| no overbooking  | an order in a reservation before its start, or after its end; or beside others    | at a creation |
|                 | that have all of the hosts that were free when it was looked at last              |               |
| spares stand    | in calm, a spare that the settings ask for and that does not stand, though all    | in the end    |
|                 | live Jobs have their slices, its chips fit into the limits, and pods are pinned   |               |
| bounded cost    | in calm, a write on a slice that is READY or GONE; more than one look a minute at | in the end    |
|                 | a slice that waits, or more than one in three minutes at another; more messages,  |               |
|                 | reads or writes than a story says that its minutes may cost; more than a look at  |               |
|                 | a reservation in 15 minutes, and two more in the time that is watched             |               |
| fair turns      | a namespace that gets over five slots more than that of a slice that has          | at a creation |
|                 | waited longer; a slice that is not requested in the time that its story says      |               |
| converges       | in calm, a live Job without its slice, or a pool that nobody uses                 | in the end    |
| no leak         | a pool that nobody wants, and whose deletion was not requested within two sweeps  | in the end    |
|                 | though there was a slot; anything that is left after that                         |               |
"""

from __future__ import annotations

from enum import StrEnum

from tpu_slices_simulator.simulation import Simulation


class Promise(StrEnum):
    NO_THEFT = "no theft"
    NO_DOUBLE = "no double"
    NO_STALE_BUYING = "no stale buying"
    NO_OVERRUN = "no overrun"
    NO_PILE = "no pile"
    NO_DEFIANCE = "no defiance"
    NO_STRAY = "no stray"
    ONE_CLAIM = "one claim"
    BOOKS_BALANCE = "books balance"
    NO_SILENCE = "no silence"
    TRUE_REPORTS = "true reports"
    KNOWN_USERS = "known users"
    OWN_HOSTS = "own hosts"
    NO_HALF_GANG = "no half gang"
    NO_HOARD = "no hoard"
    WANTED = "wanted"
    WARMTH_ENDS = "warmth ends"
    OWN_RUNGS = "own rungs"
    ONE_ZONE = "one zone"
    NO_HAMMERING = "no hammering"
    NO_OVERBOOKING = "no overbooking"
    SPARES_STAND = "spares stand"
    BOUNDED_COST = "bounded cost"
    FAIR_TURNS = "fair turns"
    CONVERGES = "converges"
    NO_LEAK = "no leak"


LOST_WITH_THE_DATABASE = frozenset(
    {Promise.NO_DOUBLE, Promise.NO_STRAY, Promise.NO_OVERRUN, Promise.ONE_CLAIM, Promise.BOOKS_BALANCE}
)
"""What may come of a pool that was made in the minutes that the database lost, until the inventory check finds it."""
RECOVERED_WITHIN = 30
"""Minutes after the database was set back."""


class Broken(BaseException):
    """A promise that did not hold. No flow may take it for an error of its own, such as a sweep that others overlap."""

    def __init__(self, promise: Promise, seen: str) -> None:
        super().__init__(f"{promise}: {seen}")
        self.promise = promise


def broken(promise: Promise, seen: str, world: Simulation) -> None:
    """Raise Broken, unless the database was set back lately, and what it lost explains it."""
    at = world.was_set_back_at
    if promise in LOST_WITH_THE_DATABASE and at is not None and world.minute <= at + RECOVERED_WITHIN:
        return
    raise Broken(promise, f"at {world.clock.now():%d %H:%M:%S}, {seen}")

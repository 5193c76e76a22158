"""Many gangs that want the same capacity, which comes and goes: decided on as in production, and nothing else is real.

Each minute capacity changes, slices come, stand and go, and each gang is decided on, in any order. Who may ask for
slices takes what is there, whoever is meant to have it: only what `deciding` says keeps gangs from each other's way.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cache, cached_property
from itertools import pairwise
from random import Random

from tests.builders import NOW, a_job, a_record, a_spec, settings, some_hosts
from tpu_slices.domain.gangs import deciding
from tpu_slices.domain.gangs.members import Members
from tpu_slices.domain.model.clusters import Allowed, ClusterSettings, Limits, Policy
from tpu_slices.domain.model.reasons import Phase, Reason
from tpu_slices.domain.model.slices import WorkloadUid
from tpu_slices.domain.planning.policy import Held
from tpu_slices.domain.records.gangs import Gang, GangKey, InLine, gang_key, reserved
from tpu_slices.domain.records.slices import SliceRecord

MINUTE = timedelta(minutes=1)
CHIPS = 16
"""Of a slice."""
LIMITS = Limits()
SHORT_UNTIL = 12 * 60
"""The minute from which on all capacity is there."""
LONGEST_RUN = 60
"""Minutes."""
LONGEST_CREATION = 8
"""Minutes."""
NAMESPACES = ("research", "teaching", "serving")


@cache
def _slice(state: str, zone: str, index: int) -> SliceRecord:
    spec, job = a_spec(zone=zone), a_job(job_index=index)
    if state == "stuck":
        return a_record(job=job, spec=spec, phase=Phase.WAITING, reason=Reason.STOCKOUT, message="There is none.")
    made = {"job": job, "spec": spec, "ordered": spec, "create_requested_at": NOW}
    if state == "made":
        return a_record(**made, phase=Phase.PROVISIONING, reason=Reason.CREATING)
    return a_record(**made, phase=Phase.READY, hosts=some_hosts())


class Fixed(Members):
    """Slices that never change: what follows from them is worked out once, as `Members` does."""

    satisfied = cached_property(Members.satisfied.__get__)
    chips = cached_property(Members.chips.__get__)
    lacks = cached_property(Members.lacks.__get__)
    holds = cached_property(Members.holds.__get__)
    wants = cached_property(Members.wants.__get__)
    of_reservations = cached_property(Members.of_reservations.__get__)
    costs_nothing = cached_property(Members.costs_nothing.__get__)


@cache
def _members(zone: str, size: int, standing: int, has: int, *, asks: bool) -> Members:
    """Return so many slices of a gang; `asks`: those that it has not were asked for, and there was no capacity."""
    lacks = "stuck" if asks else "made"
    states = ["standing"] * standing + ["made"] * (has - standing) + [lacks] * (size - has)
    every = [(state, _slice(state, zone, index)) for index, state in enumerate(states)]
    found = {each: [record for state, record in every if state == each] for each in ("standing", "stuck", "made")}
    return Fixed(standing=found["standing"], stuck=found["stuck"], made=found["made"])


@dataclass(slots=True)
class Contender:
    """A gang, and the slices that it has: all of one zone."""

    name: str
    namespace: str
    zone: str
    size: int
    arrives: int
    """In which minute."""
    runs_for: int
    """For how many minutes, once all of its slices stand."""
    gang: Gang
    coming: list[int] = field(default_factory=list)
    """In which minute each slice stands that is being made."""
    standing: int = 0
    started: int | None = None
    """In which minute; None: it has not."""
    lacked_since: int | None = None
    """Since which minute some of its slices have stood without the others."""
    asks: bool = False
    """Whether it asked for more slices than there were."""
    gave_back: int = 0
    """How often it let slices go that stood."""

    @property
    def key(self) -> GangKey:
        return gang_key(WorkloadUid(self.name), "all")

    @property
    def has(self) -> int:
        return self.standing + len(self.coming)

    @property
    def never_fits(self) -> bool:
        return self.gang.reason is Reason.GANG_TOO_LARGE

    @property
    def is_stuck(self) -> bool:
        """Whether some of its slices stand, and the others are not being made."""
        return self.lacked_since is not None and not self.coming

    @property
    def members(self) -> Members:
        """Its slices as `deciding` sees them."""
        return _members(self.zone, self.size, self.standing, self.has, asks=self.asks)


@dataclass(slots=True)
class Contention:
    """Gangs and the capacity that they contend for, drawn by a seed."""

    chance: Random
    gangs: Sequence[Contender]
    capacity: Mapping[str, Sequence[int]]
    """By zone, how many slices it has in each hour; the last number counts from then on."""
    settings: ClusterSettings
    minute: int = 0
    going: list[tuple[int, str, str]] = field(default_factory=list)
    """When slices are gone that were let go, of which zone, and of which namespace."""
    taken: Counter[str] = field(default_factory=Counter)
    """By zone, how many slices stand, are being made, or are not gone yet."""
    bought: Counter[str] = field(default_factory=Counter)
    """The same by namespace."""
    line: dict[GangKey, InLine] = field(default_factory=dict)
    starts: list[str] = field(default_factory=list)
    idle: int = 0
    """Minutes of slices that stood while their gang lacked others."""

    @property
    def now(self) -> datetime:
        return NOW + self.minute * MINUTE

    @property
    def over(self) -> bool:
        """Whether each gang has started, or never fits."""
        return all(each.started is not None or each.never_fits for each in self.gangs)

    def free(self, zone: str) -> int:
        """Return how many slices a zone has beyond those that stand, are being made, or are not gone yet."""
        hours = self.capacity[zone]
        return hours[min(self.minute // 60, len(hours) - 1)] - self.taken[zone]

    def plays_a_minute(self) -> None:
        """Have slices come and go, and decide on each gang that is there, in any order."""
        self.minute += 1
        gone = [each for each in self.going if each[0] <= self.minute]
        self.taken.subtract(zone for _, zone, _ in gone)
        self.bought.subtract(namespace for *_, namespace in gone)
        self.going = [each for each in self.going if each[0] > self.minute]
        there = [each for each in self.gangs if each.arrives <= self.minute]
        self.chance.shuffle(there)
        for each in there:
            each.standing += sum(at <= self.minute for at in each.coming)
            each.coming = [at for at in each.coming if at > self.minute]
            if each.started is not None and self.minute >= each.started + each.runs_for:
                self._lets_go(each)
            elif each.started is None and not each.never_fits:
                self._decides(each)

    def _decides(self, each: Contender) -> None:
        self.line.pop(each.key, None)
        case = self._case(each)
        each.gang = deciding.decided(case)
        if (place := deciding.in_line(case, each.gang)) is not None:
            self.line[each.key] = place
        if each.gang.waits:
            each.gave_back += bool(each.standing)
            self._lets_go(each)
        elif each.gang.forms:
            self._asks(each)
        else:
            each.started = self.minute
            self.line.pop(each.key, None)
            self.starts.append(each.name)
        held = each.started is None and bool(each.standing)
        each.lacked_since = (each.lacked_since or self.minute) if held else None
        self.idle += each.standing if held else 0

    def _case(self, each: Contender) -> deciding.Case:
        held = None
        if self.settings.policy.counts(each.namespace):
            held = Held(
                in_namespace=CHIPS * (self.bought[each.namespace] - each.has) + reserved(self.line, each.namespace),
                in_cluster=CHIPS * (self.bought.total() - each.has) + reserved(self.line),
            )
        return deciding.Case(
            workload=WorkloadUid(each.name),
            name=each.name,
            namespace=each.namespace,
            key=each.key,
            gang=each.gang,
            members=each.members,
            line=self.line,
            now=self.now,
            settings=self.settings,
            held=held,
        )

    def _allowed(self, namespace: str) -> int:
        """Return how many slices the limits of chips allow, as each creation is held against them, too."""
        bought = {"chips_per_namespace": self.bought[namespace], "chips_per_cluster": self.bought.total()}
        limits = self.settings.policy.limits(namespace)
        return min((most // CHIPS - bought[each] for each, most in limits.items()), default=len(self.gangs))

    def _asks(self, each: Contender) -> None:
        """Begin to make what it lacks, as far as there is capacity, and the limit of chips allows it."""
        got = max(0, min(each.size - each.has, self.free(each.zone), self._allowed(each.namespace)))
        each.coming += [self.minute + self.chance.randint(3, LONGEST_CREATION) for _ in range(got)]
        each.asks = each.has < each.size
        self.taken[each.zone] += got
        self.bought[each.namespace] += got

    def _lets_go(self, each: Contender) -> None:
        gone = [self.minute + self.chance.randint(2, 6) for _ in range(each.has)]
        self.going += [(at, each.zone, each.namespace) for at in gone]
        each.standing, each.coming, each.asks = 0, [], False

    def halves(self) -> Iterator[tuple[str, str, int]]:
        """Yield two gangs that each hold slices of a zone and lack others there, and for how many minutes both have."""
        for zone in self.capacity:
            stuck = [each for each in self.gangs if each.zone == zone and each.is_stuck]
            for first, second in pairwise(stuck):
                since = max(first.lacked_since or 0, second.lacked_since or 0)
                yield first.name, second.name, self.minute - since


def a_contention(seed: int) -> Contention:
    """Return fifty gangs of one to eight slices in two zones that are short for twelve hours, and then are not.

    They are of three namespaces. In half of them a limit of chips holds, and in a third one for each namespace: some
    gangs exceed these by themselves.
    """
    chance = Random(seed)
    zones = {zone: chance.randint(8, 16) for zone in ("us-central2-b", "us-central2-c")}
    limit = CHIPS * chance.randint(6, 30) if chance.random() < 0.5 else None
    of_namespaces = Random(f"{seed} namespaces")  # by itself, so that all else is drawn as without namespaces
    each_namespace = CHIPS * of_namespaces.randint(4, 16) if of_namespaces.random() < 1 / 3 else None
    policy = Policy(everyone=Allowed(chips_per_namespace=each_namespace), chips_per_cluster=limit)
    return Contention(
        chance=chance,
        gangs=tuple(_drawn(number, chance, [*zones]) for number in range(50)),
        capacity={
            zone: (*(chance.randint(0, most) for _ in range(SHORT_UNTIL // 60)), most) for zone, most in zones.items()
        },
        settings=settings(limits=LIMITS, policy=policy),
    )


def _drawn(number: int, chance: Random, zones: Sequence[str]) -> Contender:
    size, arrives = chance.randint(1, 8), chance.randint(1, SHORT_UNTIL // 2)
    at = NOW + arrives * MINUTE
    gang = Gang(replicated_jobs=("slice",), claims=size, chips=CHIPS * size, since=at, state_since=at, lacks_since=at)
    runs_for = chance.randint(5, LONGEST_RUN)
    namespace = NAMESPACES[number % len(NAMESPACES)]
    return Contender(f"gang-{number:02}", namespace, chance.choice(zones), size, arrives, runs_for, gang)

"""A story: which workloads there are and when, and what goes wrong and when. Plain data; times are minutes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from tpu_slices.domain.model.clusters import ClusterSettings
from tpu_slices.domain.model.facts import Pinning
from tpu_slices.domain.model.slices import CapacityKind, OwnerKind, SliceSpec
from tpu_slices.domain.planning.sharing import slices_of
from tpu_slices.wire.readers import READERS
from tpu_slices.wire.workloads import Json


class Kind(StrEnum):
    """What goes wrong. The share of a fault is of messages, calls, operations, or of pools in each minute."""

    MESSAGES_LOST = "messages lost"
    """Facts of the relay never arrive."""
    MESSAGES_DOUBLED = "messages doubled"
    MESSAGES_LATE = "messages late"
    """Facts arrive up to two hours later, after newer ones."""
    NEWS_LOST = "news lost"
    """A fact is lost when it first says what it says; so are requests of all but the sweep: the rest is repetition."""
    REQUESTS_LOST = "requests lost"
    """Reconcile requests never arrive: dead-lettered, or the log sink is silent."""
    REQUESTS_OLD = "requests old"
    """Reconcile requests of the past arrive again."""
    FUNCTIONS_CRASH = "functions crash"
    """A process is gone right after a side effect."""
    FUNCTIONS_STALL = "functions stall"
    """An instance stands still between remember and act for up to eight minutes, and goes on."""
    FUNCTIONS_OVERLAP = "functions overlap"
    """Other messages are handled between the reads of one, and before its write."""
    CLOCKS_DIFFER = "clocks differ"
    """The clock of an instance is up to 20 minutes ahead or behind."""
    STORE_CONTENDED = "store contended"
    """Commits are refused since somebody else wrote first."""
    STORE_DOWN = "store down"
    PUBLISHER_DOWN = "publisher down"
    GKE_UNAVAILABLE = "GKE unavailable"
    """503, before an order has an effect."""
    GKE_FORBIDS = "GKE forbids"
    """403."""
    GKE_ANSWERS_LOST = "GKE answers lost"
    """Orders are carried out, and time out."""
    GKE_BUSY = "GKE busy"
    """409 and 429 for creations: another operation runs, or too many calls are made."""
    GKE_FULL = "GKE full"
    """Operations of others leave room for one."""
    OPERATIONS_SLOW = "operations slow"
    """They take an hour longer."""
    OPERATIONS_FORGOTTEN = "operations forgotten"
    """Those of creations end without an end that anybody sees; ended ones are dropped."""
    STOCKOUT = "stockout"
    QUOTA = "quota"
    RESERVATION_USED_UP = "reservation used up"
    CREATIONS_FAIL = "creations fail"
    """With errors that say nothing; pools stay behind, with or without hosts."""
    DELETIONS_FAIL = "deletions fail"
    DELETIONS_REFUSED = "deletions refused"
    POOLS_WRECKED = "pools wrecked"
    """RUNNING_WITH_ERROR for some minutes."""
    POOLS_REPAIRED = "pools repaired"
    """GKE recreates all hosts of a pool, in minutes."""
    POOLS_UPGRADED = "pools upgraded"
    """For hours: all hosts are made anew, and have new names."""
    HOSTS_PREEMPTED = "hosts preempted"
    """They are asked for again, and come back after up to an hour and a half."""
    HOSTS_MAINTAINED = "hosts maintained"
    """Google maintains the machine of one for hours: its node is not ready meanwhile."""
    LABELS_REPLACED = "labels replaced"
    """Those of a pool of which a record knows, by hand: they do not say any more whose it is."""
    POOLS_DELETED = "pools deleted"
    """By hand, past the provisioner."""
    HOSTS_DIE = "hosts die"
    """They go without a word, and come again or do not."""
    HOSTS_TAKEN_BACK = "hosts taken back"
    """Those of flex-start, as at the end of their time."""
    HOSTS_CORDONED = "hosts cordoned"
    """By somebody else, for half an hour at most."""
    HOSTS_UNUSABLE = "hosts unusable"
    """A host of those that join never becomes ready."""
    LEADERS_LEAVE = "leaders leave"
    """Jobs restart: a pod fails, is evicted or preempted."""
    LEADERS_EVICTED = "leaders evicted"
    """Alone: the other pods of their Jobs run on."""
    LEADERS_END_FIRST = "leaders end first"
    """With success, up to half an hour before the other pods of their Jobs."""
    PODS_END_SLOWLY = "pods end slowly"
    """Pods that are deleted take up to ten minutes of grace, but for leaders."""
    LEADERS_ON_STATIC_POOLS = "leaders on static pools"
    """Waiting leaders find hosts that are nobody's slice, and run there."""
    STRANGERS = "strangers"
    """Pods of another namespace, with labels and owners of a leader, are put on hosts for half an hour at most."""
    RELAY_DOWN = "relay down"
    RELAY_RESTARTS = "relay restarts"
    RELAY_DOUBLED = "relay doubled"
    """A second one runs beside the first."""
    RELAY_EARLIER = "relay earlier"
    """An earlier version of it runs: its heartbeats have no digests, and it knows no question for a list."""
    WATCHES_HANG = "watches hang"
    """A watch of the relay shows nothing for up to five minutes."""
    CLUSTER_RECREATED = "cluster recreated"
    """It is deleted with all that is in it and made again under its name; so are the workloads."""
    RECORDS_EDITED = "records edited"
    """Somebody's edit of a slice's record makes it unreadable, for half an hour at most."""
    WORKLOADS_DELETED = "workloads deleted"
    """All at once, by mistake."""
    SETTINGS_INVALID = "settings invalid"
    """An operator's edit that cannot be accepted."""


PER_MINUTE = {
    Kind.POOLS_WRECKED, Kind.POOLS_REPAIRED, Kind.POOLS_DELETED, Kind.HOSTS_DIE, Kind.HOSTS_TAKEN_BACK,
    Kind.HOSTS_CORDONED, Kind.LEADERS_LEAVE, Kind.LEADERS_EVICTED, Kind.LEADERS_END_FIRST, Kind.RELAY_RESTARTS,
    Kind.STRANGERS, Kind.WATCHES_HANG, Kind.CLUSTER_RECREATED, Kind.RECORDS_EDITED, Kind.WORKLOADS_DELETED,
    Kind.LEADERS_ON_STATIC_POOLS, Kind.LABELS_REPLACED,
    Kind.POOLS_UPGRADED, Kind.HOSTS_PREEMPTED, Kind.HOSTS_MAINTAINED,
}  # fmt: skip
"""Their share is of each minute, so it is small."""
IN_ZONES = {Kind.STOCKOUT, Kind.QUOTA, Kind.RESERVATION_USED_UP, Kind.CREATIONS_FAIL}
"""They may happen in some zones only, to some capacity, and to slices of some size."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    kind: Kind
    at: int
    lasts: int
    share: float = 1.0
    zones: tuple[str, ...] = ()
    """Where, for a kind IN_ZONES; empty: everywhere."""
    capacity: CapacityKind | None = None
    """Of which capacity, for a kind IN_ZONES; None: of every one."""
    hosts: int = 1
    """The fewest hosts of a slice that it strikes, for a kind IN_ZONES."""
    for_good: bool = False
    """It goes on after the story, whatever else ends."""

    def is_on(self, minute: int) -> bool:
        return self.at <= minute < self.at + self.lasts

    def strikes(self, spec: SliceSpec | None) -> bool:
        """Return whether it strikes such a slice; None: anything at all."""
        if spec is None:
            return not self.zones and self.capacity is None and self.hosts == 1
        there = not self.zones or spec.zone in self.zones
        return there and self.capacity in {None, spec.capacity.kind} and spec.hosts >= self.hosts


@dataclass(frozen=True, slots=True, kw_only=True)
class Reserved:
    """A reservation, of the project of the cluster."""

    name: str
    hosts: int
    others: int = 0
    """Hosts that others use."""
    begins: int | None = None
    """The minute in which it is there: it is booked until then; None: it is there from the beginning."""
    ends: int | None = None
    """The minute in which Google deletes it, and the hosts of its slices; None: it stays."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Restless:
    """What a user does with a workload again and again, faster than minutes."""

    since: int
    until: int
    """From when to when, in minutes."""
    every: int
    """Seconds from one time to the next."""
    remakes: bool = False
    """Deletes it and creates it anew under its name; else suspends it and resumes it, in turn."""

    def acts(self, minute: int, second: int) -> bool:
        return self.since <= minute < self.until and ((minute - self.since) * 60 + second) % self.every == 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Plot:
    """What becomes of one workload."""

    name: str
    at: int
    manifest: Json
    """What its user writes."""
    namespace: str = "research"
    kind: OwnerKind = OwnerKind.JOBSET
    runs: int | None = None
    """It completes when it had all of its slices for so long; None: it does not complete by itself."""
    ends: int | None = None
    """None: it lives until the end, or until it completes."""
    deleted: bool = False
    """At its end; else it completes."""
    again: int = 0
    """How often it is created anew under its name, a minute after it was deleted: each life is as long as the first,
    but the last one has no end."""
    suspended: tuple[tuple[int, int], ...] = ()
    """From when to when."""
    edits: tuple[tuple[int, Json], ...] = ()
    """When its user writes it anew, and what."""
    restless: Restless | None = None
    begins_within: int | None = None
    """In how many minutes its slices are requested at the latest; None: nobody says so."""

    @property
    def id(self) -> str:
        return f"{self.namespace}/{self.name}"

    @property
    def lives(self) -> Iterator[tuple[int, int | None]]:
        """From when until when it lives, each time that it is created."""
        yield self.at, self.ends
        if self.ends is not None:
            length = self.ends - self.at
            starts = [self.ends + 1 + number * (length + 1) for number in range(self.again)]
            yield from ((start, None if start == starts[-1] else start + length) for start in starts)

    @property
    def slices(self) -> int:
        return sum(map(slices_of, READERS[self.kind].requests(self.manifest)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """The most that the minutes from one to another may cost in a cluster, each on average."""

    since: int
    until: int
    messages: float
    """That are delivered: to the functions and to the relay."""
    reads: float
    writes: float
    """Of Firestore's documents."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    seed: int
    """Of everything that the story does not say."""
    minutes: int
    """How long faults happen."""
    settings: ClusterSettings
    creation: tuple[int, int] = (1, 6)
    """Of a node pool: the fewest minutes and the most."""
    deletion: tuple[int, int] = (1, 6)
    crosses: bool = False
    """Whether nothing pins pods: leaders go to free hosts of others' slices, too."""
    slow_scheduler: bool = False
    """Whether each leader is unschedulable for a moment, also where its hosts are free."""
    flapping: bool = False
    """Whether no relay lives for more than two minutes."""
    policy_off: int | None = None
    """The minute from which nothing pins pods for an hour: the policy is off; None: it never is."""
    set_back: int | None = None
    """The minute in which the database is set back by ten minutes; None: it never is."""
    operated: bool = False
    """Whether operators pause the cluster now and then, hold slices, and edit the policy."""
    jobsets: tuple[Plot, ...] = ()
    faults: tuple[Fault, ...] = ()
    reservations: tuple[Reserved, ...] = ()
    """Without any none may be read, and all are there."""
    stockout: tuple[int, int] | None = None
    """The fewest minutes and the most until a creation without stock ends; None: as any creation."""
    costs: Costs | None = None

    def pinning(self, minute: int) -> Pinning:
        """Return by what pods that come in a minute are pinned to slices."""
        is_off = self.policy_off is not None and self.policy_off <= minute < self.policy_off + 60
        return Pinning.NOTHING if self.crosses or (is_off and minute < self.minutes) else Pinning.POLICY

    def on(self, minute: int, spec: SliceSpec | None = None) -> Mapping[Kind, float]:
        """Return the faults of a minute, with the greatest share of each: those that strike such a slice, if any."""
        shares: dict[Kind, float] = {}
        for fault in self.faults:
            happens = fault.for_good or minute < self.minutes
            if happens and fault.is_on(minute) and fault.strikes(spec):
                shares[fault.kind] = max(fault.share, shares.get(fault.kind, 0.0))
        return shares

"""Where slices may be made: places, and ladders of them; and how long capacity is kept that nobody uses now."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

from tpu_slices.domain.model.slices import CapacityKind, Pairs

LADDER = "tpu-provisioner.cloud.google.com/ladder"
"""The annotation of a workload, or of a pod template, that names its ladder."""
EXPECTED_DURATION = "tpu-provisioner.cloud.google.com/expected-duration"
"""The annotation of a workload, or of a pod template, that says how long its Jobs run."""
FRESH = "tpu-provisioner.cloud.google.com/fresh"
"""The annotation of a workload, or of a pod template, that refuses hosts that another namespace had."""
OF_NO_HOSTS = (LADDER, EXPECTED_DURATION, FRESH)
"""Those that say nothing of the hosts: a slice serves whatever they say."""
NO_LADDER = "none"
"""What it says for none, although there is one by default."""


class ZonesOf(StrEnum):
    """In how many zones the slices of one workload may be, in the words of the setting."""

    ONE = "one"  # what stands keeps the rest in its zone
    ANY = "any"


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where and how slices are made, by its name in settings."""

    capacity: CapacityKind
    zones: tuple[str, ...]
    """One after the other: each is a rung of its own."""
    reservation: str | None = None
    """`R`, or `projects/P/reservations/R`, with blocks if that is meant."""
    max_run: timedelta | None = None
    """How long GKE leaves flex-start hosts to a slice; None: as the settings say otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rung:
    """A place of a ladder, and how long it is asked for slices."""

    place: str
    lasts: timedelta | None = None
    """How long a workload asks there before it steps on; None: until it is refused first."""
    most_usd_an_hour: float | None = None
    """The rung is passed over if all chips of a workload cost more there by list price; None: whatever they cost."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ladder:
    """An order of places."""

    rungs: tuple[Rung, ...]
    zones: ZonesOf = ZonesOf.ONE


class Advice(StrEnum):
    """Whether Compute Engine is asked when hosts could be booked, in the words of the setting."""

    OFF = "off"
    PLAN = "plan"  # by `slices plan`


class Across(StrEnum):
    """Who may get a slice that is kept warm."""

    WORKLOAD = "workload"  # the next Jobs of the same workload
    NAMESPACE = "namespace"
    CLUSTER = "cluster"  # any namespace, if the slice was made for that


@dataclass(frozen=True, slots=True, kw_only=True)
class Warm:
    """How long slices that are let go are kept for the next claim that fits, and how many."""

    lasts: timedelta
    """No time: none is kept."""
    most_chips: int | None = None
    """Of all that this setting keeps, together; None: no limit."""
    most_usd_an_hour: float | None = None
    """The same of their price by list; None: no limit."""
    across: Across = Across.NAMESPACE

    @property
    def is_for_all(self) -> bool:
        """Whether slices are kept for claims of any namespace."""
        return self.across is Across.CLUSTER and self.lasts > timedelta(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Spare:
    """Slices that are made before anybody needs them."""

    accelerator: str
    topology: str
    place: str
    """The name of the place where they are made, which has one zone."""
    count: int
    """How many are kept for each of the namespaces."""
    namespaces: tuple[str, ...]
    node_selector: Pairs = ()
    """What the pods that are to get them select beside accelerator and topology."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NamespaceSettings:
    """What is otherwise for the workloads of a namespace than for all of its cluster."""

    ladder: str | None = None
    """That of workloads that name none; None: the cluster's."""
    warm: Warm | None = None
    """In place of the cluster's, as a whole; None: the cluster's counts."""

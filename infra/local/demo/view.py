"""What a user can observe at one moment: records, JobSets, TPUNodeGroups, Events, node pools and calls. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from tpu_slices.domain.model.reasons import Phase, Reason
from tpu_slices.domain.records.slices import SliceRecord

CREATES = frozenset({"CreateNodePool", "instanceGroupManagers.insert"})
"""The calls that buy hosts, of GKE and of Compute Engine."""
OK = "OK"


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSet:
    """A JobSet as the API server returns it; `ready` counts its Jobs whose pods are all running."""

    name: str
    conditions: frozenset[str]
    """The types of its conditions that are True."""
    ready: int
    restarts: int


@dataclass(frozen=True, slots=True, order=True)
class Ran:
    """A Job whose leader pod has run, in so many restarts of its JobSet: it runs, or has ended."""

    jobset: str
    job_index: int
    restart: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeGroup:
    """A TPUNodeGroup as the API server returns it: the status of each of its conditions, by type."""

    name: str
    conditions: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """A Kubernetes Event of the provisioner. `about` is kind/name of the object; the message names the slice."""

    about: str
    type: str
    reason: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A call to the local GKE; `code` is the name of the status code it returned."""

    method: str
    pool: str
    code: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """Everything at one moment. `pools` is the status of GKE's node pools, by name; `ran`, `calls`: all so far."""

    slices: tuple[SliceRecord, ...] = ()
    jobsets: tuple[JobSet, ...] = ()
    ran: frozenset[Ran] = frozenset()
    groups: tuple[NodeGroup, ...] = ()
    events: tuple[Event, ...] = ()
    pools: Mapping[str, str]
    calls: tuple[Call, ...] = ()

    def slices_of(self, workload: str) -> tuple[SliceRecord, ...]:
        return tuple(record for record in self.slices if record.owner.name == workload)

    def jobset(self, name: str) -> JobSet | None:
        return next((jobset for jobset in self.jobsets if jobset.name == name), None)

    def ran_of(self, workload: str) -> frozenset[Ran]:
        return frozenset(each for each in self.ran if each.jobset == workload)

    def group(self, name: str) -> NodeGroup | None:
        return next((group for group in self.groups if group.name == name), None)

    def pools_of(self, workload: str) -> Mapping[str, str]:
        """Return the pools of all attempts, recognised by the slice's id in their name."""
        ids = tuple(f"{record.maker}-" for record in self.slices_of(workload))
        return {name: status for name, status in self.pools.items() if name.startswith(ids)}

    def creates_of(self, workload: str) -> tuple[Call, ...]:
        """Return the creations of pools that were accepted."""
        ids = tuple(f"{record.maker}-" for record in self.slices_of(workload))
        return tuple(c for c in self.calls if c.method in CREATES and c.code == OK and c.pool.startswith(ids))

    def events_of(self, workload: str) -> tuple[Event, ...]:
        ids = {record.maker for record in self.slices_of(workload)}
        return tuple(event for event in self.events if any(id_ in event.message for id_ in ids))


def went_through(record: SliceRecord, phase: Phase) -> bool:
    return any(transition.phase is phase for transition in record.transitions)


def reasons(record: SliceRecord) -> tuple[Reason, ...]:
    return tuple(transition.reason for transition in record.transitions)

"""The state of the control plane: immutable values, so that every decision is a pure function of them.

Times are in seconds since 1970. Google's messages are values here: whoever changes one, changes a copy.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Self

from google.cloud.compute_v1 import types as gce

from tpu_standins.cloud import faults
from tpu_standins.cloud.machines import MACHINES, Machine
from tpu_standins.compute.errors import Trouble
from tpu_standins.compute.paths import Resource
from tpu_standins.compute.reserved import Booking, Offer, Reserved


def machine_of(machine_type: str) -> Machine | None:
    """Return a TPU machine type; Compute has each under GKE's name and with `-tpu` behind it (SkyPilot, gcsfuse)."""
    return MACHINES.get(machine_type.removesuffix("-tpu"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """Durations in seconds: what takes Compute Engine minutes takes a few seconds here.

    Operations take `insert` or `remove`, on metadata `metadata`, and show PENDING for `pending`. A group tries again
    every `retry` to create VMs that it could not create. A VM exists, but does not run for `create`; then its host
    joins its cluster in `join`, is Ready after `ready`, and offers its chips after `chips`. It is deleted in `delete`.

    `shutdown` represents the 30 s between a preemption notice and the end of a spot VM [doc:instances/spot], `repair`
    how long a group, or Compute, needs to notice that a VM failed. Ended operations are kept for `history`.
    """

    pending: float = 0.1
    insert: float = 0.5
    remove: float = 0.5
    metadata: float = 0.3
    retry: float = 1.0
    create: float = 4.0
    delete: float = 2.0
    repair: float = 2.0
    shutdown: float = 2.5
    join: float = 1.0
    ready: float = 1.0
    chips: float = 0.5
    log: float = 0.2
    history: float = 86_400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """A resource policy; it is CREATING until `ready`, READY after that [py-gce ResourcePolicy.Status]."""

    path: Resource
    message: gce.ResourcePolicy
    created: float
    ready: float

    @property
    def topology(self) -> str:
        return self.message.workload_policy.accelerator_topology


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """An instance template, global or regional; others see it from `ready` on."""

    path: Resource
    message: gce.InstanceTemplate
    created: float
    ready: float

    @property
    def machine_type(self) -> str:
        return self.message.properties.machine_type

    @property
    def machine(self) -> Machine:
        found = machine_of(self.machine_type)
        assert found is not None
        return found

    @property
    def provisioning(self) -> str:
        return self.message.properties.scheduling.provisioning_model or "STANDARD"

    @property
    def capacity(self) -> str:
        """Return one of the capacities of a fault."""
        if self.reservation:
            return "reservation"
        return "spot" if self.provisioning == "SPOT" else "on-demand"

    @property
    def reservation(self) -> str:
        """Return the reservation that it names: its name, or a path; empty: none."""
        affinity = self.message.properties.reservation_affinity
        specific = affinity.consume_reservation_type == "SPECIFIC_RESERVATION"
        return affinity.values[0] if specific else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """A managed instance group; others see it from `ready` on. `template`: its template's path.

    `check`: why its VMs could not be created at the last attempt, and when that was. `leaving`: it is being deleted.
    """

    path: Resource
    message: gce.InstanceGroupManager
    template: Resource
    policy: Resource | None
    created: float
    ready: float
    target: int
    check: tuple[Trouble, float] | None = None
    leaving: bool = False

    @property
    def bulk(self) -> bool:
        return self.message.target_size_policy.mode == "BULK"

    @property
    def repairs(self) -> bool:
        """Return whether it recreates a VM that failed; the default is that it does [py-gce DefaultActionOnFailure]."""
        return self.message.instance_lifecycle_policy.default_action_on_failure != "DO_NOTHING"

    @property
    def base_name(self) -> str:
        return self.message.base_instance_name or self.path.name


class Action(Enum):
    """What a group does with an instance [py-gce ManagedInstance.CurrentAction]."""

    NONE = "NONE"
    CREATING = "CREATING"
    RECREATING = "RECREATING"
    DELETING = "DELETING"


@dataclass(frozen=True, slots=True, kw_only=True)
class Vm:
    """A VM: it is PROVISIONING, then STAGING, and RUNNING from `runs` on.

    `stops`: when it is TERMINATED, after it was STOPPING from `noticed` on; `preempted`: its end was a preemption,
    `for_good`: Compute does not restart it. `ends`: when it is deleted. `attributes`: its guest attributes by namespace
    and key. `silent`: its kubelet does not answer.
    """

    born: float
    staged: float
    runs: float
    metadata: Mapping[str, str]
    attributes: Mapping[tuple[str, str], str] = field(default_factory=dict)
    noticed: float | None = None
    stops: float | None = None
    preempted: bool = False
    for_good: bool = False
    ends: float | None = None
    silent: bool = False

    def status(self, now: float) -> str:
        """Return its status as Compute names it."""
        if self.ends is not None and (self.stops is None or now < self.stops):
            return "STOPPING"
        if self.stops is not None and self.noticed is not None and now >= self.noticed:
            return "STOPPING" if now < self.stops else "TERMINATED"
        if now < self.staged:
            return "PROVISIONING"
        return "STAGING" if now < self.runs else "RUNNING"


@dataclass(frozen=True, slots=True, kw_only=True)
class Instance:
    """A managed instance: a name from the beginning, and a VM once there is one. `life` counts its VMs.

    `trouble`: the error of the last attempt to create it. `attempt`: when its group acts on it next.
    """

    path: Resource
    group: Resource
    action: Action
    attempt: float
    vm: Vm | None = None
    life: int = 0
    trouble: Trouble | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One error that `listErrors` tells."""

    group: Resource
    instance: Resource
    action: Action
    trouble: Trouble
    at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """An operation on `target`. `method` is that of the API, such as `instanceGroupManagers.insert`.

    `due`: when its own work is done, before any waiting for VMs. `plan`: the error with which it will end. `metadata`:
    what it writes on an instance. `description`: what it writes on a group.
    """

    path: Resource
    method: str
    target: Resource
    started: float
    due: float
    request: str = ""
    plan: Trouble | None = None
    metadata: Mapping[str, str] | None = None
    description: str | None = None
    ended: float | None = None
    error: Trouble | None = None

    @property
    def verb(self) -> str:
        return self.method.partition(".")[2]


class Kind(Enum):
    """The kinds of faults that can be injected; see `faults`."""

    STOCKOUT = "stockout"
    QUOTA = "quota"
    CREATE_FAILS = "create_fails"
    PERMISSION = "permission"
    RATE = "rate"
    UNAVAILABLE = "unavailable"
    INTERNAL = "internal"
    LOST_ANSWER = "lost_answer"
    SLOW = "slow"
    FAILS = "fails"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault(faults.Fault):
    """Affects calls, or attempts to create VMs; `names`: a regular expression of the resources' or groups' names.

    `hosts`: how many VMs there still are in spite of a stockout, or within a quota. `seconds`: how much longer a SLOW
    operation takes. `code` and `message`: of the error of an operation that FAILS, or of a VM whose CREATE_FAILS.
    `told`: where a group tells it.
    """

    kind: Kind
    names: str = ".*"
    hosts: int = 0
    code: str = "INTERNAL_ERROR"
    message: str = "Internal error. Please try again or contact Google Support."
    told: str = "both"


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """The whole state, by path."""

    projects: frozenset[str]
    zones: frozenset[str]
    pace: Pace = field(default_factory=Pace)
    policies: Mapping[Resource, Policy] = field(default_factory=dict)
    templates: Mapping[Resource, Template] = field(default_factory=dict)
    groups: Mapping[Resource, Group] = field(default_factory=dict)
    instances: Mapping[Resource, Instance] = field(default_factory=dict)
    reservations: Mapping[Resource, Reserved] = field(default_factory=dict)
    bookings: Mapping[Resource, Booking] = field(default_factory=dict)
    offers: tuple[Offer, ...] = ()
    operations: Mapping[Resource, Operation] = field(default_factory=dict)
    requests: Mapping[tuple[str, str], Resource] = field(default_factory=dict)
    records: tuple[Record, ...] = ()
    faults: tuple[Fault, ...] = ()

    @property
    def regions(self) -> frozenset[str]:
        return frozenset(zone.rpartition("-")[0] for zone in self.zones)

    def members(self, group: Resource) -> tuple[Instance, ...]:
        return tuple(instance for instance in self.instances.values() if instance.group == group)

    def busy(self, target: Resource) -> Operation | None:
        """Return the operation that runs on a resource."""
        return next((op for op in self.operations.values() if op.ended is None and op.target == target), None)

    def users(self, resource: Resource) -> tuple[Group, ...]:
        """Return the groups that use a template or a policy."""
        return tuple(group for group in self.groups.values() if resource in (group.template, group.policy))

    def with_policy(self, policy: Policy) -> Self:
        return replace(self, policies={**self.policies, policy.path: policy})

    def with_template(self, template: Template) -> Self:
        return replace(self, templates={**self.templates, template.path: template})

    def with_group(self, group: Group) -> Self:
        return replace(self, groups={**self.groups, group.path: group})

    def with_instances(self, instances: Iterable[Instance]) -> Self:
        return replace(self, instances={**self.instances, **{instance.path: instance for instance in instances}})

    def with_operation(self, operation: Operation) -> Self:
        return replace(self, operations={**self.operations, operation.path: operation})

    def without(self, path: Resource) -> Self:
        """Return the state without a resource; a group goes with its instances."""
        return replace(
            self,
            policies={key: value for key, value in self.policies.items() if key != path},
            templates={key: value for key, value in self.templates.items() if key != path},
            groups={key: value for key, value in self.groups.items() if key != path},
            instances={key: each for key, each in self.instances.items() if path not in (key, each.group)},
            records=tuple(record for record in self.records if record.group != path),
        )

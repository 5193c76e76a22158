"""What Compute Engine's resources and operations of one pool mean as an observation. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType

from google.cloud.compute_v1.types import (
    Errors,
    InstanceGroupManager,
    InstanceTemplate,
    ManagedInstance,
    Operation,
    ResourcePolicy,
)

from tpu_slices.adapters.compute import errors as compute_errors
from tpu_slices.adapters.compute.requests import GROUPS, POLICIES, TEMPLATES
from tpu_slices.domain.model.observations import (
    Absent,
    Begun,
    Broken,
    Busy,
    Cause,
    Creating,
    Deleting,
    Failure,
    FailureKind,
    Observation,
    Running,
    Unowned,
)
from tpu_slices.domain.model.slices import CapacityKind
from tpu_slices.domain.planning.pool_descriptions import fingerprint_of, missing_proof
from tpu_slices.ports.backend import PoolOrder

InstancesOf = Callable[[InstanceGroupManager], Sequence[ManagedInstance]]

NAMES = MappingProxyType(
    {GROUPS: "its instance group", TEMPLATES: "its instance template", POLICIES: "its workload policy"}
)
"""What a pool consists of, by Compute Engine's names of the collections."""

_CREATES = frozenset({"CREATING", "CREATING_WITHOUT_RETRIES", "RECREATING"})
_REPAIRS = frozenset({"RECREATING", "RESTARTING", "REFRESHING", "VERIFYING", "STARTING", "RESUMING"})


@dataclass(frozen=True, slots=True)
class Parts:
    """What stands under a pool's name."""

    group: InstanceGroupManager | None = None
    template: InstanceTemplate | None = None
    policy: ResourcePolicy | None = None

    @property
    def last(self) -> tuple[str, str] | None:
        """What was made last of it, in words, and its description; None: nothing stands."""
        if self.group is not None:
            return NAMES[GROUPS], self.group.description
        if self.template is not None:
            return NAMES[TEMPLATES], self.template.description
        return None if self.policy is None else (NAMES[POLICIES], self.policy.description)

    @property
    def made_at(self) -> datetime | None:
        """When what was made last of it was made; None: that is not known."""
        last = self.group or self.template or self.policy
        try:
            return datetime.fromisoformat(last.creation_timestamp) if last else None
        except ValueError:
            return None


@dataclass(frozen=True, slots=True)
class Operations:
    """The operations on what has a pool's name: those that run, and of those that ended what Compute Engine keeps."""

    known: Sequence[Operation]

    def run(self, verb: str) -> bool:
        """Return whether one of insert or delete runs."""
        return any(verb_of(each) == verb and not ended(each) for each in self.known)

    @property
    def deletes(self) -> str | None:
        """Return what is being deleted, in words; None: nothing is."""
        running = (each for each in self.known if verb_of(each) == "delete" and not ended(each))
        return next((NAMES.get(each.target_link.rpartition("/")[0].rpartition("/")[2], "it") for each in running), None)

    def failure(self, noted: str | None) -> Failure | None:
        """Return why the operation on record failed; None if it did not, runs, or is not known any more."""
        name = (noted or "").rpartition("/")[2]
        found = next((each for each in self.known if each.name == name and ended(each)), None)
        return compute_errors.failure(found.error) if found is not None and found.error.errors else None


def unproven(parts: Parts, order: PoolOrder) -> str | None:
    """Return why what was made last is not proven to be the order's; None if it is, or nothing stands.

    The record proves it where it is not younger than what the record knows. What TPU operator made is proven by its
    names, which have a digest of the UID, and has no description.
    """
    known, made_at = order.ours_if_made_by, parts.made_at
    if parts.last is None or (known and made_at and made_at <= known):
        return None
    what, description = parts.last
    if order.legacy_pool is None:
        lacking = missing_proof(description, order.job)
    else:
        lacking = "is not empty, as TPU operator leaves it." if description else None
    return None if lacking is None else f"the description of {what} {lacking}"


def verb_of(operation: Operation) -> str:
    """Return insert or delete, or another verb: at times it stands behind the method's service."""
    return operation.operation_type.rpartition(".")[2]


def ended(operation: Operation) -> bool:
    """Return whether an operation ended: DONE may mean that it failed."""
    return bool(operation.status == Operation.Status.DONE)


def observed(parts: Parts, operations: Operations, order: PoolOrder, instances_of: InstancesOf) -> Observation:
    """Return the observation of an order's pool. Instances are only read of a group that is not stable.

    | what is known                                    | is                                                       |
    |--------------------------------------------------|----------------------------------------------------------|
    | a part without the proof of our ownership        | Unowned                                                  |
    | a deletion that runs                             | Deleting                                                 |
    | a creation that runs                             | Creating                                                 |
    | the operation on record failed                   | Broken                                                   |
    | the group stands                                 | as `standing` says                                       |
    | policy or template stands                        | Begun                                                    |
    | nothing stands                                   | Absent                                                   |
    """
    lacking = unproven(parts, order)
    if lacking is not None:
        return Unowned(lacking)
    if operations.deletes is not None:
        return Deleting(operations.deletes)
    if operations.run("insert"):
        return Creating()
    failure = operations.failure(order.operation)
    if failure is not None:
        return Broken(failure)
    if parts.group is not None:
        return standing(parts.group, order, instances_of)
    return Begun(parts.last[0]) if parts.last else Absent()


def standing(group: InstanceGroupManager, order: PoolOrder, instances_of: InstancesOf) -> Observation:
    """Return the observation of a group on which no operation runs.

    | what Compute Engine says                                      | is                                           |
    |---------------------------------------------------------------|----------------------------------------------|
    | instances are gone, and the group repairs none                | Broken: hosts                                |
    | the group is stable                                           | Running                                      |
    | an instance is not created for a reason that does not pass    | Broken: quota, permission, reservation, …    |
    | instances are not created for a reason that passes            | Running, and hosts are awaited: stockout, …  |
    | instances are recreated or restarted                          | Busy: repair                                 |
    | instances are being created                                   | Running; of a spot group, it refills         |
    """
    fingerprint, gone, lacks = fingerprint_of(group.description), _gone(group, order), lacking(group, order)
    if gone:
        message = f"{gone} of {group.target_size} instances are gone, and the group makes none anew."
        return Broken(Failure(FailureKind.HOSTS, message))
    if group.status.is_stable:
        return Running(fingerprint, lacking=lacks)
    instances = instances_of(group)
    why = compute_errors.worst(_errors(group, instances))
    if why is not None:
        if why.kind not in compute_errors.PASSING:
            return Broken(why)
        return Running(fingerprint, awaiting=why.message, lacking=lacks, refills=is_spot(order))
    repaired = [each for each in instances if each.current_action in _REPAIRS]
    if repaired:
        return Busy(f"{len(repaired)} of {group.target_size} instances are recreated or restarted.", Cause.REPAIR)
    return Running(fingerprint, lacking=lacks, refills=is_spot(order))


def lacking(group: InstanceGroupManager, order: PoolOrder) -> str:
    """Return what is wrong with the description of a group that is ours; empty: nothing, or TPU operator made it."""
    why = missing_proof(group.description, order.job) if order.legacy_pool is None else None
    return f"its description {why}" if why else ""


def _gone(group: InstanceGroupManager, order: PoolOrder) -> int:
    """Return how many instances of a group that repairs none are gone for good.

    Spot instances that were stopped do not start again; Compute Engine restarts others that stopped with their machine.
    The counts by status are told of groups with TPU only (google.cloud.compute_v1, current_instance_statuses).
    """
    actions, by_status = group.current_actions, group.status.current_instance_statuses
    made = actions.creating + actions.creating_without_retries + actions.recreating + actions.restarting
    if made or group.instance_lifecycle_policy.default_action_on_failure != "DO_NOTHING":
        return 0
    return by_status.non_existent + (by_status.terminated + by_status.stopped if is_spot(order) else 0)


def is_spot(order: PoolOrder) -> bool:
    return order.spec is not None and order.spec.capacity.kind is CapacityKind.SPOT


def _errors(group: InstanceGroupManager, instances: Iterable[ManagedInstance]) -> list[Errors]:
    """Return why instances were not created at the last attempt: with BULK the group says it, else each instance."""
    bulk = group.status.bulk_instance_operation
    of_group = list(bulk.last_progress_check.error.errors) if bulk.in_progress else []
    lacking = (each for each in instances if each.current_action in _CREATES)
    return [*of_group, *(error for each in lacking for error in each.last_attempt.errors.errors)]

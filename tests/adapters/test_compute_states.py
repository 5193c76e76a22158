"""What Compute Engine's resources and operations mean, row by row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from google.cloud.compute_v1.types import (
    Error,
    Errors,
    InstanceGroupManager,
    InstanceTemplate,
    ManagedInstance,
    ManagedInstanceLastAttempt,
    ManagedInstanceLastAttemptErrors,
    Operation,
    ResourcePolicy,
)

from tests.adapters.compute_stories import ORDER
from tpu_slices.adapters.compute.states import Operations, Parts, observed
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
from tpu_slices.domain.model.slices import Capacity, CapacityKind, ClusterId
from tpu_slices.domain.planning.pool_descriptions import description_of

assert ORDER.spec is not None
SPEC = ORDER.spec
PROOF = description_of(ORDER.job, ORDER.attempt, SPEC)
OTHERS = description_of(replace(ORDER.job, cluster=ClusterId("other")), ORDER.attempt, SPEC)
OURS = Running(SPEC.fingerprint)
STOCKOUT, QUOTA = "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS", "QUOTA_EXCEEDED"

POLICY = ResourcePolicy(name=ORDER.name, description=PROOF)
TEMPLATE = InstanceTemplate(name=ORDER.name, description=PROOF)


def a_group(description: str = PROOF, **status: Any) -> InstanceGroupManager:
    given = {"is_stable": False, **status}
    return InstanceGroupManager(name=ORDER.name, description=description, target_size=2, status=given)


def waiting(*codes: str, in_progress: bool = True) -> InstanceGroupManager:
    """Return a group whose instances are created all at once, and the errors of the last attempt."""
    check = {"error": errors(*codes)}
    return a_group(bulk_instance_operation={"in_progress": in_progress, "last_progress_check": check})


def errors(*codes: str) -> Error:
    return Error(errors=[Errors(code=code, message="") for code in codes])


def an_instance(action: str = "NONE", *codes: str) -> ManagedInstance:
    attempt = ManagedInstanceLastAttempt(errors=ManagedInstanceLastAttemptErrors(errors=errors(*codes).errors))
    return ManagedInstance(current_action=action, last_attempt=attempt)


def operation(verb: str, *codes: str, ended: bool = False, name: str = "operation-1") -> Operation:
    status = Operation.Status.DONE if ended else Operation.Status.RUNNING
    return Operation(name=name, operation_type=verb, status=status, error=errors(*codes))


def seen(
    parts: Parts, *operations: Operation, noted: str | None = None, instances: Sequence[ManagedInstance] | None = None
) -> Observation:
    """Return the observation; without `instances` none may be read."""

    def instances_of(_: InstanceGroupManager) -> Sequence[ManagedInstance]:
        assert instances is not None, "instances are read"
        return instances

    return observed(parts, Operations(operations), replace(ORDER, operation=noted), instances_of)


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        (Parts(), Absent()),
        (Parts(policy=POLICY), Begun("its workload policy")),
        (Parts(policy=POLICY, template=TEMPLATE), Begun("its instance template")),
        (Parts(template=TEMPLATE), Begun("its instance template")),
        (Parts(group=a_group(is_stable=True)), OURS),
    ],
)
def test_what_stands_without_an_operation(parts: Parts, expected: Observation) -> None:
    assert seen(parts) == expected


STAGES = [
    pytest.param(Parts(), id="nothing"),
    pytest.param(Parts(policy=POLICY), id="policy"),
    pytest.param(Parts(template=TEMPLATE), id="template"),
    pytest.param(Parts(group=a_group()), id="group"),
]


@pytest.mark.parametrize("parts", STAGES)
@pytest.mark.parametrize("method", ["", "compute.instanceGroupManagers."])
def test_an_operation_that_runs_tells_what_is_going_on(parts: Parts, method: str) -> None:
    before = operation("insert", ended=True, name="operation-0")
    assert seen(parts, before, operation(f"{method}insert")) == Creating()
    assert isinstance(seen(parts, before, operation(f"{method}delete")), Deleting)


@pytest.mark.parametrize(
    ("collection", "what"),
    [
        ("instanceGroupManagers", "its instance group"),
        ("instanceTemplates", "its instance template"),
        ("resourcePolicies", "its workload policy"),
    ],
)
def test_a_deletion_tells_what_is_going(collection: str, what: str) -> None:
    deleting = operation("delete")
    deleting.target_link = f"https://www.googleapis.com/compute/v1/projects/p/somewhere/{collection}/{ORDER.name}"
    assert seen(Parts(policy=POLICY), deleting) == Deleting(what)


@pytest.mark.parametrize("parts", STAGES)
def test_a_step_that_failed_breaks_its_attempt_if_it_is_on_record(parts: Parts) -> None:
    failed = operation("insert", QUOTA, ended=True)
    noted = "zones/us-central1-c/operations/operation-1"
    assert seen(parts, failed, noted=noted) == Broken(Failure(FailureKind.QUOTA, QUOTA))
    if parts.group is None:
        assert not isinstance(seen(parts, failed), Broken)


def test_a_step_that_ended_well_breaks_nothing() -> None:
    noted = "regions/us-central1/operations/operation-1"
    assert seen(Parts(policy=POLICY), operation("insert", ended=True), noted=noted) == Begun("its workload policy")


@pytest.mark.parametrize(
    ("parts", "what"),
    [
        (Parts(policy=ResourcePolicy(description=OTHERS)), "its workload policy"),
        (Parts(template=InstanceTemplate(description=OTHERS)), "its instance template"),
        (Parts(group=a_group(OTHERS)), "its instance group"),
    ],
)
def test_what_lacks_the_proof_is_not_ours_whatever_happens_to_it(parts: Parts, what: str) -> None:
    why = f'the description of {what} has "other" as cluster, not "demo".'
    assert seen(parts) == Unowned(why)
    assert seen(parts, operation("insert"), operation("delete")) == Unowned(why)


@pytest.mark.parametrize(
    ("group", "instances", "expected"),
    [
        pytest.param(waiting(STOCKOUT), [], Running(SPEC.fingerprint, awaiting=STOCKOUT), id="stockout, of the group"),
        pytest.param(waiting(QUOTA), [], Broken(Failure(FailureKind.QUOTA, QUOTA)), id="quota, of the group"),
        pytest.param(waiting(STOCKOUT, in_progress=False), [], OURS, id="a stockout that is over"),
        pytest.param(a_group(), [an_instance("CREATING"), an_instance("CREATING")], OURS, id="being created"),
        pytest.param(
            a_group(),
            [an_instance(), an_instance("CREATING", STOCKOUT)],
            Running(SPEC.fingerprint, awaiting=STOCKOUT),
            id="stockout, of an instance",
        ),
        pytest.param(
            a_group(),
            [an_instance("CREATING", STOCKOUT), an_instance("CREATING", QUOTA)],
            Broken(Failure(FailureKind.QUOTA, QUOTA)),
            id="quota, of one of two instances",
        ),
        pytest.param(
            a_group(),
            [an_instance(), an_instance("RECREATING", STOCKOUT)],
            Running(SPEC.fingerprint, awaiting=STOCKOUT),
            id="stockout of a repair",
        ),
        pytest.param(
            a_group(),
            [an_instance(), an_instance("RECREATING")],
            Busy("1 of 2 instances are recreated or restarted.", Cause.REPAIR),
            id="repair",
        ),
        pytest.param(a_group(), [an_instance(), an_instance("NONE", QUOTA)], OURS, id="an error that is over"),
        pytest.param(a_group(), [an_instance("DELETING", QUOTA)], OURS, id="an error of a deletion"),
    ],
)
def test_a_group_that_is_not_stable_says_why(
    group: InstanceGroupManager, instances: list[ManagedInstance], expected: Observation
) -> None:
    assert seen(Parts(group=group), instances=instances) == expected


def unrepaired(*, action: str = "DO_NOTHING", creating: int = 0, **counts: int) -> InstanceGroupManager:
    """Return a group with so many instances of each status."""
    status = {"is_stable": counts.pop("stable", 0) > 0, "current_instance_statuses": counts}
    return InstanceGroupManager(
        description=PROOF,
        target_size=2,
        status=status,
        current_actions={"creating": creating},
        instance_lifecycle_policy={"default_action_on_failure": action},
    )


@pytest.mark.parametrize(
    ("group", "spot", "gone"),
    [
        pytest.param(unrepaired(running=1, non_existent=1), False, 1, id="one is gone"),
        pytest.param(unrepaired(stable=1, running=1, non_existent=1), False, 1, id="and nothing changes any more"),
        pytest.param(unrepaired(terminated=1, stopped=1), True, 2, id="spot ones do not start again"),
        pytest.param(unrepaired(running=1, terminated=1), False, 0, id="others are restarted"),
        pytest.param(unrepaired(creating=2, non_existent=2), True, 0, id="they do not exist yet"),
        pytest.param(unrepaired(action="REPAIR", non_existent=1), True, 0, id="the group repairs"),
    ],
)
def test_a_group_that_repairs_none_is_broken_once_instances_are_gone(
    group: InstanceGroupManager, spot: bool, gone: int
) -> None:
    capacity = Capacity(CapacityKind.SPOT if spot else CapacityKind.RESERVATION)
    order = replace(ORDER, spec=replace(SPEC, capacity=capacity))
    message = f"{gone} of 2 instances are gone, and the group makes none anew."
    broken = Broken(Failure(FailureKind.HOSTS, message))
    assert observed(Parts(group=group), Operations([]), order, lambda _: []) == (
        broken if gone else Running(SPEC.fingerprint, refills=spot)
    )

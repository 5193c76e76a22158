"""Which slices of TPU operator's are adopted, row by row, and as what."""

from __future__ import annotations

from typing import Any

import pytest

from tests.builders import NOW, with_fields
from tests.domain.planning.test_node_groups import self_managed
from tests.domain.reporting.test_node_groups import a_group_record
from tests.node_groups import Json, changed, of_a_template, one_host, two_hosts
from tests.operator_objects import a_group_owner, changed_object, operators_objects
from tpu_slices.domain.model.clusters import Policy
from tpu_slices.domain.model.observations import (
    Absent,
    Begun,
    Broken,
    Busy,
    Creating,
    Deleting,
    Failure,
    FailureKind,
    Running,
    Unowned,
    Visible,
)
from tpu_slices.domain.model.slices import WorkloadJob, claim_id
from tpu_slices.domain.planning.node_groups import declared_slice
from tpu_slices.domain.reconciling.adoption import Adoption
from tpu_slices.domain.reconciling.group_adoption import confirmed_adoption, planned_adoption
from tpu_slices.domain.records.slices import SliceRecord
from tpu_slices.wire.node_groups import group_of
from tpu_slices.wire.operator_objects import operator_groups

OWNER = a_group_owner()
JOB = WorkloadJob.declared(self_managed().cluster, OWNER)
GROUP, POLICY, TEMPLATE, INSTANCES = operators_objects(OWNER)


def planned(*objects: Json, present: SliceRecord | None = None, **settings: Any) -> Adoption:
    [group] = operator_groups(objects)
    return planned_adoption(group, present, self_managed(**settings), NOW)


def of(manifest: Json) -> Adoption:
    return planned(*operators_objects(OWNER, manifest))


def test_a_slice_that_is_whole_is_adopted_as_attempt_0_under_its_own_name() -> None:
    record = planned(GROUP, POLICY, TEMPLATE, INSTANCES).record
    assert record is not None
    assert (record.job, record.maker) == (JOB, claim_id(JOB))
    assert (record.attempt, record.claim.tried, record.pool) == (0, 0, "trainers-mig-1ec0000c")
    assert (record.current.create_requested_at, record.next_reconcile_at) == (NOW, NOW)


def test_it_has_the_spec_that_it_would_have_had_here_and_settings_of_now() -> None:
    record = planned(GROUP, POLICY, TEMPLATE, INSTANCES).record
    assert record is not None
    assert record.spec == declared_slice(group_of(two_hosts(OWNER.name)), JOB, self_managed())
    assert record.pinned_settings == self_managed().pools
    assert record.made_in_steps


@pytest.mark.parametrize("manifest", [one_host("trainers"), of_a_template("trainers")], ids=["one host", "a template"])
def test_a_part_that_a_group_does_not_need_need_not_be_there(manifest: Json) -> None:
    assert of(manifest).record is not None


def test_a_slice_of_ours_that_waits_gets_the_hosts() -> None:
    waiting = a_group_record(job=JOB, create_requested_at=None, note="asked on Monday")
    record = planned(GROUP, POLICY, TEMPLATE, INSTANCES, present=waiting).record
    assert record is not None
    assert (record.pool, record.note) == ("trainers-mig-1ec0000c", "asked on Monday")


def test_what_was_adopted_is_left_alone() -> None:
    first = planned(GROUP, POLICY, TEMPLATE, INSTANCES).record
    assert first is not None
    for present in (first, with_fields(first, attempt=1, tried=1)):
        again = planned(GROUP, POLICY, TEMPLATE, INSTANCES, present=present)
        assert (again.record, again.why) == (None, "already adopted")


def test_a_group_for_which_we_made_a_slice_too_is_left_to_a_person() -> None:
    ours = a_group_record(job=JOB, create_requested_at=NOW)
    left = planned(GROUP, POLICY, TEMPLATE, INSTANCES, present=ours)
    assert left.record is None
    assert f"it has {ours.pool} of ours, too" in left.why


FINISH = "start TPU operator again and let it finish, or delete the TPUNodeGroup while it runs"


@pytest.mark.parametrize(
    ("objects", "why"),
    [
        pytest.param([GROUP], "TPU operator has made nothing for it: it gets its slice as any other", id="nothing"),
        pytest.param(
            [changed_object(GROUP, metadata__deletionTimestamp="now"), POLICY, TEMPLATE, INSTANCES],
            f"it is being deleted: {FINISH}",
            id="being deleted",
        ),
        pytest.param(
            [GROUP, TEMPLATE, INSTANCES], f"TPU operator has not made its WorkloadPolicy: {FINISH}", id="no policy"
        ),
        pytest.param(
            [GROUP, POLICY, INSTANCES], f"TPU operator has not made its InstanceTemplate: {FINISH}", id="no template"
        ),
        pytest.param(
            [GROUP, POLICY, TEMPLATE], f"TPU operator has not made its ManagedInstanceGroup: {FINISH}", id="no group"
        ),
        pytest.param(
            [GROUP, POLICY, TEMPLATE, changed_object(INSTANCES, status__url=None)],
            f"TPU operator has not made its ManagedInstanceGroup: {FINISH}",
            id="a group that is not there yet",
        ),
        pytest.param(
            [GROUP, POLICY, changed_object(TEMPLATE, status__operationName="operation-1"), INSTANCES],
            f"TPU operator is not done with its InstanceTemplate trainers-template-1ec0000c: {FINISH}",
            id="an operation",
        ),
        pytest.param(
            [GROUP, POLICY, TEMPLATE, changed_object(INSTANCES, metadata__deletionTimestamp="now")],
            f"TPU operator is not done with its ManagedInstanceGroup trainers-mig-1ec0000c: {FINISH}",
            id="a part that is being deleted",
        ),
        pytest.param(
            [GROUP, POLICY, TEMPLATE, changed_object(INSTANCES, status__conditions=[])],
            f"TPU operator is not done with its ManagedInstanceGroup trainers-mig-1ec0000c: {FINISH}",
            id="a part that is not Ready",
        ),
        pytest.param(
            [changed_object(GROUP, status__conditions=[]), POLICY, TEMPLATE, INSTANCES],
            f"it is not Ready (no condition: TPU operator has not said so yet): {FINISH}",
            id="not Ready",
        ),
    ],
)
def test_what_tpu_operator_has_not_finished_is_left_to_it(objects: list[Json], why: str) -> None:
    assert planned(*objects) == Adoption(planned(GROUP, POLICY, TEMPLATE, INSTANCES).pool, None, why)


def test_parts_of_another_group_do_not_count() -> None:
    of_another = changed_object(INSTANCES, metadata__ownerReferences=[{"uid": "another-uid", "controller": True}])
    assert "has not made its ManagedInstanceGroup" in planned(GROUP, POLICY, TEMPLATE, of_another).why


def test_names_without_the_digest_of_the_uid_prove_nothing() -> None:
    earlier = changed_object(INSTANCES, metadata__name="trainers-mig", status__url="projects/p/zones/z/i/trainers-mig")
    left = planned(GROUP, POLICY, TEMPLATE, earlier)
    assert left.record is None
    assert "does not prove whose it is: delete the TPUNodeGroup while TPU operator runs" in left.why


def test_what_the_policy_does_not_allow_is_left_with_the_reasons() -> None:
    left = planned(*operators_objects(OWNER, one_host("trainers")), policy=Policy())
    assert left.record is None
    assert "hosts@demo-project.iam.gserviceaccount.com is not allowed" in left.why
    assert left.why.endswith(": change the settings, or delete the TPUNodeGroup while TPU operator runs")


def test_what_cannot_be_read_is_left_with_the_reason() -> None:
    assert "spec.topology" in of(changed(two_hosts("trainers"), topology=4)).why


@pytest.mark.parametrize(
    ("seen", "why"),
    [
        (Running(), None),
        (Running(awaiting="no capacity."), "at work on it: no capacity."),
        (Busy("it recreates an instance."), "at work on it: it recreates an instance."),
        (Creating(), "an operation on it runs"),
        (Deleting(), "an operation on it runs"),
        (Absent(), "Compute Engine has no such group"),
        (Begun("its instance template"), "Compute Engine has no such group"),
        (Broken(Failure(FailureKind.HOSTS, "1 of 2 instances are gone.")), "1 of 2 instances are gone."),
        (Unowned("the description of its group is not empty."), "it is not TPU operator's: the description"),
    ],
)
def test_compute_engine_has_the_last_word(seen: Visible, why: str | None) -> None:
    adoption = planned(GROUP, POLICY, TEMPLATE, INSTANCES)
    found = confirmed_adoption(adoption, seen)
    assert (found.record is None) is (why is not None)
    assert (why or "adopted") in found.why

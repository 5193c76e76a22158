"""How the adapter for Compute Engine treats what TPU operator made, on the local one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.builders import NOW, a_token, an_owner, with_fields
from tests.contracts.compute_steps import GROUPS, MINUTE, PARTS, POLICIES, TEMPLATES, unmade
from tests.contracts.local_compute import LocalCompute
from tests.contracts.test_backend import refused, started
from tests.domain.planning.test_node_groups import self_managed
from tests.node_groups import Json, of_a_template, two_hosts
from tpu_slices.domain.model.observations import Absent, Begun, FailureKind, Running, Started, Unowned
from tpu_slices.domain.model.slices import Owner, OwnerKind, PoolName, SliceSpec, WorkloadJob, WorkloadUid
from tpu_slices.domain.planning.node_groups import declared_slice
from tpu_slices.domain.planning.tpu_operator import operator_names
from tpu_slices.domain.records.slices import SliceRecord
from tpu_slices.flows.orders import order_of
from tpu_slices.ports.backend import PoolOrder
from tpu_slices.wire.node_groups import group_of

OWNER = an_owner("trainers", kind=OwnerKind.TPU_NODE_GROUP, namespace="research", uid=WorkloadUid("my-uid"))
NAMES = operator_names(OWNER)


@pytest.fixture
def place() -> LocalCompute:
    return LocalCompute()


def an_adopted(owner: Owner = OWNER, manifest: Json | None = None) -> PoolOrder:
    """Return the order about attempt 0 of an adopted slice of two hosts."""
    settings = self_managed()
    job = WorkloadJob.declared(settings.cluster, owner)
    spec = declared_slice(group_of(manifest or two_hosts()), job, settings)
    assert isinstance(spec, SliceSpec)
    record = SliceRecord.of(job, NOW, spec)
    legacy = with_fields(record, attempt=0, legacy_pool=operator_names(owner).group, pinned_settings=settings.pools)
    return order_of(legacy, settings)


def stands(place: LocalCompute) -> dict[str, set[str]]:
    return {name: found for name in NAMES if (found := place.stands(PoolName(name)))}


def test_its_names_end_in_a_digest_of_the_uid() -> None:
    assert NAMES == ("trainers-policy-1ec0000c", "trainers-template-1ec0000c", "trainers-mig-1ec0000c")


def test_a_slice_of_tpu_operators_is_seen_and_nothing_about_it_changes(place: LocalCompute) -> None:
    place.hold_operators_slice(OWNER)
    before = len(place.requests())
    assert place.backend.look(an_adopted()) == Running()
    assert len(place.requests()) == before
    assert stands(place) == {NAMES.policy: {POLICIES}, NAMES.template: {TEMPLATES}, NAMES.group: {GROUPS}}


def test_it_is_deleted_backwards_by_its_own_names(place: LocalCompute) -> None:
    place.hold_operators_slice(OWNER)
    before = len(place.requests())
    seen = unmade(place, an_adopted())
    assert seen == [Running(), Begun("its instance template"), Begun("its workload policy"), Absent()]
    assert place.requests()[before:] == [f"{each}.delete" for each in reversed(PARTS)]
    assert stands(place) == {}


def test_a_template_of_the_users_stays(place: LocalCompute) -> None:
    template = place.bring_template("our-hosts")
    place.hold_operators_slice(OWNER, template=template)
    unmade(place, an_adopted(manifest=of_a_template()))
    assert (stands(place), place.stands(PoolName("our-hosts"))) == ({}, {TEMPLATES})


def test_the_slice_of_another_group_of_that_name_is_not_it(place: LocalCompute) -> None:
    place.hold_operators_slice(OWNER)
    other = an_adopted(replace(OWNER, uid=WorkloadUid("another-uid")))
    assert place.backend.look(other) == Absent()
    assert place.backend.delete(other) == Started(None)
    assert len(stands(place)) == len(PARTS)


def test_what_has_a_description_is_not_tpu_operators(place: LocalCompute) -> None:
    place.hold_operators_slice(OWNER, description="made by hand")
    assert isinstance(place.backend.look(an_adopted()), Unowned)
    assert place.backend.delete(an_adopted()) == Started(None)
    assert len(stands(place)) == len(PARTS)


def test_a_template_that_another_group_uses_is_not_taken_from_it(place: LocalCompute) -> None:
    place.hold_operators_slice(OWNER)
    place.make_others_group("theirs", NAMES.template)
    started(place.backend.delete(an_adopted()))
    place.finish(PoolName(NAMES.group))
    assert refused(place.backend.delete_remains(an_adopted())) is FailureKind.BUSY
    assert place.backend.look(an_adopted()) == Begun("its instance template")


def test_hosts_that_are_made_anew_get_a_token_where_tpu_operators_script_waits_for_it(place: LocalCompute) -> None:
    place.hold_operators_slice(OWNER)
    token = a_token()
    assert place.backend.join(an_adopted(), token) == Started(None)
    place.wait(MINUTE)
    keys = ("kubeadm-join-token", "kubeadm-control-plane-ip", "kubeadm-ca-hash")
    expected = {(token.token, "10.128.0.2", token.ca_hashes[0])}
    assert {tuple(each.get(key) for key in keys) for each in place.metadata(PoolName(NAMES.group))} == expected

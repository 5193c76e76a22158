"""Whether a slice may come to a claim of another namespace."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from tests.builders import a_job, a_leader, a_record, a_request, a_spec, settings
from tpu_slices.domain.capacity.crossing import crosses, may_cross
from tpu_slices.domain.model.capacity import FRESH, Across, NamespaceSettings, Warm
from tpu_slices.domain.model.facts import Pinning
from tpu_slices.domain.model.reasons import Reason
from tpu_slices.domain.model.slices import Capacity, CapacityKind, OwnerKind, SliceSpec
from tpu_slices.domain.planning.specs import SliceRequest, spec_for
from tpu_slices.domain.records.claims import Refusal
from tpu_slices.domain.records.heartbeats import RelayHeard, RelayHeartbeat
from tpu_slices.domain.records.matching import needs, needs_of_any, offers_to_any
from tpu_slices.domain.records.slices import SliceRecord

HOUR = timedelta(hours=1)
FOR_ALL = settings(warm=Warm(lasts=HOUR, across=Across.CLUSTER))
ABLE = RelayHeard(hands_across=True)
FLEX = Capacity(CapacityKind.FLEX_START, max_run_duration=HOUR)


def of(kind: OwnerKind = OwnerKind.JOBSET, **spec: Any) -> SliceRecord:
    job = a_job()
    return a_record(job=replace(job, owner=replace(job.owner, kind=kind)), spec=a_spec(**spec))


def within(warm: Warm | None) -> dict[str, NamespaceSettings]:
    return {"research": NamespaceSettings(warm=warm)}


@pytest.mark.parametrize("kind", [OwnerKind.JOBSET, OwnerKind.JOB, OwnerKind.POD])
def test_hosts_are_made_for_all_where_a_setting_keeps_them_for_all(kind: OwnerKind) -> None:
    assert crosses(of(kind), FOR_ALL, ABLE)
    assert crosses(of(kind), settings(namespaces=within(FOR_ALL.warm)), ABLE)


@pytest.mark.parametrize(
    "record",
    [
        of(OwnerKind.LEADER_WORKER_SET),
        of(OwnerKind.TPU_NODE_GROUP),
        of(OwnerKind.SPARE),
        of(key=""),
        of(exclusive_nodes=True),
        of(capacity=FLEX),
    ],
    ids=["a group's", "a node group's", "a spare", "without a key", "labelled for one Job", "flex-start"],
)
def test_others_stay_in_their_namespace(record: SliceRecord) -> None:
    assert not crosses(record, FOR_ALL, ABLE)


@pytest.mark.parametrize(
    "of_cluster",
    [
        settings(),
        settings(warm=Warm(lasts=HOUR)),
        settings(warm=Warm(lasts=timedelta(0), across=Across.CLUSTER)),
        settings(warm=FOR_ALL.warm, namespaces=within(Warm(lasts=HOUR, across=Across.WORKLOAD))),
        settings(namespaces={"vision": NamespaceSettings(warm=FOR_ALL.warm)}),
    ],
    ids=["none", "its namespace", "none is kept", "its namespace's own", "another namespace's"],
)
def test_without_such_a_setting_none_crosses(of_cluster: Any) -> None:
    assert not crosses(of(), of_cluster, ABLE)


@pytest.mark.parametrize(
    ("able", "pinning", "made"),
    [
        (True, Pinning.POLICY, True),
        (True, Pinning.WEBHOOK, True),
        (True, Pinning.NOTHING, False),
        (True, None, False),
        (False, Pinning.POLICY, False),
    ],
)
def test_none_crosses_where_the_relay_is_older_or_nothing_pins_pods(
    *, able: bool, pinning: Pinning | None, made: bool
) -> None:
    heard = replace(RelayHeartbeat.of(of().cluster), hands_across=able, pinning=pinning).relay
    assert crosses(of(), FOR_ALL, heard) is made


def planned(text: str | None, *, kind: OwnerKind = OwnerKind.JOBSET, of_cluster: Any = FOR_ALL) -> SliceSpec | Refusal:
    said = () if text is None else ((FRESH, text),)
    job = a_job()
    job = replace(job, owner=replace(job.owner, kind=kind))
    request = replace(a_request(), requested_annotations=said)
    return spec_for(SliceRequest(job=job, request=request, leader=a_leader(), jobset_chips=64), of_cluster)


@pytest.mark.parametrize(("text", "takes"), [(None, True), ("false", True), ("true", False)])
def test_a_claim_takes_hosts_of_others_unless_it_asks_for_fresh_ones(*, text: str | None, takes: bool) -> None:
    spec = planned(text)
    assert isinstance(spec, SliceSpec)
    assert spec.takes is takes
    assert spec.fingerprint == a_spec().fingerprint, "those of its own namespace serve it"


def test_a_claim_of_a_group_or_where_no_setting_has_it_takes_none() -> None:
    group, elsewhere = planned(None, kind=OwnerKind.LEADER_WORKER_SET), planned(None, of_cluster=settings())
    assert isinstance(group, SliceSpec)
    assert isinstance(elsewhere, SliceSpec)
    assert (group.takes, elsewhere.takes) == (False, False)


def test_a_value_that_is_no_answer_is_refused_with_its_key_and_the_remedy() -> None:
    refusal = planned("yes")
    assert isinstance(refusal, Refusal)
    assert refusal.message == (
        'replicatedJob slice: tpu-provisioner.cloud.google.com/fresh: "yes" is neither "true" nor "false": '
        'write "true" '
        "if no slice is wanted that another namespace had, or remove it."
    )


def test_both_sides_and_the_setting_have_to_agree() -> None:
    slice_, claim = of(crosses=True), a_record(job=a_job(namespace="vision"), spec=a_spec(takes=True))
    assert may_cross(claim, slice_, FOR_ALL)
    assert not may_cross(claim, of(), FOR_ALL)
    assert not may_cross(replace(claim, spec=a_spec()), slice_, FOR_ALL)
    assert not may_cross(claim, slice_, settings(warm=Warm(lasts=HOUR)))


def test_only_what_is_warm_is_offered_to_others() -> None:
    claim = a_record(job=a_job(namespace="vision"), spec=a_spec(takes=True))
    gone = {"create_requested_at": claim.since, "let_go": "its Job is over", "reason": Reason.WARM}
    warm = a_record(spec=a_spec(crosses=True), **gone)
    assert offers_to_any(warm) == needs_of_any(claim) is not None
    assert offers_to_any(replace(warm, reason=Reason.CLOSING_HOSTS)) is None
    assert offers_to_any(replace(warm, spec=a_spec())) is None
    assert needs_of_any(replace(claim, spec=a_spec())) is None
    assert needs(claim) is not None

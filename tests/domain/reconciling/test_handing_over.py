"""Which slices that go are given to which claims that wait."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from tests.builders import (
    MINUTE,
    NOW,
    a_job,
    a_jobset,
    a_record,
    a_spec,
    an_occupant,
    heard,
    settings,
    some_hosts,
    unclaimed,
)
from tests.domain.cases import BARE, FLEX, GUEST, GUEST_LEFT, LOST, OURS, STOCKOUT, going
from tpu_slices.domain.model.clusters import Allowed, Policy
from tpu_slices.domain.model.facts import WorkloadState
from tpu_slices.domain.model.hosts import HostKey, Upcoming
from tpu_slices.domain.model.observations import Broken, Busy, Creating, Observation, Observed, Witness
from tpu_slices.domain.model.reasons import Phase, Reason
from tpu_slices.domain.model.slices import Capacity, CapacityKind, OwnerKind, RungSpec, at_rung
from tpu_slices.domain.planning.policy import Held
from tpu_slices.domain.reconciling.case import Situation
from tpu_slices.domain.reconciling.taking import handed_over, is_offered, is_served_by
from tpu_slices.domain.records.attempts import Seen
from tpu_slices.domain.records.claims import Refusal
from tpu_slices.domain.records.gangs import Gang, GangState
from tpu_slices.domain.records.hosts import Hosts
from tpu_slices.domain.records.ladders import OnLadder, PassedOver
from tpu_slices.domain.records.matching import offers, wants
from tpu_slices.domain.records.slices import Desire, SliceRecord

ENDED = {a_jobset().owner.uid: a_jobset(state=WorkloadState.COMPLETED)}
VACANT = some_hosts(usable=0, closed=4, sound=4, keys=(HostKey("u-1.j0", 4),), vacant_since=NOW - timedelta(hours=1))
KEYED = a_spec(key="u-2.j0")


def ended(**changes: Any) -> SliceRecord:
    """Return a slice whose JobSet has completed, and which its claim has until it is gone."""
    fields = {"create_requested_at": NOW - timedelta(hours=2), "ordered": a_spec(), "hosts": VACANT}
    going_ = {"desire": Desire.ABSENT, "desire_message": "the JobSet completed", "phase": Phase.RELEASING}
    return a_record(**{**fields, **going_, **changes})


NO_HOSTS = some_hosts(usable=0, joined=0)
SOME = some_hosts(usable=0, joined=2, sound=2, keys=(HostKey("u-1.j0", 2),))
CREATING = Creating()
BEING_MADE = ended(hosts=NO_HOSTS, seen=Seen(pool=CREATING, since=NOW, by=Witness.LOOK))
MADE = ended(hosts=NO_HOSTS, seen=Seen(pool=OURS, since=NOW - MINUTE, by=Witness.LOOK))
LONG_MADE = ended(hosts=NO_HOSTS, seen=Seen(pool=OURS, since=NOW - timedelta(minutes=30), by=Witness.LOOK))


def with_some(record: SliceRecord) -> SliceRecord:
    """Return a slice two of whose four hosts have joined."""
    return record.with_current(hosts=SOME)


def announced(minutes: int) -> Hosts:
    """Return hosts of one of which maintenance is announced."""
    return replace(VACANT, announced=Upcoming(begins=NOW + minutes * MINUTE))


def offered(record: SliceRecord, found: Observation = OURS) -> bool:
    known = heard(workloads=ENDED)
    return is_offered(Situation(record, Observed(found), NOW, settings(), known))


def waiting(**changes: Any) -> SliceRecord:
    """Return the claim of another JobSet, whose leader waits."""
    job = a_job(name="gemma", namespace="research", uid="uid-gemma")
    return a_record(**{"job": job, "spec": KEYED, "demand_confirmed_at": NOW, **changes})


def served(claim: SliceRecord, slice_: SliceRecord | None = None, **known: Any) -> bool:
    case = Situation(claim, Observed(OURS), NOW, settings(), heard(**known))
    return is_served_by(case, slice_ or ended())


@pytest.mark.parametrize(
    ("record", "found"),
    [
        pytest.param(ended(), OURS, id="its JobSet has completed"),
        pytest.param(ended(), Busy("REPAIR"), id="the vendor works on it, and its hosts are all there"),
        pytest.param(ended(hosts=replace(VACANT, usable=4, closed=0)), OURS, id="its hosts are open yet"),
        pytest.param(ended(hosts=announced(minutes=61)), OURS, id="a host is to be maintained later"),
        pytest.param(replace(going(hosts=VACANT), fits=True), OURS, id="no claim has it, and nothing is wrong with it"),
        pytest.param(
            ended(hosts=replace(VACANT, occupants=(an_occupant(),))), OURS, id="pods of an ended Job are there"
        ),
        pytest.param(BEING_MADE, CREATING, id="it is being made, and no host has come yet"),
        pytest.param(with_some(BEING_MADE), CREATING, id="it is being made, and some hosts have come"),
        pytest.param(MADE, OURS, id="it was made a minute ago, and no host has come yet"),
        pytest.param(with_some(MADE), OURS, id="it was made a minute ago, and some hosts have come"),
    ],
)
def test_a_slice_that_nobody_needs_may_serve_another_claim(record: SliceRecord, found: Observation) -> None:
    assert offered(record, found)


@pytest.mark.parametrize(
    ("record", "found"),
    [
        pytest.param(ended(desire=Desire.PRESENT), OURS, id="it stays"),
        pytest.param(ended(delete_requested_at=NOW), OURS, id="it is being deleted"),
        pytest.param(ended(hold=True), OURS, id="an operator holds it"),
        pytest.param(ended(release_requested=True), OURS, id="an operator released it"),
        pytest.param(ended(reason=Reason.RELEASES_STOPPED), OURS, id="releases are stopped"),
        pytest.param(ended(attempt=0, legacy_pool="llama"), OURS, id="it was adopted"),
        pytest.param(ended(ordered=FLEX), OURS, id="its hosts leave by themselves"),
        pytest.param(ended(ordered=a_spec(exclusive_nodes=True)), OURS, id="its hosts are labelled for one Job"),
        pytest.param(going(hosts=VACANT), OURS, id="it was let go since something is wrong with it"),
        pytest.param(ended(hosts=replace(VACANT, sound=3)), OURS, id="a host is not sound, though all are closed"),
        pytest.param(ended(hosts=replace(VACANT, maintained=1)), OURS, id="a machine is maintained"),
        pytest.param(ended(hosts=announced(minutes=60)), OURS, id="a host is to be maintained within the hour"),
        pytest.param(ended(hosts=announced(minutes=-600)), OURS, id="a host was to be maintained long ago"),
        pytest.param(ended(hosts=replace(VACANT, announced=Upcoming(stopping=1))), OURS, id="a host is stopped soon"),
        pytest.param(ended(hosts=replace(VACANT, keys=())), OURS, id="it is not known which key its hosts carry"),
        pytest.param(ended(hosts=replace(VACANT, ends_by=NOW)), OURS, id="pods are being deleted there"),
        pytest.param(ended(hosts=replace(VACANT, occupants=(GUEST,))), OURS, id="somebody is on it"),
        pytest.param(ended(hosts=replace(VACANT, departures=GUEST_LEFT)), OURS, id="somebody may come back"),
        pytest.param(ended(), BARE, id="its labels were replaced"),
        pytest.param(ended(), Broken(STOCKOUT), id="it is broken"),
        pytest.param(ended(), LOST, id="nothing makes it any more"),
        pytest.param(ended(hosts=NO_HOSTS), OURS, id="its hosts are away"),
        pytest.param(LONG_MADE, OURS, id="it was made half an hour ago, and no host has come"),
        pytest.param(with_some(LONG_MADE), OURS, id="it was made half an hour ago, and hosts are missing"),
        pytest.param(
            MADE.with_current(hosts=replace(SOME, keys=())), OURS, id="some have come, and their key is not known"
        ),
    ],
)
def test_another_slice_serves_no_other_claim(record: SliceRecord, found: Observation) -> None:
    assert not offered(record, found)


def test_the_slice_of_a_node_group_serves_no_other() -> None:
    record = ended()
    assert offers(replace(record, owner=replace(record.owner, kind=OwnerKind.TPU_NODE_GROUP))) is None


@pytest.mark.parametrize(
    "claim",
    [
        pytest.param(waiting(), id="it was never tried"),
        pytest.param(waiting(phase=Phase.WAITING, retry_at=NOW + MINUTE, failures=3), id="it is tried later"),
    ],
)
def test_a_claim_that_waits_for_the_same_is_served(claim: SliceRecord) -> None:
    assert served(claim)


def test_a_claim_that_waits_for_chips_is_served_as_none_is_bought() -> None:
    assert served(waiting(), held=Held(in_cluster=10**6, in_namespace=10**6))


@pytest.mark.parametrize(
    "claim",
    [
        pytest.param(waiting(create_requested_at=NOW), id="one is being created for it"),
        pytest.param(waiting(demand_confirmed_at=None), id="no leader waits"),
        pytest.param(waiting(demand_confirmed_at=NOW - timedelta(hours=1)), id="no leader was lately seen to wait"),
        pytest.param(waiting(desire=Desire.ABSENT), id="it is not needed"),
        pytest.param(waiting(hold=True), id="an operator holds it"),
        pytest.param(waiting(job=a_job()), id="it had the slice itself"),
        pytest.param(waiting(spec=a_spec(key="")), id="nothing pins its pods"),
        pytest.param(waiting(spec=replace(KEYED, fingerprint="v1-other")), id="it requests something else"),
        pytest.param(waiting(spec=replace(KEYED, zone="us-central2-x")), id="elsewhere"),
        pytest.param(waiting(spec=replace(KEYED, node_labels=(("team", "b"),))), id="with other labels"),
        pytest.param(waiting(spec=replace(KEYED, service_account="b@p.iam")), id="as another account"),
        pytest.param(waiting(job=a_job(namespace="vision")), id="in another namespace"),
        pytest.param(waiting(refusal=Refusal(reason=Reason.IMPOSSIBLE_SHAPE, message="")), id="it is refused"),
    ],
)
def test_another_claim_is_not_served(claim: SliceRecord) -> None:
    assert not served(claim)


SPOT_HERE = RungSpec(place="spot", zone=KEYED.zone, capacity=Capacity(CapacityKind.SPOT))
SPOT_THERE = replace(SPOT_HERE, zone="us-central2-c")
LISTED = RungSpec(place="list", zone=KEYED.zone, capacity=Capacity())
FORMING = Gang(
    replicated_jobs=("slice",),
    claims=2,
    chips=32,
    since=NOW,
    state=GangState.FORMS,
    state_since=NOW,
    lacks_since=NOW,
)
PASSED = PassedOver(rung=0, message="it was not taken", until=NOW + MINUTE)


def served_on_ladder(
    first: RungSpec = SPOT_HERE,
    jobset_chips: int = 32,
    gang: Gang | None = None,
    passed: tuple[PassedOver, ...] = (),
    made_at: int = 0,
) -> bool:
    """Return whether a claim that asks at the second of three rungs gets what was made at one, the first by default."""
    rungs = (first, LISTED, replace(SPOT_THERE, place="spot-there"))
    asks = replace(KEYED, ladder="patient@1", rungs=rungs, rung=1, capacity=Capacity(), jobset_chips=jobset_chips)
    made = at_rung(replace(asks, rungs=tuple(replace(each, against="") for each in rungs)), made_at)
    claim, at = waiting(spec=asks), OnLadder(rung=1, since=NOW, passed=passed)
    own = replace(
        a_jobset(name="gemma", uid="uid-gemma"),
        ladders={"patient@1": at},
        gangs={"all": gang} if gang is not None else {},
    )
    return served(claim, ended(ordered=made), workloads={**ENDED, own.owner.uid: own})


@pytest.mark.parametrize(
    "case",
    [
        pytest.param({}, id="in the zone of its workload"),
        pytest.param({"first": SPOT_THERE, "jobset_chips": 16}, id="in another zone, and its workload has no other"),
        pytest.param({"made_at": 1}, id="at its own rung"),
        pytest.param({"passed": (replace(PASSED, until=NOW),)}, id="passed over until now"),
        pytest.param({"gang": replace(FORMING, ran=True)}, id="its gang has started"),
    ],
)
def test_a_claim_on_a_ladder_is_served_by_what_was_made_at_a_better_rung(case: dict[str, Any]) -> None:
    assert served_on_ladder(**case)


@pytest.mark.parametrize(
    "case",
    [
        pytest.param({"first": SPOT_THERE}, id="in another zone than its workload"),
        pytest.param({"first": replace(SPOT_HERE, against="no toleration")}, id="its pods cannot use it"),
        pytest.param({"passed": (PASSED,)}, id="its workload passes it over"),
        pytest.param({"gang": FORMING}, id="its gang has not started"),
        pytest.param({"made_at": 2, "jobset_chips": 16}, id="further down than it asks"),
    ],
)
def test_it_is_not_served_by_another(case: dict[str, Any]) -> None:
    assert not served_on_ladder(**case)


def test_a_claim_that_the_policy_does_not_allow_is_not_served() -> None:
    rules = settings(policy=Policy(namespaces={"research": Allowed(chips_per_slice=1)}))
    assert not is_served_by(Situation(waiting(), Observed(OURS), NOW, rules, heard()), ended())


def test_the_claim_has_the_slice_and_the_one_that_had_it_gets_its_next_number() -> None:
    got = handed_over(waiting(), ended(), None, NOW)
    assert got.other is not None
    assert (got.has.id, got.has.claimed_by) == (ended().id, waiting().claimed_by)
    assert (got.has.goes, got.has.key, got.has.maker) == (False, "u-2.j0", ended().maker)
    assert (got.other.claimed_by, got.other.attempt) == (ended().claimed_by, 2)
    assert got.other.current.create_requested_at is None
    assert wants(got.has) is offers(got.has) is None


def test_a_claim_that_had_it_before_does_not_wait_for_its_end_any_more() -> None:
    slice_ = replace(unclaimed(ended()), fits=True)
    last = a_record(attempt=2).with_claim(earlier=(slice_.id,))
    got = handed_over(waiting(), slice_, last, NOW)
    assert got.other is not None
    assert got.other.claim.earlier == ()

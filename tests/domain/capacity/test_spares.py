"""Which spares the settings ask for, what comes before one, and what is decided about its seat."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builders import MINUTE, NOW, a_record, a_spec, settings, some_hosts, with_fields
from tests.domain.cases import OURS, situations
from tpu_slices.domain.capacity.seats import as_wanted, needed_again, planned
from tpu_slices.domain.capacity.spares import (
    First,
    beyond_limit,
    seats_of,
    usd_an_hour,
    waits_for_such,
    why_not_now,
)
from tpu_slices.domain.model.capacity import Place, Spare
from tpu_slices.domain.model.clusters import Allowed, CatalogueSettings, ClusterSettings, Limits, Policy
from tpu_slices.domain.model.hosts import HostKey, Upcoming
from tpu_slices.domain.model.observations import Observed
from tpu_slices.domain.model.reasons import Phase, Reason
from tpu_slices.domain.model.slices import CapacityKind, OwnerKind, SliceSpec, WorkloadUid
from tpu_slices.domain.planning.policy import Held
from tpu_slices.domain.reconciling.case import Known, Situation
from tpu_slices.domain.reconciling.decide import decide
from tpu_slices.domain.reconciling.decisions import CreatePool, DeletePool
from tpu_slices.domain.reconciling.patience import due
from tpu_slices.domain.records.gangs import InLine
from tpu_slices.domain.records.heartbeats import RelayHeard
from tpu_slices.domain.records.slices import SliceRecord

LIST = Place(capacity=CapacityKind.ON_DEMAND, zones=("us-central2-b",))
TWO = Spare(accelerator="tpu-v6e-slice", topology="4x4", place="list", count=2, namespaces=("research",))
PRICED = CatalogueSettings(
    prices=(
        (
            ("accelerator", "tpu-v6e-slice"),
            ("region", "us-central2"),
            ("kind", "on_demand"),
            ("usd_per_chip_hour", "2.50"),
            ("read", "2026-11-30"),
            ("source", "a contract"),
        ),
    )
)
HEARD = RelayHeard(last_at=NOW, since=NOW - timedelta(days=1), confirmed_at=NOW)


def asking(*spares: Spare, **changes: Any) -> ClusterSettings:
    return settings(**{"places": {"list": LIST}, "spares": spares or (TWO,), **changes})


def a_seat(of: ClusterSettings | None = None, **changes: Any) -> SliceRecord:
    """Return the first seat that the settings ask for; its fields as in `with_fields`."""
    of = of or asking()
    seat = next(iter(seats_of(of).values()))
    spec = planned(seat, of)
    assert isinstance(spec, SliceSpec)
    return with_fields(SliceRecord.of(seat.job, NOW, spec), **changes)


def standing(**changes: Any) -> SliceRecord:
    seat = a_seat()
    hosts = some_hosts(usable=4, sound=4, keys=(HostKey(seat.id, 4),), vacant_since=NOW - timedelta(days=1))
    made = {"create_requested_at": NOW - timedelta(days=1), "ordered": seat.spec, "hosts": hosts}
    return a_seat(**{**made, "phase": Phase.READY, "reason": Reason.SPARE, **changes})


def decided(record: SliceRecord, first: First | None = None, held: Held | None = None, **changes: Any) -> Any:
    known = Known(relay=HEARD, first=first or First(), held=held, slots={1: 0})
    return decide(record, Observed(OURS), NOW, asking(**changes), known)


def test_one_is_let_go_an_hour_before_the_maintenance_of_a_host_and_the_next_waits_as_after_a_failure() -> None:
    begins = NOW + timedelta(hours=3)
    stands = standing()
    hosts = replace(stands.current.hosts, announced=Upcoming(begins=begins))
    later = decided(stands.with_current(hosts=hosts))
    assert (later.reason, later.record.next_reconcile_at) == (Reason.SPARE, begins - timedelta(hours=1))
    assert later.message.endswith(
        "Google has announced maintenance of its hosts from 15:00 UTC: nobody is given it from 14:00 UTC."
    )
    near = replace(hosts, announced=Upcoming(begins=NOW + timedelta(hours=1)))
    decision = decided(stands.with_current(hosts=near))
    assert decision.let_go is not None
    assert (decision.reason, decision.record.claim.failures) == (Reason.HOSTS_NOT_USABLE, 1)
    assert "Google has announced maintenance of its hosts from 13:00 UTC." in decision.message


def test_one_whose_hosts_are_being_stopped_stays_until_they_are_gone() -> None:
    hosts = replace(standing().current.hosts, announced=Upcoming(stopping=1))
    assert decided(standing(hosts=hosts)).reason is Reason.SPARE


def test_a_seat_is_the_same_whoever_derives_it_and_another_for_each_number_and_namespace() -> None:
    of = asking(replace(TWO, namespaces=("research", "vision")))
    assert seats_of(of) == seats_of(replace(of, version="2"))
    assert len(seats_of(of)) == 4
    assert set(seats_of(asking())) < set(seats_of(of))
    assert not seats_of(replace(of, retired="it moves"))


def test_its_slice_is_that_of_pods_that_select_this_alone() -> None:
    spec, usual = a_seat().spec, a_spec()
    assert spec is not None
    same = ("fingerprint", "machine_type", "hosts", "zone", "capacity", "node_labels", "taints", "boot_disk")
    assert [getattr(spec, each) for each in same] == [getattr(usual, each) for each in same]


def test_its_hosts_carry_its_own_name() -> None:
    assert a_seat().key == a_seat().id
    assert a_seat().id.startswith("tpu-spare-list-4x4-0-")


@pytest.mark.parametrize(
    ("first", "told"),
    [
        (First(slots=True), "Operations of others wait for a slot"),
        (First(chips=True), "Claims that wait for chips come first"),
        (First(chips_elsewhere=8), "Claims that wait for chips come first"),
        (First(gangs=True), "Gangs that wait for their slices come first"),
        (First(capacity=True), "Claims that wait for tpu-v6e-slice as on-demand in us-central2-b come first"),
        (First(making=2), "Other spares are being made"),
        (First(unheard=True), "The relay is silent"),
        (First(unpinned=True), "Nothing pins pods to slices"),
        (First(usd_an_hour=70.0), "spares_most_usd_an_hour: with it all spares cost 110.00 dollars an hour"),
    ],
)
def test_what_comes_before_a_spare_is_told_and_nothing_is_created(first: First, told: str) -> None:
    limits = {"policy": Policy(chips_per_cluster=32), "spares_most_usd_an_hour": 100.0, "catalogue": PRICED}
    decision = decided(a_seat(), first, Held(0, 12), **limits)
    assert (decision.reason, decision.actions) == (Reason.SPARE_WAITS, ())
    assert decision.message.startswith(told)
    assert decision.record.next_reconcile_at == NOW + MINUTE


def test_once_nothing_does_it_is_created() -> None:
    decision = decided(a_seat(), First(usd_an_hour=60.0, making=1, chips_elsewhere=4), Held(0, 12))
    assert decision.actions == (CreatePool(1),)


def test_what_nobody_has_looked_for_yet_is_awaited() -> None:
    decision = decide(a_seat(), Observed(OURS), NOW, asking(), Known(relay=HEARD, slots={1: 0}))
    assert (decision.reason, decision.actions) == (Reason.SPARE_WAITS, ())
    assert decision.record.next_reconcile_at == NOW + MINUTE


def test_another_zone_or_capacity_of_its_place_is_another_seat() -> None:
    spot, elsewhere = replace(LIST, capacity=CapacityKind.SPOT), replace(LIST, zones=("us-central2-c",))
    every = [seats_of(asking(places={"list": each})).keys() for each in (LIST, spot, elsewhere)]
    assert len(set().union(*every)) == 6


def test_a_limit_of_chips_is_told_as_such() -> None:
    decision = decided(a_seat(), held=Held(16, 16), policy=Policy(everyone=Allowed(chips_per_namespace=16)))
    assert decision.reason is Reason.SPARE_WAITS
    assert decision.message.startswith("policy.chips_per_namespace: this slice has 16 chips, and the")


def test_with_one_operation_at_a_time_one_spare_is_made_at_a_time() -> None:
    of = asking(limits=Limits(operations=1))
    spec = a_seat().spec
    assert spec is not None
    assert why_not_now(spec, "research", First(), None, of) == ""
    assert why_not_now(spec, "research", First(making=1), None, of)


@pytest.mark.parametrize(
    ("chips", "lacks", "namespace", "limited", "first"),
    [
        (0, ("us-central2-b/tpu-v6e-slice/ON_DEMAND",), "vision", False, True),
        (64, ("us-central2-b/tpu-v6e-slice/ON_DEMAND",), "vision", False, True),
        (64, ("elsewhere",), "research", True, False),
        (0, (), "research", False, True),
        (0, (), "vision", True, True),
        (0, (), "vision", False, False),
    ],
)
def test_a_gang_comes_first_for_such_capacity_and_for_chips_that_may_be_the_same(
    chips: int, lacks: tuple[str, ...], namespace: str, limited: bool, first: bool
) -> None:
    gang = InLine(
        workload=WorkloadUid("u"), namespace=namespace, workload_name="g", since=NOW, chips=chips, lacks=lacks
    )
    of = asking(policy=Policy(chips_per_cluster=64 if limited else None))
    assert waits_for_such([gang], a_seat(), of) is first


def test_what_others_cost_counts_what_is_bought_and_not_itself() -> None:
    of = asking(catalogue=PRICED)
    stands, waits = standing(), a_seat(job_index=1)
    other = with_fields(stands, job_index=2)
    assert usd_an_hour(stands, [stands, other, waits], of) == 40.0


@given(ages=st.lists(st.integers(0, 9), max_size=6), most=st.integers(0, 250))
def test_beyond_the_limit_of_dollars_are_the_newest_and_none_that_would_fit(ages: list[int], most: int) -> None:
    of = asking(spares_most_usd_an_hour=float(most), catalogue=PRICED)
    seats = [standing(job_index=index, create_requested_at=NOW - age * MINUTE) for index, age in enumerate(ages)]
    beyond = beyond_limit(seats, of)
    stay = [each for each in seats if each not in beyond]
    assert len(stay) == min(len(seats), most // 40)
    made = [each.current.create_requested_at or NOW for each in (*beyond, *stay)]
    assert not (beyond and stay) or min(made[: len(beyond)]) >= max(made[len(beyond) :])
    assert beyond_limit(reversed(seats), of) == beyond
    assert beyond_limit(stay, of) == ()


def test_without_a_limit_none_is_beyond_it_and_with_one_each_without_a_known_price() -> None:
    assert beyond_limit([standing()], asking()) == ()
    assert beyond_limit([standing()], asking(spares_most_usd_an_hour=100.0)) == (standing(),)


@pytest.mark.parametrize("reason", [each for each in Reason if each.phase is Phase.READY and each is not Reason.SPARE])
def test_one_that_stands_and_says_another_reason_is_looked_at_again_by_itself(reason: Reason) -> None:
    assert due(standing(reason=reason), None, NOW, Limits()) is not None
    assert due(standing(), None, NOW, Limits()) is None


def test_a_spare_stays_however_long_nobody_uses_it() -> None:
    decision = decided(standing())
    assert (decision.reason, decision.actions) == (Reason.SPARE, ())
    assert decision.message == "A spare for the next slice of namespace research (at an unknown price)."


@pytest.mark.parametrize(
    ("of", "why"),
    [
        (asking(replace(TWO, place="other"), places={"other": LIST}), "the settings ask for no such spare"),
        (asking(retired="it moves"), "the settings ask for no such spare"),
        (
            asking(places={"list": replace(LIST, capacity=CapacityKind.SPOT)}),
            "the settings ask for another spare in its place",
        ),
        (asking(policy=Policy(everyone=Allowed(zones=("us-east5-b",)))), "zones: us-central2-b"),
    ],
)
def test_one_that_the_settings_ask_for_no_more_is_not_needed(of: ClusterSettings, why: str) -> None:
    after = as_wanted(standing(), of)
    assert not after.wanted
    assert after.desire_message.startswith(why[:20])


def test_what_is_not_needed_stays_so_whatever_the_settings_say_until_it_is_needed_again() -> None:
    gone = as_wanted(standing(), asking(retired="it moves"))
    assert as_wanted(gone, asking()) == gone
    assert as_wanted(needed_again(gone), asking()).wanted


def test_no_other_record_is_touched() -> None:
    assert as_wanted(a_record(), asking()) == a_record()


@given(situation=situations())
def test_a_seat_is_deleted_only_if_it_is_not_needed_or_does_not_serve(situation: Situation) -> None:
    seat = replace(situation.record, owner=replace(situation.record.owner, kind=OwnerKind.SPARE))
    decision = decide(seat, situation.seen, NOW, situation.settings, situation.known)
    if any(isinstance(action, DeletePool) for action in decision.actions):
        assert seat.goes or seat.unclaimed

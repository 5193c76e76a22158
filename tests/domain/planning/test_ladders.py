"""The rungs of a ladder as they are for the pods of a slice."""

from __future__ import annotations

from typing import Any

import pytest

from tests.builders import a_job, a_leader
from tests.journeys.ladders.stories import PLACES, B, C, laddered, naming, request, rung
from tpu_slices.domain.model.capacity import NamespaceSettings, Place
from tpu_slices.domain.model.clusters import Allowed, CatalogueSettings, Policy
from tpu_slices.domain.model.reasons import Reason
from tpu_slices.domain.model.slices import CapacityKind, SliceSpec, Taint
from tpu_slices.domain.planning.host_labels import ZONE
from tpu_slices.domain.planning.specs import SliceRequest, spec_for
from tpu_slices.domain.records.claims import Refusal

_ROW = (
    ("accelerator", "tpu-v6e-slice"),
    ("region", "us-central2"),
    ("kind", "on_demand"),
    ("usd_per_chip_hour", "2.70"),
    ("read", "2026-11-30"),
    ("source", "our contract"),
)
_PRICES = CatalogueSettings(prices=(_ROW,))
RUNGS = (rung("spot", 40), rung("flex", 360), rung("list-elsewhere"))


def planned(settings: Any = None, **changes: Any) -> SliceSpec | Refusal:
    asked = SliceRequest(job=a_job(), request=request(**changes), leader=a_leader(), jobset_chips=64)
    return spec_for(asked, settings or laddered(*RUNGS))


def spec_of(settings: Any = None, **changes: Any) -> SliceSpec:
    spec = planned(settings, **changes)
    assert isinstance(spec, SliceSpec), spec
    return spec


def selecting(key: str, value: str) -> dict[str, Any]:
    return {"node_selector": (*request().node_selector, (key, value))}


def test_a_claim_begins_at_the_first_rung_and_knows_the_others() -> None:
    spec = spec_of()
    assert (spec.zone, spec.capacity.kind, spec.place, spec.rung) == (B, CapacityKind.SPOT, "spot", 0)
    assert [each.how for each in spec.rungs] == [f"spot in {B}", f"flex-start in {B}", f"on-demand in {C}"]
    assert spec.taints == (Taint("cloud.google.com/gke-spot", "true"),)
    assert spec.rungs[2].taints == ()


def test_a_place_of_several_zones_is_as_many_rungs() -> None:
    assert [each.zone for each in spec_of(laddered(rung("spot-any"))).rungs] == [*PLACES["spot-any"].zones]


@pytest.mark.parametrize(
    ("changes", "against"),
    [
        (
            selecting(ZONE, B),
            {2: 'zone: the pod selects "us-central2-b"'},
        ),
        (selecting(ZONE, C), {0: "zone", 1: "zone"}),
        (selecting("cloud.google.com/gke-spot", "true"), {1: "gke-spot", 2: "gke-spot"}),
        (selecting("cloud.google.com/gke-flex-start", "true"), {0: "gke-flex-start", 2: "gke-flex-start"}),
        ({"tolerations": ()}, {0: "cloud.google.com/gke-spot: the hosts of this slice have the taint"}),
        ({"gang": "all"}, {1: "the pods of a gang are held"}),
    ],
    ids=["one zone", "another zone", "spot", "flex-start", "no toleration", "a gang"],
)
def test_a_rung_that_a_pod_contradicts_says_by_what(changes: dict[str, Any], against: dict[int, str]) -> None:
    rungs = spec_of(**changes).rungs
    assert {number for number, each in enumerate(rungs) if each.against} == against.keys()
    for number, text in against.items():
        assert text in rungs[number].against


def test_the_policy_holds_at_every_rung() -> None:
    policy = Policy(everyone=Allowed(capacity=(CapacityKind.SPOT, CapacityKind.ON_DEMAND), zones=(B,)))
    rungs = spec_of(laddered(*RUNGS, policy=policy)).rungs
    assert [bool(each.against) for each in rungs] == [False, True, True]
    assert "policy.capacity" in rungs[1].against
    assert "policy.zones" in rungs[2].against


def test_a_reservation_that_the_policy_does_not_allow_is_passed_over() -> None:
    booked = Place(capacity=CapacityKind.RESERVATION, zones=(B,), reservation="projects/other/reservations/theirs")
    policy = Policy(everyone=Allowed(reservations=("hall-*",)))
    settings = laddered(rung("booked"), rung("list"), places={**PLACES, "booked": booked}, policy=policy)
    assert "policy.reservations" in spec_of(settings).rungs[0].against


def test_where_only_on_demand_is_bought_the_other_rungs_are_passed_over() -> None:
    spec = spec_of(laddered(*RUNGS, force_on_demand=True))
    assert (spec.rung, spec.capacity.kind) == (2, CapacityKind.ON_DEMAND)
    assert "force_on_demand" in spec.rungs[0].against


@pytest.mark.parametrize(("most", "passed"), [(50_000.0, False), (10.0, True)])
def test_a_rung_is_passed_over_if_all_chips_of_the_workload_cost_too_much_there(most: float, passed: bool) -> None:
    spec = spec_of(laddered(rung("spot"), rung("list", most_usd_an_hour=most), catalogue=_PRICES))
    assert bool(spec.rungs[1].against) is passed
    if passed:
        assert "64 chips cost 172.80 dollars an hour, and at most 10.00 are allowed" in spec.rungs[1].against


def test_a_rung_whose_price_is_not_known_is_passed_over_where_there_is_a_limit() -> None:
    spec = spec_of(laddered(rung("spot"), rung("list", most_usd_an_hour=50_000.0)))
    assert "its price is not known" in spec.rungs[1].against


def test_without_a_rung_for_its_pods_a_claim_is_refused_and_told_what_is_against_each() -> None:
    refusal = planned(laddered(rung("spot"), rung("list-elsewhere")), tolerations=(), **selecting(ZONE, B))
    assert isinstance(refusal, Refusal)
    assert refusal.reason is Reason.DOES_NOT_FIT
    assert "no rung of patient is for these pods: rung 1 (spot in us-central2-b)" in refusal.message


def test_what_is_impossible_everywhere_is_told_as_without_a_ladder() -> None:
    refusal = planned(topology="3x3")
    assert isinstance(refusal, Refusal)
    assert refusal.reason is Reason.IMPOSSIBLE_SHAPE
    assert "rung" not in refusal.message


def test_the_annotation_comes_before_the_namespace_and_that_before_the_cluster() -> None:
    ladders = {name: laddered(rung(place)).ladders["patient"] for name, place in (("a", "spot"), ("b", "list"))}
    ladders["c"] = laddered(rung("list-elsewhere")).ladders["patient"]
    common: dict[str, Any] = {"ladders": ladders, "ladder": "a"}
    here = laddered(**common, namespaces={"research": NamespaceSettings(ladder="b")})
    assert spec_of(laddered(**common)).ladder.startswith("a@")
    assert spec_of(here).ladder.startswith("b@")
    assert spec_of(here, **naming("c")).ladder.startswith("c@")
    assert spec_of(here, **naming("none")).ladder == ""


def test_a_request_is_the_same_with_and_without_a_ladder() -> None:
    assert spec_of(**naming("patient")).fingerprint == spec_of(**naming("none")).fingerprint

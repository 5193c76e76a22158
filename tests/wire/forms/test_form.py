"""Places and ladders in a cluster's settings, and the errors for what is wrong with them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from tests.builders import CLUSTER
from tests.manifests import a_manifest
from tpu_slices.domain.model.capacity import LADDER, Ladder, NamespaceSettings, Place, Rung, ZonesOf
from tpu_slices.domain.model.facts import TemplateRequest
from tpu_slices.domain.model.slices import CapacityKind, OwnerKind
from tpu_slices.ports.errors import Permanent
from tpu_slices.wire.cluster_settings import decode_settings, encode_settings
from tpu_slices.wire.readers import READERS

PLACES = {
    "booked": {"capacity": "reservation", "reservation": "hall-7", "zone": "us-east5-b"},
    "spot": {"capacity": "spot", "zones": ["us-east5-a", "us-east5-b"]},
    "flex": {"capacity": "flex-start", "zone": "us-east5-a", "max_run": "3d"},
    "list": {"capacity": "on-demand", "zone": "us-east5-b"},
}
RUNGS = [{"place": "booked", "for": "2h"}, {"place": "spot"}, {"place": "list", "most_usd_an_hour": 700}]


def document(**changes: Any) -> dict[str, Any]:
    whole = {
        "path": "projects/p/locations/us-east5/clusters/c",
        "places": PLACES,
        "ladders": {"patient": {"rungs": RUNGS}, "wide": {"rungs": [{"place": "spot"}], "zones": "any"}},
        "ladder": "patient",
        "namespaces": {"research": {"ladder": "wide"}, "art": {"ladder": "none"}},
    }
    return {**whole, **changes}


def test_places_and_ladders_are_read_and_written_alike() -> None:
    settings = decode_settings(CLUSTER, document(), "v")
    assert settings.places["spot"] == Place(capacity=CapacityKind.SPOT, zones=("us-east5-a", "us-east5-b"))
    assert settings.places["flex"].max_run == timedelta(days=3)
    assert settings.ladders["patient"] == Ladder(
        rungs=(
            Rung(place="booked", lasts=timedelta(hours=2)),
            Rung(place="spot"),
            Rung(place="list", most_usd_an_hour=700.0),
        )
    )
    assert settings.ladders["wide"].zones is ZonesOf.ANY
    assert settings.namespaces["research"] == NamespaceSettings(ladder="wide")
    assert decode_settings(CLUSTER, encode_settings(settings), "v") == settings


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"ladder": "patien"}, 'ladder: "patien" is no ladder: did you mean patient?'),
        (
            {"namespaces": {"research": {"ladder": "x"}}},
            'namespaces.research.ladder: "x" is no ladder: name one of patient, wide',
        ),
        (
            {"ladders": {"patient": {"rungs": [{"place": "spott"}]}}},
            'ladders.patient.rungs: "spott" is no place: did you mean spot?',
        ),
        ({"ladders": {"patient": {"rungs": []}}}, "ladders.patient.rungs: has 0 rungs"),
        ({"ladders": {"patient": {}}}, "ladders.patient.rungs: Required value: must be a list of 1 to 20 maps"),
        (
            {"ladders": {"patient": {"rungs": [{"place": "spot", "for": "soon"}]}}},
            "ladders.patient.rungs.0.for: Invalid value: 'soon': must be seconds, or text such as 40m or 2h",
        ),
        (
            {"ladders": {"patient": {"rungs": [{"plce": "spot"}]}}},
            "ladders.patient.rungs.0.plce: Unknown field: did you mean ladders.NAME.rungs.place?",
        ),
        (
            {"places": {**PLACES, "booked": {"capacity": "reservation", "zone": "us-east5-b"}}},
            "places.booked.reservation: Required value: name the reservation",
        ),
        (
            {"places": {**PLACES, "spot": {"capacity": "spot", "zones": ["us-east5-a", "us-east5-a"]}}},
            "places.spot.zones: us-east5-a is named 2 times: name it once",
        ),
        (
            {"places": {**PLACES, "list": {"capacity": "on-demand"}}},
            "places.list.zone: Required value: name a zone",
        ),
        (
            {"places": {**PLACES, "list": {"capacity": "cheap", "zone": "us-east5-a"}}},
            "places.list.capacity: Invalid value: 'cheap': must be one of on-demand, spot, reservation, flex-start",
        ),
        (
            {"places": {**PLACES, "list": {"capacity": "on-demand", "zone": "us-west1-a"}}},
            'places.list.zone: "us-west1-a", where this cluster can have no slices',
        ),
        (
            {"places": {**PLACES, "list": {"capacity": "on-demand", "zone": "us-east5-a", "max_run": "3d"}}},
            "places.list.max_run: only capacity: flex-start has one",
        ),
    ],
)
def test_what_is_wrong_names_the_field_and_the_remedy(changes: dict[str, Any], error: str) -> None:
    with pytest.raises(Permanent) as wrong:
        decode_settings(CLUSTER, document(**changes), "v")
    assert error in str(wrong.value)


def test_a_self_managed_cluster_has_no_place_of_flex_start() -> None:
    compute = {"path": "projects/p/locations/us-east5", "compute": {"image": "projects/i/global/images/tpu"}}
    with pytest.raises(Permanent, match=r"places\.flex\.capacity: in a self-managed cluster there is no flex-start"):
        decode_settings(CLUSTER, document(**compute), "v")


@pytest.mark.parametrize("kind", [OwnerKind.JOBSET, OwnerKind.JOB, OwnerKind.LEADER_WORKER_SET])
def test_the_annotation_of_a_workload_holds_for_its_templates(kind: OwnerKind) -> None:
    manifest = a_manifest(kind)
    named = {**manifest, "metadata": {"name": "llama", "namespace": "research", "annotations": {LADDER: "patient"}}}
    requests: tuple[TemplateRequest, ...] = READERS[kind].requests(named)
    assert [dict(each.requested_annotations) for each in requests] == [{LADDER: "patient"}]


def test_the_annotation_of_a_template_comes_first() -> None:
    manifest = a_manifest()
    template = manifest["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]
    template["metadata"] = {**template.get("metadata", {}), "annotations": {LADDER: "wide"}}
    named = {**manifest, "metadata": {"name": "llama", "namespace": "research", "annotations": {LADDER: "patient"}}}
    assert [dict(each.requested_annotations)[LADDER] for each in READERS[OwnerKind.JOBSET].requests(named)] == ["wide"]

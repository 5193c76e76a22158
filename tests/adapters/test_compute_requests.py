"""The requests as Compute Engine gets them."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from google.cloud.compute_v1.types import InstanceProperties, InstanceTemplate, Scheduling

from tests.adapters.compute_stories import ORDER, ORDERS, order
from tests.adapters.test_gke_requests import RENEW
from tests.builders import MINUTE, NOW
from tpu_slices.adapters.cloud_errors import CannotBeMade
from tpu_slices.adapters.compute.requests import (
    GROUPS,
    POLICIES,
    TEMPLATES,
    as_rest,
    group_request,
    misfit,
    policy_request,
    region_of,
    request_id,
    template_place,
    template_request,
)
from tpu_slices.domain.model.clusters import PoolSettings
from tpu_slices.domain.model.observations import FailureKind
from tpu_slices.domain.model.slices import Capacity, CapacityKind
from tpu_slices.domain.planning.pool_descriptions import missing_proof

GOLDEN = Path(__file__).parent / "golden" / "compute"
SCRIPT = "startup-script"


def recorded(requests: list[Mapping[str, Any]]) -> str:
    """Return requests as they are recorded: of the startup script, which changes by itself, only that it is there."""

    def shown(item: dict[str, Any]) -> dict[str, Any]:
        script = item.get("key") == SCRIPT
        assert not script or item["value"].startswith("#!")
        return {**item, "value": "#! ..."} if script else item

    return json.dumps(json.loads(json.dumps(requests), object_hook=shown), indent=2) + "\n"


@pytest.mark.parametrize("name", ORDERS)
def test_requests_are_as_recorded(name: str) -> None:
    """`RENEW_GOLDEN_REQUESTS=1 pytest tests/adapters` records again, and fails: check the difference."""
    asked, record = recorded(as_rest(ORDERS[name])), GOLDEN / f"{name}.json"
    if os.environ.get(RENEW):
        record.write_text(asked)
        pytest.fail(f"recorded anew: {record.name}")
    assert asked == record.read_text()


def test_every_recorded_request_has_its_order() -> None:
    assert {record.stem for record in GOLDEN.glob("*.json")} == set(ORDERS)


def test_all_that_a_slice_consists_of_has_the_pools_name_and_the_proof_of_ownership() -> None:
    parts = [policy_request(ORDER), template_request(ORDER), group_request(ORDER)]
    assert {part.name for part in parts if part} == {ORDER.name}
    assert [missing_proof(part.description, ORDER.job) for part in parts if part] == [None, None, None]


def test_a_single_host_has_no_policy_and_is_repaired_by_its_group() -> None:
    alone = ORDERS["tpu7x-of-one-host"]
    group = group_request(alone)
    assert policy_request(alone) is None
    assert "resource_policies" not in group
    assert (group.target_size_policy.mode, group.instance_lifecycle_policy.default_action_on_failure) == (
        "INDIVIDUAL",
        "REPAIR",
    )


def test_hosts_have_no_external_address() -> None:
    template = template_request(ORDERS["every-setting"])
    assert template is not None
    assert [list(each.access_configs) for each in template.properties.network_interfaces] == [[], []]


def test_metadata_of_a_tenant_replaces_none_of_ours() -> None:
    ours, theirs = (template_request(ORDERS[name]) for name in ("tpu7x-of-several-hosts", "every-request-of-a-group"))
    assert ours is not None
    assert theirs is not None
    plain, added = ({each.key: each.value for each in made.properties.metadata.items} for made in (ours, theirs))
    assert added["enable-oslogin"] == "TRUE"
    assert "google.com/tpu-slice-id" in added["kube-labels"]
    assert "mine=now" not in added["kube-labels"]
    assert plain.keys() <= added.keys()


def test_hosts_of_a_template_that_is_brought_get_their_labels_from_the_group() -> None:
    made, brought = ORDER, ORDERS["a-template-that-is-brought"]
    template = template_request(made)
    assert template is not None
    (labels,) = (each.value for each in template.properties.metadata.items if each.key == "kube-labels")
    assert group_request(brought).all_instances_config.properties.metadata["kube-labels"] == labels
    assert "all_instances_config" not in group_request(made)


def test_each_step_of_each_attempt_has_its_own_request_id_for_a_minute() -> None:
    steps = [
        (each, collection, verb, NOW + later)
        for each in (ORDER, replace(ORDER, attempt=2))
        for collection in (POLICIES, TEMPLATES, GROUPS)
        for verb in ("insert", "delete")
        for later in (timedelta(), MINUTE)
    ]
    assert len({request_id(*step) for step in steps}) == len(steps)
    assert request_id(ORDER, GROUPS, "insert", NOW) == request_id(ORDER, GROUPS, "insert", NOW + MINUTE / 2)


def test_what_cannot_be_made_is_said_before_anything_is_requested() -> None:
    with pytest.raises(CannotBeMade, match="found without a record"):
        policy_request(replace(ORDER, spec=None))
    with pytest.raises(CannotBeMade, match="no section compute"):
        template_request(replace(ORDER, settings=PoolSettings()))
    with pytest.raises(CannotBeMade, match="Flex-start is not possible") as never:
        template_request(order("tpu7x-of-several-hosts", capacity=Capacity(CapacityKind.FLEX_START)))
    assert never.value.kind is FailureKind.IMPOSSIBLE


def test_a_region_is_that_of_a_zone_too() -> None:
    paths = (
        "projects/p/locations/us-central1",
        "projects/p/locations/us-central1-c",
        "projects/p/locations/us-south1-ai1b",
    )
    assert [region_of(path) for path in paths] == ["us-central1", "us-central1", "us-south1"]


@pytest.mark.parametrize(
    ("path", "place"),
    [
        ("projects/p/global/instanceTemplates/t", ("p", None, "t")),
        ("projects/p/regions/us-central1/instanceTemplates/t", ("p", "us-central1", "t")),
    ],
)
def test_a_template_that_is_brought_is_global_or_regional(path: str, place: tuple[str, str | None, str]) -> None:
    assert template_place(path) == place


@pytest.mark.parametrize("path", ["t", "global/instanceTemplates/t", "projects/p/zones/z/instanceTemplates/t"])
def test_another_path_is_no_template(path: str) -> None:
    with pytest.raises(CannotBeMade, match=f'"{path}" is no instance template: write projects/P/global'):
        template_place(path)


def brought(machine: str = "tpu7x-standard-4t", **scheduling: str) -> InstanceTemplate:
    given = {"on_host_maintenance": "TERMINATE", **scheduling}
    return InstanceTemplate(properties=InstanceProperties(machine_type=machine, scheduling=Scheduling(**given)))


SPOT = {"provisioning_model": "SPOT"}
BOUND = {"provisioning_model": "RESERVATION_BOUND"}
LINK = "https://www.googleapis.com/compute/v1/projects/p/zones/z/machineTypes/tpu7x-standard-4t"


@pytest.mark.parametrize(
    "template",
    [
        brought(),
        brought(LINK),
        brought(provisioning_model="STANDARD"),
        brought(**SPOT, instance_termination_action="STOP"),
        brought(**SPOT, instance_termination_action="DELETE"),
        brought(**BOUND, instance_termination_action="DELETE"),
    ],
)
def test_a_template_that_serves_its_slice_is_taken(template: InstanceTemplate) -> None:
    assert misfit(template, ORDER) is None


@pytest.mark.parametrize(
    ("template", "why"),
    [
        (InstanceTemplate(), "its machine type is not set, not tpu7x-standard-4t."),
        (brought("n1-standard-1"), "its machine type is n1-standard-1, not tpu7x-standard-4t."),
        (brought("tpu7x-standard-1t"), "its machine type is tpu7x-standard-1t, not tpu7x-standard-4t."),
        (brought(on_host_maintenance=""), "its onHostMaintenance is not set, not TERMINATE."),
        (brought(on_host_maintenance="MIGRATE"), "its onHostMaintenance is MIGRATE, not TERMINATE."),
        (
            brought(provisioning_model="FLEX_START"),
            "its provisioningModel is FLEX_START, not one of RESERVATION_BOUND, SPOT, STANDARD.",
        ),
        (brought(**SPOT), "its instanceTerminationAction is not set; with SPOT it must be DELETE or STOP."),
        (
            brought(**BOUND, instance_termination_action="STOP"),
            "its instanceTerminationAction is STOP; with RESERVATION_BOUND it must be DELETE.",
        ),
        (
            brought(instance_termination_action="STOP"),
            "its instanceTerminationAction is STOP; with STANDARD it must be unset.",
        ),
    ],
)
def test_a_template_that_does_not_serve_its_slice_is_told_by_its_field(template: InstanceTemplate, why: str) -> None:
    assert misfit(template, ORDER) == why

"""A control plane to test: a stepped clock, and Google's own client, whose requests reach it without a network."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import count
from types import SimpleNamespace
from typing import Any

import pytest
from google.api_core.exceptions import GoogleAPICallError
from google.auth.credentials import AnonymousCredentials
from google.cloud import compute_v1 as gce
from requests import Response, Session
from requests.adapters import BaseAdapter

from tpu_standins.cloud.loopback import as_json
from tpu_standins.cloud.timed import Entry, Outside
from tpu_standins.compute.buttons import press
from tpu_standins.compute.control_plane import ControlPlane
from tpu_standins.compute.server import answered
from tpu_standins.compute.state import Pace, State
from tpu_standins.compute.vms import Boot
from tpu_standins.testing.clock import SteppedClock

PROJECT, ZONE, REGION = "demo-project", "us-central1-c", "us-central1"
OTHER_ZONE = "us-east5-a"
PACE = Pace(pending=0.5, insert=1, remove=1, metadata=1, retry=5, create=10, delete=4, repair=6, shutdown=3)
IMAGE = "projects/ubuntu-os-accelerator-images/global/images/family/ubuntu-accel-2404-amd64-tpu-tpu7x"
HERE = {"project": PROJECT, "zone": ZONE}
REGIONAL = {"project": PROJECT, "region": REGION}


def a_state(**changes: Any) -> State:
    given: dict[str, Any] = {
        "projects": frozenset({PROJECT, "library"}),
        "zones": frozenset({ZONE, OTHER_ZONE}),
        "pace": PACE,
        **changes,
    }
    return State(**given)


def a_policy(name: str = "slice", topology: str = "2x2x2", **changes: Any) -> gce.ResourcePolicy:
    policy = {"type_": "HIGH_THROUGHPUT", "accelerator_topology": topology, **changes.pop("workload_policy", {})}
    return gce.ResourcePolicy(name=name, workload_policy=gce.ResourcePolicyWorkloadPolicy(**policy), **changes)


def a_template(name: str = "slice", **properties: Any) -> gce.InstanceTemplate:
    """Return a template request: tpu7x hosts of four chips, on demand."""
    given: dict[str, Any] = {
        "machine_type": "tpu7x-standard-4t",
        "disks": [a_disk()],
        "network_interfaces": [{"subnetwork": f"regions/{REGION}/subnetworks/default"}],
        "scheduling": {"on_host_maintenance": "TERMINATE"},
        "metadata": {"items": [{"key": "startup-script", "value": "#!/bin/bash"}]},
        **properties,
    }
    return gce.InstanceTemplate(name=name, properties=gce.InstanceProperties(**given))


def a_disk(**parameters: Any) -> dict[str, Any]:
    given = {"source_image": IMAGE, "disk_size_gb": 250, "disk_type": "hyperdisk-balanced", **parameters}
    return {"boot": True, "auto_delete": True, "initialize_params": given}


def of_spot(**changes: Any) -> dict[str, Any]:
    return {"scheduling": {"provisioning_model": "SPOT", "instance_termination_action": "STOP", **changes}}


def of_reservation(name: str = "mine") -> dict[str, Any]:
    scheduling = {
        "provisioning_model": "RESERVATION_BOUND",
        "instance_termination_action": "DELETE",
        "on_host_maintenance": "TERMINATE",
    }
    affinity = {
        "consume_reservation_type": "SPECIFIC_RESERVATION",
        "key": "compute.googleapis.com/reservation-name",
        "values": [name],
    }
    return {"scheduling": scheduling, "reservation_affinity": affinity}


def a_group(name: str = "slice", size: int = 2, **changes: Any) -> gce.InstanceGroupManager:
    """Return a group request: two hosts at once, which are not repaired, placed by the policy of the same name."""
    given: dict[str, Any] = {
        "instance_template": f"global/instanceTemplates/{name}",
        "target_size_policy": {"mode": "BULK"},
        "instance_lifecycle_policy": {"default_action_on_failure": "DO_NOTHING"},
        "resource_policies": {"workload_policy": f"regions/{REGION}/resourcePolicies/{name}"},
        **changes,
    }
    return gce.InstanceGroupManager(name=name, target_size=size, **given)


def alone(name: str = "slice", size: int = 1, **changes: Any) -> gce.InstanceGroupManager:
    """Return a group request: hosts one by one, without a policy."""
    return a_group(name, size, target_size_policy={"mode": "INDIVIDUAL"}, resource_policies=None, **changes)


class _InProcess(BaseAdapter):
    """Takes a client's HTTP requests to a control plane."""

    def __init__(self, plane: ControlPlane) -> None:
        super().__init__()
        self._plane = plane

    def send(self, request: Any, *_args: Any, **_more: Any) -> Response:
        body = request.body or b""
        reply = answered(
            self._plane, request.method, request.path_url, body.encode() if isinstance(body, str) else body
        )
        response = Response()
        response.status_code, response._content, response.request = reply.status, reply.body, request
        response.headers.update(reply.headers)
        return response

    def close(self) -> None:
        """Do nothing: nothing is open."""


@dataclass
class World:
    """Calls a control plane, through Google's client, whose clock advances only in `after`."""

    state: State = field(default_factory=a_state)
    clock: SteppedClock = field(default_factory=SteppedClock)
    published: list[Entry] = field(default_factory=list)
    boot: Boot | None = None
    plane: ControlPlane = field(init=False)

    def __post_init__(self) -> None:
        outside = Outside(self.clock, counting_tokens(), self.published.append)
        self.plane = ControlPlane(self.state, outside)
        if self.boot is not None:
            self.plane.boots(self.boot)
        self.policies = self.client(gce.ResourcePoliciesClient)
        self.templates = self.client(gce.InstanceTemplatesClient)
        self.groups = self.client(gce.InstanceGroupManagersClient)
        self.instances = self.client(gce.InstancesClient)

    def client(self, kind: Any) -> Any:
        anonymous = AnonymousCredentials()  # type: ignore[no-untyped-call]
        transport = kind.get_transport_class("rest")(host="http://compute.local", credentials=anonymous)
        transport._session.mount("http://", _InProcess(self.plane))
        return kind(transport=transport)

    def session(self) -> Session:
        """Return what sends HTTP requests without Google's client: to the control plane, whatever the host is."""
        session = Session()
        session.mount("http://", _InProcess(self.plane))
        return session

    def after(self, seconds: float) -> None:
        """Advance the clock in steps, as the control plane's thread would."""
        end = self.clock.now + seconds
        while True:
            wait = self.plane.tick()
            if wait > 0 and self.clock.now >= end:
                return
            self.clock.now = min(end, self.clock.now + wait)

    def make_policy(self, policy: gce.ResourcePolicy | None = None, **more: Any) -> gce.Operation:
        return self._started(
            self.policies.insert_unary(resource_policy_resource=policy or a_policy(), **REGIONAL)
            if not more
            else self.policies.insert_unary({"resource_policy_resource": policy or a_policy(), **REGIONAL, **more})
        )

    def make_template(self, template: gce.InstanceTemplate | None = None, **more: Any) -> gce.Operation:
        request = {"instance_template_resource": template or a_template(), "project": PROJECT, **more}
        return self._started(self.templates.insert_unary(request))

    def make_group(self, group: gce.InstanceGroupManager | None = None, **more: Any) -> gce.Operation:
        request = {"instance_group_manager_resource": group or a_group(), **HERE, **more}
        return self._started(self.groups.insert_unary(request))

    def make_slice(self, group: gce.InstanceGroupManager | None = None, **properties: Any) -> gce.Operation:
        """Create policy, template and group; return the group's operation, which has not ended yet."""
        self.make_policy()
        self.make_template(a_template(**properties))
        self.after(1)
        return self.make_group(group)

    def group(self, name: str = "slice") -> gce.InstanceGroupManager:
        found = self.groups.get(instance_group_manager=name, **HERE)
        assert isinstance(found, gce.InstanceGroupManager)
        return found

    def members(self, name: str = "slice") -> list[gce.ManagedInstance]:
        return list(self.groups.list_managed_instances(instance_group_manager=name, **HERE))

    def statuses(self, name: str = "slice") -> list[tuple[str, str]]:
        """Return what the group does with each instance, and its status."""
        return [(member.current_action, member.instance_status) for member in self.members(name)]

    def instance(self, name: str | None = None) -> gce.Instance:
        found = self.instances.get(instance=name or self.members()[0].name, **HERE)
        assert isinstance(found, gce.Instance)
        return found

    def operation(self, operation: gce.Operation) -> gce.Operation:
        scope = next((kind for kind in ("zone", "region") if getattr(operation, kind)), "global")
        kinds = {
            "zone": gce.ZoneOperationsClient,
            "region": gce.RegionOperationsClient,
            "global": gce.GlobalOperationsClient,
        }
        place = {} if scope == "global" else {scope: getattr(operation, scope).rpartition("/")[2]}
        found = self.client(kinds[scope]).get(operation=operation.name, project=PROJECT, **place)
        assert isinstance(found, gce.Operation)
        return found

    def press(self, method: str, path: str, /, **body: Any) -> Mapping[str, Any]:
        status, reply = press(self.plane, method, path, as_json(200, body).body)
        assert status == 200, reply
        return reply

    def shortage(self, **fault: Any) -> None:
        self.press("POST", "/faults", **{"kind": "stockout", **fault})

    @staticmethod
    def _started(operation: Any) -> gce.Operation:
        assert isinstance(operation, gce.Operation)
        return operation


def refused(call: Callable[[], Any]) -> SimpleNamespace:
    """Return what the client tells of a refusal: code, reason and message."""
    with pytest.raises(GoogleAPICallError) as caught:
        call()
    error = caught.value
    return SimpleNamespace(code=error.code, reason=error.errors[0]["reason"], message=error.errors[0]["message"])


def counting_tokens() -> Callable[[], str]:
    numbers = count(1)
    return lambda: f"token-{next(numbers)}"

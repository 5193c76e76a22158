"""Compute Engine's API as far as slices need it: reads, which are repeated, and changes, which are not."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, TypeVar

import google.auth
import requests
from google.api_core import exceptions as errors
from google.api_core.client_options import ClientOptions
from google.api_core.retry import Retry, if_exception_type
from google.auth.credentials import AnonymousCredentials
from google.auth.exceptions import TransportError
from google.cloud import compute_v1
from google.cloud.compute_v1.types import (
    Instance,
    InstanceGroupManager,
    InstanceTemplate,
    ManagedInstance,
    Operation,
    ResourcePolicy,
)

from tpu_slices.adapters.compute.requests import template_place

_READ: Mapping[str, Any] = MappingProxyType(
    {
        "timeout": 4.0,
        "retry": Retry(
            if_exception_type(
                errors.GatewayTimeout,
                errors.ServiceUnavailable,
                requests.ConnectionError,
                requests.Timeout,
                TransportError,
            ),
            initial=0.2,
            maximum=2.0,
            timeout=4.0,
        ),
    }
)
"""Seconds for one read with its retries; the last retry may take as long again: at most 8 in all."""
CHANGE: Mapping[str, Any] = MappingProxyType({"timeout": 20.0, "retry": None})
"""Never retried: if the response is lost, the outcome is unknown. A method of the port makes at most six reads, or
four and one change: it ends within a minute."""

_SCOPE = "https://www.googleapis.com/auth/cloud-platform"
_NOWHERE = re.compile(r"Unknown (zone|region)\b")
"""In Compute Engine's words: "Invalid value for field 'zone': 'us-central1-x'. Unknown zone."."""
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Clients:
    """Google's clients, one for each collection, over the same credentials."""

    policies: compute_v1.ResourcePoliciesClient
    templates: compute_v1.InstanceTemplatesClient
    regional_templates: compute_v1.RegionInstanceTemplatesClient
    groups: compute_v1.InstanceGroupManagersClient
    instances: compute_v1.InstancesClient
    zone_operations: compute_v1.ZoneOperationsClient
    region_operations: compute_v1.RegionOperationsClient
    global_operations: compute_v1.GlobalOperationsClient


def clients(emulator_host: str | None) -> Clients:
    """Return Google's clients; for an emulator at `host:port`, those that speak HTTP without TLS and credentials."""
    if emulator_host is None:
        credentials, _ = google.auth.default(scopes=[_SCOPE])
        options = ClientOptions()
    else:
        credentials = AnonymousCredentials()  # type: ignore[no-untyped-call]  # the client's own gap
        options = ClientOptions(api_endpoint=f"http://{emulator_host}")
    return clients_by(lambda client: client(credentials=credentials, client_options=options))


def clients_by(make: Callable[[Any], Any]) -> Clients:
    """Return Google's clients, each made from its class."""
    return Clients(
        policies=make(compute_v1.ResourcePoliciesClient),
        templates=make(compute_v1.InstanceTemplatesClient),
        regional_templates=make(compute_v1.RegionInstanceTemplatesClient),
        groups=make(compute_v1.InstanceGroupManagersClient),
        instances=make(compute_v1.InstancesClient),
        zone_operations=make(compute_v1.ZoneOperationsClient),
        region_operations=make(compute_v1.RegionOperationsClient),
        global_operations=make(compute_v1.GlobalOperationsClient),
    )


@dataclass(frozen=True, slots=True)
class Reads:
    """What is read of one region of a project.

    An aggregated list fails while any location in the world is out of reach: only what cannot be asked for by its place
    is looked for in one.
    """

    clients: Clients
    project: str
    region: str

    def policy(self, name: str) -> ResourcePolicy | None:
        return _found(self.clients.policies.get, project=self.project, region=self.region, resource_policy=name)

    def template(self, name: str) -> InstanceTemplate | None:
        return _found(self.clients.templates.get, project=self.project, instance_template=name)

    def brought_template(self, path: str) -> InstanceTemplate | None:
        """Return a template of anybody's, None if it does not exist; raise CannotBeMade if it is no path of one."""
        project, region, name = template_place(path)
        if region is None:
            return _found(self.clients.templates.get, project=project, instance_template=name)
        return _found(self.clients.regional_templates.get, project=project, region=region, instance_template=name)

    def group(self, name: str, zone: str | None) -> InstanceGroupManager | None:
        """Return the group of this name; `zone` None: wherever it is."""
        if zone is None:
            return next(iter(self._anywhere(self.clients.groups, "instance_group_managers", f'name eq "{name}"')), None)
        return _found(self.clients.groups.get, project=self.project, zone=zone, instance_group_manager=name)

    def instances(self, group: InstanceGroupManager) -> Sequence[ManagedInstance]:
        """Return the instances of a group, those that do not exist yet included."""
        zone, listed = location(group.zone), self.clients.groups.list_managed_instances
        return list(listed(project=self.project, zone=zone, instance_group_manager=group.name, **_READ))

    def vms(self, zone: str, group: str) -> list[Instance]:
        """Return the VMs in a zone whose names are those of a group's instances."""
        request = {"project": self.project, "zone": zone, "filter": f'name eq "{group}-[a-z0-9]+"'}
        return list(self.clients.instances.list(request=request, **_READ))

    def operations_in_zone(self, zone: str, name: str) -> list[Operation]:
        """Return the operations in a zone on what has this name."""
        request = {"project": self.project, "zone": zone, "filter": _on(name)}
        return _listed(self.clients.zone_operations, request)

    def operations_in_region(self, name: str) -> list[Operation]:
        request = {"project": self.project, "region": self.region, "filter": _on(name)}
        return _listed(self.clients.region_operations, request)

    def global_operations(self, name: str) -> list[Operation]:
        return _listed(self.clients.global_operations, {"project": self.project, "filter": _on(name)})

    def running_operations(self) -> list[Operation]:
        """Return all operations that run, in the whole project."""
        return self._anywhere(self.clients.global_operations, "operations", 'status != "DONE"')

    def described(self, names: str) -> list[tuple[str, str]]:
        """Return name and description of each policy, template and group whose name matches."""
        matching = f'name eq "{names}"'
        groups = self._anywhere(self.clients.groups, "instance_group_managers", matching)
        request = {"project": self.project, "filter": matching}
        templates = self.clients.templates.list(request=request, **_READ)
        policies = self.clients.policies.list(request={**request, "region": self.region}, **_READ)
        return [(each.name, each.description) for part in (groups, templates, policies) for each in part]

    def _anywhere(self, client: Any, field: str, matching: str) -> list[Any]:
        """Return what matches in all locations. Raise ServiceUnavailable if the list is not complete."""
        found: list[Any] = []
        for page in client.aggregated_list(request={"project": self.project, "filter": matching}, **_READ).pages:
            if page.unreachables:
                raise errors.ServiceUnavailable(f"{page.unreachables[0]} is out of reach.")  # type: ignore[no-untyped-call]
            found.extend(each for scoped in page.items.values() for each in getattr(scoped, field))
        return found


def location(link: str) -> str:
    """Return the name at the end of a link to a zone or region."""
    return link.rpartition("/")[2]


def _on(name: str) -> str:
    """Return the filter for operations on what has a name, whatever it is."""
    return f'targetLink eq ".*/{name}"'


def _found(get: Callable[..., _T], **names: str) -> _T | None:
    """Return a resource, or None if it does not exist, nor can where it would be."""
    try:
        return get(**names, **_READ)
    except errors.NotFound:
        return None
    except errors.BadRequest as error:
        if _is_nowhere(error):
            return None
        raise


def _listed(client: Any, request: Mapping[str, str]) -> list[Operation]:
    """Return the operations of a list; there are none in a place that does not exist."""
    try:
        return list(client.list(request=request, **_READ))
    except errors.BadRequest as error:
        if _is_nowhere(error):
            return []
        raise


def _is_nowhere(error: errors.BadRequest) -> bool:
    """Return whether the zone or region of a request does not exist, which is no reason to give up reading."""
    return _NOWHERE.search(str(error)) is not None

"""What Compute Engine refuses of a managed instance group: at once, and in the operation that would create it."""

import math
import re
from http import HTTPStatus

from tpu_standins.cloud.machines import Machine, dimensions, host_count, is_multi_host, is_single_host
from tpu_standins.cloud.rules import OURS, Covered
from tpu_standins.compute.errors import Trouble
from tpu_standins.compute.paths import Resource, parse_link, region_of
from tpu_standins.compute.refusals.rules import (
    BAD_NAME,
    BUSY,
    EXISTS,
    LONG_DESCRIPTION,
    UNKNOWN,
    Ask,
    Rule,
    covers,
    invalid_value,
    limit,
    missing,
)
from tpu_standins.compute.state import Policy, Template

_COVERED: Covered = {
    "name": {},
    "description": {},
    "zone": {},
    "base_instance_name": {},
    "instance_template": {},
    "versions": {"instance_template": {}, "name": {}},
    "target_size": {},
    "all_instances_config": {"properties": {"metadata": {}}},
    "target_size_policy": {"mode": {}},
    "instance_lifecycle_policy": {"default_action_on_failure": {}, "force_update_on_repair": {}},
    "resource_policies": {"workload_policy": {}},
}
_TEMPLATE = "resource.instanceTemplate"
_POLICY = "resource.resourcePolicies.workloadPolicy"
_BASE = re.compile(r"[a-z][-a-z0-9]{0,57}")
_LARGEST = 1000
_IN_GROUPS = ("ct5p-", "ct6e-", "tpu7x-")


def template_link(ask: Ask) -> str:
    """Return the URL of its template: its version's, if it has one [py-gce InstanceGroupManager.versions]."""
    versions = ask.body.versions
    return str(versions[0].instance_template if versions else ask.body.instance_template)


def template_path(ask: Ask) -> Resource | None:
    return parse_link(template_link(ask), ask.path.project)


def policy_path(ask: Ask) -> Resource | None:
    given = ask.body.resource_policies.workload_policy
    return parse_link(given, ask.path.project) if given else None


def template(ask: Ask) -> Template:
    """Return the group's template; only for rows after those that refuse unknown ones."""
    path = template_path(ask)
    assert path is not None
    return ask.state.templates[path]


def _several_versions(ask: Ask) -> str | None:
    several = len(ask.body.versions) > 1
    return "Groups of several versions are not implemented by the local Compute Engine." if several else None


def _no_template(ask: Ask) -> str | None:
    return None if template_link(ask) else missing(_TEMPLATE)


def _bad_template(ask: Ask) -> str | None:
    path = template_path(ask)
    if path is None or path.scope.startswith("zones/"):
        return invalid_value(_TEMPLATE, template_link(ask), "The URL is malformed.")
    if path.collection != "instanceTemplates":
        return invalid_value(_TEMPLATE, template_link(ask), f"Unexpected resource collection '{path.collection}'.")
    if path.scope not in ("global", f"regions/{region_of(ask.path.location)}"):
        return invalid_value(_TEMPLATE, template_link(ask), "It is of another region than the group.")
    return None


def _unknown_template(ask: Ask) -> str | None:
    path = template_path(ask)
    found = ask.state.templates.get(path) if path else None
    return None if found and found.ready <= ask.now else f"The resource '{path}' was not found"


def _template_not_ready(ask: Ask) -> str | None:
    path = template(ask).path
    return f"The resource '{path}' is not ready" if ask.state.busy(path) else None


def _no_size(ask: Ask) -> str | None:
    return None if "target_size" in ask.body else missing("resource.targetSize")


def _bad_size(ask: Ask) -> str | None:
    size = ask.body.target_size
    if 0 <= size <= _LARGEST:
        return None
    return invalid_value("resource.targetSize", size, f"Must be between 0 and {_LARGEST}.")


def _numbered_base(ask: Ask) -> str | None:
    numbered = "#" in ask.body.base_instance_name
    return "Sequential instance names are not implemented by the local Compute Engine." if numbered else None


def _bad_base(ask: Ask) -> str | None:
    base = ask.body.base_instance_name
    if not base or _BASE.fullmatch(base):
        return None
    return invalid_value("resource.baseInstanceName", base, "Must be a match of regex '[a-z][-a-z0-9]{0,57}'")


def _bad_policy(ask: Ask) -> str | None:
    given = ask.body.resource_policies.workload_policy
    if not given:
        return None
    path = policy_path(ask)
    if path is None:
        return invalid_value(_POLICY, given, "The URL is malformed.")
    if path.collection != "resourcePolicies":
        return invalid_value(_POLICY, given, f"Unexpected resource collection '{path.collection}'.")
    if (path.project, path.scope) != (ask.path.project, f"regions/{region_of(ask.path.location)}"):
        return invalid_value(_POLICY, given, "It is of another project or region than the group.")
    return None


def _unknown_policy(ask: Ask) -> str | None:
    path = policy_path(ask)
    return None if path is None or path in ask.state.policies else f"The resource '{path}' was not found"


def _policy_not_ready(ask: Ask) -> str | None:
    path = policy_path(ask)
    busy = path is not None and (ask.state.policies[path].ready > ask.now or ask.state.busy(path))
    return f"The resource '{path}' is not ready" if busy else None


def _no_groups_of_these(ask: Ask) -> str | None:
    machine = template(ask).machine_type
    if machine.startswith(_IN_GROUPS):
        return None
    return f"Machine type {machine} is not supported in managed instance groups."


INSERT = (
    covers(_COVERED),
    limit(_several_versions, "versions-not-covered"),
    BAD_NAME,
    LONG_DESCRIPTION,
    Rule(
        name="group-template-missing",
        reason="required",
        fact="hashicorp/terraform#18781",
        words="hashicorp/terraform#18781",
        check=_no_template,
    ),
    Rule(
        name="group-template-link",
        fact="tf#5252: a link to something else; [py-gce InstanceTemplate] a regional one serves its region only",
        words="tf#5252, but for the other region",
        check=_bad_template,
    ),
    Rule(
        name="group-template-unknown",
        code=HTTPStatus.NOT_FOUND,
        reason="notFound",
        fact="[mm] what a resource refers to must exist",
        words="mattes/gce-deploy-action#1, by analogy",
        check=_unknown_template,
    ),
    Rule(
        name="group-template-not-ready",
        reason="resourceNotReady",
        fact="[doc:troubleshooting/service-error-catalog] a resource that is being deleted is not ready for use",
        words="GKE, in public notes: \"The resource '…/networks/default' is not ready\"",
        check=_template_not_ready,
    ),
    Rule(
        name="group-size-missing",
        reason="required",
        fact="[doc:reference/rest/v1/instanceGroupManagers/insert] targetSize is required",
        words="hashicorp/terraform#18781, by analogy",
        check=_no_size,
    ),
    Rule(
        name="group-size",
        fact="[doc:instance-groups/creating-groups-of-managed-instances] a zonal group has at most 1,000 instances",
        words=OURS,
        check=_bad_size,
    ),
    limit(_numbered_base, "numbers-not-covered"),
    Rule(
        name="group-base-name",
        fact="[py-gce InstanceGroupManager.base_instance_name] at most 58 characters",
        words=OURS,
        check=_bad_base,
    ),
    Rule(
        name="group-policy-link",
        fact="[py-gce InstanceGroupManagerResourcePolicies] its formats; a regional resource of the group's region",
        words="tf#5252, by analogy",
        check=_bad_policy,
    ),
    Rule(
        name="group-policy-unknown",
        code=HTTPStatus.NOT_FOUND,
        reason="notFound",
        fact="[mm] what a resource refers to must exist",
        words="mattes/gce-deploy-action#1, by analogy",
        check=_unknown_policy,
    ),
    Rule(
        name="group-policy-not-ready",
        reason="resourceNotReady",
        fact="[doc:troubleshooting/service-error-catalog] a resource that is being created is not ready for use",
        words="GKE, in public notes: \"The resource '…/networks/default' is not ready\"",
        check=_policy_not_ready,
    ),
    Rule(
        name="group-machine",
        fact="[doc:tpus-and-migs] groups of TPU VMs: v5p, v6e and TPU7x",
        words=OURS,
        check=_no_groups_of_these,
    ),
    EXISTS,
)
DELETE = (UNKNOWN, BUSY)
CHANGE = (UNKNOWN, BUSY)
PATCH = (covers({"description": {}}), UNKNOWN, BUSY, LONG_DESCRIPTION)
"""A group's description can be changed [doc:gcloud compute instance-groups managed update --description]."""


def misfit(machine: Machine, policy: Policy | None, size: int) -> Trouble | None:
    """Return the error of the operation that would create a group whose policy's topology is not that of its VMs.

    That it is the operation's error, and the wording of the first: GoogleCloudPlatform/magic-modules#17153. A slice is
    its chips divided by those of a VM; which topologies there are: [xpk, CA].
    """
    if policy is None or not policy.topology:
        return None
    topology = policy.topology
    if math.prod(dimensions(topology) or (0,)) % machine.chips == 0:
        hosts = host_count(machine, topology)
        if hosts != size:
            return _invalid(f"Target size should be {hosts} for given accelerator topology but was {size}.")
    if is_single_host(machine, topology) or is_multi_host(machine, topology):
        return None
    return _invalid(f"Accelerator topology {topology} is not supported by machine type {machine.name}.")


def _invalid(why: str) -> Trouble:
    return Trouble(code="INVALID_FIELD_VALUE", message=f"Invalid value for field 'operation': ''. {why}")

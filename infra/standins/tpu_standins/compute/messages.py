"""State as Google's messages: what Compute Engine returns of its resources, with its defaults filled in."""

import base64
import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping

from google.cloud.compute_v1 import types as gce

from tpu_standins.compute.errors import Trouble
from tpu_standins.compute.paths import Resource, link, number, scope_path, timestamp
from tpu_standins.compute.state import Action, Group, Instance, Operation, Policy, Record, State, Template, Vm

_DONE = gce.Operation.Status.DONE
_RUNNING = gce.Operation.Status.RUNNING
_PENDING = gce.Operation.Status.PENDING


def fingerprint(items: Mapping[str, str]) -> str:
    """Return a hash of metadata, for optimistic locking: eight bytes in base64 [py-gce Metadata.fingerprint]."""
    digest = hashlib.sha256(repr(sorted(items.items())).encode()).digest()
    return base64.b64encode(digest[:8]).decode()


def identifier(path: Resource, created: float) -> int:
    """Return the server's number of a resource; one that is created anew under its name gets another."""
    return number(f"{path} {created}")


def policy_message(state: State, policy: Policy, now: float) -> gce.ResourcePolicy:
    message = gce.ResourcePolicy(policy.message)
    message.kind = "compute#resourcePolicy"
    message.id = identifier(policy.path, policy.created)
    message.creation_timestamp = timestamp(policy.created)
    message.region = link(scope_path(policy.path.project, policy.path.scope))
    message.self_link = policy.path.link
    message.status = "READY" if now >= policy.ready else "CREATING"
    if (busy := state.busy(policy.path)) and busy.verb == "delete":
        message.status = "DELETING"
    return message


def template_message(template: Template) -> gce.InstanceTemplate:
    """Return the template; defaults of spot VMs: GoogleCloudPlatform/cloud-foundation-fabric#778."""
    message = gce.InstanceTemplate(template.message)
    message.kind = "compute#instanceTemplate"
    message.id = identifier(template.path, template.created)
    message.creation_timestamp = timestamp(template.created)
    message.self_link = template.path.link
    if template.path.scope != "global":
        message.region = link(scope_path(template.path.project, template.path.scope))
    properties = message.properties
    properties.metadata.kind = "compute#metadata"
    properties.metadata.fingerprint = fingerprint({item.key: item.value for item in properties.metadata.items})
    scheduling, spot = properties.scheduling, template.provisioning == "SPOT"
    scheduling.provisioning_model = template.provisioning
    scheduling.on_host_maintenance = "TERMINATE"
    scheduling.preemptible = spot
    if "automatic_restart" not in scheduling:
        scheduling.automatic_restart = template.provisioning == "STANDARD"
    if spot and "instance_termination_action" not in scheduling:
        scheduling.instance_termination_action = "STOP"
    return message


def group_message(state: State, group: Group, now: float) -> gce.InstanceGroupManager:
    message = gce.InstanceGroupManager(group.message)
    path, members = group.path, state.members(group.path)
    message.kind = "compute#instanceGroupManager"
    message.id = identifier(path, group.created)
    message.creation_timestamp = timestamp(group.created)
    message.zone = link(scope_path(path.project, path.scope))
    message.self_link = path.link
    message.instance_group = Resource(path.project, path.scope, "instanceGroups", path.name).link
    message.base_instance_name = group.base_name
    message.fingerprint = fingerprint({"target": str(group.target), "template": str(group.template)})
    message.instance_template = group.template.link
    message.versions = [
        gce.InstanceGroupManagerVersion(
            instance_template=group.template.link, target_size=gce.FixedOrPercent(calculated=group.target)
        )
    ]
    message.target_size = group.target
    if group.policy is not None:
        message.resource_policies.workload_policy = group.policy.link
    policy = message.instance_lifecycle_policy
    policy.default_action_on_failure = "REPAIR" if group.repairs else "DO_NOTHING"
    policy.force_update_on_repair = policy.force_update_on_repair or "NO"
    message.list_managed_instances_results = "PAGELESS"
    message.current_actions = _actions(members)
    message.status = _group_status(state, group, members, now)
    return message


def _actions(members: Iterable[Instance]) -> gce.InstanceGroupManagerActionsSummary:
    counts = Counter(member.action for member in members)
    fields = ("none", "creating", "recreating", "deleting", "creating_without_retries", "abandoning", "restarting")
    given = {action.value.lower(): counts[action] for action in Action}
    return gce.InstanceGroupManagerActionsSummary(**{name: given.get(name, 0) for name in (*fields, "refreshing")})


def _group_status(
    state: State, group: Group, members: tuple[Instance, ...], now: float
) -> gce.InstanceGroupManagerStatus:
    """Return the group's status.

    It is stable if nothing happens to it, nor to its instances [py-gce is_stable], and all of these have reached the
    status that they are to have, RUNNING [py-gce ManagedInstance.target_status]: not with one that failed.
    """
    calm = all(member.action is Action.NONE for member in members) and not state.busy(group.path)
    whole = len(members) == group.target and all(_status_of(member, now) == "RUNNING" for member in members)
    statuses = Counter(_status_of(member, now).lower() or "non_existent" for member in members)
    status = gce.InstanceGroupManagerStatus(
        is_stable=calm and whole,
        version_target=gce.InstanceGroupManagerStatusVersionTarget(is_reached=True),
        current_instance_statuses=gce.InstanceGroupManagerStatusInstanceStatusSummary(**statuses),
    )
    if group.bulk:
        status.bulk_instance_operation = _bulk(group, members)
    topology = state.policies[group.policy].topology if group.policy else ""
    if topology:
        status.applied_accelerator_topologies = [
            gce.InstanceGroupManagerStatusAcceleratorTopology(
                accelerator_topology=topology, state="ACTIVE" if whole and members else "ACTIVATING"
            )
        ]
    return status


def _bulk(group: Group, members: tuple[Instance, ...]) -> gce.InstanceGroupManagerStatusBulkInstanceOperation:
    waiting = any(member.vm is None and member.action is not Action.NONE for member in members)
    message = gce.InstanceGroupManagerStatusBulkInstanceOperation(in_progress=waiting)
    if waiting and group.check is not None:
        trouble, at = group.check
        message.last_progress_check = gce.InstanceGroupManagerStatusBulkInstanceOperationLastProgressCheck(
            error=_error(trouble), timestamp=timestamp(at)
        )
    return message


def _status_of(instance: Instance, now: float) -> str:
    return "" if instance.vm is None else instance.vm.status(now)


def managed_message(state: State, instance: Instance, now: float) -> gce.ManagedInstance:
    message = gce.ManagedInstance(
        name=instance.path.name,
        instance=instance.path.link,
        current_action=instance.action.value,
        target_status="DELETED" if instance.action is Action.DELETING else "RUNNING",
    )
    if instance.vm is not None:
        message.id = identifier(instance.path, instance.vm.born)
        message.instance_status = instance.vm.status(now)
    if instance.action is not Action.DELETING:
        message.version.instance_template = state.groups[instance.group].template.link
    if instance.trouble is not None:
        errors = gce.ManagedInstanceLastAttemptErrors(errors=[_one(instance.trouble)])
        message.last_attempt = gce.ManagedInstanceLastAttempt(errors=errors)
    return message


def record_message(record: Record) -> gce.InstanceManagedByIgmError:
    return gce.InstanceManagedByIgmError(
        error=gce.InstanceManagedByIgmErrorManagedInstanceError(
            code=record.trouble.code, message=record.trouble.message
        ),
        instance_action_details=gce.InstanceManagedByIgmErrorInstanceActionDetails(
            action=record.action.value, instance=record.instance.link
        ),
        timestamp=timestamp(record.at),
    )


def metadata_message(vm: Vm) -> gce.Metadata:
    items = [gce.Items(key=key, value=value) for key, value in vm.metadata.items()]
    return gce.Metadata(kind="compute#metadata", fingerprint=fingerprint(vm.metadata), items=items)


def instance_message(state: State, instance: Instance, vm: Vm, now: float) -> gce.Instance:
    """Return a VM as its template and its group made it."""
    path, template = instance.path, state.templates[state.groups[instance.group].template]
    properties = template_message(template).properties
    place = scope_path(path.project, path.scope)
    message = gce.Instance(
        kind="compute#instance",
        id=identifier(path, vm.born),
        name=path.name,
        creation_timestamp=timestamp(vm.born),
        status=vm.status(now),
        zone=link(place),
        self_link=path.link,
        machine_type=link(f"{place}/machineTypes/{template.machine_type}"),
        metadata=metadata_message(vm),
        labels=dict(properties.labels),
        tags=properties.tags,
        scheduling=properties.scheduling,
        service_accounts=list(properties.service_accounts),
        network_interfaces=list(properties.network_interfaces),
        reservation_affinity=properties.reservation_affinity,
    )
    for index, interface in enumerate(message.network_interfaces):
        interface.name, interface.network_i_p = f"nic{index}", address(path)
    if now >= vm.runs:
        message.last_start_timestamp = timestamp(vm.runs)
    if vm.stops is not None and now >= vm.stops:
        message.last_stop_timestamp = timestamp(vm.stops)
    return message


def address(path: Resource) -> str:
    """Return a private address, which depends on the name alone; two VMs may have the same."""
    digits = number(str(path))
    return f"10.{128 + digits % 64}.{digits // 64 % 256}.{1 + digits // 16_384 % 254}"


def operation_message(state: State, operation: Operation, now: float) -> gce.Operation:
    """Return the operation; DONE only means that it ended, `error` whether it failed [py-gce Operation]."""
    path, target = operation.path, operation.target
    message = gce.Operation(
        kind="compute#operation",
        id=number(str(path)),
        name=path.name,
        operation_type=operation.verb,
        target_link=target.link,
        target_id=_target_id(state, operation),
        status=_status(state, operation, now),
        progress=100 if operation.ended is not None else 0,
        user="local",
        self_link=path.link,
        insert_time=timestamp(operation.started),
        start_time=timestamp(operation.started),
    )
    kind = path.scope.partition("/")[0]
    if kind != "global":
        setattr(message, kind.removesuffix("s"), link(scope_path(path.project, path.scope)))
    if operation.request:
        message.client_operation_id = operation.request
    if operation.ended is not None:
        message.end_time = timestamp(operation.ended)
    if operation.error is not None:
        message.error = _error(operation.error)
        message.http_error_status_code = int(operation.error.http)
        message.http_error_message = operation.error.http.phrase.upper()
    return message


def _target_id(state: State, operation: Operation) -> int:
    target = operation.target
    if target in state.instances:
        vm = state.instances[target].vm
        return identifier(target, vm.born if vm else 0.0)
    found = state.policies.get(target) or state.templates.get(target) or state.groups.get(target)
    return identifier(target, found.created if found else operation.started)


def _status(state: State, operation: Operation, now: float) -> int:
    if operation.ended is not None:
        return _DONE
    return _RUNNING if now >= operation.started + state.pace.pending else _PENDING


def _error(trouble: Trouble) -> gce.Error:
    return gce.Error(errors=[_one(trouble)])


def _one(trouble: Trouble) -> gce.Errors:
    error = gce.Errors(code=trouble.code, message=trouble.message)
    if trouble.metadata:
        info = gce.ErrorInfo(
            domain="compute.googleapis.com", reason="resource_availability", metadatas=dict(trouble.metadata)
        )
        error.error_details = [gce.ErrorDetails(error_info=info)]
    return error

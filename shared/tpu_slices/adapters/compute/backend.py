"""Slices as managed instance groups of Compute Engine: the `Backend` port over google.cloud.compute_v1."""

from __future__ import annotations

from google.api_core import exceptions as google
from google.cloud.compute_v1.types import InstanceGroupManager, InstanceTemplate, Operation

from tpu_slices.adapters.cloud_errors import CannotBeMade
from tpu_slices.adapters.compute import errors as compute_errors
from tpu_slices.adapters.compute.api import CHANGE, Clients, Reads, location
from tpu_slices.adapters.compute.errors import FAILED_CALLS
from tpu_slices.adapters.compute.joining import change_metadata
from tpu_slices.adapters.compute.requests import (
    GROUPS,
    POLICIES,
    TEMPLATES,
    brought_template,
    group_request,
    misfit,
    part_names,
    policy_request,
    project_of,
    region,
    region_of,
    request_id,
    template_request,
)
from tpu_slices.adapters.compute.states import Operations, Parts, ended, lacking, observed, unproven, verb_of
from tpu_slices.domain.model.clusters import ClusterSettings
from tpu_slices.domain.model.joining import JoinToken
from tpu_slices.domain.model.observations import (
    Failure,
    FailureKind,
    LegacyPool,
    Observation,
    OperationSeen,
    Outcome,
    PoolSeen,
    Refused,
    Started,
    Unreadable,
)
from tpu_slices.domain.planning.joining import join_metadata, kubeadm_of
from tpu_slices.domain.planning.pool_descriptions import described, pool_seen, zone_of
from tpu_slices.ports.backend import PoolOrder
from tpu_slices.ports.clock import Clock
from tpu_slices.ports.errors import Temporary

_OURS = "tpu-.*"
"""The names of all that slices consist of."""


class ComputeBackend:
    """The slices of every self-managed cluster that the clients' credentials can access; keeps no state between calls.

    A slice is made step by step: its workload policy, its instance template, its group. The operation of an order is
    that of its last step, `zones/Z/operations/N`, `regions/R/operations/N` or `global/operations/N`.
    """

    def __init__(self, clients: Clients, clock: Clock) -> None:
        self._clients = clients
        self._clock = clock

    def look(self, order: PoolOrder) -> Observation:
        """Return what exists: a step that ends between two reads may be missed; its repeated request is known again."""
        reads = self._reads(order.cluster_path)
        try:
            parts = _parts(reads, order)
            return observed(parts, _operations(reads, order, parts), order, reads.instances)
        except FAILED_CALLS as error:
            return Unreadable(compute_errors.told(error))

    def create(self, order: PoolOrder) -> Outcome:
        reads, begun = self._reads(order.cluster_path), False
        try:
            template = None if brought_template(order) else reads.template(order.name)
            parts = Parts(template=template, policy=reads.policy(order.name))
            begun = parts.last is not None
            if not begun:  # a group of others would keep in place what is made before it is met
                parts = Parts(group=reads.group(order.name, _zone(order, None)))
            _check_brought(reads, order)
            return _taken(parts, order) or Started(self._next_step(parts, order))
        except CannotBeMade as why:
            return Refused(Failure(why.kind, str(why)), begun)
        except FAILED_CALLS as error:
            failure = _why_refused(error, order)
            return Refused(failure, begun and failure.kind is not FailureKind.NAME_TAKEN)

    def delete(self, order: PoolOrder) -> Outcome:
        """Request the deletion of the group, with its hosts; what it was made of stands until `delete_remains`."""
        return self._deleted(order, group=True)

    def delete_remains(self, order: PoolOrder) -> Outcome:
        """Request the deletion of the instance template, unless it was brought, then of the policy."""
        return self._deleted(order, group=False)

    def cancel(self, order: PoolOrder) -> Outcome:
        """Refuse it while a step runs: Compute Engine cancels no operations, and each ends soon by itself."""
        if not self._look_for(order, "insert"):
            return Started(None)
        return Refused(
            Failure(FailureKind.BUSY, "Compute Engine cancels no operations; a step ends by itself, and soon.")
        )

    def relabel(self, order: PoolOrder) -> Outcome:
        """Request that the group has its description again; template and policy cannot have another one."""
        reads = self._reads(order.cluster_path)
        try:
            parts = _parts(reads, order)
            if parts.group is None or unproven(parts, order) or not lacking(parts.group, order):
                return Started(None)
            return Started(self._described(parts.group, order))
        except google.NotFound:
            return Started(None)
        except FAILED_CALLS as error:
            return Refused(_why_refused(error, order))

    def join(self, order: PoolOrder, token: JoinToken | None) -> Outcome:
        try:
            return self._join(order, token)
        except FAILED_CALLS as error:
            classified = compute_errors.refusal(error)
        if isinstance(classified, Temporary):
            raise Temporary(_without(token, str(classified)))  # not from the error, which may have more of the request
        return Refused(Failure(classified.kind, _without(token, classified.message)))

    def inventory(self, cluster: ClusterSettings) -> tuple[PoolSeen, ...]:
        reads = self._reads(cluster.path)
        try:
            described = reads.described(_OURS)
        except FAILED_CALLS as error:
            raise Temporary(compute_errors.told(error)) from error
        seen = (pool_seen(name, description, cluster.cluster) for name, description in described)
        return tuple({pool.name: pool for pool in seen if pool is not None}.values())

    def legacy_pools(self, cluster: ClusterSettings) -> tuple[LegacyPool, ...]:  # noqa: ARG002
        """Return none: TPU Provisioner makes node pools of GKE only; what TPU operator made is found by its groups."""
        return ()

    def pool_operations(self, cluster: ClusterSettings) -> frozenset[OperationSeen]:
        """Return those that run: there is no short list of those that ended, which Compute Engine keeps for weeks."""
        try:
            running = self._reads(cluster.path).running_operations()
        except FAILED_CALLS as error:
            raise Temporary(compute_errors.told(error)) from error
        seen = (_seen(operation) for operation in running)
        return frozenset(operation for operation in seen if operation is not None)

    def _join(self, order: PoolOrder, token: JoinToken | None) -> Outcome:
        kubeadm = kubeadm_of(order.spec, order.settings) if order.spec else None
        reads = self._reads(order.cluster_path)
        group = _parts(reads, order).group if kubeadm else None
        if kubeadm is None or group is None or unproven(Parts(group=group), order):
            return Started(None)
        return change_metadata(self._clients, reads, group, join_metadata(token, kubeadm), self._clock)

    def _look_for(self, order: PoolOrder, verb: str) -> bool:
        """Return whether an insert or delete runs; raise Temporary if that cannot be read."""
        reads = self._reads(order.cluster_path)
        try:
            return _operations(reads, order, _parts(reads, order)).run(verb)
        except FAILED_CALLS as error:
            raise Temporary(compute_errors.told(error)) from error

    def _reads(self, cluster_path: str) -> Reads:
        return Reads(self._clients, project_of(cluster_path), region_of(cluster_path))

    def _next_step(self, parts: Parts, order: PoolOrder) -> str:
        """Request the first step that is missing; return its operation."""
        policy, template = policy_request(order), template_request(order)
        zone = order.spec.zone if order.spec else ""
        if policy is not None and (parts.policy is None or parts.policy.status == "CREATING"):
            common = self._step(order, POLICIES, "insert")
            request = {**common, "region": region(zone), "resource_policy_resource": policy}
            return _named(self._clients.policies.insert_unary(request=request, **CHANGE), f"regions/{region(zone)}")
        if template is not None and parts.template is None:
            common = self._step(order, TEMPLATES, "insert")
            request = {**common, "instance_template_resource": template}
            return _named(self._clients.templates.insert_unary(request=request, **CHANGE), "global")
        common = self._step(order, GROUPS, "insert")
        request = {**common, "zone": zone, "instance_group_manager_resource": group_request(order)}
        return _named(self._clients.groups.insert_unary(request=request, **CHANGE), f"zones/{zone}")

    def _described(self, group: InstanceGroupManager, order: PoolOrder) -> str:
        """Request the group's description, by a patch that changes nothing else; return its operation."""
        zone, fingerprint = location(group.zone), order.spec.fingerprint if order.spec else ""
        description = described(order.job, order.attempt, zone, fingerprint)
        request = {
            **self._step(order, GROUPS, "patch"),
            "zone": zone,
            "instance_group_manager": group.name,
            "instance_group_manager_resource": InstanceGroupManager(description=description),
        }
        return _named(self._clients.groups.patch_unary(request=request, **CHANGE), f"zones/{zone}")

    def _deleted(self, order: PoolOrder, *, group: bool) -> Outcome:
        reads = self._reads(order.cluster_path)
        try:
            parts = _parts(reads, order)
            ours = parts.last is not None and unproven(parts, order) is None
            meant = ours and (parts.group is not None) is group
            return Started(self._delete_last(parts, order) if meant else None)
        except google.NotFound:
            return Started(None)
        except FAILED_CALLS as error:
            failure = _why_refused(error, order)
        being_deleted = failure.kind is FailureKind.BUSY and self._look_for(order, "delete")
        return Started(None) if being_deleted else Refused(failure)

    def _delete_last(self, parts: Parts, order: PoolOrder) -> str:
        """Request the deletion of what was made last; return its operation."""
        names = part_names(order)
        if parts.group is not None:
            zone = location(parts.group.zone)
            request = {**self._step(order, GROUPS, "delete"), "zone": zone, "instance_group_manager": names.group}
            return _named(self._clients.groups.delete_unary(request=request, **CHANGE), f"zones/{zone}")
        if parts.template is not None:
            request = {**self._step(order, TEMPLATES, "delete"), "instance_template": names.template}
            return _named(self._clients.templates.delete_unary(request=request, **CHANGE), "global")
        where = location(parts.policy.region) if parts.policy else ""
        request = {**self._step(order, POLICIES, "delete"), "region": where, "resource_policy": names.policy}
        return _named(self._clients.policies.delete_unary(request=request, **CHANGE), f"regions/{where}")

    def _step(self, order: PoolOrder, collection: str, verb: str) -> dict[str, object]:
        """Return what the requests of all steps have in common."""
        id_ = request_id(order, collection, verb, self._clock.now())
        return {"project": project_of(order.cluster_path), "request_id": id_}


def _parts(reads: Reads, order: PoolOrder) -> Parts:
    """Return what stands under an order's name, as far as it tells what was made last."""
    names = part_names(order)
    template = None if brought_template(order) else reads.template(names.template)
    group = reads.group(names.group, _zone(order, template))
    return Parts(group=group, template=template, policy=None if group or template else reads.policy(names.policy))


def _zone(order: PoolOrder, template: InstanceTemplate | None) -> str | None:
    """Return the zone of an order's group: the spec may name another one since its template was made."""
    made_for = zone_of(template.description) if template else None
    return made_for or (order.spec.zone if order.spec else None)


def _operations(reads: Reads, order: PoolOrder, parts: Parts) -> Operations:
    """Return the operations on an order's pool: on its group alone, if that stands."""
    names = part_names(order)
    zone = location(parts.group.zone) if parts.group else _zone(order, parts.template)
    on_group = reads.operations_in_zone(zone, names.group) if zone else []
    if parts.group is not None:
        return Operations(on_group)
    on_template, on_policy = reads.global_operations(names.template), reads.operations_in_region(names.policy)
    return Operations([*on_group, *on_template, *on_policy])


def _check_brought(reads: Reads, order: PoolOrder) -> None:
    """Raise CannotBeMade if the instance template that an order brings does not serve it."""
    path = brought_template(order)
    if path is None:
        return
    template = reads.brought_template(path)
    why = "it does not exist." if template is None else misfit(template, order)
    if why is not None:
        raise CannotBeMade(f"The instance template {path} cannot be used: {why}")


def _taken(parts: Parts, order: PoolOrder) -> Refused | None:
    """Return the refusal if a name is taken by what is not ours."""
    lacking = unproven(parts, order)
    return None if lacking is None else Refused(Failure(FailureKind.NAME_TAKEN, f"{lacking[0].upper()}{lacking[1:]}"))


def _why_refused(error: Exception, order: PoolOrder) -> Failure:
    """Return why a call was refused; raise Temporary if it may not have been.

    That a part of the pool itself is not found is temporary: it was seen, or made, a moment ago.
    """
    classified = compute_errors.refusal(error)
    if isinstance(classified, Temporary):
        raise classified from error
    if isinstance(error, google.NotFound) and any(name in classified.message for name in part_names(order)):
        return Failure(FailureKind.BUSY, classified.message)
    return classified


def _without(token: JoinToken | None, text: str) -> str:
    """Return a text without a token, which Compute Engine may repeat."""
    return text if token is None else text.replace(token.token, "[redacted]")


def _named(operation: Operation, scope: str) -> str:
    return f"{scope}/operations/{operation.name}"


def _seen(operation: Operation) -> OperationSeen | None:
    """Return an operation that creates or deletes a part of one of our pools, or None."""
    collection, name = operation.target_link.split("/")[-2:]
    verb = verb_of(operation)
    ours = collection in {POLICIES, TEMPLATES, GROUPS} and name.startswith("tpu-")
    if not ours or verb not in {"insert", "delete"}:
        return None
    return OperationSeen(pool=name, creates=verb == "insert", ended=ended(operation))

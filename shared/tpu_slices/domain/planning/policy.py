"""Checks what tenants of a cluster may request; every refusal names the setting and what it allows."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from tpu_slices.domain.model.clusters import Allowed, ClusterSettings, Policy
from tpu_slices.domain.model.facts import ADDITIONAL_NETWORKS, COPY_LABELS, SERVICE_ACCOUNT, TemplateRequest
from tpu_slices.domain.model.reasons import Reason
from tpu_slices.domain.model.slices import Capacity, OwnerKind, SliceSpec
from tpu_slices.domain.planning.host_labels import PLACEMENT_POLICY
from tpu_slices.domain.planning.obstacles import Obstacle


@dataclass(frozen=True, slots=True)
class Held:
    """The chips of slices of other Jobs, bought or being bought."""

    in_namespace: int
    """Those of the slices that claims of the namespace have, or had last."""
    in_cluster: int

    def plus(self, chips: int) -> Held:
        return Held(self.in_namespace + chips, self.in_cluster + chips)


def disallowed(spec: SliceSpec, namespace: str, policy: Policy) -> Iterator[Obstacle]:
    """Yield why tenants of the namespace may not request this slice, whatever else is held.

    Each message names the key or setting, the value and what is allowed. Empty parts of the spec are not known.
    """
    allowed = policy.allowed(namespace)
    yield from _name("zones", spec.zone, namespace, allowed.zones)
    yield from _name("accelerators", spec.accelerator, namespace, allowed.accelerators)
    yield from _account(spec.service_account, allowed)
    yield from _named(ADDITIONAL_NETWORKS, map(str, spec.networks or ()), "additional_networks", allowed)
    yield from _named(COPY_LABELS, spec.copied_labels, "copied_labels", allowed)
    yield from _named(PLACEMENT_POLICY, filter(None, [spec.workload_policy]), "workload_policies", allowed)
    yield from _name(
        "instance_templates", (spec.instance and spec.instance.template) or "", namespace, allowed.instance_templates
    )
    yield from _capacity(spec.capacity, namespace, allowed)
    for setting, whose, chips, most in (
        ("chips_per_slice", "this slice has", spec.chips, allowed.chips_per_slice),
        ("chips_per_jobset", "the slices of the JobSet have", spec.jobset_chips, allowed.chips_per_jobset),
        ("chips_per_namespace", "this slice has", spec.chips, allowed.chips_per_namespace),
        ("chips_per_cluster", "this slice has", spec.chips, policy.chips_per_cluster),
    ):
        if most is not None and chips > most:
            yield _not_allowed(f"policy.{setting}: {whose} {chips} chips, and at most {most} are allowed")


def not_served(kind: OwnerKind, request: TemplateRequest, settings: ClusterSettings) -> Iterator[Obstacle]:
    """Yield why a pod by itself gets no slice in this cluster; of every other kind all are served."""
    if kind is OwnerKind.POD and request.made_by not in settings.serve:
        whose = request.made_by or OwnerKind.POD
        yield _not_allowed(
            f"serve: a slice for each pod of a {whose} is not allowed: add {whose} to serve in the cluster's settings, "
            "or use a Job or a LeaderWorkerSet"
        )


def over_budget(spec: SliceSpec, namespace: str, held: Held, policy: Policy) -> str | None:
    """Return which limit on held chips this slice would exceed, or None if it exceeds none."""
    most = policy.allowed(namespace).chips_per_namespace
    if most is not None and held.in_namespace + spec.chips > most:
        where = f"the namespace {namespace} holds {held.in_namespace} of {most}"
        return f"policy.chips_per_namespace: this slice has {spec.chips} chips, and {where}"
    most = policy.chips_per_cluster
    if most is not None and held.in_cluster + spec.chips > most:
        where = f"the cluster holds {held.in_cluster} of {most}"
        return f"policy.chips_per_cluster: this slice has {spec.chips} chips, and {where}"
    return None


class Room:
    """How many chips may still be bought."""

    def __init__(self, policy: Policy, in_cluster: int, in_namespaces: Mapping[str, int]) -> None:
        """`in_cluster`, `in_namespaces`: the chips that are held."""
        self._left: dict[str | None, int | None] = {None: _left(policy.chips_per_cluster, in_cluster)}
        for namespace, held in in_namespaces.items():
            self._left[namespace] = _left(policy.allowed(namespace).chips_per_namespace, held)

    def takes(self, chips: int, namespace: str) -> bool:
        """Return whether so many fit into the limits of a namespace and of the cluster, and take them if they do."""
        limits = {each: left for each in (None, namespace) if (left := self._left.get(each)) is not None}
        if any(left < chips for left in limits.values()):
            return False
        self._left |= {each: left - chips for each, left in limits.items()}
        return True


def _left(most: int | None, held: int) -> int | None:
    return None if most is None else most - held


def _account(account: str | None, allowed: Allowed) -> Iterator[Obstacle]:
    if account is not None and not any(_matches_account(account, pattern) for pattern in allowed.service_accounts):
        choices = _choices("service_accounts", allowed.service_accounts)
        yield _not_allowed(f"{SERVICE_ACCOUNT}: {account} is not allowed: {choices}")


def _named(key: str, values: Iterable[str], setting: str, allowed: Allowed) -> Iterator[Obstacle]:
    patterns: tuple[str, ...] = getattr(allowed, setting)
    for value in values:
        if not _matches(value, patterns):
            yield _not_allowed(f"{key}: {value} is not allowed: {_choices(setting, patterns)}")


def _capacity(capacity: Capacity, namespace: str, allowed: Allowed) -> Iterator[Obstacle]:
    if capacity.kind not in allowed.capacity:
        choices = _choices("capacity", [kind.lower() for kind in allowed.capacity])
        yield _not_allowed(f"capacity: {capacity.kind.lower()} is not allowed in namespace {namespace}: {choices}")
    yield from _name("reservations", capacity.reservation_itself or "", namespace, allowed.reservations)


def _name(setting: str, name: str, namespace: str, allowed: Iterable[str]) -> Iterator[Obstacle]:
    if name and not _matches(name, allowed):
        choices = _choices(setting, allowed)
        yield _not_allowed(f"{setting}: {name} is not allowed in namespace {namespace}: {choices}")


def _not_allowed(message: str) -> Obstacle:
    return Obstacle(Reason.NOT_ALLOWED, message)


def _matches_account(account: str, pattern: str) -> bool:
    """Return whether an address matches: `*` alone matches all, within a pattern it does not match an `@`."""
    asked, given = account.split("@"), pattern.split("@")
    return pattern == "*" or (len(asked) == len(given) and all(map(fnmatch.fnmatchcase, asked, given)))


def _matches(value: str, patterns: Iterable[str]) -> bool:
    return any(fnmatch.fnmatchcase(value, pattern) for pattern in patterns)


def _choices(setting: str, allowed: Iterable[str]) -> str:
    return f"policy.{setting} of the cluster's settings allows {', '.join(allowed) or 'none'}"

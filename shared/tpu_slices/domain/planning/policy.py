"""Checks what tenants of a cluster may request; every refusal names the setting and what it allows."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable
from dataclasses import dataclass

from tpu_slices.domain.model.clusters import Allowed, Policy
from tpu_slices.domain.model.facts import ADDITIONAL_NETWORKS, COPY_LABELS, SERVICE_ACCOUNT
from tpu_slices.domain.model.slices import Capacity, SliceSpec


class NotAllowed(ValueError):
    """The settings do not allow the request; the text names the key, the value and what is allowed."""


@dataclass(frozen=True, slots=True)
class Held:
    """The chips that slices of other Jobs hold, bought or being bought."""

    in_namespace: int
    in_cluster: int


def check(spec: SliceSpec, namespace: str, policy: Policy) -> None:
    """Raise NotAllowed if tenants of the namespace may not request this slice, whatever else is held."""
    allowed = policy.allowed(namespace)
    _check_name("zones", spec.zone, namespace, allowed.zones)
    _check_name("accelerators", spec.accelerator, namespace, allowed.accelerators)
    _check_account(spec.service_account, allowed)
    _check_networks(spec, allowed)
    _check_labels(spec.copied_labels, allowed)
    _check_capacity(spec.capacity, namespace, allowed)
    _check_size("chips_per_slice", "this slice has", spec.chips, allowed.chips_per_slice)
    _check_size("chips_per_jobset", "the slices of the JobSet have", spec.jobset_chips, allowed.chips_per_jobset)
    _check_size("chips_per_namespace", "this slice has", spec.chips, allowed.chips_per_namespace)
    _check_size("chips_per_cluster", "this slice has", spec.chips, policy.chips_per_cluster)


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


def _check_account(account: str | None, allowed: Allowed) -> None:
    if account is not None and not any(_matches_account(account, pattern) for pattern in allowed.service_accounts):
        raise NotAllowed(
            f"{SERVICE_ACCOUNT}: {account} is not allowed: {_choices('service_accounts', allowed.service_accounts)}"
        )


def _check_networks(spec: SliceSpec, allowed: Allowed) -> None:
    for network in spec.networks or ():
        if not _matches(str(network), allowed.additional_networks):
            choices = _choices("additional_networks", allowed.additional_networks)
            raise NotAllowed(f"{ADDITIONAL_NETWORKS}: {network} is not allowed: {choices}")


def _check_labels(keys: Iterable[str], allowed: Allowed) -> None:
    for key in keys:
        if not _matches(key, allowed.copied_labels):
            raise NotAllowed(f"{COPY_LABELS}: {key} is not allowed: {_choices('copied_labels', allowed.copied_labels)}")


def _check_capacity(capacity: Capacity, namespace: str, allowed: Allowed) -> None:
    if capacity.kind not in allowed.capacity:
        choices = _choices("capacity", [kind.lower() for kind in allowed.capacity])
        raise NotAllowed(f"capacity: {capacity.kind.lower()} is not allowed in namespace {namespace}: {choices}")
    name = capacity.reservation_itself
    if name is not None:
        _check_name("reservations", name, namespace, allowed.reservations)


def _check_name(setting: str, name: str, namespace: str, allowed: Iterable[str]) -> None:
    if not _matches(name, allowed):
        choices = _choices(setting, allowed)
        raise NotAllowed(f"{setting}: {name} is not allowed in namespace {namespace}: {choices}")


def _check_size(setting: str, what: str, chips: int, most: int | None) -> None:
    if most is not None and chips > most:
        raise NotAllowed(f"policy.{setting}: {what} {chips} chips, and at most {most} are allowed")


def _matches_account(account: str, pattern: str) -> bool:
    """Return whether an address matches: `*` alone matches all, within a pattern it does not match an `@`."""
    asked, given = account.split("@"), pattern.split("@")
    return pattern == "*" or (len(asked) == len(given) and all(map(fnmatch.fnmatchcase, asked, given)))


def _matches(value: str, patterns: Iterable[str]) -> bool:
    return any(fnmatch.fnmatchcase(value, pattern) for pattern in patterns)


def _choices(setting: str, allowed: Iterable[str]) -> str:
    return f"policy.{setting} of the cluster's settings allows {', '.join(allowed) or 'none'}"

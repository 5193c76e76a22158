"""What the relay keeps of Kueue's objects: admission checks, workloads that list some, and flavors. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from relay.objects import Reference
from relay.translate import controller_of
from tpu_slices.domain.model.facts import Toleration
from tpu_slices.domain.model.gangs import ADMISSION_CHECKS
from tpu_slices.domain.model.slices import Pairs
from tpu_slices.wire.jobsets import condition, strings

Json = Mapping[str, Any]

GROUP = "kueue.x-k8s.io"
VERSIONS = ("v1beta2", "v1beta1")
"""Those whose fields are known here, the latest first."""
ACTIVE = "Active"


class CheckState(StrEnum):
    """The states of a check in a Workload's status."""

    PENDING = "Pending"
    READY = "Ready"
    RETRY = "Retry"
    REJECTED = "Rejected"


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmissionCheck:
    """An AdmissionCheck whose controller the relay is."""

    name: str
    parameters: bool
    """Whether it names parameters: this check has none."""
    active: bool | None
    """What its status says; None: nothing."""

    @property
    def identity(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """What a Workload's status says of one check."""

    name: str
    state: CheckState
    message: str
    since: str
    """When its state changed last, as it is written there."""
    retries: int = 0
    """How often Kueue has counted Retry."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Queued:
    """A Kueue Workload whose admission waits for checks."""

    namespace: str
    name: str
    uid: str
    version: str
    owner: Reference | None
    """What it stands for; None: nothing controls it."""
    reserved_at: datetime | None
    """Since when quota is reserved for it; None: none is."""
    evicted: bool
    admitted: bool
    over: bool
    """Whether it finished, was deactivated, or is being deleted."""
    checks: tuple[Check, ...]
    flavors: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """The flavors that each of its pod sets is assigned."""

    @property
    def identity(self) -> str:
        return self.uid

    @property
    def holds_quota(self) -> bool:
        """Whether quota is reserved for it, and stays so: a check may be answered then."""
        return self.reserved_at is not None and not self.evicted and not self.over


@dataclass(frozen=True, slots=True, kw_only=True)
class Flavor:
    """What Kueue adds to the pods of a workload that it admits to a ResourceFlavor."""

    name: str
    labels: Pairs = ()
    tolerations: tuple[Toleration, ...] = ()

    @property
    def identity(self) -> str:
        return self.name


Kept = AdmissionCheck | Queued | Flavor


def admission_check(obj: Json) -> AdmissionCheck | None:
    """Return an AdmissionCheck; None if another controller answers it."""
    if obj["spec"]["controllerName"] != ADMISSION_CHECKS:
        return None
    said = condition(obj, ACTIVE)
    return AdmissionCheck(
        name=obj["metadata"]["name"],
        parameters=bool(obj["spec"].get("parameters")),
        active=said["status"] == "True" if said else None,
    )


def queued(obj: Json) -> Queued | None:
    """Return a Workload; None if it waits for no check."""
    metadata, status = obj["metadata"], obj.get("status") or {}
    checks = tuple(map(_check, status.get("admissionChecks") or ()))
    if not checks:
        return None
    reserved = condition(obj, "QuotaReserved")
    return Queued(
        namespace=metadata["namespace"],
        name=metadata["name"],
        uid=metadata["uid"],
        version=metadata["resourceVersion"],
        owner=controller_of(metadata),
        reserved_at=datetime.fromisoformat(reserved["lastTransitionTime"]) if _holds(reserved) else None,
        evicted=_holds(condition(obj, "Evicted")),
        admitted=_holds(condition(obj, "Admitted")),
        over=_holds(condition(obj, "Finished")) or not _is_active(obj) or "deletionTimestamp" in metadata,
        checks=checks,
        flavors={each["name"]: frozenset(strings(each, "flavors").values()) for each in _assigned(status)},
    )


def flavor(obj: Json) -> Flavor:
    """Return a ResourceFlavor."""
    spec = obj.get("spec") or {}
    tolerations: Sequence[Json] = spec.get("tolerations") or ()
    return Flavor(
        name=obj["metadata"]["name"],
        labels=tuple(sorted(strings(spec, "nodeLabels").items())),
        tolerations=tuple(map(_toleration, tolerations)),
    )


def _check(said: Json) -> Check:
    return Check(
        name=said["name"],
        state=CheckState(said["state"]),
        message=said.get("message") or "",
        since=said["lastTransitionTime"],
        retries=said.get("retryCount") or 0,
    )


def _toleration(said: Json) -> Toleration:
    return Toleration(
        key=said.get("key") or "",
        operator=said.get("operator") or "Equal",
        value=said.get("value") or "",
        effect=said.get("effect") or "",
    )


def _holds(found: Json) -> bool:
    return found.get("status") == "True"


def _is_active(obj: Json) -> bool:
    return (obj.get("spec") or {}).get("active") is not False


def _assigned(status: Json) -> Iterator[Json]:
    yield from (status.get("admission") or {}).get("podSetAssignments") or ()

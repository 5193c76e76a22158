"""Classifies Google's refusals and failures by tables. Pure; it imports no message types of a single API."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from google.api_core import exceptions as google

from tpu_slices.domain.model.observations import Failure, FailureKind
from tpu_slices.ports.errors import Temporary

_LONGEST = 300
_BEGINNING = 45


class CannotBeMade(ValueError):
    """No request can be built for an order; the text says why, `kind` what follows."""

    def __init__(self, why: str, kind: FailureKind = FailureKind.CONFIGURATION) -> None:
        super().__init__(why)
        self.kind = kind


WITHOUT_SPEC = "The slice was found without a record: its spec is unknown."


class _Row(NamedTuple):
    kind: FailureKind
    pattern: str
    source: str


_WORDS: tuple[_Row, ...] = (
    _Row(FailureKind.RATE, r"concurrent operations quota|Too many operations", "terraform-provider-google#15205"),
    _Row(FailureKind.RATE, r"Quota exceeded for quota metric", "GoogleCloudPlatform/python-docs-samples#3482"),
    _Row(FailureKind.RATE, r"requests per minute", "marin-community/marin#6198"),
    _Row(FailureKind.CONFIGURATION, r"[Rr]eservation \S+ is incorrect for the requested resources", "autoscaler"),
    _Row(FailureKind.CONFIGURATION, r"reservation must exist in the same project", "autoscaler gce/autoscaling_gce"),
    _Row(FailureKind.CONFIGURATION, r"Incompatible AggregateReservation", "cluster-autoscaler@7d25050"),
    _Row(FailureKind.CONFIGURATION, r"target a reservation with workload_type", "cluster-autoscaler@7d25050"),
    _Row(FailureKind.CONFIGURATION, r"Invalid value for field 'resource\.reservationAffinity'", "xpk#476"),
    _Row(FailureKind.RESERVATION_AWAITED, r"[Ss]pecified reservations? .*do(es)? not exist", "autoscaler, as above"),
    _Row(FailureKind.RESERVATION_AWAITED, r"[Rr]eservation [\"'][^\"']*[\"'] not found", "cluster-toolkit#5043"),
    _Row(FailureKind.RESERVATION_AWAITED, r"/reservations/\S+ was not found", "Compute Engine's form of a 404"),
    _Row(FailureKind.RESERVATION_AWAITED, r"Not found: \S+/reservations/", "GKE's form of a 404"),
    _Row(FailureKind.RESERVATION_AWAITED, r"Could not find the given reservation", "cluster-autoscaler@7d25050"),
    _Row(FailureKind.RESERVATION_AWAITED, r"requires reservation to be in READY state", "autoscaler, as above"),
    _Row(FailureKind.RESERVATION, r"does not have available resources for the request", "autoscaler, as above"),
    _Row(FailureKind.RESERVATION, r"[Nn]o available resources in specified reservations", "autoscaler, as above"),
    _Row(FailureKind.RESERVATION, r"no automatic reservation matching", "autoscaler, as above"),
    _Row(FailureKind.RESERVATION, r"[Aa]ll automatic reservations .*consumed", "autoscaler, as above"),
    _Row(FailureKind.RESERVATION, r"Reservation does not have enough resources", "GoogleCloudPlatform/gsutil#1000"),
    _Row(FailureKind.RESERVATION, r"Reservation \S+ does not have sufficient capacity", "cluster-autoscaler@7d25050"),
    _Row(
        FailureKind.RESERVATION,
        r"(?i:reservation (sub-?)?block) \S+ is not healthy",
        "field reports, all-capacity mode",
    ),
    _Row(FailureKind.RESERVATION, r"Insufficient reserved capacity", "skypilot-org/skypilot#4579"),
    _Row(FailureKind.IP_SPACE, r"IP_SPACE_EXHAUSTED|IP space of \S+ is exhausted", "autoscaler gce/autoscaling_gce"),
    _Row(FailureKind.IP_SPACE, r"Cannot find pod range with enough available IPs", "cluster-autoscaler@7d25050"),
    _Row(FailureKind.IP_SPACE, r"does not have available private IP space", "cluster-autoscaler@7d25050"),
    _Row(FailureKind.CONFIGURATION, r"externalIP resource pool is exhausted", "autoscaler gce/autoscaling_gce"),
    _Row(FailureKind.CONFIGURATION, r"Exceeded limit '[A-Z_]+' on resource", "autoscaler gce/autoscaling_gce"),
    _Row(FailureKind.STOCKOUT, r"GCE_STOCKOUT", "google.container.v1 StatusCondition.Code; akka/akka-core#32992"),
    _Row(FailureKind.STOCKOUT, r"RESOURCE_POOL_EXHAUSTED", "kubernetes/autoscaler@55c37cd, GCE client"),
    _Row(FailureKind.STOCKOUT, r"INSUFFICIENT_CAPACITY", "kubernetes/autoscaler@55c37cd, GCE client"),
    _Row(FailureKind.STOCKOUT, r"not (have )?enough resources available", "terraform-provider-google#6287; autoscaler"),
    _Row(FailureKind.STOCKOUT, r"does not currently have sufficient capacity", "kubernetes/autoscaler, GCE client"),
    _Row(FailureKind.STOCKOUT, r"VM instance .*is currently unavailable in the \S+ zone", "kubernetes/k8s.io#9834"),
    _Row(FailureKind.STOCKOUT, r"no more capacity in the zone", "thevasudevgupta/gsoc-wav2vec2#11"),
    _Row(FailureKind.STOCKOUT, r"could not provision queued instances in the allocated time", "autoscaler, flex-start"),
    _Row(FailureKind.QUOTA, r"[A-Z_]*QUOTA_EXCEEDED", "google.container.v1 StatusCondition.Code"),
    _Row(FailureKind.QUOTA, r"[Ii]nsufficient (regional )?quota", "cluster-autoscaler@7d25050"),
    _Row(FailureKind.QUOTA, r"Quota '[^']*' exceeded", "sig-storage-local-static-provisioner#526"),
    _Row(FailureKind.QUOTA, r"Quota limit '[^']*' has been exceeded", "marin-community/marin#1612"),
    _Row(FailureKind.QUOTA, r"[Cc]luster byte size limit reached", "cluster-autoscaler@7d25050"),
    _Row(FailureKind.BUSY, r"running incompatible operation", "GKE troubleshooting, concurrent operations"),
    _Row(FailureKind.BUSY, r"is currently [a-z]+ing ", "terraform-provider-google#3650, #10366"),
    _Row(FailureKind.BUSY, r"Cluster is not ready for operation|Master is being updated", "lists of retryable texts"),
    _Row(FailureKind.IMPOSSIBLE, r"Unsupported TPU configuration", "cluster-autoscaler@7d25050, CONDITION_NOT_MET"),
    _Row(FailureKind.IMPOSSIBLE, r"TPU topology|TPU pod slice with topology", "xpk#825; vllm-project/ci-infra#545"),
    _Row(FailureKind.CONFIGURATION, r"Use workload policy instead", "vllm-project/ci-infra#547"),
    _Row(FailureKind.CONFIGURATION, r"PERMISSIONS_ERROR", "kubernetes/autoscaler@55c37cd, GCE client"),
    _Row(FailureKind.CONFIGURATION, r"Constraint constraints/", "kubernetes/autoscaler@55c37cd, organisation policy"),
)
"""First match wins. No pattern can match within a tenant's names: these have no space, `_` or capital letter."""

_CONDITIONS: Mapping[str, FailureKind] = MappingProxyType(
    {
        "GCE_STOCKOUT": FailureKind.STOCKOUT,
        "GCE_QUOTA_EXCEEDED": FailureKind.QUOTA,
        "GKE_SERVICE_ACCOUNT_DELETED": FailureKind.CONFIGURATION,
        "NODE_SERVICE_ACCOUNT_MISSING_PERMISSIONS": FailureKind.CONFIGURATION,
        "CLOUD_KMS_KEY_ERROR": FailureKind.CONFIGURATION,
        "CLOUD_KMS_KEY_DESTROYED": FailureKind.CONFIGURATION,
    }
)
"""By google.container.v1 StatusCondition.Code."""

_ZONES = re.compile(r"trying your request in the ([a-z0-9, -]+) zone")
"""Where Compute Engine says that it has stock: kubernetes/k8s.io#9834."""

_WARNINGS = frozenset({"SET_BY_OPERATOR", "CA_EXPIRING", "NODE_SERVICE_ACCOUNT_MISSING_PERMISSIONS"})
"""Codes that a condition of a pool that works may have as well: alone, they are no sign of a failure."""

_STATUS_CODES: Mapping[int, FailureKind] = MappingProxyType(
    {
        3: FailureKind.CONFIGURATION,  # INVALID_ARGUMENT
        7: FailureKind.CONFIGURATION,  # PERMISSION_DENIED
        8: FailureKind.EXHAUSTED,  # RESOURCE_EXHAUSTED: seen with quotas and with stockouts
    }
)
"""By google.rpc.Code, in Operation.error."""

_CANCELLED = 1
"""The google.rpc.Code of an operation that was cancelled."""

_EXCEPTIONS: tuple[tuple[type[google.GoogleAPICallError], FailureKind], ...] = (
    (google.Aborted, FailureKind.BUSY),
    (google.Conflict, FailureKind.NAME_TAKEN),  # 409 ALREADY_EXISTS
    (google.FailedPrecondition, FailureKind.BUSY),  # magic-modules retries it for node pools
    (google.BadRequest, FailureKind.CONFIGURATION),
    (google.Forbidden, FailureKind.CONFIGURATION),
    (google.NotFound, FailureKind.CONFIGURATION),  # something that the request names: network, policy, cluster
    (google.TooManyRequests, FailureKind.RATE),
    (google.MethodNotImplemented, FailureKind.CONFIGURATION),
)
"""Covers gRPC and REST: REST's classes are the bases of gRPC's (google.api_core.exceptions). First match wins."""

_SECRETS = re.compile(
    r"ya29\.[\w.-]+"  # OAuth access tokens
    r"|eyJ[\w-]+\.[\w-]+\.[\w-]*"  # signed tokens
    r"|AIza[\w-]{30,}"  # API keys
    r"|(?<=[Bb]earer )\S+"
    r"|(?<=[?&])[^=&\s]+=[^&\s]+"  # the query of a URL
)


def refusal(error: google.GoogleAPIError) -> Failure | Temporary:
    """Return why a call was refused, or Temporary if it may have succeeded or the error is not due to the request.

    After an outage, a timeout or an unknown error the outcome of a change is unknown; missing credentials are not due
    to the request.
    """
    text = _text_of(error)
    kind = next((kind for type_, kind in _EXCEPTIONS if isinstance(error, type_)), None)
    if kind is None:
        return Temporary(shortened(f"{type(error).__name__}: {text}"))
    if kind is FailureKind.NAME_TAKEN:
        return Failure(kind, shortened(text))
    return Failure(by_words(text) or kind, shortened(text), zones_in(text))


def failure(code: int, texts: Sequence[str], conditions: Collection[str] = ()) -> Failure:
    """Return why something that GKE had accepted failed; the first text that is not empty becomes the message.

    What was cancelled is UNKNOWN, whatever stood in its way until then: nothing follows for the next attempt.
    code: google.rpc.Code of Operation.error, 0 if there is none; conditions: names of StatusCondition.Code.
    """
    given = [text for text in texts if text] or ["GKE gives no reason."]
    by_condition = next((_CONDITIONS[name] for name in conditions if name in _CONDITIONS), None)
    kind = by_words(" ".join(given)) or by_condition or _STATUS_CODES.get(code, FailureKind.UNKNOWN)
    return Failure(FailureKind.UNKNOWN if code == _CANCELLED else kind, shortened(given[0]), zones_in(" ".join(given)))


def fails(condition: str, code: int, message: str) -> bool:
    """Return whether a condition of an ended operation is a sign that it failed.

    condition: the name of its StatusCondition.Code, empty if unknown; code: its google.rpc.Code.
    """
    return condition not in _WARNINGS and (condition != "UNKNOWN" or bool(code or message))


def shortened(text: str) -> str:
    """Return at most 300 characters on one line, without credentials; the end stays, as Google states causes there."""
    line = _SECRETS.sub("[redacted]", " ".join(text.split()))
    if len(line) <= _LONGEST:
        return line
    return f"{line[:_BEGINNING]} … {line[_BEGINNING + 3 - _LONGEST :]}"


def zones_in(text: str) -> tuple[str, ...]:
    """Return the zones in which there is stock, if one of Google's texts names them."""
    found = _ZONES.search(text)
    return listed(found[1]) if found is not None else ()


def listed(zones: str) -> tuple[str, ...]:
    """Return the names in a list of zones."""
    return tuple(zone for each in zones.split(",") if (zone := each.strip()))


def _text_of(error: google.GoogleAPIError) -> str:
    return str(getattr(error, "message", "") or error)


def by_words(text: str) -> FailureKind | None:
    """Return the kind of failure that one of Google's texts tells of, whichever API it comes from."""
    return next((row.kind for row in _WORDS if re.search(row.pattern, text)), None)

"""Classifies Compute Engine's refusals and failures by its texts, as GKE's, its reasons and its codes. Pure.

Refusals have a `reason`, errors of operations and of instances a `code`. By its status alone no error is understood:
403 is a missing permission, a rate limit or a quota; 409 may be our own resource after an answer that was lost.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import requests
from google.api_core import exceptions as google
from google.auth.exceptions import GoogleAuthError
from google.cloud.compute_v1.types import Error, Errors

from tpu_slices.adapters import cloud_errors
from tpu_slices.domain.model.observations import Failure, FailureKind
from tpu_slices.ports.errors import Temporary

FAILED_CALLS = (google.GoogleAPIError, requests.RequestException, GoogleAuthError)
"""What a call over REST raises: the client leaves errors of the connection, and of credentials, as they are."""

PASSING = frozenset(
    {FailureKind.STOCKOUT, FailureKind.EXHAUSTED, FailureKind.RATE, FailureKind.BUSY, FailureKind.UNKNOWN}
)
"""What a group goes on trying in spite of until it passes (google.cloud.compute_v1 ManagedInstance, CREATING)."""


class _Row(NamedTuple):
    kind: FailureKind
    pattern: str
    source: str


_REASONS: tuple[_Row, ...] = (
    _Row(FailureKind.RATE, r"(user)?[rR]ateLimitExceeded|operationRateExceeded", "Compute Engine API quota"),
    _Row(FailureKind.QUOTA, r"quotaExceeded|limitExceeded", "Compute Engine error catalog"),
    _Row(FailureKind.NAME_TAKEN, r"alreadyExists", "Compute Engine error catalog"),
    _Row(FailureKind.BUSY, r"resourceInUseByAnotherResource|resourceInUse", "terraform-provider-google#6277"),
    _Row(FailureKind.BUSY, r"resourceNotReady|conditionNotMet", "Compute Engine error catalog"),
)
"""Reasons of refusals, `error.errors[].reason`. The others say no more than the status does."""

_CODES: tuple[_Row, ...] = (
    _Row(FailureKind.RATE, r".*(CONCURRENT_OPERATIONS_QUOTA|RATE)(_LIMIT)?_EXCEEDED", "Compute Engine error catalog"),
    _Row(FailureKind.STOCKOUT, r".*RESOURCE_POOL_EXHAUSTED.*|STOCKOUT", "view-cancel-vm-bulk-creation-in-migs"),
    _Row(FailureKind.QUOTA, r".*QUOTA_EXCEEDED|LIMIT_EXCEEDED", "view-cancel-vm-bulk-creation-in-migs"),
    _Row(FailureKind.IP_SPACE, r"IP_SPACE_EXHAUSTED.*", "kubernetes/autoscaler@55c37cd, GCE client"),
    _Row(FailureKind.IMPOSSIBLE, r"AGGREGATE_RESERVATION_NOT_EXIST", "kubernetes/autoscaler: not in this zone"),
    _Row(FailureKind.RESERVATION, r".*RESERVATION.*", "kubernetes/autoscaler@55c37cd, GCE client"),
    _Row(FailureKind.BUSY, r"RESOURCE_IN_USE_BY_ANOTHER_RESOURCE|RESOURCE_NOT_READY", "Compute Engine error catalog"),
)
"""Codes that say what the matter is, unless the text says more: RESOURCE_POOL_EXHAUSTED may be of addresses."""

_GENERAL: tuple[_Row, ...] = (
    _Row(FailureKind.CONFIGURATION, r"PERMISSION(S_ERROR|_DENIED)|INVALID_.*|REQUIRED", "Compute Engine error catalog"),
    _Row(FailureKind.CONFIGURATION, r"RESOURCE_NOT_FOUND|UNSUPPORTED_OPERATION", "Compute Engine error catalog"),
)
"""Codes that say the request was wrong, if the text does not say more."""


def refusal(error: Exception) -> Failure | Temporary:
    """Return why a call was refused, or Temporary if it may have succeeded or the error is not due to the request."""
    if not isinstance(error, google.GoogleAPICallError):
        return Temporary(told(error))
    kind = _by(_REASONS, _reason(error))
    if kind is not None:
        return Failure(kind, told(error))
    classified = cloud_errors.refusal(error)
    return classified if isinstance(classified, Temporary) else Failure(classified.kind, told(error))


def told(error: Exception) -> str:
    """Return what Compute Engine says of a call: without the URL, which the client puts before it."""
    given = [each for each in getattr(error, "errors", ()) if isinstance(each, dict)]
    texts = (str(each["message"]) for each in given if each.get("message"))
    return cloud_errors.shortened(next(texts, f"{type(error).__name__}: {error}"))


def failure(errors: Error) -> Failure:
    """Return why an operation failed, by the first of its errors that does not pass by itself."""
    return worst(errors.errors) or Failure(FailureKind.UNKNOWN, "Compute Engine gives no reason.")


def worst(errors: Iterable[Errors]) -> Failure | None:
    """Return the failure of several errors: the first that does not pass by itself, else the first; None: no errors."""
    found: Sequence[Failure] = [_failure(each) for each in errors]
    return next((each for each in found if each.kind not in PASSING), found[0] if found else None)


def _failure(error: Errors) -> Failure:
    code, message = error.code, error.message
    text = f"{code}: {message}" if code and message else code or message
    by_code = _by(_CODES, code) or cloud_errors.by_words(code) or _by(_GENERAL, code)
    kind = cloud_errors.by_words(message) or by_code or FailureKind.UNKNOWN
    told = cloud_errors.shortened(text or "Compute Engine gives no reason.")
    return Failure(kind, told, _zones(error) or cloud_errors.zones_in(message))


def _zones(error: Errors) -> tuple[str, ...]:
    """Return the zones that the details of a stockout name (kubernetes/k8s.io#9834)."""
    given = (each.error_info.metadatas.get("zonesAvailable", "") for each in error.error_details)
    return next((cloud_errors.listed(zones) for zones in given if zones), ())


def _reason(error: google.GoogleAPICallError) -> str:
    return next((str(each.get("reason", "")) for each in error.errors if isinstance(each, dict)), "")


def _by(rows: Iterable[_Row], text: str) -> FailureKind | None:
    return next((row.kind for row in rows if re.fullmatch(row.pattern, text)), None)

"""Compute Engine's errors, and the kinds of failure they become: one row per reason, code or text."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

import pytest
import requests
from google.api_core import exceptions as google
from google.auth.exceptions import RefreshError
from google.cloud.compute_v1.types import Error, Errors

from tests.adapters.test_cloud_errors import TEXTS
from tpu_slices.adapters.compute.errors import FAILED_CALLS, PASSING, failure, refusal, told, worst
from tpu_slices.domain.model.observations import Failure, FailureKind
from tpu_slices.ports.errors import Temporary

NAME = "tpu-llama-slice-0-oahqlz77blgqd-1"
URL = "https://compute.googleapis.com/compute/v1/projects/p/zones/z/instanceGroupManagers?requestId=1-2"


def refused(status: HTTPStatus, reason: str, message: str = "No.") -> google.GoogleAPICallError:
    """Return the error as the client raises it: the URL stands before the message."""
    errors = [{"message": message, "domain": "global", "reason": reason}]
    error: google.GoogleAPICallError = google.from_http_status(  # type: ignore[no-untyped-call]
        status, f"POST {URL}: {message}", errors=errors
    )
    return error


REFUSALS: list[tuple[HTTPStatus, str, str, FailureKind]] = [
    (HTTPStatus.FORBIDDEN, "rateLimitExceeded", "Rate Limit Exceeded", FailureKind.RATE),
    (HTTPStatus.FORBIDDEN, "userRateLimitExceeded", "Slow down.", FailureKind.RATE),
    (HTTPStatus.TOO_MANY_REQUESTS, "", "Slow down.", FailureKind.RATE),
    (HTTPStatus.FORBIDDEN, "quotaExceeded", "Quota 'IN_USE' exceeded.", FailureKind.QUOTA),
    (
        HTTPStatus.FORBIDDEN,
        "forbidden",
        "Required 'compute.resourcePolicies.create' permission",
        FailureKind.CONFIGURATION,
    ),
    (HTTPStatus.FORBIDDEN, "accessNotConfigured", "Compute Engine API has not been used", FailureKind.CONFIGURATION),
    (HTTPStatus.CONFLICT, "alreadyExists", f"The resource '{NAME}' already exists", FailureKind.NAME_TAKEN),
    (
        HTTPStatus.BAD_REQUEST,
        "resourceInUseByAnotherResource",
        f"The instance_template resource '{NAME}' is already being used by 'group'",
        FailureKind.BUSY,
    ),
    (HTTPStatus.BAD_REQUEST, "resourceNotReady", f"The resource '{NAME}' is not ready", FailureKind.BUSY),
    (HTTPStatus.PRECONDITION_FAILED, "conditionNotMet", "Supplied fingerprint does not match", FailureKind.BUSY),
    (HTTPStatus.BAD_REQUEST, "invalid", "Invalid value for field 'resource.name'", FailureKind.CONFIGURATION),
    (HTTPStatus.BAD_REQUEST, "required", "Required field 'targetSize' not specified", FailureKind.CONFIGURATION),
    (HTTPStatus.NOT_FOUND, "notFound", "The resource 'subnetworks/tpu' was not found", FailureKind.CONFIGURATION),
    (
        HTTPStatus.BAD_REQUEST,
        "invalid",
        "Specified reservations [hall-7] do not exist.",
        FailureKind.RESERVATION_AWAITED,
    ),
]


@pytest.mark.parametrize(("status", "reason", "message", "kind"), REFUSALS)
def test_a_refusal_is_told_by_its_reason_and_in_compute_engines_words(
    status: HTTPStatus, reason: str, message: str, kind: FailureKind
) -> None:
    assert refusal(refused(status, reason, message)) == Failure(kind, message)


@pytest.mark.parametrize(
    "error",
    [
        refused(HTTPStatus.SERVICE_UNAVAILABLE, "backendError", "Try again."),
        refused(HTTPStatus.INTERNAL_SERVER_ERROR, "internalError", "Try again."),
        refused(HTTPStatus.GATEWAY_TIMEOUT, "", "Too late."),
        refused(HTTPStatus.UNAUTHORIZED, "authError", "Invalid credentials"),
        requests.ConnectionError("Connection reset by peer"),
        requests.ReadTimeout("Read timed out."),
        RefreshError("no metadata server"),  # type: ignore[no-untyped-call]
    ],
    ids=lambda error: type(error).__name__,
)
def test_after_an_outage_the_outcome_is_unknown(error: Exception) -> None:
    assert isinstance(error, FAILED_CALLS)
    assert isinstance(refusal(error), Temporary)


def test_what_is_told_has_neither_the_url_nor_what_is_in_it() -> None:
    assert told(refused(HTTPStatus.BAD_REQUEST, "invalid", "Wrong.")) == "Wrong."
    assert "1-2" not in told(requests.ConnectionError(f"Max retries exceeded with url: {URL}"))


FAILURES: list[tuple[str, str, FailureKind]] = [
    ("ZONE_RESOURCE_POOL_EXHAUSTED", "The zone does not have enough resources.", FailureKind.STOCKOUT),
    ("ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS", "", FailureKind.STOCKOUT),
    ("QUOTA_EXCEEDED", "Quota 'TPUS_PER_TPU_FAMILY' exceeded. Limit: 0.0 in region us-central1.", FailureKind.QUOTA),
    ("LIMIT_EXCEEDED", "", FailureKind.QUOTA),
    ("CONCURRENT_OPERATIONS_QUOTA_EXCEEDED", "", FailureKind.RATE),
    ("RESOURCE_OPERATION_RATE_EXCEEDED", "Operation rate exceeded.", FailureKind.RATE),
    ("IP_SPACE_EXHAUSTED_WITH_DETAILS", "IP space is exhausted.", FailureKind.IP_SPACE),
    ("RESERVATION_CAPACITY_EXCEEDED", "", FailureKind.RESERVATION),
    ("CONDITION_NOT_MET", "Specified reservations [hall-7] do not exist.", FailureKind.RESERVATION_AWAITED),
    ("CONDITION_NOT_MET", "Constraint constraints/compute.trustedImageProjects violated", FailureKind.CONFIGURATION),
    ("CONDITION_NOT_MET", "Something.", FailureKind.UNKNOWN),
    ("AGGREGATE_RESERVATION_NOT_EXIST", "", FailureKind.IMPOSSIBLE),
    ("INVALID_FIELD_VALUE", "TPU topology 3x3 is not valid.", FailureKind.IMPOSSIBLE),
    ("INVALID_FIELD_VALUE", "Invalid value for field 'image'.", FailureKind.CONFIGURATION),
    ("PERMISSIONS_ERROR", "Required 'compute.images.useReadOnly' permission.", FailureKind.CONFIGURATION),
    ("RESOURCE_NOT_FOUND", "The resource 'images/i' was not found", FailureKind.CONFIGURATION),
    ("RESOURCE_IN_USE_BY_ANOTHER_RESOURCE", "", FailureKind.BUSY),
    ("INTERNAL_ERROR", "Internal error. Please try again.", FailureKind.UNKNOWN),
    ("", "", FailureKind.UNKNOWN),
]


@pytest.mark.parametrize(
    ("text", "where", "kind"),
    [(text, where, kind) for text, where, _, kind, _ in TEXTS if where.startswith("inst")],
    ids=lambda value: str(value)[:40],
)
def test_an_instances_text_that_was_really_seen_is_called_what_it_is_whatever_code_is_beside_it(
    text: str, where: str, kind: str
) -> None:
    found = failure(Error(errors=[Errors(code=where.removeprefix("inst").strip(), message=text)]))
    assert found.kind == FailureKind(kind)


@pytest.mark.parametrize(("code", "message", "kind"), FAILURES)
def test_a_failure_is_told_by_its_code_and_if_that_says_little_by_its_text(
    code: str, message: str, kind: FailureKind
) -> None:
    found = failure(Error(errors=[Errors(code=code, message=message)]))
    assert found.kind is kind
    assert found.message == (": ".join(filter(None, (code, message))) or "Compute Engine gives no reason.")


def test_of_several_errors_one_that_does_not_pass_counts() -> None:
    def told_of(*codes: str) -> Failure | None:
        return worst([Errors(code=code, message="") for code in codes])

    stockout, quota = "ZONE_RESOURCE_POOL_EXHAUSTED", "QUOTA_EXCEEDED"
    assert told_of() is None
    assert told_of(stockout, quota, stockout) == Failure(FailureKind.QUOTA, quota)
    assert told_of(stockout, "INTERNAL_ERROR") == Failure(FailureKind.STOCKOUT, stockout)


def test_an_operation_that_failed_without_errors_gives_no_reason() -> None:
    assert failure(Error()) == Failure(FailureKind.UNKNOWN, "Compute Engine gives no reason.")


@pytest.mark.parametrize("kind", [FailureKind.QUOTA, FailureKind.CONFIGURATION, FailureKind.RESERVATION])
def test_what_somebody_has_to_change_does_not_pass(kind: Any) -> None:
    assert kind not in PASSING

"""Google's errors, and the kinds of failure they become: one row per text that was seen or is documented."""

from __future__ import annotations

from pathlib import Path

import pytest
from google.api_core import exceptions as google

from tpu_slices.adapters.cloud_errors import failure, refusal, shortened
from tpu_slices.domain.model.observations import Failure, FailureKind
from tpu_slices.ports.errors import Temporary

POOL = "projects/demo-project/locations/us-central2/clusters/demo/nodePools/tpu-llama-slice-0-oahqlz77blgqd-1"
INSTANCE = "Instance 'gke-demo-tpu-llama-97da88a9-8gmv' creation failed:"
NOT_ALL = "Not all instances running in IGM after 35m0.2s. Expected 4, running 0, transitioning 4. Current errors:"

REFUSALS: list[tuple[type[google.GoogleAPICallError], str, FailureKind]] = [
    (google.AlreadyExists, f"Already exists: {POOL}.", FailureKind.NAME_TAKEN),
    (google.Conflict, f"Already exists: {POOL}.", FailureKind.NAME_TAKEN),
    (
        google.ResourceExhausted,
        'Too many operations: cluster "demo" hits the concurrent operations quota 5, please try again later.',
        FailureKind.RATE,
    ),
    (
        google.ResourceExhausted,
        "Quota exceeded for quota metric 'Cluster requests' and limit 'Cluster requests per minute' of service.",
        FailureKind.RATE,
    ),
    (google.TooManyRequests, "Slow down.", FailureKind.RATE),
    (
        google.Forbidden,
        "Insufficient regional quota to satisfy request: resource 'TPU_V5E': requires '16.0'.",
        FailureKind.QUOTA,
    ),
    (google.ResourceExhausted, "Insufficient quota to satisfy the request.", FailureKind.QUOTA),
    (google.BadRequest, "Cluster byte size limit reached.", FailureKind.QUOTA),
    (
        google.FailedPrecondition,
        "Cluster is running incompatible operation operation-1596064640049-1b03e177.",
        FailureKind.BUSY,
    ),
    (
        google.BadRequest,
        "Operation operation-1596064640049-1b03e177 is currently upgrading cluster demo. Please wait and try again.",
        FailureKind.BUSY,
    ),
    (google.FailedPrecondition, "Please try again later.", FailureKind.BUSY),
    (google.Aborted, "Concurrent change.", FailureKind.BUSY),
    (
        google.InvalidArgument,
        "Cannot find pod range with enough available IPs for nodepool.",
        FailureKind.IP_SPACE,
    ),
    (
        google.InvalidArgument,
        'The network "default" does not have available private IP space in 10.0.0.0/8 to reserve a /22 block.',
        FailureKind.IP_SPACE,
    ),
    (
        google.ResourceExhausted,
        'Reservation does not have enough resources for the request: insufficient for node pool "tpu".',
        FailureKind.RESERVATION,
    ),
    (
        google.InvalidArgument,
        "TPU topology can't be specified with single-host TPU slice pool; please remove the tpu_topology.",
        FailureKind.IMPOSSIBLE,
    ),
    (
        google.InvalidArgument,
        "Initial node count 3 is not a valid size of TPU pod slice with topology 4x4",
        FailureKind.IMPOSSIBLE,
    ),
    (
        google.InvalidArgument,
        "Auto_upgrade cannot be false when release_channel REGULAR is set.",
        FailureKind.CONFIGURATION,
    ),
    (
        google.NotFound,
        "Not found: projects/demo-project/regions/us-central2/subnetworks/tpu.",
        FailureKind.CONFIGURATION,
    ),
    (
        google.PermissionDenied,
        'Required "container.clusters.update" permission(s) for "projects/demo-project".',
        FailureKind.CONFIGURATION,
    ),
    (
        google.NotFound,
        "Not found: projects/p/zones/us-east5-a/reservations/hall-7.",
        FailureKind.RESERVATION_AWAITED,
    ),
    (
        google.BadRequest,
        "The resource 'projects/p/zones/us-east5-a/reservations/hall-7' was not found",
        FailureKind.RESERVATION_AWAITED,
    ),
    (google.MethodNotImplemented, "Pools of no nodes are not implemented.", FailureKind.CONFIGURATION),
]

FAILURES: list[tuple[int, str, FailureKind]] = [
    (
        8,
        f"Google Compute Engine: {NOT_ALL} [GCE_STOCKOUT]: {INSTANCE} The zone does not have enough resources.",
        FailureKind.STOCKOUT,
    ),
    (0, "Atomic resize failed with [GCE_STOCKOUT].", FailureKind.STOCKOUT),
    (1, "Cancelled. Current errors: [GCE_STOCKOUT].", FailureKind.UNKNOWN),
    (0, "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS", FailureKind.STOCKOUT),
    (0, "The zone does not have enough resources available to fulfill the request.", FailureKind.STOCKOUT),
    (0, "Zone does not currently have sufficient capacity for the requested resources.", FailureKind.STOCKOUT),
    (0, "Atomic resize failed with [IP_SPACE_EXHAUSTED_WITH_DETAILS].", FailureKind.IP_SPACE),
    (8, f"{INSTANCE} Quota 'TPU_CHIPS' exceeded.  Limit: 0.0 in region us-central2.", FailureKind.QUOTA),
    (8, f"Insufficient quota to satisfy the request: {NOT_ALL} [GCE_QUOTA_EXCEEDED]", FailureKind.QUOTA),
    (0, "Specified reservation hall-7 does not exist.", FailureKind.RESERVATION_AWAITED),
    (0, "Specified reservations hall-7 and hall-8 do not exist.", FailureKind.RESERVATION_AWAITED),
    (0, "The reservation hall-7 does not have available resources for the request.", FailureKind.RESERVATION),
    (0, "No available resources in specified reservations.", FailureKind.RESERVATION),
    (0, "To be consumed it requires reservation to be in READY state.", FailureKind.RESERVATION_AWAITED),
    (0, "There is no automatic reservation matching the VM.", FailureKind.RESERVATION),
    (0, "All automatic reservations in the zone are fully consumed.", FailureKind.RESERVATION),
    (9, "CONDITION_NOT_MET: Unsupported TPU configuration.", FailureKind.IMPOSSIBLE),
    (7, "The caller may not act as this service account.", FailureKind.CONFIGURATION),
    (0, "PERMISSIONS_ERROR", FailureKind.CONFIGURATION),
    (9, "Constraint constraints/compute.vmExternalIpAccess violated for project 1.", FailureKind.CONFIGURATION),
    (8, "Something ran out.", FailureKind.EXHAUSTED),
    (8, "", FailureKind.EXHAUSTED),
    (0, 'reservation "hall-7": Insufficient reserved capacity.', FailureKind.RESERVATION),
    (8, 'There is no more capacity in the zone "us-east5-a" for the reservation hall-7.', FailureKind.STOCKOUT),
    (
        9,
        "A n1-standard-4 VM instance with 1 nvidia-tesla-t4 accelerator(s) is currently unavailable in the us-a zone.",
        FailureKind.STOCKOUT,
    ),
    (
        9,
        "The reservation hall-7 cannot serve it: reservation sub-block hall-7-s3 is not healthy.",
        FailureKind.RESERVATION,
    ),
    (9, "Reservation subBlock hall-7-s3 is not healthy", FailureKind.RESERVATION),
    (
        5,
        "The resource 'projects/p/zones/us-east5-a/reservations/hall-7' was not found",
        FailureKind.RESERVATION_AWAITED,
    ),
    (5, "Reservation 'hall-7' not found in zone us-east5-a.", FailureKind.RESERVATION_AWAITED),
    (13, "only 2 nodes out of 4 have registered; cluster may be unhealthy.", FailureKind.UNKNOWN),
    (1, "Cancelled.", FailureKind.UNKNOWN),
]

UNKNOWN_OUTCOMES: list[tuple[type[google.GoogleAPICallError], str]] = [
    (google.ServiceUnavailable, "The service is currently unavailable."),
    (google.InternalServerError, "Internal error encountered."),
    (google.GatewayTimeout, "Deadline exceeded."),
    (google.DeadlineExceeded, "Deadline Exceeded"),
    (google.BadGateway, "GCE_STOCKOUT"),
    (google.Unknown, "Stream removed"),
    (google.Cancelled, "Cancelled."),
    (google.Unauthenticated, "Request had invalid authentication credentials."),
]


TEXTS = [
    line.split("\t")
    for line in (Path(__file__).parents[1] / "data" / "error_texts.tsv").read_text().splitlines()
    if not line.startswith(("#", "text\t"))
]
REFUSED: dict[str, type[google.GoogleAPICallError]] = {
    "HTTP 400": google.BadRequest,
    "HTTP 403": google.Forbidden,
    "HTTP 404": google.NotFound,
    "HTTP 429": google.TooManyRequests,
}


@pytest.mark.parametrize(("text", "where", "code", "kind", "source"), TEXTS, ids=lambda value: str(value)[:40])
def test_a_text_that_was_really_seen_is_called_what_it_is(
    text: str, where: str, code: str, kind: str, source: str
) -> None:
    assert source
    found = refusal(REFUSED[where](text)) if where in REFUSED else failure(int(code), [text])
    assert isinstance(found, Failure)
    assert found.kind == FailureKind(kind)


@pytest.mark.parametrize(("error", "text", "kind"), REFUSALS, ids=lambda value: str(value)[:40])
def test_a_refusal_has_a_kind_and_googles_message(
    error: type[google.GoogleAPICallError], text: str, kind: FailureKind
) -> None:
    assert refusal(error(text)) == Failure(kind, text)


@pytest.mark.parametrize(("code", "text", "kind"), FAILURES, ids=lambda value: str(value)[:40])
def test_a_failed_operations_kind_follows_from_its_error(code: int, text: str, kind: FailureKind) -> None:
    assert failure(code, [text]).kind is kind


@pytest.mark.parametrize(("error", "text"), UNKNOWN_OUTCOMES, ids=lambda value: str(value)[:40])
def test_an_unknown_outcome_is_temporary_whatever_the_text(error: type[google.GoogleAPICallError], text: str) -> None:
    refused = refusal(error(text))
    assert isinstance(refused, Temporary)
    assert str(refused) == f"{error.__name__}: {text}"


def test_a_read_that_timed_out_is_temporary() -> None:
    gave_up: type[google.GoogleAPIError] = google.RetryError
    refused = refusal(gave_up("Timeout of 8.0s exceeded", None))
    assert isinstance(refused, Temporary)
    assert str(refused).startswith("RetryError: Timeout of 8.0s exceeded")


@pytest.mark.parametrize(
    ("condition", "kind"),
    [
        ("GCE_STOCKOUT", FailureKind.STOCKOUT),
        ("GCE_QUOTA_EXCEEDED", FailureKind.QUOTA),
        ("GKE_SERVICE_ACCOUNT_DELETED", FailureKind.CONFIGURATION),
        ("NODE_SERVICE_ACCOUNT_MISSING_PERMISSIONS", FailureKind.CONFIGURATION),
        ("CLOUD_KMS_KEY_ERROR", FailureKind.CONFIGURATION),
        ("CLOUD_KMS_KEY_DESTROYED", FailureKind.CONFIGURATION),
        ("SET_BY_OPERATOR", FailureKind.UNKNOWN),
    ],
)
def test_a_condition_decides_the_kind_of_a_failure_whose_message_does_not(condition: str, kind: FailureKind) -> None:
    assert failure(0, ["It did not work."], ["CA_EXPIRING", condition]) == Failure(kind, "It did not work.")


def test_the_message_decides_before_the_conditions() -> None:
    text = "No available resources in specified reservations."
    assert failure(8, [text], ["GCE_STOCKOUT"]).kind is FailureKind.RESERVATION


def test_the_kind_may_follow_from_a_text_that_is_not_shown() -> None:
    detail = f"Insufficient quota to satisfy the request: {NOT_ALL} [GCE_QUOTA_EXCEEDED]"
    assert failure(0, ["", "It did not work.", detail]) == Failure(FailureKind.QUOTA, "It did not work.")


def test_a_failure_without_a_message_says_that_gke_gives_no_reason() -> None:
    assert failure(0, [""]) == Failure(FailureKind.UNKNOWN, "GKE gives no reason.")


@pytest.mark.parametrize(
    "jobset", ["gce-stockout", "quota-exceeded", "tpu-topology", "too-many-operations", "permissions-error"]
)
def test_a_jobsets_name_is_not_taken_for_an_error(jobset: str) -> None:
    invalid: type[google.GoogleAPICallError] = google.InvalidArgument
    refused = refusal(invalid(f"Invalid value for node pool tpu-{jobset}-0-oahqlz77blgqd-1."))
    assert isinstance(refused, Failure)
    assert refused.kind is FailureKind.CONFIGURATION


def test_a_message_is_one_line_of_at_most_300_characters() -> None:
    assert shortened("first\n  second\tthird ") == "first second third"
    assert shortened("x" * 300) == "x" * 300
    assert len(shortened("x" * 301)) == 300


def test_a_long_message_keeps_its_beginning_and_its_end() -> None:
    cause = f"[GCE_STOCKOUT]: {INSTANCE} The zone does not have enough resources available to fulfill the request."
    message = shortened(f"Google Compute Engine: {NOT_ALL} {NOT_ALL} {cause}")
    assert message.startswith("Google Compute Engine: Not all instances")
    assert message.endswith(cause)


@pytest.mark.parametrize(
    "secret",
    [
        "ya29.a0AfH6SMBx-12_3",
        "eyJhbGciOi.eyJpc3MiOi.c2lnbmF0dXJl",
        "Bearer c29tZS10b2tlbg==",
        "https://container.googleapis.com/v1/projects?access_token=c29tZS10b2tlbg==",
        "AIzaSyA1234567890abcdefghijklmnopqrstuv",
    ],
)
def test_credentials_are_left_out(secret: str) -> None:
    message = shortened(f"Request failed: {secret} was not accepted.")
    assert "[redacted]" in message
    assert secret not in message
    assert "c29tZS10b2tlbg" not in message
    assert message.endswith(" was not accepted.")


def test_credentials_are_left_out_before_the_text_is_cut() -> None:
    assert "ya29" not in shortened(f"{'x' * 290} ya29.{'a' * 100}")

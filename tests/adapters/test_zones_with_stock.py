"""The zones in which Google says that there is stock, when it refuses hosts for lack of it."""

from __future__ import annotations

import pytest
from google.api_core import exceptions as google
from google.cloud.compute_v1.types import ErrorDetails, ErrorInfo, Errors

from tpu_slices.adapters import cloud_errors
from tpu_slices.adapters.compute.errors import worst
from tpu_slices.domain.model.observations import Failure, FailureKind

ELSEWHERE = (
    "A ct6e-standard-4t VM instance is currently unavailable in the us-central1-b zone. Consider trying your request "
    "in the us-central1-a, us-central1-f zone(s), which currently has capacity to accommodate your request."
)
NOWHERE = "The zone 'projects/p/zones/us-central1-b' does not have enough resources available to fulfill the request."


@pytest.mark.parametrize(("text", "zones"), [(ELSEWHERE, ("us-central1-a", "us-central1-f")), (NOWHERE, ())])
def test_an_operation_of_gke_that_failed_says_where_there_is_stock(text: str, zones: tuple[str, ...]) -> None:
    why = cloud_errors.failure(9, [text])
    assert (why.kind, why.zones) == (FailureKind.STOCKOUT, zones)


def test_a_call_that_was_refused_says_where_there_is_stock() -> None:
    raised: type[google.GoogleAPIError] = google.ResourceExhausted
    why = cloud_errors.refusal(raised(ELSEWHERE))
    assert isinstance(why, Failure)
    assert why.zones == ("us-central1-a", "us-central1-f")


@pytest.mark.parametrize("message", [NOWHERE, ELSEWHERE], ids=["in its details", "in its text, too"])
def test_an_error_of_compute_engine_has_the_zones_in_its_details(message: str) -> None:
    info = ErrorInfo(
        reason="resource_availability",
        metadatas={"zone": "us-central1-b", "zonesAvailable": "us-central1-a,us-central1-f"},
    )
    error = Errors(
        code="ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS",
        message=message,
        error_details=[ErrorDetails(error_info=info)],
    )
    why = worst([error])
    assert why is not None
    assert (why.kind, why.zones) == (FailureKind.STOCKOUT, ("us-central1-a", "us-central1-f"))

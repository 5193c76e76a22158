"""Faults injected into the API server."""

import asyncio
from typing import Any

import pytest
from starlette.requests import Request

from infra.local.cluster.errors import ApiError
from infra.local.cluster.faults import Faults


def codes(*paths: str, **wish: Any) -> list[int]:
    """Inject a 503 response; return the code that each request to a path gets; 200: the server's own response."""

    async def ask() -> list[int]:
        faults = Faults()
        faults.add({"resource": "pods", "code": 503, **wish})
        scopes = [{"type": "http", "method": "GET", "path": path, "query_string": b"", "headers": []} for path in paths]
        answers = [await faults.answer(Request(scope)) for scope in scopes]
        return [answer.status_code if answer else 200 for answer in answers]

    return asyncio.run(ask())


def test_only_requests_for_what_is_named_meet_it() -> None:
    assert codes("/api/v1/pods", "/api/v1/nodes") == [503, 200]


def test_a_share_of_the_requests_is_struck_evenly() -> None:
    assert codes(*["/api/v1/pods"] * 6, share=0.5) == [200, 503, 200, 503, 200, 503]


def test_it_is_worn_out_by_the_requests_it_struck() -> None:
    assert codes(*["/api/v1/pods"] * 6, share=0.5, times=1) == [200, 503, 200, 200, 200, 200]


def test_it_ends_when_its_time_is_over() -> None:
    assert codes("/api/v1/pods", **{"for": 0}) == [200]
    assert codes("/api/v1/pods", **{"for": 3600}) == [503]


@pytest.mark.parametrize("field", ["colour", "met", "until"])
def test_a_field_that_is_not_to_be_wished_is_refused(field: str) -> None:
    with pytest.raises(ApiError) as refused:
        codes("/api/v1/pods", **{field: 1})
    assert refused.value.code == 422

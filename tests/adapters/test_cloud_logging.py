"""Whether Cloud Logging counts the lines of an event, over HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from google.auth.credentials import AnonymousCredentials
from google.auth.transport.requests import AuthorizedSession

from tests.builders import NOW
from tests.infra.loopback import Request, Response, refusal, serving
from tpu_slices.adapters.cloud_logging import CloudLogging
from tpu_slices.ports.errors import Permanent, Temporary
from tpu_slices.ports.log_events import LogEvent

pytestmark = pytest.mark.enable_socket

METRIC = "/v2/projects/shop/metrics/tpu-slices/sweep.completed"


@dataclass
class Logging:
    """One metric, and the entries that its filter matches."""

    entries: list[dict[str, Any]] = field(default_factory=list)
    refuses: dict[str, int] = field(default_factory=dict)
    asked: dict[str, Any] = field(default_factory=dict)
    url: str = ""

    def answer(self, request: Request) -> Response:
        if request.path in self.refuses:
            return refusal(self.refuses[request.path], "no")
        if request.path == METRIC:
            return Response({"name": "tpu-slices/sweep.completed", "filter": "a=1 OR b=2"})
        assert (request.method, request.path) == ("POST", "/v2/entries:list")
        self.asked = request.body
        return Response({"entries": self.entries} if self.entries else {"nextPageToken": "more"})


@pytest.fixture
def logging() -> Iterator[Logging]:
    made = Logging()
    with serving(made.answer) as made.url:
        yield made


def counts(logging: Logging) -> bool:
    with AuthorizedSession(AnonymousCredentials()) as session:  # type: ignore[no-untyped-call]
        return CloudLogging(session, "shop", logging.url).counts(LogEvent.SWEEP_COMPLETED, NOW)


def test_a_line_counts_if_the_filter_of_the_metric_as_it_is_deployed_matches_it(logging: Logging) -> None:
    assert counts(logging) is False
    logging.entries = [{"jsonPayload": {"event": "sweep.completed"}}]
    assert counts(logging) is True
    assert logging.asked["filter"] == f'(a=1 OR b=2) AND timestamp>="{NOW.isoformat()}"'
    assert logging.asked["resourceNames"] == ["projects/shop"]


@pytest.mark.parametrize(
    ("path", "status", "error"),
    [
        (METRIC, 404, Permanent),
        (METRIC, 403, Permanent),
        ("/v2/entries:list", 403, Permanent),
        ("/v2/entries:list", 429, Temporary),
        (METRIC, 503, Temporary),
    ],
)
def test_what_is_refused_is_an_error_and_not_a_line_that_is_missing(
    logging: Logging, path: str, status: int, error: type[Exception]
) -> None:
    logging.refuses[path] = status
    with pytest.raises(error, match=f"Cloud Logging: {status} no"):
        counts(logging)


def test_that_nobody_answers_is_temporary(logging: Logging) -> None:
    with serving(logging.answer) as gone:
        pass
    logging.url = gone
    with pytest.raises(Temporary, match="does not answer"):
        counts(logging)

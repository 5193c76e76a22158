"""The webhook's server, asked over TLS on loopback as an API server asks it."""

from __future__ import annotations

import http.client
import json
import socket
import ssl
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

import pytest

from relay.webhook import server
from relay.webhook.authorities import LIFE, Authority, bundle_of, identity_of
from relay.webhook.certificates import load
from relay.webhook.placing import Options
from relay.webhook.server import MOST_BYTES, Server, Webhook
from tests.builders import NOW
from tests.infra.admission.pods import of_jobset
from tests.relay.webhook.test_reviews import asked
from tpu_standins.patience import PATIENCE_SECONDS

pytestmark = [pytest.mark.enable_socket, pytest.mark.emulators]
HOST = "127.0.0.1"


@dataclass(frozen=True)
class Served:
    """A webhook that is served, and an API server that trusts some authorities."""

    webhook: Webhook
    server: Server
    context: ssl.SSLContext

    def connection(self, *trusted: Authority) -> http.client.HTTPSConnection:
        trust = ssl.create_default_context(cadata=bundle_of(trusted).decode())
        return http.client.HTTPSConnection(HOST, self.server.port, timeout=PATIENCE_SECONDS, context=trust)

    def serve_with(self, authority: Authority) -> None:
        load(self.context, identity_of(authority, (HOST,)).chain)


@pytest.fixture
def authority() -> Authority:
    return Authority.make(NOW, LIFE * 1000)


@pytest.fixture
def served(authority: Authority) -> Iterator[Served]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    webhook = Webhook(Options())
    made = Served(webhook, Server(webhook, (HOST, 0), context), context)
    made.serve_with(authority)
    thread = threading.Thread(target=made.server.run)
    thread.start()
    yield made
    made.server.stop()
    thread.join(PATIENCE_SECONDS)
    assert not thread.is_alive()


def said(
    connection: http.client.HTTPSConnection, method: str, path: str, body: bytes | None = None
) -> tuple[int, bytes]:
    connection.request(method, path, body)
    response = connection.getresponse()
    return response.status, response.read()


def test_pods_are_judged_one_after_the_other_on_one_connection(served: Served, authority: Authority) -> None:
    with closing(served.connection(authority)) as connection:
        for _ in range(3):
            status, body = said(connection, "POST", "/pods?timeout=10s", asked(of_jobset()))
            assert status == HTTPStatus.OK
            assert "patch" in json.loads(body)["response"]
            assert connection.sock is not None


@pytest.mark.parametrize(
    ("asked_for", "status"),
    [
        (("POST", "/pods", b"no review"), HTTPStatus.BAD_REQUEST),
        (("POST", "/pods", b" " * (MOST_BYTES + 1)), HTTPStatus.REQUEST_ENTITY_TOO_LARGE),
        (("GET", "/pods"), HTTPStatus.NOT_FOUND),
        (("POST", "/other", b"{}"), HTTPStatus.NOT_FOUND),
        (("GET", "/healthz"), HTTPStatus.OK),
        (("GET", "/readyz"), HTTPStatus.OK),
    ],
    ids=lambda value: str(value)[:20],
)
def test_what_it_cannot_answer_it_says_so(
    served: Served, authority: Authority, asked_for: Sequence[Any], status: HTTPStatus
) -> None:
    with closing(served.connection(authority)) as connection:
        assert said(connection, *asked_for)[0] == status


def test_a_new_certificate_is_served_to_new_connections_while_old_ones_go_on(
    served: Served, authority: Authority
) -> None:
    another = Authority.make(NOW, LIFE * 1000)
    with closing(served.connection(authority)) as old:
        assert said(old, "GET", "/healthz")[0] == HTTPStatus.OK
        served.serve_with(another)
        assert said(old, "GET", "/healthz")[0] == HTTPStatus.OK
    with closing(served.connection(another)) as new:
        assert said(new, "GET", "/healthz")[0] == HTTPStatus.OK
    with closing(served.connection(authority)) as refused, pytest.raises(ssl.SSLCertVerificationError):
        said(refused, "GET", "/healthz")


def test_before_it_ends_it_answers_and_closes_each_connection_after_the_answer(
    served: Served, authority: Authority
) -> None:
    with closing(served.connection(authority)) as connection:
        assert said(connection, "GET", "/readyz")[0] == HTTPStatus.OK
        served.webhook.is_ending = True
        assert said(connection, "POST", "/pods", asked(of_jobset()))[0] == HTTPStatus.OK
        assert connection.sock is None
        assert said(connection, "GET", "/readyz")[0] == HTTPStatus.SERVICE_UNAVAILABLE
        assert said(connection, "GET", "/healthz")[0] == HTTPStatus.OK


def test_a_connection_that_does_not_ask_and_a_review_that_does_not_come_are_given_up(
    served: Served, authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "ASKED_WITHIN", 0.1)
    with closing(served.connection(authority)) as silent:
        silent.connect()
        assert silent.sock.recv(1) == b""
    with closing(served.connection(authority)) as slow:
        slow.putrequest("POST", "/pods")
        slow.putheader("Content-Length", "10")
        slow.endheaders(b"begun")
        assert slow.getresponse().status == HTTPStatus.REQUEST_TIMEOUT


def test_many_connections_that_say_nothing_keep_nobody_from_an_answer(served: Served, authority: Authority) -> None:
    with ExitStack() as silent:
        for _ in range(200):
            silent.enter_context(closing(served.connection(authority))).connect()
        with closing(served.connection(authority)) as connection:
            assert said(connection, "POST", "/pods", asked(of_jobset()))[0] == HTTPStatus.OK


def test_connections_that_say_nothing_hold_up_nobody(served: Served, authority: Authority) -> None:
    silent = [socket.create_connection((HOST, served.server.port)) for _ in range(50)]
    with closing(served.connection(authority)) as connection:
        assert said(connection, "POST", "/pods", asked(of_jobset()))[0] == HTTPStatus.OK
    for each in silent:
        each.close()

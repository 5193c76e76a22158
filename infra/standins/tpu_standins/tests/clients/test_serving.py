"""The webhooks' server speaks HTTPS on loopback, and several requests on a connection."""

from __future__ import annotations

import http.client
import ssl
from collections.abc import Iterator
from datetime import UTC, datetime
from urllib.parse import urlsplit

import orjson
import pytest

from tpu_standins.certificates import certificates
from tpu_standins.clients.objects import Object
from tpu_standins.clients.serving import HOST, serving
from tpu_standins.patience import PATIENCE_SECONDS

pytestmark = pytest.mark.enable_socket


def echo(path: str, asked: Object) -> Object | None:
    return {"echo": asked["say"]} if path == "/echo" else None


@pytest.fixture
def connection() -> Iterator[http.client.HTTPSConnection]:
    own = certificates(HOST, datetime.now(UTC))
    trust = ssl.create_default_context(cadata=own.authority.decode())
    with serving(0, own.context(), echo) as address:
        opened = http.client.HTTPSConnection(HOST, urlsplit(address).port, timeout=PATIENCE_SECONDS, context=trust)
        yield opened
        opened.close()


def posted(connection: http.client.HTTPSConnection, path: str, body: bytes) -> tuple[int, bytes]:
    connection.request("POST", path, body, {"Content-Type": "application/json"})
    response = connection.getresponse()
    return response.status, response.read()


def test_it_answers_again_and_again_on_one_connection(connection: http.client.HTTPSConnection) -> None:
    for word in ("one", "two"):
        code, body = posted(connection, "/echo?timeout=10s", orjson.dumps({"say": word}))
        assert (code, orjson.loads(body)) == (200, {"echo": word})


def test_other_paths_and_bodies_are_refused(connection: http.client.HTTPSConnection) -> None:
    assert posted(connection, "/other", b"{}")[0] == 404
    connection.close()
    assert posted(connection, "/echo", b"no json")[0] == 400
    connection.close()
    assert posted(connection, "/echo", b"{}")[0] == 400


def test_after_the_block_nobody_listens() -> None:
    with serving(0, ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), echo) as address:
        port = urlsplit(address).port
    assert port
    with pytest.raises(ConnectionRefusedError):
        http.client.HTTPSConnection(HOST, port, timeout=PATIENCE_SECONDS).request("GET", "/")

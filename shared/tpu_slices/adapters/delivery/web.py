"""Posts JSON to a URL. Redirects are not followed, and nothing of the answer is read but its status."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from http.client import HTTPConnection, HTTPException
from urllib.parse import urlsplit

from tpu_slices.adapters.delivery.reach import TIMEOUT, connected
from tpu_slices.ports.errors import Permanent, Temporary

_OK = range(200, 300)
_LATER = frozenset({408, 425, 429})
_ERRORS = range(500, 600)


def post(url: str, data: bytes, headers: Mapping[str, str], context: ssl.SSLContext, *, private: bool) -> None:
    """Post data. Temporary: the target may take it later. Permanent: it refuses it."""
    parts = urlsplit(url)
    host, secure = parts.hostname or "", parts.scheme == "https"
    connection = HTTPConnection(host, parts.port, timeout=TIMEOUT)
    connection.default_port = 443 if secure else 80
    port = parts.port or connection.default_port
    path = f"{parts.path or '/'}{f'?{parts.query}' if parts.query else ''}"
    try:
        plain = connected(host, port, private=private)
        connection.sock = context.wrap_socket(plain, server_hostname=host) if secure else plain
        connection.request("POST", path, data, {"content-type": "application/json", **headers})
        status = connection.getresponse().status
    except (OSError, HTTPException) as error:
        raise Temporary(f"it does not answer: {type(error).__name__}") from None
    finally:
        connection.close()
    if status in _LATER or status in _ERRORS:
        raise Temporary(f"it answers {status}")
    if status not in _OK:
        raise Permanent(f"it answers {status}")

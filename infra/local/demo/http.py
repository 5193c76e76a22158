"""HTTP to the local stack, bypassing any proxy that the user has configured."""

import json
from collections.abc import Mapping
from typing import Any
from urllib.request import ProxyHandler, Request, build_opener

from tpu_standins.patience import PATIENCE_SECONDS

OPENER = build_opener(ProxyHandler({}))


def get_json(url: str) -> Any:
    with OPENER.open(url, timeout=PATIENCE_SECONDS) as answer:
        return json.loads(answer.read())


def press(url: str, body: Mapping[str, Any] | None = None, *, method: str = "POST") -> None:
    """Press a button of the stack. Raise HTTPError if it is refused."""
    data = None if body is None else json.dumps(body).encode()
    OPENER.open(Request(url, data, method=method), timeout=PATIENCE_SECONDS).close()  # noqa: S310 - our own URL

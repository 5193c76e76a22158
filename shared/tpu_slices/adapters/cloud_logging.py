"""The metrics of log lines in Cloud Logging, asked over REST: each counts the lines that its filter matches."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any
from urllib.parse import quote

import google.auth
import requests
from google.auth.exceptions import GoogleAuthError
from google.auth.transport.requests import AuthorizedSession

from tpu_slices.ports.errors import Permanent, Temporary
from tpu_slices.ports.log_events import LogEvent

URL = "https://logging.googleapis.com"
TIMEOUT = 20.0
"""Seconds for one call."""
_SCOPES = ("https://www.googleapis.com/auth/cloud-platform",)
_OK, _REFUSED = 200, {401, 403, 404}


def connect() -> AuthorizedSession:
    """Return a session with the credentials of this environment. Temporary: there are none."""
    try:
        credentials, _ = google.auth.default(scopes=_SCOPES)
    except GoogleAuthError as error:
        raise Temporary(str(error)) from error
    return AuthorizedSession(credentials)  # type: ignore[no-untyped-call]


class CloudLogging:
    """The port `LogLines` in one project.

    The filter is the metric's own, as it is deployed. `entries.list` may also end early without an entry; whoever asks
    asks again (google.logging.v2 ListLogEntriesResponse).
    """

    def __init__(self, session: Any, project: str, url: str = URL) -> None:
        self._session = session
        self._project = project
        self._url = url

    def counts(self, event: LogEvent, since: datetime) -> bool:
        name = quote(f"tpu-slices/{event}", safe="")
        metric = self._ask("GET", f"projects/{self._project}/metrics/{name}")
        wanted = {
            "resourceNames": [f"projects/{self._project}"],
            "filter": f'({metric.get("filter", "")}) AND timestamp>="{since.isoformat()}"',
            "orderBy": "timestamp desc",
            "pageSize": 1,
        }
        return bool(self._ask("POST", "entries:list", json=wanted).get("entries"))

    def _ask(self, method: str, path: str, **more: Any) -> Any:
        try:
            response = self._session.request(method, f"{self._url}/v2/{path}", timeout=TIMEOUT, **more)
            body = response.json()
        except (requests.RequestException, GoogleAuthError, json.JSONDecodeError) as error:
            raise Temporary(f"Cloud Logging does not answer: {error}") from error
        if response.status_code == _OK:
            return body
        why = f"Cloud Logging: {response.status_code} {body.get('error', {}).get('message', '')}"
        raise (Permanent if response.status_code in _REFUSED else Temporary)(why)

"""Google's APIs that have no client here, asked over REST."""

from __future__ import annotations

import json
from typing import Any

import google.auth
import requests
from google.auth.exceptions import GoogleAuthError
from google.auth.transport.requests import AuthorizedSession

from tpu_slices.ports.errors import Permanent, Temporary

TIMEOUT = 20.0
"""Seconds for one call."""
_SCOPES = ("https://www.googleapis.com/auth/cloud-platform",)
_OK, _REFUSED, _MISSING = 200, {401, 403}, 404


class Missing(Permanent):
    """What was asked for is not there."""


def connect() -> AuthorizedSession:
    """Return a session with the credentials of this environment. Temporary: there are none."""
    try:
        credentials, _ = google.auth.default(scopes=_SCOPES)
    except GoogleAuthError as error:
        raise Temporary(str(error)) from error
    return AuthorizedSession(credentials)  # type: ignore[no-untyped-call]


def ask(session: Any, api: str, method: str, url: str, *, seconds: float = TIMEOUT, **more: Any) -> Any:
    """Return what an API answers; raise Permanent if it refuses or has nothing there, else Temporary."""
    try:
        response = session.request(method, url, timeout=seconds, **more)
        body = response.json()
    except (requests.RequestException, GoogleAuthError, json.JSONDecodeError) as error:
        raise Temporary(f"{api} does not answer: {error}") from error
    code = response.status_code
    if code == _OK:
        return body
    why = f"{api}: {code} {body.get('error', {}).get('message', '')}"
    if code == _MISSING:
        raise Missing(why)
    raise (Permanent if code in _REFUSED else Temporary)(why)
